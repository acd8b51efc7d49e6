"""Which topics the brokers show, beside what their gauges and their disks say."""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation, TopicsState, Unread, was_read
from kraft_runbook.cluster.replica_directories import WithoutId
from kraft_runbook.runbook.check_results import Finding, failed, passed, sample, unknown


def shown(topics: TopicsState | Unread) -> Finding:
    """Whether every topic is shown to this tool."""
    if not was_read(topics):
        return unknown(topics)
    count = topics.refused_count
    if not was_read(count):
        return unknown(count)
    if count:
        return failed(f"not shown to this tool: {sample(topics.refused, count)}")
    return passed(f"{topics.topic_count} topics are")


def cut_off(seen: ClusterObservation) -> tuple[WithoutId, ...]:
    """The directories without an id of brokers that are out of sync."""
    if not was_read(seen.replicas):
        return ()
    lagging = seen.topics.out_of_sync_by_broker if was_read(seen.topics) else None
    return tuple(each for each in seen.replicas.without_id if lagging is None or lagging.get(each.broker_id))


def names_beside_gauges(seen: ClusterObservation, named: tuple[str, ...], count: int) -> str:
    """The partitions where a broker counts some that Metadata does not name: it has not heard what the others know."""
    if named:
        return sample(named, count)
    tree = seen.tree
    if was_read(tree) and tree.under_replicated_count:
        return f"by ZooKeeper {sample(tree.under_replicated, tree.under_replicated_count)}"
    return (
        "Metadata names none of them: the broker has not heard what the others know, or they just changed. Its"
        " gauges kafka.cluster:type=Partition,name=UnderReplicated name them; its log says why"
    )
