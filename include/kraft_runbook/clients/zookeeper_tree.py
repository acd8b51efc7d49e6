"""Kafka's tree in ZooKeeper as canonical rows: which znodes there are, and their rows, read many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kraft_runbook.clients.zookeeper import ZookeeperReader
from kraft_runbook.metadata.entities import Kind, Row
from kraft_runbook.metadata.image import Key
from kraft_runbook.metadata.zookeeper_tree import Decoding, assigned_partitions, path_of, rows_of

TOPICS_AT_ONCE = 500
"""How many topics' znodes are held in memory together."""

SINGLE_ZNODES = ("/latest_producer_id_block", "/cluster/id", "/controller", "/migration")
ACL_ROOTS = ("/kafka-acl", "/kafka-acl-extended/prefixed")
TOKENS = "/delegation_token/tokens"


def topic_names(reader: ZookeeperReader) -> tuple[str, ...]:
    """Every topic that has a znode or a config, sorted."""
    topics, configs = reader.children_many(["/brokers/topics", "/config/topics"])
    return topics if topics and topics == configs else tuple(sorted({*(topics or ()), *(configs or ())}))


def read_topics(reader: ZookeeperReader, names: Sequence[str], decoding: Decoding) -> Iterator[Row]:
    """The rows of these topics: ids, assignments, partition states, configs.

    States are read of every partition that the assignment names or that has a znode, so that a stray one is found too.
    """
    for start in range(0, len(names), TOPICS_AT_ONCE):
        some = names[start : start + TOPICS_AT_ONCE]
        topics = reader.get_many([f"/brokers/topics/{name}" for name in some])
        listed = reader.children_many([f"/brokers/topics/{name}/partitions" for name in some])
        states = [
            f"/brokers/topics/{name}/partitions/{partition}/state"
            for name, znode, children in zip(some, topics, listed, strict=True)
            for partition in sorted({*(map(str, assigned_partitions(znode.data)) if znode else ()), *(children or ())})
        ]
        for each in topics:
            if each is not None:
                yield from rows_of(each.path, each.data, decoding)
        yield from read_paths(reader, states, decoding)
        yield from read_paths(reader, [f"/config/topics/{name}" for name in some], decoding)


def read_paths(reader: ZookeeperReader, paths: Sequence[str], decoding: Decoding) -> Iterator[Row]:
    """The rows of the znodes at ``paths``; a missing one has none."""
    for znode in reader.get_many(paths):
        if znode is not None:
            yield from rows_of(znode.path, znode.data, decoding)


def read_everything_else(reader: ZookeeperReader, decoding: Decoding) -> Iterator[Row]:
    """The rows of everything that is not of one topic."""
    yield from read_paths(reader, [*SINGLE_ZNODES, *_children(reader, ["/brokers/ids", "/config/brokers", TOKENS])], decoding)
    users = _children(reader, ["/config/users"])
    nested = _children(reader, [f"{user}/clients" for user in users])
    yield from read_paths(reader, [*users, *nested, *_children(reader, ["/config/clients", "/config/ips"])], decoding)
    yield from read_paths(reader, list(_acl_paths(reader)), decoding)


def read_keys(reader: ZookeeperReader, keys: Iterable[Key], decoding: Decoding) -> Iterator[Row]:
    """The rows of these keys as they are now."""
    wanted = set(keys)
    paths = {path for kind, key in wanted if (path := path_of(kind, key)) is not None}
    if any(kind is Kind.DELEGATION_TOKEN for kind, _ in wanted):
        paths |= set(_children(reader, [TOKENS]))
    for row in read_paths(reader, sorted(paths), decoding):
        if (row.kind, row.key) in wanted:
            yield row


def _children(reader: ZookeeperReader, paths: Sequence[str]) -> list[str]:
    """The full paths of these znodes' children."""
    return [f"{path}/{name}" for path, names in zip(paths, reader.children_many(paths), strict=True) for name in names or ()]


def _acl_paths(reader: ZookeeperReader) -> Iterator[str]:
    types = _children(reader, ACL_ROOTS)
    found = _children(reader, types)
    yield from found
    # A resource's name may hold slashes: then the znode lies deeper.
    while found := _children(reader, found):
        yield from found
