"""What of a tree may have ended Kafka's copy: the znodes that it reads, each with what belongs to it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kraft_runbook.rehearsal.halving import Culprits, Search

_DEPTHS = {
    "/brokers/topics": 3,
    "/config/topics": 3,
    "/config/brokers": 3,
    "/config/users": 3,
    "/config/clients": 3,
    "/config/ips": 3,
    "/latest_producer_id_block": 1,
    "/kafka-acl": 3,
    "/kafka-acl-extended": 4,
    "/delegation_token/tokens": 3,
}
"""Where the znodes are that Kafka's copy reads (``ZkMigrationClient.readAllMetadata``), and how many names a suspect's
path has.
"""
SHOWN = 5


def suspect_of(path: str) -> str | None:
    """The suspect that the znode at ``path`` belongs to, by that one's own path: a topic, with its partitions and its
    config; the config of a broker, client or address; a user's, with those of its clients; the ACLs of one resource; a
    token; the producer ids. None for what the copy does not read, and for what is only above suspects.
    """
    names = path.split("/")[1:] or [""]
    kind = "/" + "/".join(names[:2]) if names[0] in ("brokers", "config", "delegation_token") else f"/{names[0]}"
    depth = _DEPTHS.get(kind)
    if depth is None or len(names) < depth:
        return None
    if kind == "/config/topics":
        names[0] = "brokers"
    return "/" + "/".join(names[:depth])


@dataclass(frozen=True, slots=True)
class Halved:
    """A search among ``suspects``; ``exceptions``: what Kafka threw last in the copy of a set, by its suspects."""

    suspects: int
    search: Search[str]
    exceptions: dict[tuple[str, ...], str]

    def told(self) -> str:
        """What was found, in a sentence or two."""
        search = self.search
        said = f"{search.tries} more copies of parts of the tree, {self.suspects} suspects"
        if search.vanished:
            return f"{said}: none of them ended, nor did one of all suspects again. Kafka's copy ended by chance, once"
        said = "; ".join([said, *map(self._of, search.found)])
        if search.others and not search.found:
            said += "; without any of them the copy ends too: it is something else in the tree"
        elif search.others is False and search.found:
            said += f"; without {'it' if _is_one(search.found) else 'them'} the copy is done"
        elif search.others:
            said += "; without them too the copy ends: something else in the tree ends it as well"
        return f"{said}; the last copy said nothing: {search.stopped}" if search.stopped else said

    def _of(self, culprits: Culprits[str]) -> str:
        exception = self.exceptions.get(culprits.suspects, "")
        what = f"the copy ends of {_named(culprits.suspects)}"
        if culprits.seen:
            return f"{what} alone{f', with {exception}' if exception else ''}"
        return f"{what}, where none of the parts that were tried ends it"


def _is_one(found: Sequence[Culprits[str]]) -> bool:
    return len(found) == 1 and len(found[0].suspects) == 1


def _named(suspects: Collection[str]) -> str:
    some = sorted(suspects)
    if len(some) <= SHOWN:
        return ", ".join(some)
    kinds = sorted({each.rsplit("/", 1)[0] for each in some})
    return f"one or more of {len(some)} znodes below {', '.join(kinds)} ({', '.join(some[:SHOWN])} …)"
