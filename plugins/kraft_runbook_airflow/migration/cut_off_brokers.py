"""After the cluster left KRaft: a broker that lost a thread to its controller on the way, or that ended, is restarted
before the others.

While it runs on, none of its partitions takes a replica back into the ISR, so that the roll would wait for ever at the
first broker it restarted. One that ended in migration mode, as of the znode that killed the controllers, would be
waited for as well: it starts in ZooKeeper mode only.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed
from kraft_runbook.evidence.kinds import CutOff
from kraft_runbook.io.hosts.playbooks import gather_host_facts
from kraft_runbook.migration import conditions
from kraft_runbook.migration.controller_threads import cut_off
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Step
from kraft_runbook.procedures.observe import observe
from kraft_runbook.procedures.settled import observe_settled
from kraft_runbook_airflow.base.environment import airflow_secrets
from kraft_runbook_airflow.base.gone import said_to_be_gone
from kraft_runbook_airflow.base.journal import record
from kraft_runbook_airflow.base.node_steps import take_step
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.base.waiting import wait_for
from kraft_runbook_airflow.migration.back_steps import CUT_OFF_TO_ZOOKEEPER

CONTROLLER_TIMEOUT = "controller.socket.timeout.ms"
"""When so much time has passed, a thread without work looks who its controller is. Only then can it have died of the
change. Default 30,000.
"""
SLACK = 5.0
"""Seconds more."""
SOON = 60.0
"""Seconds that a restarted broker is given to be in sync before the next: partitions that the next one leads take it
back only after that one's restart.
"""


class RestartCutOffBrokers(ClusterOperator):
    """Start the brokers that don't run, look at the threads of those still in migration mode, restart those that are
    cut off, and see all in sync again.
    """

    def __init__(self, *, left_task: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.left_task = left_task

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        unasked = _left_out(context)
        if unasked:
            self.log.info("%s", unasked)
            return {"restarted": []}
        gone = said_to_be_gone(context, spec)
        seen = observe_settled(spec, secrets=airflow_secrets(), tell=self.log.info, gone=gone)
        ended = [broker.id for broker in seen.brokers.values() if broker.running is False]
        if detect_phase(seen).phase is not Phase.ZOOKEEPER or not (ended or seen.brokers_in(BrokerMode.HYBRID)):
            self.log.info("no broker in migration mode follows a ZooKeeper controller: none can be cut off")
            return {"restarted": []}
        for node in ended:
            self.log.error("broker %d does not run; it is started in ZooKeeper mode before another is stopped", node)
            self._let_its_session_end(spec, node)
            self._restart(context, spec, node, "its process had ended")
        if not seen.brokers_in(BrokerMode.HYBRID):
            return {"restarted": ended}
        self._let_threads_notice(context, spec)
        restarted, unread = self._cut_off(spec, observe(spec, secrets=airflow_secrets()))
        for node in restarted:
            self.log.error(
                "broker %d is cut off from its controller by a defect of Kafka (docs/rollback.md); a restart corrects"
                " that",
                node,
            )
            self._restart(context, spec, node, "it lost a thread to its controller, and is restarted before the others")
            if node != restarted[-1]:
                self._in_sync_soon(spec, node)
        for broker in observe(spec, secrets=airflow_secrets()).brokers_in(BrokerMode.ZOOKEEPER):
            wait_for(
                spec, conditions.BROKER_IN_SYNC, deadline=spec.deadlines.in_sync, say=self.log.info, node_id=broker
            )
        return {"restarted": [*ended, *restarted], "not_looked_at": unread}

    def rehearse(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        told = "Dry run: would look for brokers that lost a thread to their controller"
        self.log.info("%s", _left_out(context) or told)
        return {"restarted": []}

    def _restart(self, context: Any, spec: ClusterSpec, node: int, why: str) -> None:
        record(context, self.cluster, CutOff(phase=Phase.ZOOKEEPER.value, node_id=node, why=why))
        take_step(context, spec, CUT_OFF_TO_ZOOKEEPER, node, self.log.info)
        wait_for(
            spec,
            conditions.BROKER_IN_ZOOKEEPER_MODE,
            deadline=spec.deadlines.registration,
            say=self.log.info,
            node_id=node,
        )

    def _let_its_session_end(self, spec: ClusterSpec, node: int) -> None:
        """Wait until ZooKeeper has dropped the znode of a broker that was killed: one that is started before that ends
        at once, since its id is taken (``KafkaZkClient.registerBroker``).
        """
        self.log.info("waiting until the ZooKeeper session of broker %d has ended, which still has its id", node)
        ends = time.time() + spec.deadlines.registration
        while time.time() < ends:
            seen = observe(spec, secrets=airflow_secrets())
            if seen.brokers[node].running is not False:
                return
            if was_read(seen.zookeeper) and node not in seen.zookeeper.brokers:
                return
            time.sleep(spec.deadlines.poll)

    def _in_sync_soon(self, spec: ClusterSpec, node: int) -> None:
        try:
            wait_for(
                spec,
                conditions.BROKER_IN_SYNC,
                deadline=min(SOON, spec.deadlines.in_sync),
                say=self.log.info,
                node_id=node,
            )
        except StepFailed as behind:
            self.log.warning("%s; the next broker that is cut off may be what it waits for", behind.problem)

    def _let_threads_notice(self, context: Any, spec: ClusterSpec) -> None:
        slowest = (
            max(
                float(broker_properties(spec, broker, BrokerMode.HYBRID).get(CONTROLLER_TIMEOUT, 30_000))
                for broker in spec.brokers
            )
            / 1000
        )
        left: Mapping[str, Any] = context["ti"].xcom_pull(task_ids=self.left_task) or {}
        elected = datetime.fromisoformat(left["elected_at"]) if left.get("elected_at") else datetime.now(UTC)
        wait = slowest + SLACK - (datetime.now(UTC) - elected).total_seconds()
        if wait > 0:
            self.log.info("waiting %.0f s until every thread of the brokers has noticed its ZooKeeper controller", wait)
            time.sleep(wait)

    def _cut_off(self, spec: ClusterSpec, seen: ClusterObservation) -> tuple[list[int], list[int]]:
        """The brokers to restart, and those whose threads can't be read, which keep their turn in the roll."""
        found = cut_off(seen, gather_host_facts(spec, seen.brokers_in(BrokerMode.HYBRID)))
        unread = {broker: missing.reason for broker, missing in found.items() if not was_read(missing)}
        for broker, reason in unread.items():
            self.log.warning("broker %d's threads could not be read: %s", broker, reason)
        return sorted(found.keys() - unread.keys()), sorted(unread)


def _left_out(context: Any) -> str | None:
    return MIGRATION.left_out(Step.ROLL_BROKERS_TO_ZOOKEEPER, context["params"])
