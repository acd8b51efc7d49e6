"""The scheduled question whether the cluster can still go back: its run fails when it can't, or soon can't, and says
why.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from in_run import run_in
from observations import (
    SPEC,
    WHY,
    Spoil,
    a_controller,
    both,
    broker,
    config,
    dual_writing,
    observation,
    part,
    with_quorum,
    zookeeper,
)
from recording import RecordingCluster

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, ControllerZnode, Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.evidence.store import read_records
from kraft_runbook.parity.final_proof import what_lies_behind
from kraft_runbook.steps.run import Failed, NothingToDo
from kraft_runbook.steps.way_back_watch import watch_the_way_back
from kraft_runbook_airflow.base.journal import run_file_name

COPIED = [Phase.HYBRID, Phase.DUAL_WRITE]


class Shows(RecordingCluster):
    """The hosts are there for who asks for them."""

    def observe(self, with_hosts: bool = False, **deep: Any) -> ClusterObservation:
        seen = super().observe(**deep)
        return seen if with_hosts else part(hosts=Unread("not asked for"))(seen)


class Watch:
    """One run of the watch. What its two looks see is given; what it makes of that is the project's own."""

    def __init__(self, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state = state
        monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(state))

    def run(self, *looks: ClusterObservation) -> Any:
        context = {"ti": SimpleNamespace(dag_id="d", run_id="r", task_id="t"), "params": {}}
        cluster = Shows(*looks, answers={what_lies_behind: None})
        return watch_the_way_back(run_in(context, cluster))

    def recorded(self) -> dict[str, Any]:
        (record,) = read_records(self.state / "evidence", run_file_name("d", "r"))
        return dict(record.body)


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(tmp_path, monkeypatch)


@pytest.mark.parametrize("phase", COPIED)
def test_a_cluster_that_can_go_back_is_told_the_steps(watch: Watch, phase: Phase) -> None:
    seen = observation(phase)
    said = watch.run(seen, dual_writing(seen, 3))
    assert (said["possible"], said["threats"]) == (True, [])
    assert any(step.startswith("leave_kraft: ") for step in said["steps"])
    assert watch.recorded()["possible"] is True


def no_quorum(seen: ClusterObservation) -> ClusterObservation:
    down = [a_controller(i, running=False, mode=WHY, metrics=WHY) for i in SPEC.controller_ids]
    return both(part(quorum=WHY), *down)(seen)


CLOSED: dict[str, tuple[Spoil, str]] = {
    "ZooKeeper can't be read": (part(zookeeper=WHY), r"no: ZooKeeper can't be read \(a test did not read it\)"),
    "a controller without the flag": (
        a_controller(102, mode=ControllerMode.KRAFT),
        "no: controller 102 runs without the migration flag",
    ),
    "a file without the flag": (
        config(102, zookeeper__metadata__migration__enable=None),
        "KRB-PRE-047 .*zookeeper.metadata.migration.enable is missing",
    ),
    "two controllers": (
        zookeeper(controller=ControllerZnode(102, 4)),
        "no: /controller names 102, the quorum's leader is 101",
    ),
    "no quorum": (no_quorum, "no: /controller names KRaft controller 101, and no quorum has a leader"),
}


@pytest.mark.parametrize("why", CLOSED)
@pytest.mark.parametrize("phase", COPIED)
def test_its_run_fails_when_the_way_back_is_closed_or_about_to_be(watch: Watch, phase: Phase, why: str) -> None:
    spoil, said = CLOSED[why]
    seen = observation(phase)
    with pytest.raises(Failed, match=said):
        watch.run(seen, spoil(dual_writing(seen, 3)))
    assert (watch.recorded()["possible"] and not watch.recorded()["threats"]) is False


@pytest.mark.parametrize("phase", COPIED)
def test_its_run_fails_when_the_next_election_would_end_dual_write(watch: Watch, phase: Phase) -> None:
    """ZooKeeper is written still, and no metric shows anything."""
    seen = with_quorum(kraft_only_configs=("client-metrics apps",))(observation(phase))
    with pytest.raises(Failed, match=r"KRB-PRE-067 .*1: client-metrics apps What to do: delete them"):
        watch.run(seen, dual_writing(seen, 3))
    assert watch.recorded()["threats"] == ["KRB-PRE-067"]


@pytest.mark.parametrize("phase", COPIED)
def test_its_run_fails_when_dual_write_has_died(watch: Watch, phase: Phase) -> None:
    seen = observation(phase)
    with pytest.raises(
        Failed, match=r"would be lost: /migration has stood at offset 999 for 3\.0 s.*(?s:.*)KRB-DW-001"
    ):
        watch.run(seen, dual_writing(seen, 3, dead=True))
    assert watch.recorded()["threats"] == ["KRB-DW-001"]


def test_its_run_fails_when_a_finalization_left_a_broker_behind(watch: Watch) -> None:
    seen = broker(2, mode=BrokerMode.HYBRID)(observation(Phase.FINALIZED))
    with pytest.raises(Failed, match=r"KRB-GATE-007 .*THE MIGRATION WAS FINALIZED TOO EARLY"):
        watch.run(seen, seen)


@pytest.mark.parametrize("phase", [Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.FINALIZED])
def test_where_nothing_is_at_stake_the_run_is_skipped(watch: Watch, phase: Phase) -> None:
    with pytest.raises(NothingToDo):
        watch.run(observation(phase), observation(phase))
