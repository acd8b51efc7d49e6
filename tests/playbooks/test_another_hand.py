"""A file that another hand changed since this tool wrote it stops the next step, which shows the change."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path

import pytest
from played import restart_broker
from stand_in_node import SECRET, Node

from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.hosts.migration_guard import guarded_controllers
from kraft_runbook.io.hosts.playbooks import play
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.restart.plays import restart_node


@pytest.fixture
def written(node: Node) -> Node:
    """Broker 1 in ZooKeeper mode, its files written by a step."""
    to(node.spec)
    return node


def to(spec: ClusterSpec, mode: BrokerMode = BrokerMode.ZOOKEEPER, *, check: bool = False) -> tuple[str, ...]:
    return restart_broker(spec, 1, mode, secrets=environment_secrets(), check=check).changed


def config(node: Node) -> Path:
    return Path(node.spec.broker(1).config_file)


def edit(node: Node, old: str, new: str) -> None:
    text = config(node).read_text()
    assert old in text
    config(node).write_text(text.replace(old, new))


def test_the_step_stops_before_anything_and_shows_what_was_changed(written: Node) -> None:
    edit(written, "a.boolean=true", "a.boolean=false\nnum.io.threads=4\nssl.key.password=Hunter2.planted")
    before, pid = written.files(), written.pid()
    for check in (True, False):
        with pytest.raises(StepFailed) as stopped:
            to(written.spec, check=check)
        said = stopped.value.problem + stopped.value.way_out
        assert f"another hand changed {config(written)}" in said
        assert all(line in said for line in ("-a.boolean=true", "+a.boolean=false", "+num.io.threads=4"))
        assert "+ssl.key.password=<set>" in said and "Hunter2" not in said
        assert "stop whatever else writes it, such as configuration management" in said
    assert (written.files(), written.pid(), len(written.starts())) == (before, pid, 1)
    records = {each.name: each for each in written.directory.rglob(".*.kraft-runbook")}
    assert records.keys() == {".server.properties.kraft-runbook", ".secrets.properties.kraft-runbook"}
    for each in records.values():
        assert each.stat().st_mode & 0o777 == 0o600
        assert SECRET not in each.read_text() and "planted{{" not in each.read_text()


def test_a_change_that_is_taken_into_the_cluster_file_is_no_objection(written: Node) -> None:
    edit(written, "a.boolean=true", "a.boolean=false")
    broker = written.spec.broker(1)
    changed = broker.model_copy(update={"properties": {**broker.properties, "a.boolean": "false"}})
    to(written.spec.model_copy(update={"brokers": (changed,)}))
    assert len(written.starts()) == 2
    with_it = config(written).read_text()
    to(written.spec.model_copy(update={"brokers": (changed,)}))  # what was written is this tool's again
    assert (config(written).read_text(), len(written.starts())) == (with_it, 2)


@pytest.mark.long
def test_without_its_record_the_file_is_written_over_and_kept(written: Node) -> None:
    config(written).write_text("# another tool's\nbroker.id=1\n")
    with pytest.raises(StepFailed, match="another hand changed") as stopped:
        to(written.spec)
    record = config(written).with_name(".server.properties.kraft-runbook")
    assert f"remove {record} on the host" in stopped.value.problem + stopped.value.way_out
    record.unlink()
    assert "Write the configuration" in to(written.spec)
    kept = config(written).with_name("server.properties.before-kraft-runbook")
    assert kept.read_text() == "# another tool's\nbroker.id=1\n"


def test_a_changed_secret_stops_it_too_and_is_not_shown(written: Node) -> None:
    secrets = Path(written.spec.secrets_file or "")
    held = secrets.read_text()
    secrets.write_text("password.encoder.secret=Hunter2.planted\n")
    with pytest.raises(StepFailed) as stopped:
        to(written.spec)
    said = stopped.value.problem + stopped.value.way_out
    assert "password.encoder.secret: its value, which is not shown" in said
    assert "Hunter2" not in said and SECRET not in said
    secrets.write_text(held)
    assert to(written.spec) == (
        "Stop the service if its process is older than its files",
        "Start the service if it does not run, and wait for its port",
    )


@pytest.mark.long
def test_a_step_that_was_killed_while_it_wrote_is_no_other_hand(written: Node) -> None:
    """The record names both texts until the file is replaced; then the old one is another hand's again."""
    record = config(written).with_name(".server.properties.kraft-runbook")
    old = config(written).read_bytes()
    to(written.spec, BrokerMode.ZOOKEEPER)
    broker = written.spec.broker(1)
    changed = broker.model_copy(update={"properties": {**broker.properties, "a.boolean": "false"}})
    spec = written.spec.model_copy(update={"brokers": (changed,)})
    to(spec)
    new, held = config(written).read_bytes(), json.loads(record.read_text())
    assert len(held["whole"]) == 1
    config(written).write_bytes(old)  # what configuration management does
    with pytest.raises(StepFailed, match=r"(?s)another hand changed.*\+a\.boolean=true"):
        to(spec)
    config(written).write_bytes(new)
    to(spec)


def test_in_a_migration_a_node_is_not_restarted_with_a_file_that_another_hand_changed(written: Node) -> None:
    written.configure_controller()
    edit(written, "a.boolean=true", "a.boolean=false")
    pid = written.pid()
    with pytest.raises(StepFailed, match=r"(?s)restart_node.*another hand changed.*\+a\.boolean=false"):
        play(
            written.spec,
            restart_node(1, Phase.HYBRID, older_than=time.time()),
            secrets=environment_secrets(),
            guarded_by=partial(guarded_controllers, mode_of=lambda *_, **__: ControllerMode.MIGRATION),
        )
    assert written.pid() == pid


def test_at_another_time_a_changed_file_is_what_a_node_is_restarted_for(written: Node) -> None:
    edit(written, "a.boolean=true", "a.boolean=false")
    pid = written.pid()
    play(written.spec, restart_node(1, Phase.FINALIZED, older_than=time.time()), secrets=environment_secrets())
    assert written.pid() != pid
