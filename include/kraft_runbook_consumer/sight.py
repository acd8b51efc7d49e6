"""What a member sees of its group, in ZooKeeper and in Kafka."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from kraft_runbook_consumer.assignors import assign
from kraft_runbook_consumer.embedded import EmbeddedConsumer, embeds
from kraft_runbook_consumer.errors import ConsumerError
from kraft_runbook_consumer.listener import WholeGroup, by_topic_and_partition, group_of_kafka
from kraft_runbook_consumer.mode import Mode, called_for
from kraft_runbook_consumer.settings import MIGRATION, Settings
from kraft_runbook_consumer.step import View
from kraft_runbook_consumer.znodes import STATIC, GroupPaths, Partition, Registration
from kraft_runbook_consumer.zookeeper import GroupSeen, ZookeeperSession

LOOK_SECONDS = 5.0
"""After this time all is looked at again, whether or not something has told of a change."""
SOON = 0.05
STABLE_SECONDS = 2.0
GLANCE_SECONDS = 2.0
"""For how long Kafka's answer is waited for in ZooKeeper mode, where releases must not wait for it."""
ASSIGNORS = f"{MIGRATION}partition.assignment.strategy"
AGAIN_SECONDS = 60.0
"""After this time it is said again that Kafka's group does not let this member in."""
logger = logging.getLogger("kraft_runbook_consumer")


class Sight:
    """``view``: what was seen last. ``embedded``: None for a member that does not migrate. ``clock``: seconds, as of
    ``time.monotonic``.
    """

    def __init__(
        self, settings: Settings, member: str, registration: Registration, zookeeper: ZookeeperSession
    ) -> None:
        self.view = View()
        self.embedded: EmbeddedConsumer | None = None
        self.clock = time.monotonic
        self._settings, self._registration, self._zookeeper = settings, registration, zookeeper
        self._member = member
        self._looked_at = self._asked_at = float("-inf")
        self._connected_at = self.clock()
        self._stable, self._silent = True, False
        self._clients: Mapping[str, frozenset[Partition]] = {}
        self._once_migrating: frozenset[str] = frozenset()
        self._subscribed: frozenset[str] = frozenset()
        self._gone: frozenset[str] = frozenset()
        self._fenced: frozenset[Partition] = frozenset()
        self._not_joined_since: float | None = None
        self._refused_before = self._refused_told = 0
        self._told_at: dict[int, float] = {}

    @property
    def age(self) -> float:
        """Seconds since the last look at ZooKeeper."""
        return self.clock() - self._looked_at

    def look(self, held: Collection[str] = ()) -> GroupSeen:
        """ZooKeeper's side anew. ``held``: topics of which owner znodes are held; one that was deleted has them still.

        Raises Unreachable; ConsumerError where a topic is missing, or fenced, at the first look.
        """
        first = self._looked_at < 0
        seen = self._zookeeper.look(lambda members, every: {*self._topics(members, every), *held})
        self._looked_at = self.clock()
        self._once_migrating |= seen.migrating
        mine = self._zookeeper.session
        self.view = replace(
            self.view,
            members=seen.members,
            migrating=seen.migrating,
            mode=seen.mode,
            partitions=seen.partitions,
            taken=frozenset(each for each, session in seen.owners.items() if session != mine),
        )
        self._require_topics(first=first)
        self._require_no_fence(seen.owners, first=first)
        self._subscribe()
        return seen

    def look_at_kafka(self, mode: Mode | None) -> None:
        """Who is in Kafka's group: at once when Kafka has assigned anew, and before kafka mode may be left.

        Raises ConsumerError where Kafka refuses its principal.
        """
        if self.embedded is None:
            self.view = replace(self.view, new={})
            return
        self._tell_of_refused_joins(self.embedded, mode)
        asked = called_for(self.view.mode, self.view.members, self.view.migrating)
        wanted = self.embedded.changed or not self._stable or self.view.new is None or asked is not mode
        glance = asked is mode is Mode.ZOOKEEPER
        soon = wanted and not (glance and self._silent)
        if self.clock() - self._asked_at < (SOON if soon else LOOK_SECONDS):
            return
        self.embedded.changed = False
        self._asked_at = self.clock()
        told = self.embedded.members(GLANCE_SECONDS) if glance else self.embedded.members()
        self._silent = told is None
        if told is None:
            self.embedded.changed = True
            if not glance:  # else what it told last counts
                self.view = replace(self.view, new=None)
            return
        self._stable, clients = told
        self._clients = clients
        if self._stable:  # one that is in neither group any more may come back as a new member of the same name
            self._once_migrating &= self.view.migrating | clients.keys()
        group, migrating = self._settings.group, self._once_migrating
        new = {each: held for each, held in clients.items() if not embeds(group, each, migrating)}
        self.view = replace(self.view, new=new)

    def _tell_of_refused_joins(self, embedded: EmbeddedConsumer, mode: Mode | None) -> None:
        """An error in kafka mode, where this member hands out nothing meanwhile, else a warning: at once, then after
        AGAIN_SECONDS, for as long as further joins are refused.
        """
        level = logging.ERROR if mode is Mode.KAFKA else logging.WARNING
        if embedded.refused_joins == self._refused_told:
            return
        self._refused_told = embedded.refused_joins
        if self.clock() - self._told_at.get(level, float("-inf")) < AGAIN_SECONDS:
            return
        self._told_at[level] = self.clock()
        logger.log(
            level,
            "Kafka's group does not let this member in (refused joins: %d): it has %s, and shares no assignor with the"
            " members there, new ones or migrating ones with another strategy. It %s until it is let in. What to do:"
            " give all migrating members the same %s. It must be range,roundrobin if the new members' list lacks"
            " cooperative-sticky. Change it while the mode is zookeeper, or with all migrating members stopped",
            embedded.refused_joins,
            embedded.assignors,
            "hands out nothing, and asks again," if mode is Mode.KAFKA else "asks again",
            ASSIGNORS,
        )

    def assigned(self, mode: Mode | None) -> frozenset[Partition] | None:
        """What Kafka has assigned, None before it has; in kafka mode nothing once a join was refused meanwhile, or once
        that has lasted a session of Kafka's: those that Kafka assigns the partitions to wait for this member's locks.
        """
        if self.embedded is None or self.embedded.assigned is not None or mode is not Mode.KAFKA:
            self._not_joined_since = None
            return None if self.embedded is None else self.embedded.assigned
        now = self.clock()
        if self._not_joined_since is None:
            self._not_joined_since, self._refused_before = now, self.embedded.refused_joins
        if self.embedded.refused_joins > self._refused_before:
            return frozenset()
        if now - self._not_joined_since <= self.embedded.lease.session_seconds:
            return None
        if self._subscribed and self._not_joined_since > float("-inf"):
            self._not_joined_since = float("-inf")
            logger.error(
                "Kafka's group has not let this member in for %g s of kafka mode: it gives up its partitions. What to "
                "do: look at the log's warnings of the embedded consumer, and at coordination.migration.*",
                self.embedded.lease.session_seconds,
            )
        return frozenset()

    def whole_group(self, mode: Mode | None) -> WholeGroup:
        """The assignment that counts, of every member. In kafka mode Kafka tells it once its group is stable, which is
        waited for a little. Until then it is what Kafka told last, but for what is assigned to this member.
        """
        if mode is not Mode.KAFKA or self.embedded is None:
            return self._of_zookeeper()
        deadline = self.clock() + STABLE_SECONDS
        told = self.embedded.members(STABLE_SECONDS)
        while (told is None or not told[0]) and (left := deadline - self.clock()) > 0:
            time.sleep(SOON)
            told = self.embedded.members(left)
        return self._of_kafka(told[1] if told is not None else {})

    def settled_group(self, mode: Mode | None) -> WholeGroup | None:
        """The same as the last look has told it; None while nobody assigns for certain: Kafka's group is not stable or
        not known, or this member is not registered.
        """
        if mode is None or self._member not in self.view.members:
            return None
        if mode is not Mode.KAFKA or self.embedded is None:
            return self._of_zookeeper()
        known = self._stable and not self.embedded.changed and self.view.new is not None
        return self._of_kafka(self._clients) if known and self.embedded.assigned is not None else None

    def _of_zookeeper(self) -> WholeGroup:
        exclude, view = self._settings.exclude_internal, self.view
        dealt = assign(self._settings.strategy, view.members, view.partitions, exclude_internal=exclude)
        threads = {each: thread.name for each, thread in dealt.items()}
        new = {each: client for client, partitions in (view.new or {}).items() for each in partitions}
        return by_topic_and_partition(threads | new)

    def _of_kafka(self, clients: Mapping[str, frozenset[Partition]]) -> WholeGroup:
        """``clients``: as Kafka tells it of the group. What this member was assigned it knows first."""
        own = (self.embedded.assigned if self.embedded is not None else None) or frozenset()
        every = {each: partitions - own for each, partitions in clients.items()} | {self._member: own}
        return group_of_kafka(every, self.view, exclude_internal=self._settings.exclude_internal)

    def leave_kafka_when_cut_off(self) -> None:
        """Without ZooKeeper for a whole session it hands out nothing: others get what Kafka assigned it."""
        if self._zookeeper.connected:
            self._connected_at = self.clock()
        elif self.clock() - self._connected_at > self._settings.session_seconds:
            self.unsubscribe()

    def unsubscribe(self) -> None:
        """Leave Kafka's group until the next look at ZooKeeper."""
        if self.embedded is not None and self._subscribed:
            logger.warning("cut off from ZooKeeper: this member leaves Kafka's group until it is back")
            self.embedded.unsubscribe()
            self._subscribed = frozenset()

    def _topics(self, members: Mapping[str, Registration], every: Iterable[str]) -> Collection[str]:
        exclude, known = self._settings.exclude_internal, list(every)
        asked = [*members.values(), self._registration]
        return {topic for each in asked for topic in each.topics(known, exclude_internal=exclude)}

    def _require_topics(self, *, first: bool) -> None:
        if self._registration.pattern != STATIC:
            return
        gone = self._registration.subscription.keys() - self.view.partitions.keys()
        for topic in sorted(gone - self._gone):
            if first:
                raise ConsumerError(f"there is no topic {topic}", way_out="create it, or correct its name")
            logger.warning(
                "there is no topic %s any more: nothing of it is handed out. What to do: start the group's members"
                " without it; or create it again, once /consumers/%s/offsets/%s is deleted: those offsets are of the"
                " topic that has gone, and a member would begin there",
                topic,
                self._settings.group,
                topic,
            )
        self._gone = frozenset(gone)

    def _require_no_fence(self, owners: Mapping[Partition, int], *, first: bool) -> None:
        """A partition whose owner znode belongs to no session can be owned by nobody, for as long as that stands."""
        exclude = self._settings.exclude_internal
        topics = self._registration.topics(self.view.partitions, exclude_internal=exclude)
        fenced = frozenset(each for each, session in owners.items() if not session and each[0] in topics)
        if new := sorted(fenced - self._fenced):
            where = GroupPaths(self._settings.group).owner(new[0])
            error = ConsumerError(
                f"{len(new)} partitions can be owned by no member here: {where} belongs to no session. It is the fence"
                " of a group that was moved to Kafka",
                way_out="start KafkaConsumers; or let move_consumer_group move the group back, which lifts the fence",
            )
            if first:
                raise error
            logger.error("%s", error)
        self._fenced = fenced

    def _subscribe(self) -> None:
        exclude = self._settings.exclude_internal
        topics = self._registration.topics(self.view.partitions, exclude_internal=exclude)
        existing = frozenset(topics) & self.view.partitions.keys()
        if self.embedded is not None and existing and existing != self._subscribed:
            self.embedded.subscribe(existing)
            self._subscribed = existing
