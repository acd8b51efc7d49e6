"""A look at a cluster in the roll's words: each node is judged by the software that it runs now, since a mixed cluster
may go on forward or back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.explanation import Explanation, explain_by_table
from kraft_runbook.software import conditions
from kraft_runbook.software.ahead import reading_of, way_back, what_happens_next
from kraft_runbook.software.checklist import CHECKS
from kraft_runbook.software.roll import Rolled
from kraft_runbook.software.stages import TABLE, Gate
from kraft_runbook.software.way_back import level_beyond


def explain(seen: ClusterObservation, spec: ClusterSpec, *, earlier: ClusterObservation | None = None) -> Explanation:
    """Where the roll stands, which node does not serve, and what can be done, forward and back."""
    reading, back = reading_of(seen, spec), way_back(seen, spec)
    found = explain_by_table(TABLE, CHECKS, reading, back, seen, spec, earlier=earlier)
    if reading.stage is Rolled.UNKNOWN:
        return found
    ahead = what_happens_next(Gate.UP, seen, spec) if reading.stage is not Rolled.NEW else ()
    return replace(
        found,
        waits_for=tuple(_not_serving(seen, spec, earlier)),
        forward=tuple(f"upgrade_software: {each}" for each in ahead if each.startswith("Restart")),
        back=tuple(f"downgrade_software: {each}" for each in back.steps),
        undone="Can the software go back",
    )


def _not_serving(seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None) -> Iterator[str]:
    """The nodes that do not serve on the software that they show."""
    target = conditions.target_version(spec)
    for controller in seen.controllers.values():
        there = controller.software_version == target
        condition = conditions.CONTROLLER_ON_TARGET if there else conditions.CONTROLLER_ON_FORMER
        yield from _missing(condition.progress(seen, spec, node_id=controller.id, earlier=earlier).waiting_for)
    for broker in seen.brokers.values():
        there = broker.software_version == target
        first = conditions.BROKER_ON_TARGET if there else conditions.BROKER_ON_FORMER
        registered = first.progress(seen, spec, node_id=broker.id, earlier=earlier)
        ended = broker.running is not True and not broker.lives
        why = "" if registered.done or there or ended else _may_not_know_the_level(seen, spec)
        yield from (f"{each}{why}" for each in _missing(registered.waiting_for))
        in_sync = conditions.BROKER_IN_SYNC.progress(seen, spec, node_id=broker.id, earlier=earlier)
        if in_sync.waiting_for != registered.waiting_for:
            yield from _missing(in_sync.waiting_for)


def _may_not_know_the_level(seen: ClusterObservation, spec: ClusterSpec) -> str:
    """Why a broker on the version before may live and never serve: the quorum refuses its registration (measured)."""
    if not was_read(seen.quorum) or seen.quorum.metadata_version is None:
        return ""
    beyond = level_beyond(seen, spec.kafka.version)
    if beyond:
        return (
            f"; {beyond}. A broker that does lives on and never serves (its log says UNSUPPORTED_VERSION every 2 s):"
            f" start it on {conditions.target_version(spec)} again"
        )
    return (
        f"; if its log says UNSUPPORTED_VERSION, Kafka {spec.kafka.version} does not know a level that holds"
        f" (metadata.version {seen.quorum.metadata_version}): it lives and never serves until it runs"
        f" {conditions.target_version(spec)} again (kraft-runbook features tells)"
    )


def _missing(waiting_for: str) -> Iterator[str]:
    if waiting_for:
        yield waiting_for.removeprefix("waiting for ")
