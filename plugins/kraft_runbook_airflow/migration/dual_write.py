"""Before a broker leaves ZooKeeper: is ZooKeeper still written? Where it is not, each further restart makes the way
back longer, and it leads nowhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.migration.checks import Verdict
from kraft_runbook.migration.checks.liveness import dual_write_liveness
from kraft_runbook.parity.dual_write import await_movement
from kraft_runbook.parity.standstill import LIVENESS_SECONDS
from kraft_runbook.procedures.observe import observe
from kraft_runbook_airflow.base.environment import airflow_secrets


def require_dual_write(spec: ClusterSpec, seen: ClusterObservation, *, tell: Callable[[str], object]) -> None:
    """Look at /migration once more, as soon as it has moved since ``seen`` or ``LIVENESS_SECONDS`` later, and again
    where it can't be seen to advance.

    An election of the controllers stops it for a moment, too: it has stopped when ``deadlines.healthy_in_a_row`` looks
    say so. What could not be read is looked at until ``deadlines.quorum`` seconds have passed. Raises Refused; nothing
    was changed by then.
    """
    ends = time.monotonic() + spec.deadlines.quorum
    stopped = 0
    while True:
        await_movement(spec, seen, secrets=airflow_secrets(), within=LIVENESS_SECONDS)
        alive = dual_write_liveness(seen, observe(spec, secrets=airflow_secrets()))
        tell(f"{alive.code} {alive.verdict}: {alive.evidence}")
        if alive.passed:
            return
        stopped += alive.verdict is Verdict.FAIL
        if stopped >= spec.deadlines.healthy_in_a_row or time.monotonic() >= ends:
            break
    raise Refused(
        f"{alive.code} {alive.title}: {alive.verdict}. {alive.evidence}. A broker that is restarted in KRaft mode now"
        " could not go back",
        way_out=(
            f"{alive.fix}. This broker was not touched: clear this task once kraft-runbook explain says that the way"
            " back is open"
        ),
    )
