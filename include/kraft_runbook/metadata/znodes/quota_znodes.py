"""Where ZooKeeper may hold a quota's entity or a credential's user: names have many spellings there (``+`` and ``%20``,
small digits and capital ones).

So a path is not made from the name. What there is, is listed, and each name read as Kafka reads it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from kraft_runbook.metadata.znodes.znode_rows import DEFAULT_ENTITY
from kraft_runbook.metadata.znodes.znode_values import BadZnode, desanitize

ROOTS = {"user": "/config/users", "client-id": "/config/clients", "ip": "/config/ips"}


class Lister(Protocol):
    """What this takes of ``ZookeeperReader``."""

    def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]: ...


class Part(NamedTuple):
    """One part of an entity. ``name`` None: the default."""

    type: str
    name: str | None


def entity_paths(reader: Lister, entities: Iterable[Sequence[Part]]) -> Iterator[str]:
    """The znodes of these entities: of one part, or of a client and its user."""
    alone: set[Part] = set()
    clients: dict[Part, set[Part]] = defaultdict(set)
    for entity in entities:
        if len(entity) == 1:
            alone.add(entity[0])
        else:
            client, user = sorted(entity, key=lambda part: part.type)
            clients[user].add(client)
    roots = {ROOTS[part.type]: part.type for part in (*alone, *clients)}
    found = _named(reader, roots) if roots else {}
    for part in alone:
        yield from found.get(part, ())
    below = {f"{path}/clients": wanted for user, wanted in clients.items() for path in found.get(user, ())}
    for parent, children in zip(below, reader.children_many(list(below)) if below else (), strict=True):
        names = _spelt("client-id", parent, children or ())
        for client in below[parent]:
            yield from names.get(client, ())


def credential_paths(reader: Lister, users: Iterable[str]) -> Iterator[str]:
    """The znodes that may hold these users' SCRAM credentials: Kafka's copy takes them from clients' and ips' znodes
    too.

    It takes the name as it stands: a user called ``<default>`` may stand in the default entity's znode.
    """
    wanted = set(users)
    names = {part for user in wanted for part in ([user, None] if user == DEFAULT_ENTITY else [user])}
    if names:
        found = _named(reader, {root: type_ for type_, root in ROOTS.items()})
        yield from (path for part, paths in found.items() if part.name in names for path in paths)


def _named(reader: Lister, parents: Mapping[str, str]) -> Mapping[Part, list[str]]:
    """The children of these znodes by what their names mean. ``parents``: what type each one's children are of."""
    found: dict[Part, list[str]] = defaultdict(list)
    for (parent, type_), names in zip(parents.items(), reader.children_many(list(parents)), strict=True):
        for part, paths in _spelt(type_, parent, names or ()).items():
            found[part] += paths
    return found


def _spelt(type_: str, parent: str, names: Iterable[str]) -> Mapping[Part, list[str]]:
    found: dict[Part, list[str]] = defaultdict(list)
    for name in names:
        try:
            found[Part(type_, None if name == DEFAULT_ENTITY else desanitize(name))].append(f"{parent}/{name}")
        except BadZnode:
            continue  # such a name means nothing to Kafka either; a full comparison says so
    return found
