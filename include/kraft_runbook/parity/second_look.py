"""What a later look makes of suspects: they agree, they persist, or what was there is gone without the log having
removed it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass

from kraft_runbook.metadata.canonical_rows import Kind, Row, describe_paths, parse_key
from kraft_runbook.metadata.image.image import Key
from kraft_runbook.metadata.image.log_replay import Version
from kraft_runbook.parity.comparison import Difference, Obstacle, Undecoded, compare

_OF_SESSIONS = ("/brokers/ids/", "/controller", "/migration")
"""Znodes that come and go with sessions and elections, not in the log's order."""


@dataclass(frozen=True, slots=True)
class SecondLook:
    """``suspects``: what still does not fit. ``agreed``: the keys of those that do now, with ZooKeeper's ``rows`` of
    them.

    ``vanished``: what was seen and is gone, unexplained. ``undecoded``: what can't be judged now.
    """

    suspects: tuple[Difference, ...]
    agreed: frozenset[Key]
    rows: tuple[Row, ...]
    vanished: tuple[Difference, ...]
    undecoded: tuple[Undecoded, ...]

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        return tuple(
            Obstacle(
                f"{each}. A moment later it was gone from {describe_paths(each.kind, each.paths) or 'ZooKeeper'}, and"
                " the metadata log removed nothing there",
                "find who writes to ZooKeeper beside the controllers, let nobody do so, and run the comparison again",
            )
            for each in self.vanished
        )


def keys_in_question(suspects: Iterable[Difference], rows: Iterable[Row]) -> set[Key]:
    """The suspects' own keys, and those of every row that their znodes have now: what could not be read then says
    something now.
    """
    wanted = list(suspects)
    paths = {path for each in wanted for path in each.paths}
    return {each.identity for each in wanted} | {
        (row.kind, row.key) for row in rows if row.path in paths or row.kind is Kind.UNREADABLE
    }


def look_again(
    suspects: Sequence[Difference],
    rows: Collection[Row],
    versions: Iterable[Version],
    touched: Set[Key],
    *,
    unknown: Set[Key] = frozenset(),
) -> SecondLook:
    """``rows``: of ``keys_in_question`` as they are now, ``versions`` those keys' values from the M of this look on.
    ``unknown``: keys of rows of which the log's side is not known; they are not judged.

    ``touched``: every key that the log changed since the M of the first look. A suspect that agrees once is cleared for
    good, unless a znode that said it says it no more: what ZooKeeper had there, and the log neither had nor removed,
    somebody took away, and what was true of it is not known.
    """
    asked = {each.identity: each for each in suspects}
    again = compare((row for row in rows if (row.kind, row.key) not in unknown), versions)
    judged = {each.identity for each in again.differences} | {(each.kind, each.key) for each in again.undecoded}
    present = {(row.kind, row.key, row.path) for row in rows}
    paths = {row.path for row in rows}
    fits = {key: each for key, each in asked.items() if key not in judged}
    vanished = {key: each for key, each in fits.items() if _vanished(each, present, paths) and key not in touched}
    agreed = fits.keys() - vanished.keys()
    kept = tuple(row for row in rows if (row.kind, row.key) in agreed)
    return SecondLook(again.differences, frozenset(agreed), kept, tuple(vanished.values()), again.undecoded)


def _vanished(suspect: Difference, present: Set[tuple[Kind, str, str]], paths: Set[str]) -> bool:
    if suspect.zookeeper is None:
        return False
    if suspect.kind is Kind.UNREADABLE:
        path: str = parse_key(suspect.key)[0]
        return path not in paths and not path.startswith(_OF_SESSIONS)
    return suspect.kind.follows_the_log and any((*suspect.identity, path) not in present for path in suspect.paths)
