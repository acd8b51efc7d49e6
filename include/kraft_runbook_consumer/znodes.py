"""Names of znodes, and what stands in them: as ``ZookeeperConsumerConnector`` 1.1.1 has them, and KIP-125's."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

Partition = tuple[str, int]

BROKER_IDS = "/brokers/ids"
BROKER_TOPICS = "/brokers/topics"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
"""``Topic.isInternal`` of Kafka 1.1.1."""
STATIC, WHITE_LIST, BLACK_LIST = "static", "white_list", "black_list"
MOST_THREADS = 10_000
"""More than any member has for a topic; the number is whatever somebody wrote into a znode."""


@dataclass(frozen=True)
class GroupPaths:
    """The znodes of one group."""

    group: str

    @property
    def ids(self) -> str:
        return f"/consumers/{self.group}/ids"

    @property
    def migration_ids(self) -> str:
        """Migrating members alone (KIP-125)."""
        return f"/consumers/{self.group}/migration/ids"

    def embedded(self, member: str) -> str:
        """Of no session: how Kafka calls the consumer that this member embeds. By it a scan tells one that has lost its
        session, and is in Kafka's group a little longer, from a new member.
        """
        return f"/consumers/{self.group}/migration/embedded/{member}"

    @property
    def mode(self) -> str:
        """``kafka``: Kafka assigns. Absent or anything else: ZooKeeper (KIP-125)."""
        return f"/consumers/{self.group}/migration/mode"

    def owners(self, topic: str) -> str:
        return f"/consumers/{self.group}/owners/{topic}"

    def owner(self, partition: Partition) -> str:
        return f"/consumers/{self.group}/owners/{partition[0]}/{partition[1]}"

    def offset(self, partition: Partition) -> str:
        return f"/consumers/{self.group}/offsets/{partition[0]}/{partition[1]}"


@dataclass(frozen=True)
class Registration:
    """What a member asks for. ``subscription``: topics with how many threads each; of a pattern one entry, the pattern.
    Empty where its znode is not what the Scala client writes: such a member gets nothing.
    """

    subscription: Mapping[str, int] = field(default_factory=dict)
    pattern: str = STATIC

    def topics(self, every: Iterable[str], *, exclude_internal: bool = True) -> Mapping[str, int]:
        """Topics with the number of threads (``TopicCount``). ``every``: the topics of the cluster, for a pattern."""
        if self.pattern == STATIC:
            return self.subscription
        ((raw, threads),) = self.subscription.items()
        matching = topic_filter(raw)
        wanted = self.pattern == WHITE_LIST
        return {
            topic: threads
            for topic in every
            if (matching.fullmatch(topic) is not None) is wanted and not (exclude_internal and topic in INTERNAL_TOPICS)
        }

    def encode(self, now_ms: int) -> bytes:
        data = {"version": 1, "subscription": dict(self.subscription), "pattern": self.pattern}
        return json.dumps({**data, "timestamp": str(now_ms)}).encode()


def is_made(group: str, member: str) -> bool:
    """Whether the id is one that 1.1.1 makes, for a member without a consumer.id."""
    return re.fullmatch(rf"{re.escape(group)}_.+-\d{{13}}-[0-9a-f]{{1,8}}", member, re.DOTALL) is not None


def topic_filter(raw: str) -> re.Pattern[str]:
    """The expression that a pattern stands for (``TopicFilter``): commas are alternatives, spaces and quotes go.

    Raises re.error, OverflowError or RecursionError where Python does not read it.
    """
    return re.compile(raw.strip().replace(",", "|").replace(" ", "").strip("\"'"))


def decode_registration(data: bytes | None) -> Registration:
    """The registration in a znode of ids; an empty one where it can't be read."""
    try:
        parsed = json.loads(data or b"")
        found = Registration(dict(parsed["subscription"]), str(parsed.get("pattern", STATIC)))
        counts = all(type(n) is int and 0 < n <= MOST_THREADS for n in found.subscription.values())
        if found.pattern not in (STATIC, WHITE_LIST, BLACK_LIST) or not counts:
            return Registration()
        if found.pattern != STATIC:
            (raw,) = found.subscription
            topic_filter(raw)
        return found
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, re.error, RecursionError):
        return Registration()


def decode_partitions(data: bytes | None) -> tuple[int, ...]:
    """The partitions in a znode of /brokers/topics, in order. Raises ValueError where it can't be read."""
    try:
        return tuple(sorted(int(number) for number in json.loads(data or b"")["partitions"]))
    except (TypeError, KeyError) as error:
        raise ValueError(f"no partitions in {(data or b'')[:100]!r}") from error


def plain_endpoint(data: bytes | None) -> str | None:
    """``host:port`` of a broker's PLAINTEXT listener, which is what the Scala client connects to; None without one."""
    try:
        parsed = json.loads(data or b"")
        host, port = parsed.get("host"), parsed.get("port")
    except (ValueError, AttributeError):
        return None
    return f"{host}:{port}" if isinstance(host, str) and isinstance(port, int) and port > 0 else None


def decode_offset(data: bytes | None) -> int | None:
    """The number of an offset znode; None where there is none, or nothing that Java reads as one."""
    text = (data or b"").decode("ascii", "replace")
    return int(text) if re.fullmatch(r"\d{1,18}", text) else None


def thread_id(member: str, thread: int) -> str:
    """What an owner znode holds."""
    return f"{member}-{thread}"


def by_topic(partitions: Collection[Partition]) -> dict[str, list[int]]:
    """Partition numbers in order, by topic in order."""
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found
