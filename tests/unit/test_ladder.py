"""How a rehearsal's ladder goes on, or ends."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from observations import observation
from recording import RecordingCluster
from rehearsing import throwaway_in

from kraft_runbook.cluster.observation import ControllerZnode, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.local import supervision
from kraft_runbook.io.local.usage import Look
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.parity.final_proof import what_lies_behind
from kraft_runbook.parity.parity_report import Verdict as Parity
from kraft_runbook.procedures.print_tree import print_tree
from kraft_runbook.procedures.throwaway_cluster import ThrowawayCluster
from kraft_runbook.rehearsal.tree_prints import SIZE, PackedPrints, TreePrint, belongs, print_of
from kraft_runbook.rehearsal.verdict import MISMATCH, TREE_CHANGED, Finding, Rung, Verdict
from kraft_runbook.steps.back import SET_ASIDE, TO_ZOOKEEPER
from kraft_runbook.steps.forward import TO_HYBRID
from kraft_runbook.steps.judged_gates import JudgedPorts
from kraft_runbook.steps.ladder import LEAVE, READY, TRIES, WINDOW, Ladder, RungEnded
from kraft_runbook.steps.way_back_facts import epoch_not_writable, not_deletable


@pytest.fixture
def throwaway(tmp_path: Path) -> ThrowawayCluster:
    return throwaway_in(tmp_path)


class AtOnce(Ladder):
    """Waits for nothing; ``lags``: how often it was asked to wait until dual write lags by nothing."""

    lags = 0

    def await_a_controller(self) -> None:
        pass

    def await_no_lag(self) -> None:
        self.lags += 1


def ladder(
    throwaway: ThrowawayCluster,
    tmp_path: Path,
    *seen: Any,
    compare: Any = None,
    kind: type[Ladder] = Ladder,
    **how: Any,
) -> Any:
    cluster = RecordingCluster(*seen or (observation(Phase.HYBRID),), spec=throwaway.spec)
    found = kind(throwaway, cluster, compare or (lambda *_, **__: None), tmp_path / "evidence", **how)
    found._ports = JudgedPorts(cluster, tmp_path / "evidence", "forward and back")
    return found


def report(verdict: Parity) -> SimpleNamespace:
    return SimpleNamespace(
        verdict=verdict,
        digest="d",
        migration_offset=7,
        to_dict=lambda: {"digest": "d", "verdict": verdict.value},
        render_text=lambda: "what differs",
    )


@pytest.mark.parametrize(
    ("parity", "verdict"), [(Parity.MISMATCH, Verdict.FAILED), (Parity.INCONCLUSIVE, Verdict.INCONCLUSIVE)]
)
def test_a_comparison_that_does_not_match_ends_it(
    throwaway: ThrowawayCluster, tmp_path: Path, parity: Parity, verdict: Verdict
) -> None:
    climb = ladder(throwaway, tmp_path)
    vars(climb.cluster)["answers"] = {climb.compare: report(parity)}
    with pytest.raises(RungEnded) as ended:
        climb.parity("parity_in_hybrid")
    assert [(each.verdict, "what differs" in each.what, each.code) for each in ended.value.found] == [
        (verdict, True, MISMATCH)
    ]


def tree(path: str, data: bytes) -> dict[str, TreePrint]:
    return {path: print_of(path, data, 0, [])}


def test_a_tree_that_is_not_as_it_was_ends_it(throwaway: ThrowawayCluster, tmp_path: Path) -> None:
    climb = ladder(throwaway, tmp_path)
    climb.before = PackedPrints.of(tree("/config/topics/a", b"a"))
    vars(climb.cluster)["answers"] = {print_tree: tree("/config/topics/a", b"b")}
    with pytest.raises(RungEnded) as ended:
        climb.same_tree()
    (found,) = ended.value.found
    assert (found.verdict, found.code) == (Verdict.FAILED, TREE_CHANGED) and "/config/topics/a" in found.what


def test_znodes_that_came_back_in_other_bytes_are_counted(throwaway: ThrowawayCluster, tmp_path: Path) -> None:
    climb = ladder(throwaway, tmp_path)
    states = [TreePrint(b"m" * SIZE, raw * SIZE, 0) for raw in (b"a", b"b")]
    climb.before = PackedPrints.of(dict.fromkeys(("/config/topics/a", "/config/topics/b"), states[0]))
    after = {"/config/topics/a": states[0], "/config/topics/b": states[1]}
    vars(climb.cluster)["answers"] = {print_tree: after}
    climb.same_tree()
    assert climb.measured.to_dict()["respelt"] == 1


def test_each_rung_is_a_span_also_the_one_that_ends_it(throwaway: ThrowawayCluster, tmp_path: Path) -> None:
    class Climbing(Ladder):
        def forward(self) -> None:
            throwaway.usage.look()

        def back(self) -> None:
            raise RungEnded()

    climb = ladder(throwaway, tmp_path, kind=Climbing)
    with pytest.raises(RungEnded):
        climb.climb([Rung.FORWARD, Rung.BACK])
    assert climb.done == [Rung.FORWARD] and list(throwaway.usage.spans) == [Rung.FORWARD, Rung.BACK]


def test_a_gate_is_judged_beside_the_load_of_its_own_looks(throwaway: ThrowawayCluster, tmp_path: Path) -> None:
    loads: list[float | None] = []

    def judge(_: Any, __: Any, ___: Any, beside: Any) -> tuple[Finding, ...]:
        throwaway.usage.looks.append(Look(throwaway.usage.now(), 1.0, 0.0))
        loads.append(beside().load)
        return ()

    throwaway.usage.looks.append(Look(throwaway.usage.now() - 600, 9.0, 0.0))
    ladder(throwaway, tmp_path, judge=judge)._judge(Gate.DUAL_WRITE)
    assert loads == [1.0]


def test_one_that_matches_is_on_record_for_the_way_back(throwaway: ThrowawayCluster, tmp_path: Path) -> None:
    climb = ladder(throwaway, tmp_path)
    vars(climb.cluster)["answers"] = {climb.compare: report(Parity.MATCH)}
    climb.parity("parity_before_leaving")
    assert climb._ports is not None
    (record,) = climb._ports.records()
    assert (record.body["task"], record.body["digest"], record.body["offset"]) == ("parity_before_leaving", "d", 7)


def test_partitions_that_were_out_of_sync_end_it_before_anything_is_waited_for(
    throwaway: ThrowawayCluster, tmp_path: Path
) -> None:
    """No stand-in comes back into an ISR: the copy would be waited for until its deadline."""
    found = (Finding(Verdict.FAILED, "2 partitions are under-replicated", "KRB-PRE-029"),)
    climb = ladder(throwaway, tmp_path, kind=AtOnce, judge=lambda *_: found)
    vars(climb.cluster)["answers"] = {print_tree: {}}
    with pytest.raises(RungEnded):
        climb.forward()
    assert climb.found == list(found)
    assert climb.cluster.did == []


@pytest.mark.parametrize("ended", [True, False])
def test_of_what_the_start_gate_found_of_a_seat_that_ended_meanwhile_the_trees_alone_is_kept(
    throwaway: ThrowawayCluster, tmp_path: Path, *, ended: bool
) -> None:
    """Its port was open, and it was the controller, before it read the znode that ends it."""

    class NoController(Ladder):
        def await_a_controller(self, *, may_have_ended: bool = False) -> None:
            if self.found:
                raise StepFailed("broker-9002 has ended", way_out="")

    runs, tree = Finding(Verdict.FAILED, "x", "KRB-PRE-004"), Finding(Verdict.FAILED, "y", "KRB-PRE-059")

    def judge(_: Any, ports: JudgedPorts, gate: str, *load: Any) -> tuple[Finding, ...]:
        ports.judged.add(gate)
        return (runs, tree)

    climb = ladder(throwaway, tmp_path, kind=NoController, judge=judge)
    climb.throwaway = SimpleNamespace(
        spec=throwaway.spec, usage=throwaway.usage, ended=lambda services: tuple(services) if ended else ()
    )
    vars(climb.cluster)["answers"] = {print_tree: {}}
    with pytest.raises(StepFailed):
        climb.forward()
    assert (climb.found, climb.judged) == (([tree], False) if ended else ([runs, tree], True))


@pytest.mark.parametrize(("state", "ends"), [("EXITED", True), ("FATAL", True), ("RUNNING", False), ("STOPPED", False)])
def test_a_seat_that_ended_by_itself_is_named_at_once_with_what_it_said(
    throwaway: ThrowawayCluster, tmp_path: Path, state: str, ends: bool
) -> None:
    """Nobody becomes the controller then: its settings, or the copied configs, are wrong for it."""
    throwaway.here.logs.mkdir()
    (throwaway.here.logs / "broker-9002.log").write_text("Exiting Kafka due to fatal exception: requirement failed")
    process = supervision.Process("broker-9002", state, 0, 0.0)
    services = [seat.service for seat in throwaway.spec.brokers]
    asked: list[list[str]] = []

    def require_running(given: Any) -> None:
        asked.append(list(given))
        throwaway.require_running(services, processes=lambda _: {"broker-9002": process})
        raise KeyError("it goes on")

    climb = ladder(SimpleNamespace(spec=throwaway.spec, require_running=require_running), tmp_path)  # type: ignore[arg-type]
    with pytest.raises(StepFailed if ends else KeyError) as error:
        climb.await_a_controller()
    assert asked == [services]
    assert ("broker-9002 has ended" in str(error.value) and "requirement failed" in str(error.value)) is ends


def awaiting(
    throwaway: ThrowawayCluster,
    tmp_path: Path,
    holders: list[ControllerZnode | None],
    logs: list[list[str]],
    ended: list[str] | None = None,
) -> Any:
    """A ladder that sees these, one at each look, the last one again and again. ``ended``: seats that do not run."""

    def at_each_look(seen: list[Any]) -> Any:
        return lambda *_: seen.pop(0) if len(seen) > 1 else seen[0]

    def gone(services: Any) -> list[str]:
        return [each for each in services if each in (ended or ())]

    def require_running(services: Any) -> None:
        if found := gone(services):
            raise StepFailed(f"{', '.join(found)} has ended", way_out="x")

    seen = SimpleNamespace(spec=throwaway.spec, require_running=require_running, ended=gone, log_of=at_each_look(logs))
    return ladder(seen, tmp_path, holder=at_each_look(holders))  # type: ignore[arg-type]


def held_by(node: int, *, kraft: int = -1) -> ControllerZnode:
    return ControllerZnode(broker_id=node, kraft_controller_epoch=kraft)


def test_nothing_is_restarted_before_a_seat_said_that_it_is_ready_to_serve_as_the_controller(
    throwaway: ThrowawayCluster, tmp_path: Path
) -> None:
    """Elected is not enough: stopped while it reads all partitions, its SIGTERM hangs for minutes."""
    seat = throwaway.spec.brokers[1]
    elected = ["[1] INFO [Controller id=9002] 9002 successfully elected as the controller (kafka.X)"]
    logs = [elected, elected, [*elected, f"[2] INFO [Controller id=9002] {READY} with epoch 4 (kafka.X)"]]
    climb = awaiting(throwaway, tmp_path, [None, held_by(seat.id)], logs)
    assert climb.await_a_controller() == seat.id
    assert logs == [logs[-1]] and climb.cluster.paused == 1.5, "one look without a controller, two without the word"
    assert climb.cluster.told == [
        "waiting for a seat to become the controller",
        f"waiting for {seat.service} to say 'Ready to serve as the new controller'",
    ]
    for holder in (held_by(seat.id), None):
        with pytest.raises(StepFailed, match="not within 900 s"):
            awaiting(throwaway, tmp_path, [holder], [elected]).await_a_controller()


def test_where_a_kraft_controller_has_the_role_no_seat_is_waited_for(
    throwaway: ThrowawayCluster, tmp_path: Path
) -> None:
    climb = awaiting(throwaway, tmp_path, [held_by(throwaway.spec.controllers[0].id, kraft=3)], [[]])
    assert climb.await_a_controller() is None and climb.cluster.paused == 0


def test_on_the_way_back_a_controller_serves_before_those_cut_off_are_restarted(
    throwaway: ThrowawayCluster, tmp_path: Path
) -> None:
    """It may be the very one that is cut off."""
    acts: list[str] = []

    class Acting(Ladder):
        def await_a_controller(self, *, may_have_ended: bool = False) -> None:
            assert may_have_ended is (acts[-1] == "stand-ins zookeeper"), "the roll starts nothing that ended"
            acts.append("a controller")

        def _await_broker(self, *_: Any) -> None:
            pass

        def _leave(self) -> None:
            acts.append("leave")

        def parity(self, task: str, *, final: bool = False) -> None:
            acts.append(task)

    def take(_: Any, step: Any, node: int) -> None:
        acts.append(f"{step.step} {node}")

    def let(mode: Any, **_: Any) -> None:
        acts.append(f"stand-ins {mode}")

    spec = throwaway.spec
    seen = SimpleNamespace(spec=spec, let_stand_ins_be=let, usage=throwaway.usage)
    shown = [observation(phase, spec) for phase in (Phase.HYBRID, Phase.ZOOKEEPER)]
    climb = ladder(seen, tmp_path, *shown, kind=Acting, take=take, judge=lambda *_: ())  # type: ignore[arg-type]
    vars(climb.cluster)["tell"] = lambda line: "none can be cut off" in line and acts.append("looked for those cut off")
    vars(climb.cluster)["answers"] = {what_lies_behind: None, not_deletable: (), epoch_not_writable: ""}
    climb.back()
    first, second = spec.broker_ids
    assert acts[acts.index("leave") : -len(spec.controllers)] == [
        *("leave", "stand-ins zookeeper", "a controller", "looked for those cut off"),
        *("a controller", f"{TO_ZOOKEEPER.step} {first}", "a controller", f"{TO_ZOOKEEPER.step} {second}"),
    ]


@pytest.mark.parametrize("ended", [1, 2])
def test_on_the_way_back_a_seat_that_ended_is_not_waited_for_since_it_is_started_next(
    throwaway: ThrowawayCluster, tmp_path: Path, ended: int
) -> None:
    seats = throwaway.spec.brokers
    gone = [each.service for each in seats[:ended]]
    holders = [held_by(seats[0].id), held_by(seats[1].id)] if ended == 1 else [None]
    logs = [["the session of the one that ended"], [f"{READY} with epoch 4"]]
    climb = awaiting(throwaway, tmp_path, holders, logs, gone)
    assert climb.await_a_controller(may_have_ended=True) == (seats[1].id if ended == 1 else None)
    with pytest.raises(StepFailed, match="has ended"):
        climb.await_a_controller()


def leave(times: int) -> Any:
    left = [times]

    def act(*_: Any, **__: Any) -> dict[str, Any]:
        if left[0]:
            left[0] -= 1
            raise StepFailed("the fence was lifted again", way_out="try again")
        return {
            "window_seconds": 1.5,
            "fenced_at": "2026-03-04T10:00:00+00:00",
            "elected_at": "2026-03-04T10:00:01+00:00",
            "known_at": "2026-03-04T10:00:01.500000+00:00",
        }

    return act


def test_a_fence_that_was_lifted_is_tried_again_and_the_tries_are_told(
    throwaway: ThrowawayCluster, tmp_path: Path
) -> None:
    climb = ladder(throwaway, tmp_path, kind=AtOnce, leave=leave(2))
    climb._leave()
    assert (climb.measured.tries, climb.measured.window, climb.lags) == (3, 1.5, 3), "no lag is awaited before each"
    assert climb._ports is not None and climb._ports.answers[LEAVE]["window_seconds"] == 1.5
    taken = throwaway.usage.of(WINDOW)
    assert taken is not None and taken.seconds == 1.5, "the window has a load of its own"


def test_after_five_tries_it_ends(throwaway: ThrowawayCluster, tmp_path: Path) -> None:
    climb = ladder(throwaway, tmp_path, kind=AtOnce, leave=leave(TRIES))
    with pytest.raises(RungEnded) as ended:
        climb._leave()
    assert (climb.lags, climb.measured.tries) == (TRIES, TRIES)
    (found,) = ended.value.found
    assert found.verdict is Verdict.INCONCLUSIVE and "left at none of 5 tries: 1. the fence was" in found.what
    assert found.what.count("the fence was lifted again") == TRIES == len(climb.refused)


def test_finalization_ends_as_the_real_one_does_with_zookeepers_secrets_off_the_hosts(
    throwaway: ThrowawayCluster, tmp_path: Path
) -> None:
    climb = ladder(
        throwaway, tmp_path, observation(Phase.FINALIZED, throwaway.spec), judge=lambda *_: (), take=lambda *_: None
    )
    climb.finalize()
    assert climb.cluster.did[-2:] == [
        "awaited every controller to show the migration as final",
        "removed ZooKeeper's secrets",
    ]


def lagging(lag: int | None) -> Any:
    seen = observation(Phase.HYBRID)
    active = seen.active_controller
    assert active is not None and was_read(active.metrics)
    metrics = dataclasses.replace(active.metrics, zk_write_behind_lag=lag)
    return dataclasses.replace(
        seen, controllers={**seen.controllers, active.id: dataclasses.replace(active, metrics=metrics)}
    )


def test_kraft_is_not_left_while_dual_write_lags(throwaway: ThrowawayCluster, tmp_path: Path) -> None:
    looks = [lagging(7), lagging(0), lagging(3), lagging(0), lagging(0), lagging(0)]
    climb = ladder(throwaway, tmp_path, *looks)
    climb.await_no_lag()
    assert len(climb.cluster.looks) == 6, "three looks in a row without a lag"


@pytest.mark.parametrize("lag", [5, None])
def test_a_lag_that_stays_or_is_not_shown_ends_it(throwaway: ThrowawayCluster, tmp_path: Path, lag: int | None) -> None:
    with pytest.raises(StepFailed, match=f"ZkWriteBehindLag is {lag}"):
        ladder(throwaway, tmp_path, lagging(lag)).await_no_lag()


@pytest.mark.parametrize("refusals", range(TRIES + 1))
def test_a_step_that_a_guard_refuses_is_taken_again_and_not_for_ever(
    throwaway: ThrowawayCluster, tmp_path: Path, refusals: int
) -> None:
    taken: list[int] = []

    def take(_: Any, __: Any, node: int) -> None:
        taken.append(node)
        if len(taken) <= refusals:
            raise Refused("no broker answered Metadata", way_out="x")

    climbing = ladder(throwaway, tmp_path, take=take)
    if refusals < TRIES:
        climbing._take(TO_HYBRID, 9001)
        assert taken == [9001] * (refusals + 1)
        assert len(climbing.refused) == refusals, "each is on record"
    else:
        with pytest.raises(Refused, match="no broker answered"):
            climbing._take(TO_HYBRID, 9001)
        assert taken == [9001] * TRIES


def test_a_step_that_failed_is_not_taken_again(throwaway: ThrowawayCluster, tmp_path: Path) -> None:
    taken: list[int] = []

    def take(*_: Any) -> None:
        taken.append(1)
        raise StepFailed("the play failed", way_out="x")

    with pytest.raises(StepFailed):
        ladder(throwaway, tmp_path, take=take)._take(TO_HYBRID, 9001)
    assert taken == [1]


def test_controllers_are_set_aside_at_once_each_on_record_by_its_own_task(
    throwaway: ThrowawayCluster, tmp_path: Path
) -> None:
    """They are stopped by then, and each has directories of its own."""
    together, taken = threading.Barrier(3, timeout=30), list[tuple[str, int]]()

    def take(run: Any, step: Any, node: int) -> None:
        together.wait()
        taken.append((run.journal.task, node))
        if node == throwaway.spec.controller_ids[0]:
            raise StepFailed("the play failed", way_out="x")

    climb = ladder(throwaway, tmp_path, take=take)
    with pytest.raises(StepFailed, match="the play failed"):
        climb._take_at_once(SET_ASIDE, throwaway.spec.controller_ids)
    assert sorted(taken) == [(f"{SET_ASIDE.step}.{node}", node) for node in throwaway.spec.controller_ids]


@pytest.mark.parametrize(
    ("serving", "order"),
    [
        ([0, 0], [1, 0]),
        ([1, 1], [0, 1]),
        ([0, 1], [1, 0]),  # the last one is taken, whoever serves by then
        ([None, None], [0, 1]),  # a KRaft controller
    ],
)
def test_the_seat_that_is_the_controller_is_restarted_last(
    throwaway: ThrowawayCluster, tmp_path: Path, serving: list[int | None], order: list[int]
) -> None:
    seats = throwaway.spec.brokers

    class Serving(Ladder):
        def await_a_controller(self) -> int | None:
            at = serving.pop(0)
            return None if at is None else seats[at].id

    climb = ladder(throwaway, tmp_path, kind=Serving)
    assert [each.id for each in climb._controller_last()] == [seats[at].id for at in order]


def test_the_second_climb_prints_no_tree_since_nothing_is_compared_with_it(
    throwaway: ThrowawayCluster, tmp_path: Path
) -> None:
    class Printing(Ladder):
        def await_a_controller(self) -> None:
            pass

        def _forward(self, climb: str) -> None:
            pass

        def to_kraft(self) -> None:
            pass

    climb = ladder(throwaway, tmp_path, kind=Printing)
    vars(climb.cluster)["answers"] = {print_tree: tree("/config", b"")}
    climb.forward_again()
    assert len(climb.before) == 0
    climb.forward()
    assert climb.before.by_path() == tree("/config", b"")


def test_the_tree_is_compared_with_what_it_was_once_a_controller_served(
    throwaway: ThrowawayCluster, tmp_path: Path
) -> None:
    """Not with the copy: that controller elects leaders where the copy has none."""
    acts: list[str] = []

    class Acting(Ladder):
        def await_a_controller(self) -> None:
            acts.append("serves")

        def _forward(self, climb: str) -> None:
            acts.append("forward")

    climb = ladder(throwaway, tmp_path, kind=Acting)
    vars(climb.cluster)["answers"] = {print_tree: lambda: acts.append("printed") or {}}
    climb.forward()
    assert acts == ["serves", "printed", "forward"]


def test_the_page_names_every_rung_and_all_that_no_tree_is_compared_by() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "rehearsal.md").read_text()
    assert [each.value for each in Rung if each.value not in page] == []
    outside = ("/admin", "/consumers", "/controller", "/controller_epoch", "/migration", "/zookeeper", "/brokers/ids")
    assert [each for each in outside if belongs(each) or f"`{each}`" not in page] == []
