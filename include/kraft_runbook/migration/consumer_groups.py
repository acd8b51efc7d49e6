"""Whether a consumer group stands in the way of leaving ZooKeeper. A check asks it, and again the step that takes the
last broker out of migration mode.
"""

from __future__ import annotations

from collections.abc import Collection

from kraft_runbook.cluster.consumer_groups import ConsumerGroups
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, Unread, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.check_results import Finding, failed, passed, sample, unknown

SCAN = "kraft-runbook groups scan --cluster"


def groups_that_need_zookeeper(groups: ConsumerGroups | Unread, spec: ClusterSpec) -> Finding:
    """FAIL with the groups that have members there, all counted, some named with their class; UNKNOWN where that could
    not be told of one. A group that is UNKNOWN for another reason, and has nobody there, stands in nobody's way.
    """
    if not was_read(groups):
        return unknown(groups)
    unread = f"not read: {sample(groups.unread.names, groups.unread.count)}" if groups.unread.count else ""
    if groups.live.count:
        told = f"consumer groups with live members in ZooKeeper: {sample(groups.live.names, groups.live.count)}"
        return failed(told + (f" ({unread})" if unread else "") + f"; {SCAN} {spec.name} shows each")
    return unknown(unread) if unread else passed(f"none of {groups.total}")


def leave_first(seen: ClusterObservation) -> bool:
    """Whether no broker is seen in KRaft mode yet."""
    return not any(each.mode is BrokerMode.KRAFT for each in seen.brokers.values())


def leave_last(seen: ClusterObservation, leaving: Collection[int]) -> bool:
    """Whether no other broker is seen in ZooKeeper or migration mode: /brokers/ids is empty once these have left."""
    others = (each.mode for each in seen.brokers.values() if each.id not in leaving)
    return not any(mode in (BrokerMode.ZOOKEEPER, BrokerMode.HYBRID) for mode in others)
