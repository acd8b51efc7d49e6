"""After the cluster left KRaft: a broker that lost a thread to its controller on the way, or that ended, is restarted
before the others.

While it runs on, none of its partitions takes a replica back into the ISR, so that the roll would wait for ever at the
first broker it restarted. One that ended in migration mode, as of the znode that killed the controllers, would be
waited for as well: it starts in ZooKeeper mode only.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kraft_runbook.cluster.controller_settings import CONTROLLER_TIMEOUT
from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import StepFailed
from kraft_runbook.evidence.kinds import CutOff
from kraft_runbook.migration import conditions
from kraft_runbook.migration.controller_threads import cut_off
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Step
from kraft_runbook.steps.back import CUT_OFF_TO_ZOOKEEPER
from kraft_runbook.steps.node_step import take_step
from kraft_runbook.steps.run import Run

log = logging.getLogger(__name__)

SLACK = 5.0
"""Seconds beyond ``CONTROLLER_TIMEOUT``: only once a thread has looked can it have died of the change."""
SOON = 60.0
"""Seconds that a restarted broker is given to be in sync before the next: partitions that the next one leads take it
back only after that one's restart.
"""


def restart_cut_off_brokers(run: Run, *, left_task: str) -> dict[str, Any]:
    """Start the brokers that don't run, look at the threads of those still in migration mode, restart those that are
    cut off, and see all in sync again. ``left_task``: the task that left KRaft, which says since when.
    """
    tell = run.cluster.tell
    if unasked := MIGRATION.left_out(Step.ROLL_BROKERS_TO_ZOOKEEPER, run.params):
        tell(unasked)
        return {"restarted": []}
    if run.cluster.rehearses:
        tell("Dry run: would look for brokers that lost a thread to their controller")
        return {"restarted": []}
    seen = run.cluster.settled()
    ended = [broker.id for broker in seen.brokers.values() if broker.running is False]
    if detect_phase(seen).phase is not Phase.ZOOKEEPER or not (ended or seen.brokers_in(BrokerMode.HYBRID)):
        tell("no broker in migration mode follows a ZooKeeper controller: none can be cut off")
        return {"restarted": []}
    for node in ended:
        log.error("broker %d does not run; it is started in ZooKeeper mode before another is stopped", node)
        _restart(run, node, "its process had ended")
    if not seen.brokers_in(BrokerMode.HYBRID):
        return {"restarted": ended}
    _let_threads_notice(run, left_task)
    restarted, unread = _cut_off(run, run.cluster.observe())
    for node in restarted:
        log.error(
            "broker %d is cut off from its controller by a defect of Kafka (docs/rollback.md); a restart corrects that",
            node,
        )
        _restart(run, node, "it lost a thread to its controller, and is restarted before the others")
        if node != restarted[-1]:
            _in_sync_soon(run, node)
    for broker in run.cluster.observe().brokers_in(BrokerMode.ZOOKEEPER):
        run.cluster.wait_for(conditions.BROKER_IN_SYNC, deadline=run.spec.deadlines.in_sync, node_id=broker)
    return {"restarted": [*ended, *restarted], "not_looked_at": unread}


def _restart(run: Run, node: int, why: str) -> None:
    run.journal.record(CutOff(phase=Phase.ZOOKEEPER.value, node_id=node, why=why))
    take_step(run, CUT_OFF_TO_ZOOKEEPER, node)
    run.cluster.wait_for(
        conditions.BROKER_IN_ZOOKEEPER_MODE,
        deadline=run.spec.deadlines.registration,
        node_id=node,
    )


def _in_sync_soon(run: Run, node: int) -> None:
    try:
        run.cluster.wait_for(
            conditions.BROKER_IN_SYNC,
            deadline=min(SOON, run.spec.deadlines.in_sync),
            node_id=node,
        )
    except StepFailed as behind:
        log.warning("%s; the next broker that is cut off may be what it waits for", behind.problem)


def _let_threads_notice(run: Run, left_task: str) -> None:
    slowest = (
        max(
            float(broker_properties(run.spec, broker, BrokerMode.HYBRID).get(CONTROLLER_TIMEOUT, 30_000))
            for broker in run.spec.brokers
        )
        / 1000
    )
    left: Mapping[str, Any] = run.answer_of(left_task) or {}
    now = datetime.fromtimestamp(run.cluster.now(), UTC)
    elected = datetime.fromisoformat(left["elected_at"]) if left.get("elected_at") else now
    wait = slowest + SLACK - (now - elected).total_seconds()
    if wait > 0:
        run.cluster.tell(f"waiting {wait:.0f} s until every thread of the brokers has noticed its ZooKeeper controller")
        run.cluster.pause(wait)


def _cut_off(run: Run, seen: ClusterObservation) -> tuple[list[int], list[int]]:
    """The brokers to restart, and those whose threads can't be read, which keep their turn in the roll."""
    found = cut_off(seen, run.cluster.hosts(seen.brokers_in(BrokerMode.HYBRID)))
    unread = {broker: missing.reason for broker, missing in found.items() if not was_read(missing)}
    for broker, reason in unread.items():
        log.warning("broker %d's threads could not be read: %s", broker, reason)
    return sorted(found.keys() - unread.keys()), sorted(unread)
