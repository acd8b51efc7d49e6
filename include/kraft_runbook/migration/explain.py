"""An observed cluster in words: its phase, what it waits for, and what an operator can do now, forward and back."""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation, unread_parts
from kraft_runbook.cluster.phases import Phase, PhaseReading, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration import without_zookeeper
from kraft_runbook.migration.checks.catalogue import CHECKS, DUAL_WRITING, SOAK
from kraft_runbook.migration.checks.liveness import dual_write_liveness
from kraft_runbook.migration.situation_facts import Facts
from kraft_runbook.migration.situations import forward, means, waits_for
from kraft_runbook.migration.way_back import quorum_is_lost, way_back
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.explanation import Explanation, is_answerable, not_looked_at, told

TOLD_BY_THE_PHASE = frozenset({"KRB-PRE-001", "KRB-PRE-002", "KRB-PRE-080", "KRB-PRE-081"})
"""Checks that would only repeat the phase and its reasons, or that there is nothing to migrate."""


def explain(seen: ClusterObservation, spec: ClusterSpec, *, earlier: ClusterObservation | None = None) -> Explanation:
    """An observation in words; a LIVE one is enough. ``earlier``: an observation some seconds before, without which
    dual write and changing topics can't be judged.
    """
    reading = detect_phase(seen)
    if not seen.has_zookeeper:
        return _without_zookeeper(seen, earlier, spec, reading)
    looked_at = tuple(
        each
        for each in CHECKS.applicable(reading.phase, SOAK if reading.phase in DUAL_WRITING else None)
        if is_answerable(each, seen, earlier)
    )
    blocking = [
        result
        for result in (each.run(seen, spec, earlier) for each in looked_at if each.code not in TOLD_BY_THE_PHASE)
        if result.blocks
    ]
    stopped = unread = None
    if earlier is None:
        unread = "it takes two looks"
    if earlier is not None and reading.phase in DUAL_WRITING and not quorum_is_lost(seen):
        alive = dual_write_liveness(earlier, seen)
        blocking += [alive] if alive.blocks else []
        stopped = alive.evidence if alive.verdict is Verdict.FAIL else None
        unread = alive.evidence if alive.verdict is Verdict.UNKNOWN else None
    facts = Facts(seen, earlier or seen, spec)
    rollback = way_back(seen, spec, dual_write_stopped=stopped, dual_write_unread=unread)
    return Explanation(
        cluster=spec.name,
        phase=reading.phase,
        because=reading.reasons,
        means=means(facts),
        waits_for=waits_for(facts),
        forward=forward(facts),
        back=rollback.steps,
        rollback=rollback,
        problems=told(blocking),
        unread=unread_parts(seen),
        not_looked_at=not_looked_at(CHECKS, reading.phase, seen),
    )


def _without_zookeeper(
    seen: ClusterObservation, earlier: ClusterObservation | None, spec: ClusterSpec, reading: PhaseReading
) -> Explanation:
    """Where there is no ZooKeeper: the cluster's health, and that there is nothing to migrate."""
    phase = reading.phase
    # Where the phase is unknown, the parts that checks of a ZooKeeper cluster need could not be read anyway.
    as_in = Phase.KRAFT if phase is Phase.UNKNOWN else phase
    looked_at = [
        each
        for each in CHECKS.applicable(as_in, None)
        if each.code not in TOLD_BY_THE_PHASE and is_answerable(each, seen, earlier)
    ]
    blocking = [result for result in (each.run(seen, spec, earlier) for each in looked_at) if result.blocks]
    facts = Facts(seen, earlier or seen, spec)
    return Explanation(
        cluster=spec.name,
        phase=phase,
        because=(*reading.reasons, *without_zookeeper.health(seen, spec)),
        means=means(facts),
        waits_for=waits_for(facts),
        forward=forward(facts),
        back=(),
        rollback=way_back(seen, spec),
        problems=told(blocking),
        unread=unread_parts(seen),
        not_looked_at=not_looked_at(CHECKS, as_in, seen),
    )
