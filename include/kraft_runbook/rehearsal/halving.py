"""Which of many suspects end something, found by halving them and trying again. Pure: a try is the caller's.

A culprit ends a try by itself, whatever else is there. So one of two halves ends it again. Where the first does not,
the other is presumed to, and is seen to in a try of its own before anything is said of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Suspect = TypeVar("Suspect")

MOST = 8
"""Tries."""


class NotJudged(Exception):
    """A try that says nothing, and why: no memory, a time that is over."""


@dataclass(frozen=True, slots=True)
class Culprits(Generic[Suspect]):
    """The fewest ``suspects`` of which it is known. ``seen``: a try with them alone ended; False: none of their parts
    ended one, and no try was left for all of them.
    """

    suspects: tuple[Suspect, ...]
    seen: bool


@dataclass(frozen=True, slots=True)
class Search(Generic[Suspect]):
    """``found``: sets of which each ends a try by itself; none where a try without any suspect ended. ``tries``: how
    many. ``others``: whether a try without any of ``found`` ended too; None: not known. ``vanished``: not even all
    suspects together ended a try again. ``stopped``: why the last try says nothing; empty where all did.
    """

    found: tuple[Culprits[Suspect], ...]
    tries: int
    others: bool | None = None
    vanished: bool = False
    stopped: str = ""


def search(
    suspects: Sequence[Suspect], ends: Callable[[Sequence[Suspect]], bool], *, most: int = MOST
) -> Search[Suspect]:
    """At most ``most`` tries. ``ends``: whether a try with these suspects alone ends; raises NotJudged. That one with
    all of them ended is known already. The first try is one without any: where it ends too, none is to blame.
    """
    tries = _Tries(ends, most)
    others = tries.ended(())
    if others is not False:
        return Search((), tries.done, others, stopped=tries.stopped)
    left, seen = tuple(suspects), False
    found: list[Culprits[Suspect]] = []
    while left:
        least = _fewest(Culprits(left, seen), tries)
        if not least.seen:
            again = tries.ended(left)
            if again is False:
                return Search((), tries.done, vanished=True)
            least = Culprits(left, again is True)
        found.append(least)
        left = tuple(each for each in left if each not in least.suspects)
        others = tries.ended(left) if left else False
        if not others:
            break
        seen = True
    return Search(tuple(found), tries.done, others, stopped=tries.stopped)


class _Tries(Generic[Suspect]):
    def __init__(self, ends: Callable[[Sequence[Suspect]], bool], most: int) -> None:
        self._ends, self.left = ends, most
        self.done = 0
        self.stopped = ""

    def ended(self, some: Sequence[Suspect]) -> bool | None:
        """Whether a try with these ended; None where none is left, or it says nothing."""
        if not self.left:
            return None
        self.left, self.done = self.left - 1, self.done + 1
        try:
            return self._ends(some)
        except NotJudged as error:
            self.left, self.stopped = 0, str(error)
            return None


def _fewest(known: Culprits[Suspect], tries: _Tries[Suspect]) -> Culprits[Suspect]:
    """Halve what is known. Where one half is only presumed, the last try is for seeing that it ends one."""
    where = known.suspects
    while len(where) > 1 and (where == known.suspects or tries.left > 1):
        middle = (len(where) + 1) // 2
        ended = tries.ended(where[:middle])
        if ended is None:
            return known
        if ended:
            where = where[:middle]
            known = Culprits(where, seen=True)
        else:
            where = where[middle:]
    if where != known.suspects and tries.ended(where):
        return Culprits(where, seen=True)
    return known
