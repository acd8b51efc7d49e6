"""Asked on a schedule: does a reassignment stand still, or was something of one left behind? A failed run says what."""

from __future__ import annotations

import time
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.procedures.throttle_replication import read_throttles
from kraft_runbook.reassignment.stuck import why_not_done
from kraft_runbook.reassignment.throttles import FOLLOWER_RATE, LEADER_RATE, leftovers
from kraft_runbook_airflow.base.environment import airflow_secrets
from kraft_runbook_airflow.base.journal import record
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.reassignment.checks import checked, settled_look

APART_SECONDS = 10.0
LEFT_BEHIND = frozenset({"KRB-MOV-004", "KRB-MOV-005"})


class ReassignmentWatch(ClusterOperator):
    """Looks twice and changes nothing: stuck moves, throttles without a move, legacy znodes, faulty lists."""

    def rehearse(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        """The same: it changes nothing."""
        return self.act(context, spec)

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        earlier = settled_look(spec, settings=False)
        time.sleep(APART_SECONDS if earlier.placement.ongoing else 0)
        now, _, checks = checked(spec, self.log.info)
        throttles = read_throttles(spec, {p.topic for p in now.seen}, secrets=airflow_secrets())
        rates = (throttles.rates, *throttles.of_brokers.values())
        throttled = any(LEADER_RATE in each or FOLLOWER_RATE in each for each in rates)
        causes = [
            why_not_done(
                p, moving, now.seen[p], now.placement.live, earlier=earlier.logs, now=now.logs, throttled=throttled
            )
            for p, moving in sorted(now.placement.ongoing.items())
            if p in earlier.placement.ongoing
        ]
        found = [f"stuck: {each}" for each in causes if not each.waits]
        if not now.placement.ongoing:
            found += [f"a throttle without a move: {each}" for each in leftovers(throttles)]
        found += [f"{c.code} {c.title}: {c.evidence} {c.fix}" for c in checks if c.code in LEFT_BEHIND and c.blocks]
        told = "\n".join(found[:50])
        record(context, self.cluster, Moves(what="watched", partitions=len(now.placement.ongoing), told=told))
        if found:
            raise AirflowFailException(f"{len(found)} findings about reassignments of {self.cluster}:\n{told}")
        self.log.info("%d partitions are being reassigned, none is stuck, nothing is left", len(now.placement.ongoing))
        return {"moving": len(now.placement.ongoing)}
