"""A member that keeps a group warm: it is there alone, is given no partition, and leaves once another one comes."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.kafka.connection import CLIENT_ID, Connect, KafkaConnection, connect_to
from kraft_runbook.io.kafka.coordinator import NOT_AUTHORIZED, NOT_READY, Coordinator
from kraft_runbook.io.secrets import Secrets

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION, DESCRIBE_VERSION = 5, 3, 3, 4, 5
MEMBER_ID_REQUIRED, REBALANCES, INVALID_SESSION, UNKNOWN_MEMBER = 79, 27, 26, 25
SESSION_SECONDS = 6.0
"""The least that brokers take by default (group.min.session.timeout.ms). So long the member of a killed task stays."""
STAYS = f"Kafka did not say that it has left: it may be in the group for {SESSION_SECONDS:g} s more"
LEAVE_SECONDS = 5.0
"""How long its coordinator is looked for, where Kafka did not say so at the first try: it may just have moved."""
NOT_JOINED = "it has not joined yet"
LOOK_SECONDS = 0.1
"""Between two heartbeats, which tell that another member has come: so long that one may wait."""
JOIN_SECONDS = 60.0
"""How long Kafka may take to let it in: group.initial.rebalance.delay.ms, or the session of a killed task's member."""
_NOTHING = struct.pack("!hii", 0, 0, -1)
"""A subscription to no topic, and an assignment of none, as Kafka's assignors read them (``ConsumerProtocol``)."""


@dataclass
class Anchor:
    """A context manager: in the group while the block runs, or until another member comes. Whatever goes wrong only
    leaves the group as cold as it was. It knows ``assignors`` by name alone: a member that shares none of them is
    turned away by Kafka (INCONSISTENT_GROUP_PROTOCOL) and ends. So is one of group.protocol=consumer (KIP-848): Kafka
    3.9 converts an empty group for it and refuses one with members (GROUP_ID_NOT_FOUND,
    group.consumer.migration.policy), and this one sees nothing of it.

    ``said``: how it ended, in words, or that it goes on. ``over``: set once it has ended.

    New members join an empty group after group.initial.rebalance.delay.ms, and later while further ones come
    (``InitialDelayedJoin``); one that has a member they join at once. This one leaves then and does not join again, so
    that others are never assigned beside it. Where Kafka lets both in together, it leaves before the assignment.
    """

    spec: ClusterSpec
    group: str
    assignors: Sequence[str]
    secrets: Secrets
    connect: Connect = connect_to
    look: float = LOOK_SECONDS
    leaves_within: float = LEAVE_SECONDS
    said: str = NOT_JOINED
    over: threading.Event = field(default_factory=threading.Event)
    _ends: threading.Event = field(default_factory=threading.Event)
    _member: str = ""

    def __enter__(self) -> Anchor:
        self._thread = threading.Thread(target=self._hold, name=f"anchor of {self.group}", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(2 * self.look + 1.0)
        if self._thread.is_alive():  # Kafka has not let it in yet, or does not answer
            waited = self.said == NOT_JOINED
            left = self._has_left()
            self._thread.join(1.0)
            left = left or not self._member  # its thread may have left meanwhile
            if waited or self._thread.is_alive():
                why = "it was still waiting to join" if waited else "its coordinator did not answer"
                self.said = why if left else f"{why}; {STAYS}"

    def _hold(self) -> None:
        try:
            while not self._ends.is_set() and not self._held():
                self._ends.wait(10 * self.look)
        except RunbookError as error:
            self.said = f"it could not go on: {error.problem}"
        finally:
            if not self._has_left():
                self.said += f"; {STAYS}"
            self.over.set()

    def _held(self) -> bool:
        """Whether it is over; else its coordinator has moved, or has lost it, and it begins again."""
        broker = self._coordinator(JOIN_SECONDS).broker()
        if broker is None:
            return False
        with self.connect(self.spec, broker, secrets=self.secrets, timeout=JOIN_SECONDS) as connection:
            if self._others(connection):
                self.said = "members were there already"
                self._leave(connection.send)  # its member, where the group was loaded with it by another coordinator
                return True
            if self._ends.is_set():
                return True
            code, others, generation = self._join(connection)
            code = code or (REBALANCES if others else self._sync(connection, generation))
            if not code:
                self.said = "it is in the group"
            while not code and not self._ends.wait(self.look):
                code = self._beat(connection, generation)
            if code in NOT_READY:
                self.said = "it was looking for the group's coordinator, which had moved"
                return False
            if code == UNKNOWN_MEMBER:  # a coordinator that has moved forgets those it has only named
                self.said, self._member = "Kafka did not know it any more, and it was to join again", ""
                return False
            self.said = _told(code)
            self._leave(connection.send)
            return True

    def _others(self, connection: KafkaConnection) -> bool:
        """Whether members are there that are none of ours: one that joins now would make them rebalance."""
        asked = DescribeGroupsRequest(
            version=DESCRIBE_VERSION, groups=[self.group], include_authorized_operations=False
        )
        return any(m.client_id != CLIENT_ID for each in connection.send(asked).groups for m in each.members)

    def _join(self, connection: KafkaConnection) -> tuple[int, bool, int]:
        """The error, whether others are in it, and the generation. Kafka names a member at its first try (KIP-394)."""
        ask = partial(self._ask_to_join, connection)
        answer = ask()
        if answer.error_code == MEMBER_ID_REQUIRED:
            self._member = answer.member_id
            if not self._ends.is_set():
                answer = ask()
        if not answer.error_code:
            self._member = answer.member_id
        others = len(answer.members) > 1 or answer.leader != answer.member_id
        return int(answer.error_code), others, int(answer.generation_id)

    def _ask_to_join(self, connection: KafkaConnection) -> Any:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol
        milliseconds = int(SESSION_SECONDS * 1000)
        return connection.send(
            JoinGroupRequest(
                version=JOIN_VERSION,
                group_id=self.group,
                session_timeout_ms=milliseconds,
                rebalance_timeout_ms=milliseconds,
                member_id=self._member,
                group_instance_id=None,
                protocol_type="consumer",
                protocols=[protocol(name=each, metadata=_NOTHING) for each in self.assignors],
            )
        )

    def _sync(self, connection: KafkaConnection, generation: int) -> int:
        mine = SyncGroupRequest.SyncGroupRequestAssignment(member_id=self._member, assignment=_NOTHING)
        request = SyncGroupRequest(
            version=SYNC_VERSION,
            group_id=self.group,
            generation_id=generation,
            member_id=self._member,
            group_instance_id=None,
            assignments=[mine],
        )
        return int(connection.send(request).error_code)

    def _beat(self, connection: KafkaConnection, generation: int) -> int:
        request = HeartbeatRequest(
            version=HEARTBEAT_VERSION,
            group_id=self.group,
            generation_id=generation,
            member_id=self._member,
            group_instance_id=None,
        )
        return int(connection.send(request).error_code)

    def _has_left(self) -> bool:
        """Whether Kafka says so within ``leaves_within`` seconds."""
        coordinator = self._coordinator(self.leaves_within)
        while not self._leave(coordinator.ask):
            if not coordinator.again():
                return False
        return True

    def _leave(self, send: Callable[[Any], Any]) -> bool:
        """Whether Kafka says that it has left, or it has no member in the group. One that Kafka does not know has."""
        if not self._member:
            return True
        member = LeaveGroupRequest.MemberIdentity(member_id=self._member, group_instance_id=None)
        try:
            answer = send(LeaveGroupRequest(version=LEAVE_VERSION, group_id=self.group, members=[member]))
        except RunbookError:
            return False
        if answer is None or {answer.error_code, *(each.error_code for each in answer.members)} - {0, UNKNOWN_MEMBER}:
            return False
        self._member = ""
        return True

    def _coordinator(self, timeout: float) -> Coordinator:
        return Coordinator(self.spec, self.group, secrets=self.secrets, timeout=timeout, connect=self.connect)


def _told(code: int) -> str:
    if code == REBALANCES:
        return "it left when the first member came"
    if code == MEMBER_ID_REQUIRED:
        return "it left before it had joined"
    if code == INVALID_SESSION:
        return f"Kafka takes no session of {SESSION_SECONDS:g} s (group.min.session.timeout.ms)"
    if code == NOT_AUTHORIZED:
        return "this tool's identity may not join it: grant it READ on the group"
    return f"Kafka answered error {code}" if code else "it left before a member came"
