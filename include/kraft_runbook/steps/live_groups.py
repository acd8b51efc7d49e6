"""Whether a consumer group still needs ZooKeeper. Asked again when the first broker is to leave migration mode, since
it refuses version 0 of OffsetCommit and OffsetFetch then; and when the last one is, since /brokers/ids is empty then.
"""

from __future__ import annotations

from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.errors import Refused
from kraft_runbook.migration.consumer_groups import groups_that_need_zookeeper, leave_first, leave_last
from kraft_runbook.procedures.see_groups import look_for_live_groups
from kraft_runbook.runbook.check_results import Verdict, sample
from kraft_runbook.steps.node_step import Look


def require_no_live_groups(look: Look) -> None:
    """Look at every group below /consumers where this broker runs, and is the first to leave migration mode, or no
    other but those restarted together with it is left there. Groups that somebody commits for without registering are
    told. Before the last one, a group with members in ZooKeeper is refused. A broker that is down leaves in any case:
    what is not started serves nobody. Raises Refused, with nothing changed.
    """
    last = leave_last(look.seen, look.together)
    if look.seen.brokers[look.node].running is False or not (last or leave_first(look.seen)):
        return
    groups = look.cluster.ask(look_for_live_groups)
    if was_read(groups) and (some := groups.offsets_only).count:
        look.tell(
            f"KRB-PRE-099 before broker {look.node} leaves migration mode: groups {sample(some.names, some.count)}"
            " (OFFSETS_ONLY). If they commit with OffsetCommit version 0, a broker in KRaft mode refuses that"
        )
    if not last:
        return
    found = groups_that_need_zookeeper(groups, look.spec)
    look.tell(f"KRB-PRE-033 before the last broker leaves migration mode: {found.verdict}, {found.evidence}")
    if found.verdict is not Verdict.PASS:
        first = (
            "move these groups to Kafka's coordination (docs/consumer-groups.md)"
            if found.verdict is Verdict.FAIL
            else "make readable what could not be read"
        )
        leaving = sorted(look.together)
        raise Refused(
            f"{nodes('broker', leaving, 'is')} the last in migration mode, and {found.evidence}. Without"
            f" {by_number(leaving, 'it', 'them')} /brokers/ids is empty: consumers that are registered in ZooKeeper"
            " stop reading, without an error",
            way_out=f"{first}, then clear this task; broker {look.node} was not restarted",
        )
