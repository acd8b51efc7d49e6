"""The course of a drill: what is stopped is started again whatever happens, and what is measured is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kept_journal import Kept
from observations import SPEC, observation
from recording import NOWHERE, RecordingCluster, run_on

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.processor_time import Spent
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import Refused, RunbookError, SecretMissing, StepFailed, Unreachable
from kraft_runbook.evidence.kinds import Drilled
from kraft_runbook.io.hosts.playbooks import PlaybookResult
from kraft_runbook.io.kafka.drill_probes import make_topic, remove_topics, require_partitions
from kraft_runbook.io.zookeeper.depose import depose, require_deposable
from kraft_runbook.quorum.control import Control, control_time
from kraft_runbook.quorum.faults import Aim, Fault
from kraft_runbook.quorum.silences import CHANGES, Measured
from kraft_runbook.runbook.plays import Play
from kraft_runbook.steps import drill, drill_window
from kraft_runbook.steps.kept_drills import file_of, read_kept
from kraft_runbook.steps.run import Run

STOP, START = "played stop_node on 101", "played start_node on 101"
FORM: dict[str, Any] = {
    "fault": Fault.FAILOVER.value,
    "broker": None,
    "repeats": 1,
    "stall_budget": 20.0,
    "seconds": 5.0,
}
ANSWERS: dict[Any, Any] = {
    drill._moving: 0,
    require_deposable: None,
    depose: 1,
    remove_topics: 3,
    drill_window.spent_so_far: lambda: {},
}


class Probes:
    """Probes that are answered at each moment of the cluster's clock, but for one span."""

    def __init__(self, cluster: RecordingCluster, silent: tuple[float, float]) -> None:
        self._cluster, self._silent, self._began = cluster, silent, cluster.now()
        self.failed, self.why = 0, ""

    def now(self) -> float:
        return self._cluster.now()

    @property
    def answers(self) -> dict[str, list[float]]:
        tenths = range(int((self.now() - self._began) * 10) + 1)
        moments = [self._began + each / 10 for each in tenths]
        first, last = self._silent
        heard = [each for each in moments if not first < each - self._began < last]
        return {CHANGES: heard, "t-0": moments}


def opening(silent: tuple[float, float] = (0.0, 0.0)) -> Callable[[Run], Any]:
    @contextmanager
    def opens(run: Run) -> Iterator[Probes]:
        assert isinstance(run.cluster, RecordingCluster)
        yield Probes(run.cluster, silent)

    return opens


def made(
    phase: Phase = Phase.KRAFT, cluster: RecordingCluster | None = None, state: Path = NOWHERE, **form: Any
) -> tuple[Run, Kept]:
    kept = Kept()
    at = cluster or RecordingCluster(observation(phase), answers=ANSWERS)
    return run_on(at, kept, state=state, **FORM | form), kept


def whats(kept: Kept) -> list[str]:
    return [each["what"] for each in kept.bodies]


def with_baseline(kept: Kept) -> None:
    usual = Measured(5.0, {CHANGES: 0.5, "t-0": 0.5}, 100)
    kept.record(Drilled(values=usual.to_dict(), what=drill.BASELINE, fault="none", node_id=None))


def test_a_leader_is_stopped_and_started_again_and_what_it_cost_is_kept() -> None:
    run, kept = made()
    drill.measure_baseline(run, opening())
    assert drill.cause_faults(run, opening(silent=(1.0, 5.0))) == {"faults": 1}
    assert isinstance(run.cluster, RecordingCluster)
    assert [each for each in run.cluster.did if each.startswith("played")] == [STOP, START]
    assert whats(kept) == ["baseline", "stops", "started", "measured", "fault"]
    assert kept.bodies[-1]["silences"][CHANGES] == pytest.approx(4.0, abs=0.3)
    assert any(line.startswith("effect: metadata changes: silent for") for line in run.cluster.told)
    assert kept.asked.count("signature of drill") == 2


def test_in_zookeeper_mode_controller_s_znode_is_deleted_and_nothing_is_stopped() -> None:
    run, kept = made(Phase.ZOOKEEPER)
    with_baseline(kept)
    drill.cause_faults(run, opening())
    assert isinstance(run.cluster, RecordingCluster)
    assert "delete /controller" in run.cluster.did
    assert not [each for each in run.cluster.did if each.startswith("played")]
    assert whats(kept) == ["baseline", "measured", "fault"]


class Stumbling(RecordingCluster):
    """Its play that stops a node breaks, in the middle of it."""

    def play(self, what: Play) -> Any:
        super().play(what)
        if what.playbook == "stop_node":
            raise StepFailed("the connection to the host was lost", way_out="look there")


def test_what_a_broken_play_may_have_stopped_is_started_at_once() -> None:
    run, kept = made(cluster=Stumbling(observation(Phase.KRAFT), answers=ANSWERS))
    with_baseline(kept)
    with pytest.raises(StepFailed, match="connection to the host was lost"):
        drill.cause_faults(run, opening())
    assert isinstance(run.cluster, RecordingCluster)
    assert [each for each in run.cluster.did if each.startswith("played")] == [STOP, START]
    assert drill.stopped(kept.records()) == []


def killed_after_the_stop(kept: Kept) -> None:
    with_baseline(kept)
    kept.record(Drilled(values={}, what=drill.STOPS, fault=FORM["fault"], node_id=102))


@pytest.mark.parametrize("does", [drill.end, lambda run: drill.cause_faults(run, opening())], ids=["mend", "cleared"])
def test_what_a_killed_worker_left_stopped_is_started_first(does: Callable[[Run], Any], tmp_path: Path) -> None:
    run, kept = made(state=tmp_path)
    killed_after_the_stop(kept)
    does(run)
    assert isinstance(run.cluster, RecordingCluster)
    assert run.cluster.did[0] == "played start_node on 102"
    assert drill.stopped(kept.records()) == []
    assert drill.end(run)["started"] == []


class Taken(Kept):
    """Another run holds the cluster by now."""

    def take(self) -> None:
        raise Refused("cluster lab is being changed by run two of rolling_restart__lab", way_out="wait for it")


def test_an_old_run_starts_no_node_and_deletes_no_topic_beside_another_run() -> None:
    kept = Taken()
    run = run_on(RecordingCluster(observation(Phase.KRAFT), answers=ANSWERS), kept, **FORM)
    assert drill.end(run) == {"started": [], "topics_deleted": 0}, "nothing is left to do: no claim is needed"
    killed_after_the_stop(kept)
    for does in (drill.mend, drill.end):
        with pytest.raises(Refused, match="node 102 was stopped by this run and is not started: cluster lab is being"):
            does(run)
    kept.record(Drilled(values={}, what=drill.STARTED, fault=FORM["fault"], node_id=102))
    kept.record(Drilled(values={}, what=drill_window.PROBES, fault="a topic", node_id=None))
    with pytest.raises(Refused, match=r"the probes' topics kraft-runbook-drill-.* are not deleted: cluster lab is"):
        drill.end(run)
    assert isinstance(run.cluster, RecordingCluster)
    assert run.cluster.did == []


@pytest.mark.parametrize("why", [Unreachable, SecretMissing])
def test_a_node_is_started_also_where_nobody_can_be_asked_for_the_claim(
    why: type[RunbookError], tmp_path: Path
) -> None:
    class Unasked(Kept):
        def take(self) -> None:
            raise why("ZooKeeper zk1:2181 can't be asked", way_out="start it")

    kept = Unasked()
    cluster = RecordingCluster(observation(Phase.KRAFT), answers=ANSWERS)
    run = run_on(cluster, kept, state=tmp_path, **FORM)
    killed_after_the_stop(kept)
    assert drill.end(run) == {"started": [102], "topics_deleted": 0}
    assert cluster.did[0] == "played start_node on 102"
    said = "node 102 was stopped by this run and is not started: ZooKeeper zk1:2181 can't be asked"
    assert any(said in each for each in cluster.told)
    kept.record(Drilled(values={}, what=drill_window.PROBES, fault="a topic", node_id=None))
    with pytest.raises(why, match=r"the probes' topics kraft-runbook-drill-.* are not deleted: ZooKeeper zk1:2181"):
        drill.end(run)


def test_a_start_that_fails_leaves_the_node_to_the_next_who_mends() -> None:
    class Dead(RecordingCluster):
        def play(self, what: Play) -> Any:
            if what.playbook == "start_node":
                raise StepFailed("it exits at once", way_out="see its log")
            return super().play(what)

    run, kept = made(cluster=Dead(observation(Phase.KRAFT), answers=ANSWERS))
    with_baseline(kept)
    with pytest.raises(StepFailed, match="exits at once"):
        drill.cause_faults(run, opening())
    assert drill.stopped(kept.records()) == [101]


def test_a_silence_beyond_the_budget_starts_what_stands_and_ends_the_run() -> None:
    run, kept = made(repeats=3)
    with_baseline(kept)
    with pytest.raises(StepFailed, match="exceeded the budget of 20 s; the stopped process runs again"):
        drill.cause_faults(run, opening(silent=(0.15, 1000.0)))
    assert isinstance(run.cluster, RecordingCluster)
    assert [each for each in run.cluster.did if each.startswith("played")] == [STOP, START]
    assert run.cluster.did[-1].startswith("awaited every node to run"), "mended before it ends"
    assert whats(kept)[-1] == "stall"
    with pytest.raises(Refused, match="exceeded its budget"):
        drill.cause_faults(run, opening())


def test_a_silence_that_no_look_saw_while_it_lasted_ends_the_run_too() -> None:
    """What was measured decides: a silence that begins and ends behind the last look is as long as any."""
    run, kept = made(repeats=3, stall_budget=3.0)
    with_baseline(kept)
    with pytest.raises(StepFailed, match="exceeded the budget of 3 s"):
        drill.cause_faults(run, opening(silent=(1.2, 5.0)))
    assert whats(kept).count("stops") == 1 and whats(kept)[-1] == "stall"


def test_a_cleared_task_goes_on_with_the_faults_that_are_to_come() -> None:
    run, kept = made(repeats=3)
    with_baseline(kept)
    drill.cause_faults(run_on(run.cluster, kept, **FORM | {"repeats": 1}), opening())
    assert drill.cause_faults(run, opening()) == {"faults": 3}
    assert whats(kept).count("stops") == 3


class Killed(BaseException):
    """The worker's end."""


@pytest.mark.parametrize("phase", [Phase.KRAFT, Phase.ZOOKEEPER])
def test_a_worker_killed_while_processor_time_is_read_causes_no_fault_again(phase: Phase) -> None:
    looks: list[str] = []

    def killed() -> dict[str, Any]:
        looks.append("look")
        if len(looks) == 4:  # two of the baseline, one before the fault, and this one behind it
            raise Killed
        return {}

    answers = {**ANSWERS, drill_window.spent_so_far: killed}
    run, kept = made(cluster=RecordingCluster(observation(phase), answers=answers))
    drill.measure_baseline(run, opening())
    with pytest.raises(Killed):
        drill.cause_faults(run, opening(silent=(1.0, 4.0)))
    assert isinstance(run.cluster, RecordingCluster)
    did = list(run.cluster.did)
    assert drill.cause_faults(run, opening()) == {"faults": 1}
    assert run.cluster.did == did, "nothing was stopped or deleted again"
    assert whats(kept)[-2:] == ["measured", "fault"]
    assert kept.bodies[-1]["silences"] == kept.bodies[-2]["silences"]
    assert kept.bodies[-1]["silences"][CHANGES] > 2.9
    drill.cause_faults(run, opening())
    assert whats(kept).count("fault") == 1


def test_topics_are_deleted_by_a_run_alone_that_was_about_to_make_some() -> None:
    run, kept = made()
    assert drill.end(run)["topics_deleted"] == 0
    kept.record(Drilled(values={}, what=drill_window.PROBES, fault="a topic", node_id=None))
    assert drill.end(run)["topics_deleted"] == 3


@pytest.mark.parametrize("text", ["no json", "{}", '[{"run": "an earlier one"}]'])
def test_what_earlier_drills_measured_is_not_overwritten_where_it_can_not_be_read(tmp_path: Path, text: str) -> None:
    run, kept = made(state=tmp_path)
    with_baseline(kept)
    drill.cause_faults(run, opening())
    kept.record(Drilled(values={}, what=drill_window.PROBES, fault="a topic", node_id=None))
    file = file_of(tmp_path, SPEC.name)
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(StepFailed, match="the numbers of earlier drills can't be read"):
        drill.end(run)
    assert isinstance(run.cluster, RecordingCluster)
    assert run.cluster.did[-1].startswith("delete the probes' topics")
    assert file.read_text() == text
    file.unlink()
    drill.end(run)
    assert len(read_kept(tmp_path, SPEC.name)) == 1


def test_no_fault_without_a_baseline_or_while_partitions_move() -> None:
    run, _ = made()
    with pytest.raises(Refused, match="no baseline is on record"):
        drill.cause_faults(run, opening())
    moving = RecordingCluster(observation(Phase.KRAFT), answers={**ANSWERS, drill._moving: 4})
    run, kept = made(cluster=moving)
    with_baseline(kept)
    with pytest.raises(Refused, match="4 partitions are being reassigned"):
        drill.cause_faults(run, opening())
    assert "stops" not in whats(kept)


def test_the_topic_of_a_run_is_one_of_the_probes_and_does_not_tell_the_cluster() -> None:
    topic = drill_window.topic_of_run(run_on(RecordingCluster(observation(Phase.KRAFT))))
    assert topic.startswith("kraft-runbook-drill-")
    assert SPEC.name not in topic


class Telling(RecordingCluster):
    """It is known when the process was told to end: a second after the play began."""

    def play(self, what: Play) -> PlaybookResult:
        result = super().play(what)
        if what.playbook != "stop_node":
            return result
        told = self.now() + 1
        self.pause(2.0)
        return replace(result, ended_at=told)


class Leaders:
    """Of seven partitions, of which the last one moves 3 s after the broker was told to end."""

    led = 7

    def __init__(self, cluster: RecordingCluster) -> None:
        began = cluster.now()
        self.looks = [(began + 0.5, 7), (began + 2.0, 4), (began + 4.0, 0)]


def following(run: Run, found: Aim) -> Any:
    assert isinstance(run.cluster, RecordingCluster)
    assert found.node == 1
    return nullcontext(Leaders(run.cluster))


def test_when_the_last_leader_of_a_stopped_broker_moved_is_kept() -> None:
    run, kept = made(
        cluster=Telling(observation(Phase.KRAFT), answers=ANSWERS), fault=Fault.SHUTDOWN.value, seconds=10.0
    )
    with_baseline(kept)
    drill.cause_faults(run, opening(), following)
    found = Measured.from_dict(kept.bodies[-1])
    assert found is not None
    assert found.handover is not None and found.handover.led == 7
    assert found.handover.seconds == pytest.approx(3.0, abs=0.01)


def test_the_leaders_of_a_controller_are_nobody_s() -> None:
    run, _ = made()
    with (
        drill_window.follow_leaders(run, Aim(101, "stop")) as leaders,
        drill_window.follow_leaders(run, Aim(None)) as no,
    ):
        assert (leaders, no) == (None, None)


def spending(*looks: dict[str, Any]) -> Any:
    left = list(looks)
    return lambda: left.pop(0)


def test_what_the_controllers_used_is_kept_but_of_the_one_that_was_stopped() -> None:
    first = {f"controller {each}": Spent("1 1", 10.0) for each in (101, 102, 103)}
    usual = {name: Spent("1 1", 11.0) for name in first}
    after = {**first, "controller 102": Spent("1 1", 15.0), "controller 101": Spent("2 2", 4.0)}
    answers = {**ANSWERS, drill_window.spent_so_far: spending(first, usual, first, after)}
    run, kept = made(cluster=RecordingCluster(observation(Phase.KRAFT), answers=answers))
    drill.measure_baseline(run, opening())
    drill.cause_faults(run, opening())
    baseline, fault = (Measured.from_dict(each) for each in kept.bodies if each["what"] in ("baseline", "fault"))
    assert baseline is not None and fault is not None
    spent = control_time(baseline, fault)
    assert isinstance(spent, Control)
    assert spent.seconds == 5.0
    assert spent.left_out == {"controller 101": "it was restarted"}
    assert spent.usual == pytest.approx(2.0 * fault.processors.seconds / baseline.processors.seconds)


def test_in_zookeeper_mode_who_controls_is_zookeeper_and_the_broker_that_was_elected() -> None:
    assert SPEC.zookeeper is not None
    server = f"ZooKeeper {SPEC.zookeeper.servers[0]}"
    look = {"broker 2": Spent("1 1", 1.0), server: Unread("no process of this user's holds its socket")}
    answers = {**ANSWERS, drill_window.spent_so_far: spending(look, look, look, look)}
    run, kept = made(cluster=RecordingCluster(observation(Phase.ZOOKEEPER), answers=answers))
    drill.measure_baseline(run, opening())
    drill.cause_faults(run, opening())
    baseline, fault = (Measured.from_dict(each) for each in kept.bodies if each["what"] in ("baseline", "fault"))
    assert baseline is not None and fault is not None
    assert set(fault.control) == {"broker 2", *(f"ZooKeeper {each}" for each in SPEC.zookeeper.servers)}
    spent = control_time(baseline, fault)
    assert isinstance(spent, Control)
    assert spent.left_out[server] == "no process of this user's holds its socket"


def test_partitions_that_the_operator_names_are_looked_for_before_a_fault() -> None:
    asked: list[Any] = []

    def missing(wanted: list[Any], *, several: bool) -> None:
        assert not several
        asked.extend(wanted)
        raise Refused("the cluster has no partition b-1", way_out="name others")

    answers = {**ANSWERS, require_partitions: missing}
    run, kept = made(cluster=RecordingCluster(observation(Phase.KRAFT), answers=answers), partitions="b-1, a-0,b-1")
    with_baseline(kept)
    with pytest.raises(Refused, match="no partition b-1"):
        drill.cause_faults(run, opening())
    assert asked == [("a", 0), ("b", 1)]
    assert "stops" not in whats(kept)


def test_no_topic_is_made_for_records_where_partitions_are_named() -> None:
    run, kept = made(partitions="orders-0 orders-1")
    probes = drill_window.open_probes(run)
    assert set(probes.answers) == {CHANGES, "orders-0", "orders-1"}
    assert isinstance(run.cluster, RecordingCluster)
    assert run.cluster.did == []
    assert whats(kept) == ["probes"], "those of metadata changes are deleted at the end"


class Rehearsing(RecordingCluster):
    rehearses = True


@pytest.mark.parametrize("phase", [Phase.ZOOKEEPER, Phase.KRAFT])
@pytest.mark.parametrize("partitions", ["", "orders-0"])
def test_a_dry_run_lists_the_acts_of_the_drill_in_its_order(phase: Phase, partitions: str) -> None:
    def opens(run: Run) -> Any:
        drill_window.open_probes(run)
        return opening()(run)

    answers = ANSWERS | {make_topic: None, require_partitions: None}
    done: list[list[str]] = []
    for kind in (Rehearsing, RecordingCluster):
        run, _ = made(cluster=kind(observation(phase), answers=answers), partitions=partitions)
        drill.measure_baseline(run, opens)
        drill.cause_faults(run, opens)
        drill.end(run)
        assert isinstance(run.cluster, RecordingCluster)
        done.append([each for each in run.cluster.did if not each.startswith("awaited")])
    assert done[0] == done[1] and len(done[0]) == (2 if phase is Phase.ZOOKEEPER else 3) + (not partitions)


@pytest.mark.parametrize(
    ("fault", "phase"),
    [(Fault.FAILOVER, Phase.ZOOKEEPER), (Fault.SHUTDOWN, Phase.ZOOKEEPER), (Fault.SHUTDOWN, Phase.KRAFT)],
)
def test_a_dry_run_lists_each_fault_as_often_as_the_run_causes_it(fault: Fault, phase: Phase) -> None:
    done: list[list[str]] = []
    for kind in (Rehearsing, RecordingCluster):
        run, kept = made(cluster=kind(observation(phase), answers=ANSWERS), fault=fault.value, repeats=3)
        with_baseline(kept)
        drill.cause_faults(run, opening(), lambda *_: nullcontext(None))
        assert isinstance(run.cluster, RecordingCluster)
        done.append([each for each in run.cluster.did if not each.startswith("awaited")])
    assert done[0] == done[1] and len(done[0]) == (3 if fault is Fault.FAILOVER else 6)


def test_of_a_fault_that_hits_whoever_leads_a_dry_run_knows_the_first_node_alone() -> None:
    run, _ = made(cluster=Rehearsing(observation(Phase.KRAFT), answers=ANSWERS | {drill._one: None}), repeats=3)
    drill.cause_faults(run, opening())
    assert isinstance(run.cluster, RecordingCluster)
    again = "play stop_node and start_node on whoever is the controller then, 2 time(s) more"
    assert run.cluster.did == [STOP, START, again]


def test_a_partition_with_one_replica_is_refused_where_a_broker_is_stopped() -> None:
    """Nobody else could lead it meanwhile: the silence would be of the drill's own making."""
    replicas = {0: SimpleNamespace(replicas=[1]), 1: SimpleNamespace(replicas=[1, 2])}
    told = SimpleNamespace(topics={"a": SimpleNamespace(partitions=replicas)})
    wanted = [TopicPartition("a", 0), TopicPartition("a", 1)]

    def require(named: Sequence[TopicPartition], **how: bool) -> None:
        client = SimpleNamespace(list_topics=lambda timeout: told)
        require_partitions(SPEC, named, secrets=lambda _: "", client=lambda *_: client, **how)

    require(wanted)
    require(wanted[1:], several=True)
    with pytest.raises(Refused, match="nobody else can lead what has one replica: a-0"):
        require(wanted, several=True)
