"""What is being reassigned in a cluster, and which replication throttles are set, whoever asked for that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from kraft_runbook.cluster.assignment import Ongoing, TopicPartition
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.io.kafka.assignment_seen import AssignmentSeen, assignment_seen
from kraft_runbook.io.kafka.reassignments import Reassignments
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.part_read import part_read
from kraft_runbook.procedures.throttle_replication import read_throttles
from kraft_runbook.reassignment.throttles import ALL_RATES, Former, Values

Moving = Mapping[TopicPartition, Ongoing] | Unread
Throttles = Former | Unread


def see_moves(
    spec: ClusterSpec,
    live: Collection[int],
    *,
    secrets: Secrets,
    ongoing: Callable[[], Mapping[TopicPartition, Ongoing]] | None = None,
    throttles: Callable[..., Former] = read_throttles,
) -> tuple[Moving, Throttles]:
    """One request to the controller, one to some broker for the brokers' default, and one to each of the ``live``
    brokers for its own rates. Topics' lists are not read: they may be many (``see_lists``). Raises nothing for a part
    that can't be read. ``ongoing``, ``throttles``: how each is asked.
    """
    listed = ongoing or Reassignments(spec, secrets=secrets, timeout=5.0, patience=2.0).ongoing
    return part_read(listed), part_read(partial(throttles, spec, (), secrets=secrets, live=live, keys=ALL_RATES))


def see_lists(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    seen: Callable[..., AssignmentSeen] = assignment_seen,
    throttles: Callable[..., Former] = read_throttles,
) -> Mapping[str, Values] | Unread:
    """The lists of throttled replicas of every topic that has one, by topic. Metadata, and a request for each 500
    topics; a broker in ZooKeeper mode reads a znode for each topic.
    """

    def read() -> Mapping[str, Values]:
        topics = {each.topic for each in seen(spec, secrets=secrets).partitions}
        return throttles(spec, topics, secrets=secrets, live=()).lists

    return part_read(read)
