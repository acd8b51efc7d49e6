"""Leaving KRaft: the quorum is fenced, drained, proven and stopped, and a ZooKeeper controller leads again."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import LeavesKraft, LeftKraft
from kraft_runbook.gates.signatures import concluded
from kraft_runbook.migration import conditions
from kraft_runbook.migration.leaving import Departure, FencePlan, fence_plan, render_settling, why_no_fence
from kraft_runbook.migration.never_copied import may_have_died_in_the_copy, never_elected
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.resumed_departure import unfinished
from kraft_runbook.migration.transitions import TABLE, Gate, Step
from kraft_runbook.migration.way_back import leads_unread, quorum_is_lost
from kraft_runbook.parity.parity_report import Verdict
from kraft_runbook.procedures.give_back import settle_in_zookeeper, what_settling_changes
from kraft_runbook.procedures.leave_kraft import leave_kraft
from kraft_runbook.steps.back import KNOWN_WITHIN
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.restore_quorum import PROOF, died_in_the_copy, restore
from kraft_runbook.steps.run import Run
from kraft_runbook.steps.way_back_facts import examine_the_hosts_of_those_down

FOLLOW = Act("let the brokers follow a ZooKeeper controller")


def leaving(plan: FencePlan, *, once_led: bool = False, where: str = "") -> Act:
    """The act of leaving KRaft, with the controllers that are stopped, in their order. ``once_led``: as in
    ``FencePlan.render``. ``where``: what decides whether it is this order.
    """
    return Act(f"leave KRaft in this order{where}", tuple(plan.render(once_led=once_led).splitlines()))


def leave(run: Run, *, parity_task: str) -> dict[str, Any]:
    """Give the controller role back to ZooKeeper: fence, drain, prove, stop, delete, wait for every broker. Safe to
    kill and clear anywhere. ``parity_task``: the task of this run that proved parity in full. In a rehearsal, tell the
    plan: the controllers that it would stop, in order, and what it would prove and delete; or what is left to delete
    and to set where ZooKeeper leads, as ZooKeeper shows it now.
    """
    if unasked := MIGRATION.left_out(Step.LEAVE_KRAFT, run.params):
        run.cluster.tell(unasked)
        return {"not_asked_for": unasked}
    if run.cluster.rehearses:
        seen = run.cluster.settled()
        if detect_phase(seen).phase is Phase.ZOOKEEPER:
            intended = render_settling(run.cluster.ask(what_settling_changes))
            run.cluster.do(settle_in_zookeeper, would=[replace(FOLLOW, lines=tuple(intended.splitlines()))])
            return {"dry_run": True}
        run.cluster.do(leave_kraft, would=list(_rehearsed(run, seen)))
        return {"dry_run": True}
    run.claim.take()
    seen = run.cluster.settled()
    lost = quorum_is_lost(seen)
    if lost:  # an earlier try was killed in the middle: begin again from a quorum that leads
        if died_in_the_copy(run, seen):
            return _leave_what_was_never_copied(run)
        restore(run, seen, lost)
        seen = run.cluster.settled()
    if detect_phase(seen).phase is not Phase.ZOOKEEPER:  # what is left to settle there stops no controller
        run.claim.await_groups()
        seen = run.cluster.settled()
    if detect_phase(seen).phase is Phase.ZOOKEEPER:
        return _settle(run, seen)
    if detect_phase(seen).phase is Phase.UNKNOWN and never_elected(seen):
        run.signatures.require(MIGRATION, Gate.ROLLBACK, seen)
        return _leave_what_was_never_copied(run)
    return _leave(run, seen, parity_task)


def _rehearsed(run: Run, seen: ClusterObservation) -> Iterator[Act]:
    """The order in which the run would leave. Where the quorum is lost, the run starts one that leads before."""
    if not quorum_is_lost(seen):
        plan = fence_plan(seen, gone=run.cluster.gone)
        led_by = leads_unread(seen)  # the run waits until the quorum can be read
        yield leaving(plan if led_by is None else plan.led_by(led_by))
        return
    plan = _of_all(run)
    decides = may_have_died_in_the_copy(seen)
    if decides:
        yield leaving(plan, where=f", if {PROOF}")
    yield leaving(plan, once_led=True, where=f", unless {PROOF}" if decides else "")


def _of_all(run: Run) -> FencePlan:
    """Every controller at once."""
    gone = run.cluster.gone
    return FencePlan(None, tuple(i for i in run.spec.controller_ids if i not in gone), tuple(sorted(gone)))


def _settle(run: Run, seen: ClusterObservation) -> dict[str, Any]:
    """ZooKeeper has the controller already. A /migration that is left is deleted, a /controller_epoch that is too
    low is set, and every broker is seen to follow. If an earlier try of this run left KRaft and was killed, or lost its
    connection, what can still be known of that is put on record.
    """
    tell = run.cluster.tell
    run.signatures.require(MIGRATION, Gate.ROLLBACK, seen)
    left = unfinished(run.journal.records())

    def departed(moments: Departure) -> None:
        if "/controller" in moments.deleted:
            of_before = left is not None and left.departure.began_at == moments.began_at
            _record(run, moments, left.phase if left and of_before else Phase.ZOOKEEPER.value)

    departure = run.cluster.do(
        settle_in_zookeeper,
        would=[FOLLOW],
        tell=tell,
        known_within=KNOWN_WITHIN,
        departing=lambda moments: _note(run, moments, Phase.ZOOKEEPER),
        departed=departed,
        begun=left and left.departure,
    )
    assert departure is not None, "a rehearsal ends before"
    tell(f"already done: broker {departure.controller} is the controller, and every broker knows it")
    tell(f"Elections by the ZooKeeper controller: {departure.election}")
    departed(departure)
    return {"already_done": "a ZooKeeper broker is the controller"}


def _leave(run: Run, seen: ClusterObservation, parity_task: str) -> dict[str, Any]:
    reading = detect_phase(seen)
    step = Step.DEPROVISION_CONTROLLERS if reading.phase is Phase.PRE_MIGRATION else Step.LEAVE_KRAFT
    edge = TABLE.require(step, reading)
    run.signatures.require(MIGRATION, edge.gate, seen)
    gone = run.cluster.gone
    seen = examine_the_hosts_of_those_down(run.cluster, seen)
    _guard(run, seen, gone)
    run.signatures.begins(Gate.ROLLBACK)
    if step is Step.LEAVE_KRAFT:
        seen = run.cluster.wait_for(conditions.READY_TO_LEAVE, deadline=run.spec.deadlines.metadata_copy)
    proven_since = _proven_since(run, parity_task) if step is Step.LEAVE_KRAFT else None
    departure = _depart(run, fence_plan(seen, gone=gone), proven_since, reading.phase)
    return _report(run, reading.phase, departure)


def _leave_what_was_never_copied(run: Run) -> dict[str, Any]:
    """Every controller died in the copy, or they run without a leader before any copy. A broker that is down waits
    for nothing here: in the first case nobody leads, so no other takes over what it led; in the second nothing of the
    brokers changes.
    """
    gone = run.cluster.gone
    seen = run.cluster.observe()
    _guard(run, replace(seen, brokers={i: b for i, b in seen.brokers.items() if b.running is not False}), gone)
    run.signatures.begins(Gate.ROLLBACK)
    phase = detect_phase(seen).phase
    return _report(run, phase, _depart(run, _of_all(run), None, phase))


def _depart(run: Run, plan: FencePlan, proven_since: int | None, phase: Phase) -> Departure:
    departure = run.cluster.do(
        leave_kraft,
        plan,
        would=[leaving(plan)],
        proven_since=proven_since,
        tell=run.cluster.tell,
        known_within=KNOWN_WITHIN,
        still_mine=run.claim.renew,
        departing=lambda moments: _note(run, moments, phase),
        departed=lambda moments: _record(run, moments, phase.value),
    )
    assert departure is not None, "a rehearsal ends before"
    return departure


def _guard(run: Run, seen: ClusterObservation, gone: Collection[int]) -> None:
    fence = why_no_fence(seen, run.spec, gone=gone)
    if fence:
        raise Refused(
            f"the quorum can't be fenced: {fence}",
            way_out="nothing was changed; docs/rollback.md says what you can do",
        )
    wrong = [f"broker {b.id}" for b in seen.brokers.values() if b.mode not in (BrokerMode.HYBRID, BrokerMode.ZOOKEEPER)]
    if wrong:
        raise Refused(
            f"{', '.join(wrong)} is not proven to run in migration or ZooKeeper mode",
            way_out="bring it back into migration mode first (the roll before this task)",
        )
    if not was_read(seen.zookeeper):
        raise Refused(
            f"ZooKeeper can't be read: {seen.zookeeper.reason}", way_out="make it reachable and clear this task"
        )
    absent = [i for i in seen.brokers if i not in seen.zookeeper.brokers]
    if absent:
        raise Refused(
            f"{nodes('broker', absent, 'is')} not in /brokers/ids: a ZooKeeper controller would treat"
            f" {by_number(absent, 'it', 'them')} as dead",
            way_out=f"wait until {by_number(absent, 'it is', 'they are')} there, then clear this task",
        )


def _proven_since(run: Run, parity_task: str) -> int:
    compared = run.answer_of(parity_task) or {}
    found = concluded(
        run.journal.records(), parity_task, compared.get("digest", "")
    )  # an answer can be written by hand
    if found is None or found.verdict is not Verdict.MATCH or found.offset is None:
        raise Refused(
            "no full parity of this run is on record (a task marked successful by hand proves nothing)",
            way_out=f"clear {parity_task}",
        )
    return found.offset


def _report(run: Run, phase: Phase, departure: Departure) -> dict[str, Any]:
    tell, told = run.cluster.tell, departure.to_dict()
    if departure.raised:
        tell(
            f"{len(departure.raised)} state znodes were written again, since their version was lower than the"
            f" partition's epoch: {', '.join(told['raised'])}"
        )
    tell("; ".join(departure.figures()))
    tell(f"Elections by the ZooKeeper controller: {departure.election}")
    _record(run, departure, phase.value)
    return told


def _note(run: Run, moments: Departure, phase: Phase) -> None:
    """What is known right before the znodes are deleted, for a try that has to go on from there."""
    run.journal.record(LeavesKraft(values=moments.to_dict(), phase=phase.value))


def _record(run: Run, moments: Departure, phase: str) -> None:
    """What is known of the departure by now. A later record of the same one takes its place on the page."""
    run.journal.record(LeftKraft(values=moments.to_dict(), phase=phase))
