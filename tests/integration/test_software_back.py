"""Software and a level go up and come back under a real Airflow and a workload, with a worker killed in each step. The
tests build on one another, in this order.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import by_hand
import on_kafka4
import pytest
from labs import Lab
from stage import (
    ENDED,
    Stage,
    a_stage,
    kill_worker_of_playbook,
    no_acknowledged_record_is_lost,
    process_of_task,
)

from kraft_runbook.cluster.feature_levels import METADATA_VERSION
from kraft_runbook.io.hosts.inventory import node_of
from kraft_runbook.io.kafka.feature_calls import node_features, read_levels
from kraft_runbook.software.way_back import INTERVAL, way_to
from lab.layout import starts
from lab.software import write_cluster_file

UP, BACK, LEVELS = "upgrade_software__lab", "downgrade_software__lab", "upgrade_features__lab"
SNAPSHOT_EVERY = {INTERVAL: "90000"}
"""Short enough to wait for. Long enough that not every node can have taken one between a level's change and the gate:
they were restarted over more than a minute, and each counts from its own start.
"""
pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with on_kafka4.finalized_lab(controllers=SNAPSHOT_EVERY, brokers=SNAPSHOT_EVERY) as found:
        yield found


@pytest.fixture(scope="module")
def stage(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    file = write_cluster_file(tmp_path_factory.mktemp("files") / "clusters")
    given = "".join(f"  {key}: {value}\n" for key, value in SNAPSHOT_EVERY.items())
    text = file.read_text()
    for key in ("broker_properties:\n", "controller_properties:\n"):
        text = text.replace(f"\n{key}", f"\n{key}{given}", 1)
    file.write_text(text)
    with a_stage(lab, tmp_path_factory.mktemp("airflow"), clusters=file.parent) as opened:
        yield opened


@pytest.fixture(scope="module", autouse=True)
def account(stage: Stage, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every record that was acknowledged while the tests ran is there in the end."""
    with no_acknowledged_record_is_lost(lab, tmp_path_factory.mktemp("workload") / "account.json"):
        yield


def first_passive(lab: Lab) -> int:
    """The first controller that does not lead: its own step restarts it."""
    leader = on_kafka4.leader(lab)
    return next(each for each in lab.spec.controller_ids if each != leader)


def to_its_end_with_killed_workers(stage: Stage, dag_id: str, run_id: str, restarts: list[str]) -> None:
    """Kill the worker of each of these tasks in its playbook, and clear it as a person does; then let the run end."""
    for task in restarts:
        killed_and_cleared(stage, dag_id, run_id, task)
    assert stage.run_to_its_end(dag_id, run_id) == "success", stage.failures(dag_id, run_id)


def killed_and_cleared(stage: Stage, dag_id: str, run_id: str, task: str) -> None:
    stage.wait(dag_id, run_id, task, {"running"})
    kill_worker_of_playbook(stage, "switch_software")
    assert stage.wait(dag_id, run_id, task, ENDED) == "failed"
    stage.resume(dag_id, run_id, task)


def every_node_started_once_more(lab: Lab, before: dict[str, int]) -> bool:
    after = starts(lab.spec)
    return all(after[n.service] == before[n.service] + 1 for n in (*lab.spec.brokers, *lab.spec.controllers))


def test_up_with_a_worker_killed_in_each_step_and_each_node_is_restarted_once(stage: Stage, lab: Lab) -> None:
    before = starts(lab.spec)
    run_id = stage.start(UP)
    stage.wait(UP, run_id, "gate_software_up.approve", {"awaiting_input"})
    stage.client.answer(UP, run_id, "gate_software_up.approve", "Approve")
    controllers = f"roll_controllers_up.controller_{first_passive(lab)}.restart"
    last = "roll_controllers_up.active_controller_last.restart"
    to_its_end_with_killed_workers(stage, UP, run_id, [controllers, last, "roll_brokers_up.broker_1.restart"])
    assert on_kafka4.versions(lab) == {"4.1.1"}
    assert every_node_started_once_more(lab, before)


def test_a_dry_run_of_a_level_shows_the_servers_answer_and_changes_nothing(stage: Stage, lab: Lab) -> None:
    run_id = stage.start(LEVELS, feature=METADATA_VERSION, level="22", dry_run=True)
    assert stage.run_to_its_end(LEVELS, run_id) == "success", stage.failures(LEVELS, run_id)
    assert "the quorum's leader accepts it (validate-only" in stage.log(LEVELS, run_id, "plan")
    assert level(lab) == 21


def test_a_worker_killed_as_a_level_changes_leaves_what_the_cleared_task_finds(stage: Stage, lab: Lab) -> None:
    """Before anything was sent, and once the leader has written it: both end at the level, written once."""
    for wanted, once_written in ((22, False), (21, True)):
        before = read_levels(lab.spec, secrets=lab.secrets)[1]
        run_id = stage.start(LEVELS, feature=METADATA_VERSION, level=str(wanted), down=wanted == 21)
        stage.wait(LEVELS, run_id, "gate_level.approve", {"awaiting_input"})
        stage.client.answer(LEVELS, run_id, "gate_level.approve", "Approve")
        worker = process_of_task(stage, stage.task(LEVELS, run_id, "change_level")["id"])
        if once_written:
            wait_until_written(lab, wanted)
        os.kill(worker, signal.SIGKILL)
        assert stage.wait(LEVELS, run_id, "change_level", ENDED) == "failed"
        stage.resume(LEVELS, run_id, "change_level")
        assert stage.run_to_its_end(LEVELS, run_id) == "success", stage.failures(LEVELS, run_id)
        found = read_levels(lab.spec, secrets=lab.secrets)[1]
        assert found.levels[METADATA_VERSION] == wanted
        assert len([each for each in found.written if each.offset > before.end and each.level == wanted]) == 1
        again = stage.log(LEVELS, run_id, "change_level")
        assert (f"already done: metadata.version is at {wanted}" in again) == once_written, again


def wait_until_written(lab: Lab, wanted: int) -> None:
    """Looks at the leader alone, and often: what waits for this ends its work within a second."""
    leader, ends = node_of(lab.spec, on_kafka4.leader(lab)), time.monotonic() + 120
    while node_features(lab.spec, leader, secrets=lab.secrets).finalized[METADATA_VERSION] != wanted:
        assert time.monotonic() < ends, f"no {METADATA_VERSION} {wanted} within 120 s"
        time.sleep(0.005)


def level(lab: Lab) -> int:
    return read_levels(lab.spec, secrets=lab.secrets)[1].levels[METADATA_VERSION]


def test_back_is_refused_until_each_node_has_its_snapshot_and_then_played_to_its_end(stage: Stage, lab: Lab) -> None:
    before = starts(lab.spec)
    run_id = stage.start(BACK)
    assert stage.wait(BACK, run_id, "gate_software_back.prove", ENDED) == "failed"
    said = stage.log(BACK, run_id, "gate_software_back.prove")
    assert "KRB-UPG-005" in said and "cannot run 3.9.2 yet: its " in said and "metadata.version 22" in said, said
    assert "it takes one within 90 s of its last one or its start" in said, said
    assert stage.wait(BACK, run_id, "closing_report", ENDED) == "failed"
    assert starts(lab.spec) == before, "nobody was restarted, and no controller died of it"

    began = time.monotonic()
    by_hand.wait_until("each node's snapshot is past the level", lambda: can_go_back(lab), within=120)
    print(f"the way back opened after {time.monotonic() - began:.0f} s")
    stage.resume(BACK, run_id, "gate_software_back.prove")
    stage.wait(BACK, run_id, "gate_software_back.approve", {"awaiting_input"})
    stage.client.answer(BACK, run_id, "gate_software_back.approve", "Approve")
    killed_and_cleared(stage, BACK, run_id, "roll_brokers_back.broker_1.restart")
    stage.wait(BACK, run_id, f"roll_brokers_back.broker_{lab.spec.broker_ids[-1]}.in_sync", {"success"})
    # Only now: while the brokers were rolled another one may have been elected, which is left for last.
    controllers = f"roll_controllers_back.controller_{first_passive(lab)}.restart"
    last = "roll_controllers_back.active_controller_last.restart"
    to_its_end_with_killed_workers(stage, BACK, run_id, [controllers, last])
    assert on_kafka4.versions(lab) == {"3.9.2"}
    assert every_node_started_once_more(lab, before)


def can_go_back(lab: Lab) -> bool:
    seen = on_kafka4.look(lab)
    assert lab.spec.kafka.upgrade_to is not None
    former = on_kafka4.software(seen, lab.spec.kafka.home)
    return way_to(seen, former, on_kafka4.software(seen, lab.spec.kafka.upgrade_to.home)).open
