"""Whether a consumer group still needs ZooKeeper, asked again at the moment the last broker is to leave migration mode:
after that /brokers/ids is empty.
"""

from __future__ import annotations

from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.errors import Refused
from kraft_runbook.migration.consumer_groups import groups_that_need_zookeeper, leave_last
from kraft_runbook.procedures.see_groups import look_for_live_groups
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.steps.node_step import Look


def require_no_live_groups(look: Look) -> None:
    """Look at every group below /consumers where this broker runs, and no other but those restarted together with it is
    left in migration mode. One that is down leaves in any case: what is not started serves nobody. Raises Refused, with
    nothing changed.
    """
    if look.seen.brokers[look.node].running is False or not leave_last(look.seen, look.together):
        return
    found = groups_that_need_zookeeper(look.cluster.ask(look_for_live_groups), look.spec)
    look.tell(f"KRB-PRE-033 before the last broker leaves migration mode: {found.verdict}, {found.evidence}")
    if found.verdict is not Verdict.PASS:
        first = (
            "move these groups to Kafka's coordination (docs/consumer-groups.md)"
            if found.verdict is Verdict.FAIL
            else "make readable what could not be read"
        )
        last = sorted(look.together)
        raise Refused(
            f"{nodes('broker', last, 'is')} the last in migration mode, and {found.evidence}. Without"
            f" {by_number(last, 'it', 'them')} /brokers/ids is empty: consumers that are registered in ZooKeeper stop"
            " reading, without an error",
            way_out=f"{first}, then clear this task; broker {look.node} was not restarted",
        )
