"""What an application may do when partitions come and go (``kafka.javaapi.consumer.ConsumerRebalanceListener``)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from kraft_runbook_consumer.assignors import subdivide
from kraft_runbook_consumer.step import View
from kraft_runbook_consumer.znodes import Partition, Registration

WholeGroup = Mapping[str, Mapping[int, str]]
"""Topic → partition → thread, of every member."""


class RebalanceListener(Protocol):
    """Both are called in the coordinator's thread: what takes long there holds up the group. An error in one ends the
    consumer, which releases all the same. ``commit()`` may be called in them, ``close()`` may not.
    """

    def before_releasing_partitions(self, released: Mapping[str, Collection[int]]) -> None:
        """Topic → partitions that this member gives up now, and no others. Their offsets are committed, nothing is
        handed out any more, nobody else has them yet.
        """

    def before_starting_fetchers(self, member: str, group: WholeGroup) -> None:
        """Partitions are this member's, and nothing of them is handed out yet. ``group``: the assignment of the whole
        group by thread (``<member>-<number>``; of a new member its client id).
        """


def by_topic_and_partition(threads: Mapping[Partition, str]) -> WholeGroup:
    found: dict[str, dict[int, str]] = {}
    for (topic, number), thread in sorted(threads.items()):
        found.setdefault(topic, {})[number] = thread
    return found


def group_of_kafka(clients: Mapping[str, Collection[Partition]], view: View, *, exclude_internal: bool) -> WholeGroup:
    """What Kafka assigns, by thread: each member's partitions are dealt to its threads as that member deals them
    (KIP-125). ``clients``: client id → partitions, of DescribeGroups.
    """
    threads: dict[Partition, str] = {}
    for client, partitions in clients.items():
        asked = view.members.get(client, Registration()).topics(view.partitions, exclude_internal=exclude_internal)
        threads |= dict.fromkeys(partitions, client)
        threads |= {each: thread.name for each, thread in subdivide(client, asked, partitions).items()}
    return by_topic_and_partition(threads)
