"""ZooKeeper and Kafka of a migrating member, in memory: what kazoo's client and the embedded consumer answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.client import KazooState
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from kraft_runbook_consumer import session as session_of_kazoo
from kraft_runbook_consumer import zookeeper
from kraft_runbook_consumer.coordinator import Coordinator
from kraft_runbook_consumer.embedded import EmbeddedConsumer, InKafka
from kraft_runbook_consumer.handover import Handover
from kraft_runbook_consumer.lease import Lease
from kraft_runbook_consumer.listener import RebalanceListener
from kraft_runbook_consumer.settings import read_settings
from kraft_runbook_consumer.streams import Stream
from kraft_runbook_consumer.znodes import Partition, Registration

ME, OTHER = "g_me", "g_other"
SETTINGS = {"group.id": "g", "zookeeper.connect": "zk:1", "auto.offset.reset": "smallest"}
MIGRATING = {
    **SETTINGS,
    "coordination.migration.enabled": "true",
    "coordination.migration.bootstrap.servers": "broker:1",
    "consumer.id": "me",
}


class Result:
    """An answer that is there at once."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def get(self, timeout: float = 0.0) -> Any:  # kazoo's
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    result = get  # of a future

    def successful(self) -> bool:
        return not isinstance(self.found, Exception)

    def rawlink(self, told: Callable[[Result], None]) -> None:
        told(self)


class Kazoo:
    """kazoo's client for a tree of znodes: path → (data, session). Watches never fire. What a test puts there itself is
    of version 0.
    """

    def __init__(self, tree: dict[str, tuple[bytes | None, int]], session: int = 1) -> None:
        self.tree, self.client_id = tree, (session, b"")
        self.connected, self.state = True, KazooState.CONNECTED
        self._connection = SimpleNamespace(_connect=lambda: (4000, 6000))
        self._written: dict[str, tuple[object, int]] = {}

    def _version(self, path: str) -> int:
        what, version = self._written.get(path, (None, 0))
        return version if what is self.tree[path] else 0

    def _stat(self, path: str) -> Any:
        if path not in self.tree:
            return None
        return SimpleNamespace(ephemeralOwner=self.tree[path][1], version=self._version(path))

    def get_async(self, path: str, watch: object = None) -> Result:
        return Result((self.tree[path][0], self._stat(path)) if path in self.tree else NoNodeError())

    def exists_async(self, path: str, watch: object = None) -> Result:
        return Result(self._stat(path))

    def get_children_async(self, path: str, watch: object = None) -> Result:
        below = {each.removeprefix(path + "/").split("/")[0] for each in self.tree if each.startswith(path + "/")}
        return Result(sorted(below) if below or path in self.tree else NoNodeError())

    def ensure_path_async(self, path: str) -> Result:
        self.tree.setdefault(path, (b"", 0))
        return Result(path)

    def create_async(self, path: str, data: bytes, ephemeral: bool) -> Result:
        if path in self.tree:
            return Result(NodeExistsError())
        self.tree[path] = (data, self.client_id[0] if ephemeral else 0)
        return Result(path)

    def set_async(self, path: str, data: bytes) -> Result:
        if path not in self.tree:
            return Result(NoNodeError())
        version = self._version(path) + 1
        self.tree[path] = (data, self.tree[path][1])
        self._written[path] = self.tree[path], version
        return Result(self._stat(path))

    def delete_async(self, path: str, version: int) -> Result:
        if path not in self.tree:
            return Result(NoNodeError())
        if version != self._version(path):
            return Result(BadVersionError())
        del self.tree[path]
        return Result(True)

    def transaction(self) -> Transaction:
        return Transaction(self)

    def sync_async(self, path: str) -> Result:
        return Result(path)

    def stop(self) -> None:
        self.connected = False

    def close(self) -> None:
        pass


class Transaction:
    """All of it, or what the first one that fails says."""

    def __init__(self, client: Kazoo) -> None:
        self.client = client
        self.calls: list[Callable[[], Result]] = []

    def create(self, path: str, data: bytes, ephemeral: bool) -> None:
        self.calls.append(lambda: self.client.create_async(path, data, ephemeral))

    def set_data(self, path: str, data: bytes) -> None:
        self.calls.append(lambda: self.client.set_async(path, data))

    def commit_async(self) -> Result:
        told = [self.calls[0]()]
        told += [each() for each in self.calls[1:] if told[0].successful()]
        return Result([each.found for each in told])


class Consumer:
    """confluent_kafka's, a member of its group that gets every commit through."""

    def commit(self, offsets: Sequence[Any], asynchronous: bool) -> Sequence[Any]:
        return offsets

    def memberid(self) -> str:
        return "member-1"


def embedded_consumer(
    lease: Lease,
    consumer: object = None,
    admin: Callable[[object], object] = lambda _config: None,
    *,
    assignors: str = "cooperative-sticky",
    on_revoke: Callable[[frozenset[Partition], bool], None] = lambda _gone, _lost: None,
) -> EmbeddedConsumer:
    """The real one, over a consumer that is none."""
    config = {"group.id": "g", "partition.assignment.strategy": assignors}
    clients: Any = {"consumer": lambda *_: consumer or Consumer(), "admin": admin}
    return EmbeddedConsumer(config, lease, on_revoke, **clients)


class Embedded:
    """``told``: what Kafka answers to who is in its group; None: it does not answer."""

    def __init__(self) -> None:
        self.lease = Lease(45.0)
        self.assigned: frozenset[Partition] | None = None
        self.member_id = "g_me-1"
        self.changed, self.refused, self.waits_for_answer = True, False, False
        self.told: tuple[bool, dict[str, frozenset[Partition]]] | None = (True, {})
        self.refused_joins, self.assignors = 0, "cooperative-sticky"
        self.calls: list[tuple[str, Any]] = []

    def members(self, seconds: float = 10.0) -> tuple[bool, dict[str, frozenset[Partition]]] | None:
        self.calls.append(("members", seconds))
        return self.told

    def committed(self, partitions: Sequence[Partition]) -> Mapping[Partition, InKafka | None]:
        return dict.fromkeys(partitions, InKafka(0, ours=True))

    def commit(self, offsets: Mapping[Partition, int], *, seconds: float = 0.0) -> frozenset[Partition]:
        self.calls.append(("commit", dict(offsets)))
        return frozenset(offsets)

    def send_commit(self, offsets: Mapping[Partition, int]) -> None:
        self.calls.append(("send", dict(offsets)))

    def subscribe(self, topics: Sequence[str]) -> None:
        self.calls.append(("subscribe", set(topics)))

    def unsubscribe(self) -> None:
        self.calls.append(("unsubscribe", None))

    def poll(self) -> None:
        pass

    def close(self) -> None:
        pass


def topic(tree: dict[str, tuple[bytes | None, int]], name: str, partitions: int, group: str = "g") -> None:
    """A topic with an offset of 0 for each partition, as in Kafka: nobody asks for its log."""
    numbers = ",".join(f'"{n}":[1]' for n in range(partitions))
    tree[f"/brokers/topics/{name}"] = (f'{{"version":1,"partitions":{{{numbers}}}}}'.encode(), 0)
    for number in range(partitions):
        tree[f"/consumers/{group}/offsets/{name}/{number}"] = (b"0", 0)


def session(
    patch: pytest.MonkeyPatch, tree: dict[str, tuple[bytes | None, int]], number: int = 1
) -> zookeeper.ZookeeperSession:
    """A session that has begun."""
    with patch.context() as patched:
        patched.setattr(session_of_kazoo, "KazooClient", lambda **_: Kazoo(tree, number))
        found = zookeeper.ZookeeperSession("zk:1", zookeeper.GroupPaths("g"), Lease(6.0), lambda: None)
    found.begin_session()
    return found


def member(
    patch: pytest.MonkeyPatch,
    tree: dict[str, tuple[bytes | None, int]],
    registration: Registration,
    *,
    embedded: Embedded | None = None,
    listener: RebalanceListener | None = None,
) -> Coordinator:
    """A member whose session has begun and that is about to register; ``turn`` lets it go on."""
    settings = read_settings(MIGRATING if embedded is not None else SETTINGS)
    with patch.context() as patched:
        patched.setattr(session_of_kazoo, "KazooClient", lambda **_: Kazoo(tree))
        found = Coordinator(settings, ME, registration, listener)
    found.streams = [Stream(number, {}, found.may_hand_out) for number in range(2)]
    given: Any = embedded
    found.embedded = found.sight.embedded = given
    found._handover = Handover(settings, "broker:1", ME, found.zookeeper, given)
    found.zookeeper.begin_session()
    found._register()
    return found


def turn(one: Coordinator, times: int = 3) -> None:
    """Turns that look at all anew: here no watch tells of a change."""
    for _ in range(times):
        one._changed.set()
        one.sight._asked_at = float("-inf")
        one._turn()
