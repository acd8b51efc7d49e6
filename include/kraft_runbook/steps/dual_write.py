"""Whether ZooKeeper is still written, before a broker is restarted in KRaft mode. If it is not, a broker in KRaft mode
can't go back without a loss.
"""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.errors import Refused
from kraft_runbook.migration.checks import Verdict
from kraft_runbook.migration.checks.liveness import dual_write_liveness
from kraft_runbook.parity.dual_write import await_movement
from kraft_runbook.parity.standstill import LIVENESS_SECONDS
from kraft_runbook.steps.handle import Cluster


def require_dual_write(cluster: Cluster, seen: ClusterObservation) -> None:
    """Look at /migration again, as soon as it has moved since ``seen`` or ``LIVENESS_SECONDS`` later, and look further
    while it does not advance.

    A controller election also stops it for a moment, so dual write counts as stopped when
    ``deadlines.healthy_in_a_row`` looks say so. Parts that could not be read are looked at again until
    ``deadlines.quorum`` seconds have passed. Raises Refused, with nothing changed.
    """
    ends = cluster.now() + cluster.spec.deadlines.quorum
    stopped = 0
    while True:
        cluster.ask(await_movement, seen, within=LIVENESS_SECONDS)
        alive = dual_write_liveness(seen, cluster.observe())
        cluster.tell(f"{alive.code} {alive.verdict}: {alive.evidence}")
        if alive.passed:
            return
        stopped += alive.verdict is Verdict.FAIL
        if stopped >= cluster.spec.deadlines.healthy_in_a_row or cluster.now() >= ends:
            break
    raise Refused(
        f"{alive.code} {alive.title}: {alive.verdict}. {alive.evidence}. A broker that is restarted in KRaft mode now"
        " could not go back",
        way_out=(
            f"{alive.fix}. This broker was not restarted: clear this task once kraft-runbook explain says that the"
            " cluster can go back to ZooKeeper"
        ),
    )
