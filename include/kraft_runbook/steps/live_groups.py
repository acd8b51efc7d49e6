"""Whether a consumer group still needs ZooKeeper, asked again at the moment the last broker is to leave migration mode:
after that /brokers/ids is empty.
"""

from __future__ import annotations

from kraft_runbook.errors import Refused
from kraft_runbook.migration.consumer_groups import groups_that_need_zookeeper, leaves_last
from kraft_runbook.procedures.see_groups import look_for_live_groups
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.steps.node_step import Look


def require_no_live_groups(look: Look) -> None:
    """Look at every group below /consumers where this broker is the last one in migration mode and runs. One that is
    down leaves in any case: what is not started serves nobody. Raises Refused, with nothing changed.
    """
    if look.seen.brokers[look.node].running is False or not leaves_last(look.seen, look.node):
        return
    found = groups_that_need_zookeeper(look.cluster.ask(look_for_live_groups), look.spec)
    look.tell(f"KRB-PRE-033 before the last broker leaves migration mode: {found.verdict}, {found.evidence}")
    if found.verdict is not Verdict.PASS:
        first = (
            "move these groups to Kafka's coordination (docs/consumer-groups.md)"
            if found.verdict is Verdict.FAIL
            else "make readable what could not be read"
        )
        raise Refused(
            f"broker {look.node} is the last one in migration mode, and {found.evidence}. Without it /brokers/ids is"
            " empty: consumers that are registered in ZooKeeper stop reading, without an error",
            way_out=f"{first}, then clear this task; broker {look.node} was not restarted",
        )
