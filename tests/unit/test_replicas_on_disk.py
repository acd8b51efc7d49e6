"""What brokers keep on disk of replicas against ZooKeeper: what is wrong is named, what only changes is not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

import pytest
from observations import SPEC, host

from kraft_runbook.cluster.observation import BrokerMode, HostState, Unread
from kraft_runbook.cluster.replica_directories import (
    GoneStray,
    GoneTopic,
    IdsApart,
    ReplicaDirectories,
    ReplicasCompared,
    WithoutId,
)
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.replica_ids import IdsHeld
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.procedures.compare_replicas import compare_replicas

asked: list[tuple[int, dict[str, str]]] = []
"""What brokers were asked by Fetch, in order."""
OLD, NEW = "ddaYNaX2RW-M4Tbe3DPT9A", "BQHmqfPtTlGeScgm5iii_A"
FUTURE = "0123456789abcdef0123456789abcdef-future"
Hosts = Mapping[int, HostState]


def disks(**brokers: ReplicaDirectories | Unread) -> Hosts:
    """The hosts of brokers 1 to 3; ``b2``: what broker 2 keeps. The others keep nothing."""
    return {
        i: replace(host(SPEC, i, BrokerMode.ZOOKEEPER), replicas=brokers.get(f"b{i}", ReplicaDirectories(0)))
        for i in SPEC.broker_ids
    }


def orders(topic_id: str | None, *replicas: int) -> dict[str, Any]:
    """The znode of a topic with one partition."""
    return {"version": 3, "partitions": {"0": list(replicas)}} | ({"topic_id": topic_id} if topic_id else {})


def compare(
    first: Hosts,
    *znodes: Mapping[str, dict[str, Any]],
    again: Hosts | None = None,
    known: Mapping[str, str] | None = None,
    assigned: frozenset[int] = frozenset(),
    says: Mapping[int, list[IdsHeld]] | None = None,
) -> ReplicasCompared:
    """``znodes``: ZooKeeper's topics before and after the second look at the hosts (one: they did not change).
    ``again``: what that look finds, where it is not the same as the first. ``known``: the ids of the read before these.
    ``says``: what brokers answer to Fetch, ask by ask; the others don't answer.
    """
    reads = list(znodes) if len(znodes) > 1 else [*znodes] * 3
    if known is None:
        known = {topic: znode["topic_id"] for topic, znode in reads[0].items() if "topic_id" in znode}

    class Reader:
        def __init__(self, *_: object, **__: object) -> None:
            """Connects to nothing."""

        def __enter__(self) -> Reader:
            return self

        def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
            """Nothing to close."""

        def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
            topics = reads[0] if len(reads) == 1 or len(znodes) == 1 else reads.pop(0)
            names = [path.rpartition("/")[2] for path in paths]
            return [
                Znode(name, json.dumps(topics[name]).encode(), 0, 0, 0, 0, 0) if name in topics else None
                for name in names
            ]

    def ask(_: object, broker: Broker, ids: Mapping[str, str], **__: object) -> IdsHeld:
        if not says or broker.id not in says:
            raise Unreachable(f"broker {broker.id} did not answer", way_out="")
        asked.append((broker.id, dict(ids)))
        return says[broker.id].pop(0)

    asked.clear()
    opened: Any = Reader
    return compare_replicas(
        SPEC,
        first,
        known,
        secrets=environment_secrets({}),
        gather=lambda *_: again or first,
        assigned=assigned,
        ask=ask,
        opened=opened,
    )


def test_replicas_that_agree_with_zookeeper_are_not_looked_at_again() -> None:
    held = ReplicaDirectories(2, {"orders": OLD})
    assert compare(disks(b1=held, b2=held), {"orders": orders(OLD, 1, 2)}) == ReplicasCompared(4)


@pytest.mark.parametrize("there", [NEW, None])
def test_a_topic_whose_id_was_dropped_is_named_with_the_id_of_its_replicas(there: str | None) -> None:
    held = ReplicaDirectories(1, {"orders": OLD})
    found = compare(disks(b1=held, b2=held), {"orders": orders(there, 1, 2)})
    assert (found.apart, found.apart_count) == ((IdsApart("orders", there, {OLD: (1, 2)}),), 1)


def test_two_ids_among_the_replicas_of_one_topic_are_both_named() -> None:
    seen = disks(b1=ReplicaDirectories(1, {"orders": OLD}), b2=ReplicaDirectories(1, {"orders": NEW}))
    found = compare(seen, {"orders": orders(NEW, 1, 2)})
    assert found.apart == (IdsApart("orders", NEW, {NEW: (2,), OLD: (1,)}),)


def test_where_ids_differ_by_partition_each_partition_is_named_with_the_brokers_of_each_id() -> None:
    """Partition 2 was added after the topic's id had been dropped; broker 3 has but one partition."""
    both = ReplicaDirectories(3, several_ids={"orders": {"orders-0": OLD, "orders-1": OLD, "orders-2": NEW}})
    seen = disks(b1=both, b2=both, b3=ReplicaDirectories(1, {"orders": NEW}))
    znode = {"version": 3, "topic_id": NEW, "partitions": {"0": [1, 2], "1": [2, 1], "2": [1, 2, 3]}}
    (found,) = compare(seen, {"orders": znode}).apart
    assert found.on_disk == {OLD: (1, 2), NEW: (1, 2, 3)}
    assert found.partitions == {0: {OLD: (1, 2)}, 1: {OLD: (1, 2)}, 2: {NEW: (1, 2, 3)}}


def test_a_file_that_names_no_id_is_named_by_broker() -> None:
    found = compare(disks(b2=ReplicaDirectories(1, torn=("/d/t-0",), torn_count=1)), {})
    assert (found.torn, found.torn_count, found.unread) == (("broker 2: /d/t-0",), 1, ())


def test_a_leftover_with_an_id_is_harmless_also_beside_a_replica() -> None:
    """Kafka renames it '-stray', and nobody misses it."""
    seen = disks(
        b1=ReplicaDirectories(2, several_ids={"orders": {"orders-0": NEW, "orders-7": OLD}}),
        b2=ReplicaDirectories(1, {"orders": OLD}),
        b3=ReplicaDirectories(1, {"gone": OLD}),
    )
    assert compare(seen, {"orders": orders(NEW, 1)}) == ReplicasCompared(4)


def test_a_directory_without_an_id_is_named_whether_it_is_a_replica_or_not() -> None:
    paths = ("/d/gone-topic-0", "/d/orders-0", f"/d/orders-1.{FUTURE}")
    seen = disks(b1=ReplicaDirectories(3, without_id=paths, without_id_count=3))
    found = compare(seen, {"orders": orders(OLD, 1)})
    assert found.without_id == (
        WithoutId(1, paths[0], assigned=False),
        WithoutId(1, paths[1], assigned=True),
        WithoutId(1, paths[2], assigned=False),
    )


def test_a_topic_that_is_created_or_deleted_meanwhile_is_not_named() -> None:
    young = ReplicaDirectories(2, {"made-anew": OLD}, without_id=("/d/young-0",), without_id_count=1)
    seen, again = disks(b1=young), disks(b1=ReplicaDirectories(2, {"made-anew": NEW, "young": OLD}))
    after = {"made-anew": orders(NEW, 1), "young": orders(OLD, 1)}
    assert compare(seen, after, again=again) == ReplicasCompared(2)
    assert compare(seen, {}, after) == ReplicasCompared(2)


def test_a_topic_without_an_id_anywhere_is_not_this_comparison_s() -> None:
    seen = disks(b1=ReplicaDirectories(1, without_id=("/d/orders-0",), without_id_count=1))
    assert compare(seen, {"orders": orders(None, 1)}) == ReplicasCompared(1)


def test_what_could_not_be_read_is_named_by_broker() -> None:
    seen = disks(
        b1=Unread("no SSH"),
        b2=ReplicaDirectories(0, unread=("/d: Input/output error",), unread_count=3),
        b3=ReplicaDirectories(9, without_id_count=5000, without_id=()),
    )
    assert compare(seen, {}).unread == (
        "broker 1: no SSH; nor could the broker be asked: broker 1 did not answer",
        "broker 2: /d: Input/output error",
        "broker 2: 2 further paths",
        "broker 3: 5000 replicas have no partition.metadata; only the first 0 were compared",
    )


def test_a_broker_whose_host_is_not_read_is_asked_for_its_replicas_ids() -> None:
    """What it has otherwise counts if it says so twice, of the id that ZooKeeper has then. It proves nothing whole."""
    seen = disks(b1=Unread("no SSH"), b2=Unread("no SSH"), b3=ReplicaDirectories(2, {"orders": NEW}))
    unknown = IdsHeld(18, (), {"clicks": "the broker does not know ZooKeeper's id"})
    said = {1: [IdsHeld(19, ("made", "orders"), {}), IdsHeld(0, ("orders",), {})], 2: [unknown]}
    known = {"orders": NEW, "made": OLD}
    found = compare(seen, {"orders": orders(NEW, 1, 2)}, known=known, says=said)
    assert asked == [(1, known), (1, {"orders": NEW}), (2, known)]
    assert found.otherwise == (
        f"topic orders: id {NEW} in ZooKeeper, another in a replica's log on broker 1, which its partition.metadata"
        " names",
    )
    assert (found.otherwise_count, found.apart) == (1, ())
    assert found.unread == (
        "broker 1: no SSH; asked by Fetch for one replica of each topic that it shows, it has 19 with ZooKeeper's id or"
        " none",
        "broker 2: no SSH; asked by Fetch for one replica of each topic that it shows, it has 18 with ZooKeeper's id or"
        " none; it tells nothing of 1: clicks",
    )


def test_of_many_unreadable_paths_a_few_are_named_and_the_observation_keeps_the_number() -> None:
    many = ReplicaDirectories(
        9,
        torn=("/d/t-2",),
        strays={"/d/t-0.ab-stray": OLD},
        without_id=("/d/t-1",),
        unread=tuple(f"/d/t-{i}: Permission denied" for i in range(2000)),
        unread_count=20_000,
    )
    found = compare(disks(b1=many), {}).unread
    assert found[0] == "broker 1: /d/t-0: Permission denied"
    assert (len(found), found[5]) == (6, "broker 1: 19995 further paths")
    assert many.without_paths() == ReplicaDirectories(9, unread_count=20_000)


def test_strays_of_topics_that_exist_are_told_from_those_of_topics_that_are_gone() -> None:
    """By the name, also where Kafka cut it to 255 characters, or by the id."""
    unique, long = "0123456789abcdef0123456789abcdef", "t" * 240
    cut = f"{long[:213]}-12.{unique}-stray"
    strays = {
        f"/d/orders-0.{unique}-stray": OLD,
        f"/d/{cut}": OLD,
        f"/d/renamed-0.{unique}-stray": NEW,
        f"/d/gone-0.{unique}-stray": OLD,
        f"/d/orders-x-0.{unique}-stray": "",
    }
    seen = disks(b2=ReplicaDirectories(5, strays=strays, stray_count=5))
    found = compare(seen, {"orders": orders(NEW, 2), long: orders("C" * 22, 1)})
    assert len(cut) == 255
    assert found.strays == tuple(
        f"broker 2: /d/{name}" for name in (f"orders-0.{unique}-stray", f"renamed-0.{unique}-stray", cut)
    )
    assert (found.strays_count, found.strays_of_gone) == (3, 2)
    assert found.gone == (
        GoneTopic(OLD, "gone", (GoneStray(2, f"/d/gone-0.{unique}-stray", 0),), 1),
        GoneTopic("", "orders-x", (GoneStray(2, f"/d/orders-x-0.{unique}-stray", 0),), 1),
    )


def test_the_strays_of_a_gone_topic_are_named_a_few_for_each_topic_and_counted() -> None:
    """So a topic with many leftovers hides no other."""
    unique = "0123456789abcdef0123456789abcdef"
    many = {f"/d/many-{number}.{unique}-stray": OLD for number in range(9)}
    seen = disks(
        b1=ReplicaDirectories(0, strays={**many, f"/d/one-7.{unique}-stray": NEW}, stray_count=10),
        b2=ReplicaDirectories(0, strays=many, stray_count=9),
    )
    found = compare(seen, {"orders": orders(NEW + "x", 2)})
    assert [(each.name, each.count, len(each.strays)) for each in found.gone] == [("many", 18, 5), ("one", 1, 1)]
    assert str(found.gone[1].strays[0]) == f"broker 1: /d/one-7.{unique}-stray"
    assert found.strays_of_gone == 19


def test_a_stray_that_a_move_left_behind_blocks_nothing() -> None:
    """Its topic has the same id still, and the partition belongs to other brokers (KAFKA-13972). One that ZooKeeper
    assigns to its broker, or whose topic has another id, was set aside while it was needed.
    """
    unique = "0123456789abcdef0123456789abcdef"
    left, needed, other = (f"/d/orders-{i}.{unique}-stray" for i in (0, 1, 2))
    seen = disks(b3=ReplicaDirectories(3, strays={left: NEW, needed: NEW, other: OLD}, stray_count=3))
    znode = {"version": 3, "topic_id": NEW, "partitions": {"0": [1, 2], "1": [1, 3], "2": [1, 2]}}
    found = compare(seen, {"orders": znode})
    assert found.strays == (f"broker 3: {needed}", f"broker 3: {other}")
    assert (found.strays_count, found.strays_left_over, found.strays_of_gone) == (2, 1, 0)
    assert found.left_over == (f"broker 3: {left}",)


def test_a_stray_of_a_topic_that_is_deleted_meanwhile_counts_as_gone() -> None:
    seen = disks(b3=ReplicaDirectories(1, strays={"/d/orders-0.ab-stray": NEW}, stray_count=1))
    assert compare(seen, {}, known={"orders": NEW}) == ReplicasCompared(
        1, strays_of_gone=1, gone=(GoneTopic(NEW, "orders", (GoneStray(3, "/d/orders-0.ab-stray", 0),), 1),)
    )


def test_a_future_replica_with_another_id_does_not_hide_the_replica_beside_it() -> None:
    """Both are of one partition: the replica that is read and written, and the copy on its way to another disk."""
    held = ReplicaDirectories(
        2, several_ids={"orders": {"orders-0": OLD, f"orders-0.{FUTURE}": NEW, "orders-1": NEW, "orders-2": NEW}}
    )
    topic = {"version": 3, "topic_id": NEW, "partitions": {"0": [1], "1": [1], "2": [1]}}
    found = compare(disks(b1=held), {"orders": topic})
    assert found.apart == (
        IdsApart("orders", NEW, {NEW: (1,), OLD: (1,)}, {0: {NEW: (1,), OLD: (1,)}, 1: {NEW: (1,)}, 2: {NEW: (1,)}}),
    )


def test_a_move_between_the_two_reads_hides_no_topic() -> None:
    held = ReplicaDirectories(1, {"orders": OLD}, without_id=("/d/t-0",), without_id_count=1)
    before = {"orders": orders(NEW, 1, 2), "t": orders(NEW, 2)}
    after = {"orders": orders(NEW, 2, 1, 3), "t": orders(NEW, 2, 1)}
    found = compare(disks(b1=held), before, after)
    assert found.apart == (IdsApart("orders", NEW, {OLD: (1,)}),)
    assert found.without_id == (WithoutId(1, "/d/t-0", assigned=True),)


def test_a_topic_that_gets_another_id_between_the_two_reads_is_unread_by_name() -> None:
    seen = disks(b1=ReplicaDirectories(1, {"orders": OLD}))
    found = compare(seen, {"orders": orders(NEW, 1)}, {"orders": orders(OLD, 1)})
    assert found.unread == ("topics that got another id while they were compared: 1: orders",)


def test_a_broker_on_which_no_assigned_replica_is_found_is_unread() -> None:
    seen = disks(b1=ReplicaDirectories(1, {"orders": OLD}))
    found = compare(seen, {"orders": orders(OLD, 1, 2)}, assigned=frozenset({1, 2}))
    (told,) = found.unread
    assert told.startswith("broker 2: none of the replicas that ZooKeeper assigns to it was found")


def test_any_number_of_harmless_leftovers_is_compared() -> None:
    seen = disks(b3=ReplicaDirectories(5000, {f"gone-{i}": OLD for i in range(5000)}))
    assert compare(seen, {}) == ReplicasCompared(5000)
