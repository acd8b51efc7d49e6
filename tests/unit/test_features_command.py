"""``kraft-runbook features``: its text, its JSON, its exit codes. The cluster is a look made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import jsonschema
import pytest
import yaml
from feature_looks import in_log, kafka3, kafka4, look, on_disk, registered
from observations import CLUSTERS

from kraft_runbook.cli import app
from kraft_runbook.cli.asking import Asking
from kraft_runbook.cli.outputs import schema
from kraft_runbook.cluster.feature_levels import (
    METADATA_VERSION,
    Answer,
    FeatureObservation,
    LevelsInLog,
    NodeHost,
    SoftwareLevels,
    WrittenLevel,
)
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.procedures.preview_levels import preview_change

Show = Callable[..., tuple[int, str]]
OLD_HOME, NEW_HOME = "/opt/kafka-3", "/opt/kafka-4"


@pytest.fixture
def show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Show:
    """Run the command on a look; ``answer`` is what the leader says to a change. Gives exit code and output."""
    file = yaml.safe_load((CLUSTERS / "lab.yaml").read_text())
    del file["zookeeper"]
    file["kafka"] |= {"home": OLD_HOME, "upgrade_to": {"version": "4.1.1", "home": NEW_HOME}}
    for node in (*file["brokers"], *file["controllers"]):
        node["home_link"] = f"/srv/kafka-{node['id']}"
    (tmp_path / "lab.yaml").write_text(yaml.safe_dump(file))

    def call(
        seen: FeatureObservation, *arguments: str, answer: Answer | None = None, newer: SoftwareLevels | None = None
    ) -> tuple[int, str]:
        def asked(*_: object, validate_only: bool, **__: object) -> Answer:
            assert validate_only and answer is not None
            return answer

        ask = Asking(
            features=lambda *_, **__: on_hosts(seen, newer or kafka4()), preview=partial(preview_change, ask=asked)
        )
        with pytest.raises(SystemExit) as ended:
            app.main(["features", "--cluster", "lab", "--clusters-dir", str(tmp_path), *arguments], ask)
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out + captured.err

    return call


def on_hosts(seen: FeatureObservation, newer: SoftwareLevels) -> FeatureObservation:
    """The same, with both versions on every host that was read."""
    software = {OLD_HOME: kafka3(), NEW_HOME: newer}
    hosts = {
        i: replace(host, software=software) if isinstance(host, NodeHost) else host for i, host in seen.hosts.items()
    }
    return replace(seen, hosts=hosts)


ACCEPTED = Answer(0, "", {METADATA_VERSION: (0, "")})
REFUSED = Answer(0, "", {METADATA_VERSION: (95, "Invalid update version 19. Broker 7 only supports versions 1-18")})


def test_levels_software_and_both_ways_are_said(show: Show) -> None:
    code, out = show(look(kafka3()))
    assert code == 0
    for line in (
        "lab: metadata.version 21",
        "every node runs Kafka 3.9.2, which supports:",
        "    can be lowered to 17: nothing above it changed metadata",
        "controller 101, leads: Kafka 3.9.2, shows metadata.version 21,"
        " newest snapshot ends at 10 with metadata.version 21",
        "  metadata.version 21 at offset 5",
        f"Kafka 4.1.1 in {NEW_HOME}: every node can start on 4.1.1 now",
    ):
        assert line in out, line


def test_a_node_that_can_t_start_on_the_other_software_is_named(show: Show) -> None:
    seen = look(kafka4())
    host = seen.hosts[103]
    assert isinstance(host, NodeHost)
    trapped = {**seen.hosts, 103: replace(host, disk=on_disk(103, snapshot=98, after={130: 22, 140: 21}))}
    code, out = show(replace(seen, hosts=trapped))
    assert code == 0
    assert f"Kafka 3.9.2 in {OLD_HOME}: not yet: 1 things keep nodes from starting on 3.9.2" in out
    assert "controller 103 cannot run 3.9.2 yet: its log holds metadata.version 22 at offset 130" in out


def test_keys_that_the_other_software_reads_over_are_named(show: Show) -> None:
    seen = look(kafka3())
    host = seen.hosts[1]
    assert isinstance(host, NodeHost)
    config = {"process.roles": "broker", "password.encoder.secret": "<set>", "log.segment.bytes": "1024"}
    _, out = show(replace(seen, hosts={**seen.hosts, 1: replace(host, config=config)}))
    assert "the file of broker 1: log.segment.bytes=1024 is below the smallest that 4.1.1 takes (1048576)" in out
    assert "the file of broker 1 holds keys that it reads over: password.encoder.secret" in out
    later = {"process.roles": "broker", "max.decompressed.message.bytes": "1"}
    changed = replace(seen, hosts={**seen.hosts, 1: replace(host, config=later)})
    _, out = show(changed, newer=replace(kafka4(), version="4.3.2"))
    assert "the file of broker 1: whether 4.3.2 knows max.decompressed.message.bytes is not known: 4.3.1, the" in out


def test_findings_name_ghosts_nodes_that_lag_and_what_was_not_read(show: Show) -> None:
    seen = look(kafka3())
    assert isinstance(seen.log, LevelsInLog)
    log = in_log(
        seen,
        brokers={**seen.log.brokers, 7: registered(7, kafka3())},
        written=(*seen.log.written, WrittenLevel(METADATA_VERSION, 20, 60)),
    )
    _, out = show(replace(log, controllers={**log.controllers, 103: Unread("it hangs")}))
    assert "broker 7 is registered and not in the cluster file" in out
    assert "broker 1 shows metadata.version 21, the metadata log says metadata.version 20" in out
    assert "controller 103 could not be asked: it hangs" in out


def test_a_node_that_was_not_read_leaves_the_software_unknown_and_the_exit_code_says_so(show: Show) -> None:
    seen = look(kafka3())
    code, out = show(replace(seen, brokers={**seen.brokers, 2: Unread("it hangs")}))
    assert code == 2 and "broker 2 could not be asked: it hangs" in out


@pytest.mark.parametrize(
    ("arguments", "answer", "code", "words"),
    [
        (["--to", "20"], ACCEPTED, 0, "the quorum's leader accepts it (validate-only, nothing was changed)"),
        (
            ["--to", "19"],
            REFUSED,
            1,
            "the quorum's leader refuses it: Invalid update version 19. Broker 7 only supports",
        ),
        (["--to", "3.9"], None, 0, "metadata.version is at 21 (3.9-IV0) already: nothing to do"),
        (["--to", "4.1"], None, 3, "error: Kafka 3.9.2 supports metadata.version 1-21; 4.1 is no level that it knows"),
        (
            ["--feature", "kraft.version", "--to", "1"],
            ACCEPTED,
            1,
            "in the way: Kafka 3.9.2 would accept kraft.version 1",
        ),
    ],
)
def test_a_change_is_previewed(show: Show, arguments: list[str], answer: Answer | None, code: int, words: str) -> None:
    found, out = show(look(kafka3()), *arguments, answer=answer)
    assert (found, words in out) == (code, True), out


def test_json_is_as_its_schema_says(show: Show) -> None:
    for seen in (look(kafka3()), replace(look(kafka4(), 27), log=Unread("no leader"))):
        _, out = show(seen, "--json")
        jsonschema.validate(json.loads(out), json.loads(schema("features")))
    _, out = show(look(kafka3()), "--to", "20", "--json", answer=ACCEPTED)
    found = json.loads(out)
    jsonschema.validate(found, json.loads(schema("features")))
    assert found["change"]["change"]["target"] == 20
    assert found["others"][0]["open"] is True
