"""What an application may do when partitions come and go (``kafka.javaapi.consumer.ConsumerRebalanceListener``)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from kraft_runbook_consumer.assignors import subdivide
from kraft_runbook_consumer.step import View
from kraft_runbook_consumer.znodes import Partition, Registration, by_topic

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
        group by thread (``<member>-<number>``; of a new member its client id). While Kafka assigns anew it may lack
        partitions of others. Called again once another assignment is settled, also where this member's stays the same.
        """


class Teller:
    """Calls the listener of one member, and knows which assignment of the whole group that was told last."""

    def __init__(self, listener: RebalanceListener, member: str) -> None:
        self._listener, self._member = listener, member
        self._told: WholeGroup | None = None

    def releases(self, partitions: Collection[Partition]) -> None:
        self._listener.before_releasing_partitions(by_topic(partitions))

    def starts(self, group: WholeGroup) -> None:
        self._told = group
        self._listener.before_starting_fetchers(self._member, group)

    def settled(self, group: WholeGroup | None, held: Collection[Partition]) -> None:
        """Tell of the group where it is not the one that was told last. None: it is not settled. Not while the member
        holds anything else than its own partitions in it: what it gets is told then.
        """
        if group is None or group == self._told:
            return
        every = ((topic, number, thread) for topic, threads in group.items() for number, thread in threads.items())
        if {(topic, number) for topic, number, thread in every if thread.rpartition("-")[0] == self._member} == set(
            held
        ):
            self.starts(group)


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
