"""A cluster's reassignments in words: how far they are, why one does not get on, what is left, and what to do now."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.observation import unread_parts
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.reassignment.checks import CHECKS
from kraft_runbook.reassignment.look import ReassignmentSeen, ReplicasLook, of_hidden
from kraft_runbook.reassignment.progress import Progress, progress
from kraft_runbook.reassignment.stages import CANCEL, PlanReading, read_what_moves
from kraft_runbook.reassignment.stuck import Cause, Stuck, why_not_done
from kraft_runbook.reassignment.throttles import LEADER_RATE, RATES, Former, leftovers
from kraft_runbook.reassignment.way_back import way_back
from kraft_runbook.runbook.cluster_checks import SHOW_ALL
from kraft_runbook.runbook.explanation import Explanation, told

SAMPLE = 20


def causes_of(earlier: ReplicasLook, now: ReplicasLook, *, throttled: bool) -> tuple[Stuck, ...]:
    """Why each partition that moves at both looks is not done, in the order in which the reasons exclude each other."""
    found = [
        why_not_done(
            p, moving, now.seen[p], now.placement.live, earlier=earlier.logs, now=now.logs, throttled=throttled
        )
        for p, moving in sorted(now.placement.ongoing.items())
        if p in now.seen and p in earlier.placement.ongoing
    ]
    order = list(Cause)
    return tuple(sorted(found, key=lambda each: order.index(each.cause)))


def has_rate(throttles: Former) -> bool:
    """Whether a rate is in force on any broker."""
    return any(key in each for key in RATES for each in (throttles.rates, *throttles.of_brokers.values()))


def progress_between(earlier: ReplicasLook | None, now: ReplicasLook, reading: PlanReading) -> Progress:
    """How far what moves is; with rates where there are two looks."""
    logs, seconds = (earlier.logs, now.at - earlier.at) if earlier is not None else (None, 0.0)
    return progress(reading, now.placement.ongoing, now.seen, now.logs, earlier=logs, seconds=seconds)


def explain_moves(seen: ReassignmentSeen, spec: ClusterSpec, *, earlier: ReassignmentSeen | None = None) -> Explanation:
    """``earlier``: a look some seconds before; without it nothing tells whether a copy grows."""
    reading = read_what_moves(seen.look.placement)
    moving = bool(seen.look.moving)
    causes = causes_of(earlier.look, seen.look, throttled=has_rate(seen.throttles)) if earlier else ()
    phase = detect_phase(seen.cluster).phase
    rollback = way_back(seen, spec)
    # What moves is the subject here, and no obstacle.
    results = CHECKS.run(seen, spec, "", gate=CANCEL if moving else None)
    stuck = [f"{each}" for each in causes if not each.waits]
    return Explanation(
        cluster=spec.name,
        phase=phase,
        because=tuple(_because(earlier, seen, reading)),
        means="Replicas are being moved." if moving else "No replica is being moved.",
        waits_for=tuple(f"{each}" for each in causes[:SAMPLE]),
        forward=tuple(_forward(spec, moving=moving, stuck=bool(stuck))),
        back=rollback.steps,
        rollback=rollback,
        problems=tuple([f"stuck: {each}" for each in stuck[:SAMPLE]] + list(told(results.blocking))),
        unread=(*unread_parts(seen.cluster), *seen.look.unread.values(), *_hidden(seen.look)),
        undone="Can it be undone",
    )


def _because(earlier: ReassignmentSeen | None, seen: ReassignmentSeen, reading: PlanReading) -> Iterator[str]:
    if reading.moving:
        yield f"{progress_between(earlier.look if earlier else None, seen.look, reading)}"
    else:
        yield f"nothing{' that is shown' if seen.look.hidden else ''} is being reassigned"
    if rate := seen.throttles.rates.get(LEADER_RATE):
        yield f"a throttle of {int(rate) / 1e6:,.1f} MB/s a broker is set for all brokers"
    left = [each for each in leftovers(seen.throttles) if not each.of_disks]
    if of_disks := [each for each in leftovers(seen.throttles) if each.of_disks]:
        yield f"throttles of copies between disks: {some(of_disks, SAMPLE, between='; ')}"
    if left and not seen.look.moving:
        yield f"throttles without a move: {some(left, SAMPLE, between='; ')}"
    if seen.look.legacy is not None:
        yield f"/admin/reassign_partitions holds {seen.look.legacy[:200]!r}"


def _hidden(look: ReplicasLook) -> Iterator[str]:
    if look.hidden:
        yield f"{of_hidden(look.hidden)}. To see how far they are, {SHOW_ALL}"


def _forward(spec: ClusterSpec, *, moving: bool, stuck: bool) -> Iterator[str]:
    if not moving:
        yield f"reassign_partitions: trigger reassign_partitions__{spec.name} (kraft-runbook reassign plan shows what)"
        return
    yield "mend what is stuck" if stuck else "wait: it needs time"
    yield f"change_pace: trigger change_pace__{spec.name} with MB/s a broker, and the throttle changes while data moves"
