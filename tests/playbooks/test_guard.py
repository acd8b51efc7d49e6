"""No step that relies on the way back touches anything before every controller is proven to be, and to stay, in
migration mode.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from metadata_encoding import batch, record
from played import provision_controller, run_playbook
from stand_in_node import CLUSTER_ID, Node, to

from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Controller
from kraft_runbook.cluster.spec_parts import Reach
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.io.hosts import playbooks
from kraft_runbook.io.hosts.migration_guard import guarded_controllers
from kraft_runbook.io.hosts.playbooks import playbook_directory
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.metadata.log.record_schemas import RecordType
from kraft_runbook.migration import plays
from kraft_runbook.runbook.plays import Guard, Play

Guarded = Callable[..., dict[str, dict[str, object]]]
FLAG = "zookeeper.metadata.migration.enable"


def refused(node: Node, mode: BrokerMode = BrokerMode.HYBRID, **how: object) -> Refused:
    """The refusal of a restart that touched nothing."""
    before = node.files()
    with pytest.raises(Refused) as caught:
        to(node, mode, **how)
    assert node.files() == before and node.starts() == []
    assert "was refused before any change: " in caught.value.problem and "controller 101" in caught.value.problem
    assert caught.value.way_out
    return caught.value


def shows(mode: ControllerMode | None) -> Guarded:
    """The guard of controllers whose process answers this when it is asked for its mode; None: nothing."""

    def answer(spec: ClusterSpec, controller: Controller, **_: object) -> ControllerMode:
        if mode is None:
            raise Unreachable("it is deaf", way_out="none")
        return mode

    return partial(guarded_controllers, mode_of=answer)


LEFT = batch(0, record(RecordType.ZK_MIGRATION_STATE, zk_migration_state=1))


def a_log_of_a_migration_that_was_left(node: Node) -> None:
    log = node.directory / "data-101" / "__cluster_metadata-0"
    log.mkdir(parents=True)
    (log / "00000000000000000000.log").write_bytes(LEFT)
    (log.parent / "meta.properties").write_text(f"cluster.id={CLUSTER_ID}\nnode.id=101\n")


def test_a_controller_is_not_started_anew_with_the_log_of_a_migration_that_was_left(node: Node) -> None:
    a_log_of_a_migration_that_was_left(node)
    before = node.files()
    given = plays.provision_controller(node.spec, 101, CLUSTER_ID, anew=True)
    with pytest.raises(StepFailed, match=r"holds ZkMigrationState 1 \(MIGRATION\)") as refused:
        playbooks.play(node.spec, given, secrets=environment_secrets())
    assert "zk_to_kraft_rollback__" in refused.value.way_out
    assert node.files() == before and node.starts("controller-101") == []


def test_nor_is_any_while_another_controller_holds_such_a_log(node: Node) -> None:
    node.configure_controller()
    a_log_of_a_migration_that_was_left(node)
    play = Play("prove_migration_mode", 101, {}, Guard.ANEW, guards_itself=True)
    with pytest.raises(Refused, match=r"controller 101 in .* holds ZkMigrationState 1 \(MIGRATION\)"):
        playbooks.play(node.spec, play, secrets=environment_secrets())


@pytest.mark.parametrize(
    ("mode", "changes", "said"),
    [
        (BrokerMode.HYBRID, {"zookeeper__metadata__migration__enable": None}, f"{FLAG} is missing, not true"),
        (BrokerMode.KRAFT, {"zookeeper__metadata__migration__enable": None}, f"{FLAG} is missing, not true"),
        (
            BrokerMode.KRAFT,
            {"zookeeper__metadata__migration__enable": "false", "zookeeper__connect": None},
            f"{FLAG} is false, not true; zookeeper.connect is missing",
        ),
        (
            BrokerMode.HYBRID,
            {"process__roles": "broker,controller"},
            "process.roles is broker,controller, not controller",
        ),
    ],
)
def test_a_broker_is_not_touched_while_a_controller_would_not_start_in_migration_mode(
    node: Node, mode: BrokerMode, changes: dict[str, str | None], said: str
) -> None:
    file = node.configure_controller(**changes)
    told = refused(node, mode)
    assert f"in {file} {said}" in told.problem
    assert "the first time this controller leads, the migration is final" in told.problem
    assert f"put that back into {file}" in told.way_out and told.way_out.endswith("then run this step again")


def test_the_step_goes_on_once_the_file_is_put_back_though_the_process_is_older_than_it(node: Node) -> None:
    node.configure_controller()
    node.control("start", "controller-101")
    file = node.configure_controller(zookeeper__metadata__migration__enable=None)
    guard = shows(ControllerMode.MIGRATION)
    refused(node, guarded_by=guard)
    node.configure_controller()
    lines: list[str] = []
    assert to(node, on_event=lines.append, guarded_by=guard).changed
    assert f"controllers-101: controller 101 is in migration mode ({file} says so, and its process shows it)" in lines


def test_a_process_that_is_older_than_its_file_and_does_not_show_its_mode_proves_nothing(node: Node) -> None:
    node.configure_controller()
    node.control("start", "controller-101")
    guard = shows(None)
    lines: list[str] = []
    to(node, check=True, on_event=lines.append, guarded_by=guard)
    assert any(re.search(r"and process \d+ began with it", line) for line in lines)
    file = node.configure_controller()
    assert (
        f"began before {file} was last changed, and the process does not show its mode itself (it is deaf)"
        in refused(node, guarded_by=guard).problem
    )


def test_a_process_that_shows_no_flag_is_refused_though_its_file_holds_it(node: Node) -> None:
    node.configure_controller()
    told = refused(node, guarded_by=shows(ControllerMode.KRAFT))
    assert "controller 101 runs without the migration flag" in told.problem
    assert "before it is elected" in told.way_out


def test_what_can_not_be_read_is_refused(node: Node) -> None:
    assert f"controller 101 has no file {node.spec.controller(101).config_file}" in refused(node).problem
    Path(node.spec.controller(101).config_file).mkdir(parents=True)
    assert "whether controller 101 is in migration mode could not be read (Is a directory" in refused(node).problem


@pytest.mark.long
def test_on_the_way_back_one_that_lost_its_file_is_let_be_unless_it_runs(node: Node) -> None:
    assert not Path(node.spec.controller(101).config_file).exists()
    with pytest.raises(Refused, match="controller 101 has no file"):
        to(node, way_back=True, guarded_by=shows(ControllerMode.MIGRATION))
    assert node.starts() == []
    assert to(node, way_back=True, guarded_by=shows(None)).changed


def test_a_controller_s_host_that_can_not_be_reached_is_refused(node: Node) -> None:
    def away(*args: object, **kwargs: object) -> dict[str, dict[str, object]]:
        found = guarded_controllers(*args, **kwargs)  # type: ignore[arg-type]
        far = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
        return {name: {**variables, **far} for name, variables in found.items()}

    assert "controller 101: the host can't be reached" in refused(node, guarded_by=away).problem


@pytest.mark.long
def test_zookeeper_mode_and_the_way_forward_after_finalization_ask_no_controller(node: Node) -> None:
    node.configure_controller(zookeeper__metadata__migration__enable=None)
    assert to(node, BrokerMode.ZOOKEEPER).changed
    assert to(node, BrokerMode.KRAFT, finalized=True).changed
    with pytest.raises(Refused):
        to(node, BrokerMode.HYBRID, finalized=True)


def test_a_dry_run_shows_the_whole_way_before_any_controller_is_provisioned(node: Node) -> None:
    assert to(node, BrokerMode.KRAFT, check=True).changed


def test_a_playbook_whose_first_play_proved_nothing_stops(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by hand with an inventory whose controllers are not in the group that is looked at."""
    given = {"properties": broker_properties(node.spec, node.spec.broker(1), BrokerMode.HYBRID), "mode": "hybrid"}
    run = playbooks.run_ansible

    def without_the_group(playbook: Path, inventory: dict[str, dict[str, object]], **kwargs: object) -> object:
        hosts = {name: variables for name, variables in inventory.items() if name == "broker-1"}
        return run(playbook, hosts, **{**kwargs, "groups": {}})  # type: ignore[arg-type]

    monkeypatch.setattr(playbooks, "run_ansible", without_the_group)
    with pytest.raises(StepFailed, match="were proven to be in migration mode"):
        run_playbook(
            node.spec,
            "restart_broker",
            node_id=1,
            variables=given,
            secrets=environment_secrets(),
            guard=Guard.PROVISIONED,
        )
    assert node.starts() == []


# -- provisioning ------------------------------------------------------------------------------------------------------


def with_two_controllers(node: Node) -> ClusterSpec:
    """A second controller, 102, of which nothing is there but the file and the directory that it would have."""
    first = node.spec.controller(101)
    other = {
        "id": 102,
        "port": 1,
        "config_file": f"{node.directory}/controller-102/controller.properties",
        "log_dir": f"{node.directory}/data-102",
    }
    return node.spec.model_copy(update={"controllers": (first, first.model_copy(update=other))})


def test_provisioning_lets_the_others_be_unprovisioned_but_not_wrong(node: Node) -> None:
    spec = with_two_controllers(node)
    file, data = Path(spec.controller(102).config_file), Path(spec.controller(102).log_dir)
    file.parent.mkdir()
    data.mkdir()
    assert provision_controller(spec, 101, CLUSTER_ID, secrets=environment_secrets(), check=True).changed
    file.write_text("process.roles=controller\n")
    assert provision_controller(
        spec, 101, CLUSTER_ID, secrets=environment_secrets(), check=True
    ).changed  # not formatted: it can't start
    (data / "meta.properties").write_text("version=1\n")
    with pytest.raises(
        Refused, match=rf"controller 102 would not start in migration mode: in {file} {FLAG} is missing"
    ):
        provision_controller(spec, 101, CLUSTER_ID, secrets=environment_secrets())
    assert node.starts("controller-101") == []


def test_the_controller_that_is_provisioned_is_not_asked_for_what_it_is_about_to_get(node: Node) -> None:
    spec = with_two_controllers(node)
    assert set(guarded_controllers(spec, Guard.PROVISIONING, but=101, secrets=None, check=False)) == {"controllers-102"}
    apart = spec.model_copy(
        update={
            "reach": Reach(kind="ssh"),
            "controllers": (spec.controllers[0], spec.controllers[1].model_copy(update={"host": "far"})),
        }
    )
    assert set(guarded_controllers(apart, Guard.PROVISIONED, but=1, secrets=None, check=False)) == {
        "controllers-101",
        "controllers-102",
    }
    assert set(guarded_controllers(spec, Guard.PROVISIONED, but=1, secrets=None, check=False)) == {
        "controllers-101-102"
    }


def test_every_playbook_that_relies_on_the_way_back_imports_the_proof() -> None:
    for name in ("restart_broker", "provision_controller"):
        text = (playbook_directory() / f"{name}.yml").read_text()
        assert (
            text.index("import_playbook: prove_migration_mode.yml")
            < text.index("hosts: all:!guarded")
            < text.index("tasks/proven.yml")
        )
