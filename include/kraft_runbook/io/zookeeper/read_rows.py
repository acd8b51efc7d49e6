"""Kafka's tree in ZooKeeper as canonical rows: which znodes there are, and their rows, read many at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.metadata.canonical_rows import Kind, Row, parse_key
from kraft_runbook.metadata.differences import Difference
from kraft_runbook.metadata.image.image import Key
from kraft_runbook.metadata.znodes.quota_znodes import Part, credential_paths, entity_paths
from kraft_runbook.metadata.znodes.znode_rows import Decoding, assigned_partitions, path_of, rows_of, stat_rows

TOPICS_AT_ONCE = 500
"""How many topics' znodes are held in memory together."""

SINGLE_ZNODES = ("/latest_producer_id_block", "/cluster/id", "/controller", "/migration")
ACL_ROOTS = ("/kafka-acl", "/kafka-acl-extended/prefixed")
TOKENS = "/delegation_token/tokens"


class Reader(Protocol):
    """What reading the tree takes of ``ZookeeperReader``."""

    def get_many(self, paths: Sequence[str]) -> list[Znode | None]: ...

    def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]: ...


def topic_names(reader: Reader) -> tuple[str, ...]:
    """Every topic that has a znode or a config, sorted."""
    topics, configs = reader.children_many(["/brokers/topics", "/config/topics"])
    return topics if topics and topics == configs else tuple(sorted({*(topics or ()), *(configs or ())}))


def read_topics(reader: Reader, names: Sequence[str], decoding: Decoding) -> Iterator[Row]:
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


def read_paths(reader: Reader, paths: Sequence[str], decoding: Decoding) -> Iterator[Row]:
    """The rows of the znodes at ``paths``; a missing one has none."""
    for znode in reader.get_many(paths):
        if znode is not None:
            yield from rows_of(znode.path, znode.data, decoding)
            yield from stat_rows(znode.path, znode.version)


def read_everything_else(reader: Reader, decoding: Decoding) -> Iterator[Row]:
    """The rows of everything that is not of one topic."""
    yield from read_paths(
        reader, [*SINGLE_ZNODES, *_children(reader, ["/brokers/ids", "/config/brokers", TOKENS])], decoding
    )
    users = _children(reader, ["/config/users"])
    nested = _children(reader, [f"{user}/clients" for user in users])
    yield from read_paths(reader, [*users, *nested, *_children(reader, ["/config/clients", "/config/ips"])], decoding)
    yield from read_paths(reader, list(acl_paths(reader)), decoding)


def read_keys(reader: Reader, keys: Iterable[Key], decoding: Decoding, *, at: Collection[str] = ()) -> Iterator[Row]:
    """The rows of these keys as they are now, whatever their znodes' names are spelt like, and every row of the znodes
    ``at`` these paths.

    Of what was read and can't be parsed the row that says so: it may be about a key that was asked for.
    """
    wanted = set(keys)
    for row in read_paths(reader, sorted({*at, *_paths_of(reader, wanted)}), decoding):
        if (row.kind, row.key) in wanted or row.kind is Kind.UNREADABLE or row.path in at:
            yield row


def read_again(reader: Reader, suspects: Collection[Difference], decoding: Decoding) -> list[Row]:
    """What the znodes say now in which these suspects were seen, whatever it is about, and what others say of the
    suspects' keys.
    """
    paths = {path for each in suspects for path in each.paths if path}
    return list(read_keys(reader, {each.identity for each in suspects}, decoding, at=paths))


def _paths_of(reader: Reader, keys: Iterable[Key]) -> Iterator[str]:
    """Every znode that may say something of these keys."""
    by_kind: dict[Kind, list[str]] = defaultdict(list)
    for kind, key in keys:
        if (path := path_of(kind, key)) is not None:
            yield path
        else:
            by_kind[kind].append(key)
    quotas, credentials = by_kind[Kind.CLIENT_QUOTA], by_kind[Kind.SCRAM_CREDENTIAL]
    yield from entity_paths(reader, [[Part(*part) for part in parse_key(key)[0]] for key in quotas])
    yield from credential_paths(reader, [parse_key(key)[0] for key in credentials])
    if by_kind[Kind.DELEGATION_TOKEN]:
        yield from _children(reader, [TOKENS])


def _children(reader: Reader, paths: Sequence[str]) -> list[str]:
    """The full paths of these znodes' children."""
    return [
        f"{path}/{name}" for path, names in zip(paths, reader.children_many(paths), strict=True) for name in names or ()
    ]


def acl_paths(reader: Reader) -> Iterator[str]:
    """The paths of every resource that has ACLs."""
    types = _children(reader, ACL_ROOTS)
    found = _children(reader, types)
    yield from found
    # A resource's name may hold slashes: then the znode lies deeper.
    while found := _children(reader, found):
        yield from found
