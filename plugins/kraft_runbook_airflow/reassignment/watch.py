"""Asked on a schedule: does a reassignment stand still, or was something of one left behind? A failed run says what."""

from __future__ import annotations

import time
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.reassignment.checks import CHECKS
from kraft_runbook.reassignment.explain import causes_of, has_rate
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.throttles import leftovers
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.reassignment.checks import see, settled_look
from kraft_runbook_airflow.reassignment.earlier_runs import still_throttling

APART_SECONDS = 10.0
LEFT_BEHIND = frozenset({"KRB-MOV-004", "KRB-MOV-005"})


class ReassignmentWatch(ClusterOperator):
    """Looks twice and changes nothing: stuck moves, throttles without a move, legacy znodes, faulty lists."""

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        earlier = settled_look(run.cluster, settings=False)
        time.sleep(APART_SECONDS if earlier.placement.ongoing else 0)
        seen = see(run.cluster)
        now = seen.look
        causes = causes_of(earlier, now, throttled=has_rate(seen.throttles))
        found = [f"stuck: {each}" for each in causes if not each.waits]
        if not now.placement.ongoing:
            found += [f"a throttle without a move: {each}" for each in leftovers(seen.throttles)]
            found += [
                f"run {each.files.name} set them: trigger cancel_reassignments__{run.spec.name}, which puts them back"
                for each in still_throttling(now.cluster_id, self.log.warning)
            ]
        results = CHECKS.run(seen, run.spec, REASSIGNMENT.read(seen, run.spec).stage).blocking
        found += [f"{c.code} {c.title}: {c.evidence} {c.fix}" for c in results if c.code in LEFT_BEHIND]
        told = "\n".join(found[:50])
        run.journal.record(Moves(what="watched", partitions=len(now.placement.ongoing), told=told))
        if found:
            self.log.error("%s", told)
            raise AirflowFailException(f"{len(found)} findings about reassignments of {self.cluster}:\n{told}")
        self.log.info("%d partitions are being reassigned, none is stuck, nothing is left", len(now.placement.ongoing))
        return {"moving": len(now.placement.ongoing)}
