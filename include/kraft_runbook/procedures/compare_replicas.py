"""Compare what the brokers keep on disk of replicas with ZooKeeper's topics.

ZooKeeper and the hosts are not read at one moment, so a topic that is created or deleted meanwhile seems wrong. What
seems wrong is looked at again: its znode, the host, its znode. It counts if both looks at the host agree, and the
topic had the same id in the last two reads of its znode.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from kraft_runbook.cluster.observation import HostState, Unread, was_read
from kraft_runbook.cluster.replica_directories import (
    IdsApart,
    ReplicaDirectories,
    ReplicasCompared,
    WithoutId,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.replica_ids import IdsHeld, ask_for_ids
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.znodes.znode_json import parse_object
from kraft_runbook.metadata.znodes.znode_values import BadZnode
from kraft_runbook.procedures.stray_replicas import Topic, Topics, by_topic, place_of, strays_of
from kraft_runbook.runbook.check_results import sample

SAMPLES = 20
UNREAD_NAMED = 5
"""So many paths of one broker are named that could not be read; the others are counted."""
TOPICS_AT_ONCE = 2000
ZOOKEEPER_SECONDS = 10.0

Asks = Callable[..., IdsHeld]
GathersHosts = Callable[[ClusterSpec, Sequence[int]], Mapping[int, HostState]]


def compare_replicas(
    spec: ClusterSpec,
    hosts: Mapping[int, HostState],
    topic_ids: Mapping[str, str],
    *,
    secrets: Secrets,
    gather: GathersHosts,
    assigned: Collection[int] = (),
    ask: Asks = ask_for_ids,
    opened: Callable[..., ZookeeperReader] = ZookeeperReader,
) -> ReplicasCompared:
    """``topic_ids``: of each topic in ZooKeeper that has one. ``gather`` reads these brokers' hosts again.
    ``assigned``: the brokers to which ZooKeeper assigns a replica; ``opened``: a session with it. ``ask`` asks a broker
    whose host was not read. Raises Unreachable.
    """
    first, missing = _read(spec, hosts)
    silent = [i for i in spec.broker_ids if i not in first]
    said, otherwise = _asked(spec, silent, topic_ids, secrets, ask, opened)
    unread = tuple(f"{each}; {said[i]}" if i in said else each for i, each in missing)
    unread += tuple(
        f"broker {i}: none of the replicas that ZooKeeper assigns to it was found in its log directories (a volume that"
        " is not mounted, or another log.dirs than in the cluster file)"
        for i, each in first.items()
        if i in assigned and not each.directories and not each.unread_count
    )
    seems_wrong = suspects(first, topic_ids)
    places, of_gone = strays_of(first, topic_ids)
    torn = [f"broker {i}: {path}" for i, each in sorted(first.items()) for path in each.torn]
    found = ReplicasCompared(
        sum(each.directories for each in first.values()),
        torn=tuple(torn[:SAMPLES]),
        torn_count=sum(each.torn_count for each in first.values()),
        strays_of_gone=len(of_gone),
        gone=by_topic(of_gone),
        unread=unread,
        otherwise=otherwise[:SAMPLES],
        otherwise_count=len(otherwise),
    )
    if places:
        with opened(spec.ensemble, secrets=secrets, timeout=ZOOKEEPER_SECONDS) as reader:
            named = _topics(reader, sorted({topic for each in places for topic in each.topics}))
        there = [each for each in places if any(named[topic] for topic in each.topics)]
        strays = [str(each) for each in there if not each.left_over(named)]
        left_over = [str(each) for each in there if each.left_over(named)]
        of_gone += [each for each in places if not any(named[topic] for topic in each.topics)]
        found = replace(
            found,
            strays=tuple(strays[:SAMPLES]),
            strays_count=len(strays),
            strays_of_gone=len(of_gone),
            gone=by_topic(of_gone),
            left_over=tuple(left_over[:SAMPLES]),
            strays_left_over=len(left_over),
        )
    if not seems_wrong:
        return found
    topics = sorted({topic for each in seems_wrong.values() for topic in each})
    with opened(spec.ensemble, secrets=secrets, timeout=ZOOKEEPER_SECONDS) as reader:
        before = _topics(reader, topics)
        second, not_again = _read(spec, gather(spec, sorted(seems_wrong)), only=sorted(seems_wrong))
        after = _topics(reader, topics)
    unread += tuple(each for _, each in not_again if each not in unread)
    both, either, changed = steady(before, after)
    if changed:
        unread += (f"topics that got another id while they were compared: {sample(changed)}",)
    apart = ids_apart(second, {i: each for i, each in first.items() if i not in seems_wrong}, both)
    without = still_without_id(first, second, either)
    return replace(
        found,
        apart=apart[:SAMPLES],
        apart_count=len(apart),
        without_id=without[:SAMPLES],
        without_id_count=len(without),
        unread=unread,
    )


def _read(
    spec: ClusterSpec, hosts: Mapping[int, HostState], only: Sequence[int] | None = None
) -> tuple[dict[int, ReplicaDirectories], list[tuple[int, str]]]:
    """The brokers' directories that were read, and what is missing of them, each with its broker."""
    read: dict[int, ReplicaDirectories] = {}
    missing: list[tuple[int, str]] = []
    for broker_id in spec.broker_ids if only is None else only:
        part = hosts[broker_id].replicas if broker_id in hosts else Unread("its host was not examined")
        if was_read(part):
            read[broker_id] = part
        missing += [(broker_id, f"broker {broker_id}: {each}") for each in _missing_of(part)]
    return read, missing


def _missing_of(part: ReplicaDirectories | Unread) -> Iterator[str]:
    if not was_read(part):
        yield part.reason
        return
    yield from part.unread[:UNREAD_NAMED]
    if (further := part.unread_count - min(len(part.unread), UNREAD_NAMED)) > 0:
        yield f"{further} further paths"
    if part.stray_count > len(part.strays):
        yield f"{part.stray_count - len(part.strays)} further -stray directories"
    if part.without_id_count > len(part.without_id):
        yield (
            f"{part.without_id_count} replicas have no partition.metadata; only the first {len(part.without_id)} were"
            " compared"
        )


def _asked(
    spec: ClusterSpec,
    silent: Sequence[int],
    topic_ids: Mapping[str, str],
    secrets: Secrets,
    ask: Asks,
    opened: Callable[..., ZookeeperReader],
) -> tuple[dict[int, str], tuple[str, ...]]:
    """By broker, what these say themselves of their replicas' ids; and what they have otherwise than ZooKeeper. What
    seems so is asked for again, with the ids of then.
    """
    said: dict[int, str] = {}
    otherwise: list[str] = []
    for broker_id in silent:
        broker = spec.broker(broker_id)
        try:
            held = ask(spec, broker, topic_ids, secrets=secrets)
            apart: dict[str, str] = {}
            if held.otherwise:
                with opened(spec.ensemble, secrets=secrets, timeout=ZOOKEEPER_SECONDS) as reader:
                    now = _topics(reader, held.otherwise)
                ids = {name: each.topic_id for name, each in now.items() if each and each.topic_id}
                apart = {name: ids[name] for name in ask(spec, broker, ids, secrets=secrets).otherwise}
        except Unreachable as error:
            said[broker_id] = f"nor could the broker be asked: {error.problem}"
            continue
        otherwise += [
            f"topic {name}: id {there} in ZooKeeper, another in a replica's log on broker {broker_id}, which its"
            " partition.metadata names"
            for name, there in apart.items()
        ]
        of_topics = f"; it tells nothing of {sample(held.unread)}" if held.unread else ""
        said[broker_id] = (
            f"asked by Fetch for one replica of each topic that it shows, it has {held.alike} with ZooKeeper's id or"
            f" none{of_topics}"
        )
    return said, tuple(otherwise)


def suspects(read: Mapping[int, ReplicaDirectories], topic_ids: Mapping[str, str]) -> dict[int, set[str]]:
    """By broker, the topics of which it has a replica with another id than ZooKeeper's, or with none."""
    found = {
        broker_id: {topic for topic, held in each.topic_ids.items() if topic_ids.get(topic) != held}
        | set(each.several_ids)
        | {topic for path in each.without_id if (topic := place_of(path)[0])}
        for broker_id, each in read.items()
    }
    return {broker_id: topics for broker_id, topics in found.items() if topics}


def steady(before: Topics, after: Topics) -> tuple[Topics, Topics, tuple[str, ...]]:
    """The topics with the same id in two reads: with the replicas that each partition has in both reads, and with those
    that it has in either; a move changes them. Then the names of those with another id. A topic that only one read has
    is being created or deleted.
    """
    both: dict[str, Topic | None] = {}
    either: dict[str, Topic | None] = {}
    changed = []
    for name, old in before.items():
        new = after[name]
        if old is None and new is None:
            both[name] = either[name] = None
        elif old is not None and new is not None:
            if old.topic_id != new.topic_id:
                changed.append(name)
                continue
            nobody: frozenset[int] = frozenset()
            held = {
                p: (old.replicas.get(p, nobody), new.replicas.get(p, nobody)) for p in {*old.replicas, *new.replicas}
            }
            both[name] = Topic(old.topic_id, {p: there & here for p, (there, here) in held.items()})
            either[name] = Topic(old.topic_id, {p: there | here for p, (there, here) in held.items()})
    return both, either, tuple(changed)


def ids_apart(
    read: Mapping[int, ReplicaDirectories], others: Mapping[int, ReplicaDirectories], topics: Topics
) -> tuple[IdsApart, ...]:
    """The topics of which an assigned replica has another id. A replica that is not assigned to its broker is a
    leftover, which Kafka renames; a topic without any id on disk is not this check's.

    ``others``: the brokers that were not looked at again. Their replicas are named only where they agree.
    """
    found = []
    for name, topic in sorted(topics.items()):
        if topic is None:
            continue
        on_disk: dict[int, dict[str, set[int]]] = {}
        for broker_id, each in read.items():
            _add_ids(on_disk, topic, broker_id, each, name)
        if {topic_id for ids in on_disk.values() for topic_id in ids} - {topic.topic_id}:
            for broker_id, each in others.items():
                if topic.topic_id and each.topic_ids.get(name) == topic.topic_id:
                    _add_ids(on_disk, topic, broker_id, each, name)
            found.append(_apart(name, topic.topic_id, on_disk))
    return tuple(found)


def _add_ids(
    on_disk: dict[int, dict[str, set[int]]], topic: Topic, broker_id: int, each: ReplicaDirectories, name: str
) -> None:
    """The ids of the topic's replicas that are assigned to the broker, by partition. Where all that it has are of one
    id, those that are assigned to it have it.
    """
    held = each.several_ids.get(name)
    if held is not None:
        ids = [(place_of(path)[1], topic_id) for path, topic_id in held.items()]  # a partition may have a '-future' too
    elif name in each.topic_ids:
        ids = [(partition, each.topic_ids[name]) for partition in topic.replicas]
    else:
        return
    for partition, topic_id in ids:
        if topic.assigned(broker_id, partition):
            on_disk.setdefault(partition, {}).setdefault(topic_id, set()).add(broker_id)


def _apart(name: str, in_zookeeper: str | None, on_disk: Mapping[int, Mapping[str, set[int]]]) -> IdsApart:
    """``partitions`` only where they are not all alike."""
    brokers: dict[str, set[int]] = {}
    for ids in on_disk.values():
        for topic_id, some in ids.items():
            brokers.setdefault(topic_id, set()).update(some)
    alike = len(brokers) == 1 or sum(map(len, brokers.values())) == len(set().union(*brokers.values()))
    by_partition = {
        partition: {topic_id: tuple(sorted(some)) for topic_id, some in sorted(ids.items())}
        for partition, ids in sorted(on_disk.items())
    }
    return IdsApart(
        name,
        in_zookeeper,
        {topic_id: tuple(sorted(brokers[topic_id])) for topic_id in sorted(brokers)},
        {} if alike else by_partition,
    )


def still_without_id(
    first: Mapping[int, ReplicaDirectories], second: Mapping[int, ReplicaDirectories], topics: Topics
) -> tuple[WithoutId, ...]:
    """The directories without an id in both looks. A replica that is just being created has its id some milliseconds
    later. Not named: those of a topic without topic_id, which KRB-PRE-026 names.
    """
    found = []
    for broker_id, each in sorted(second.items()):
        for path in sorted(set(each.without_id) & set(first[broker_id].without_id)):
            name, partition = place_of(path)
            topic = topics.get(name)
            if name in topics and (topic is None or topic.topic_id):
                found.append(WithoutId(broker_id, path, topic is not None and topic.assigned(broker_id, partition)))
    return tuple(found)


def _topics(reader: ZookeeperReader, names: Sequence[str]) -> dict[str, Topic | None]:
    found: dict[str, Topic | None] = {}
    for at in range(0, len(names), TOPICS_AT_ONCE):
        some = names[at : at + TOPICS_AT_ONCE]
        znodes = reader.get_many([f"/brokers/topics/{name}" for name in some])
        found |= {name: None if znode is None else _topic(znode.data) for name, znode in zip(some, znodes, strict=True)}
    return found


def _topic(data: bytes) -> Topic:
    """A znode that can't be read has no id and no replicas here; KRB-PRE-027 names it."""
    try:
        told = parse_object(data)
        replicas = {int(number): frozenset(each) for number, each in told.get("partitions", {}).items()}
    except (BadZnode, AttributeError, TypeError, ValueError):
        return Topic(None, {})
    return Topic(told.get("topic_id") or None, replicas)
