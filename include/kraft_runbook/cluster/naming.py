"""Nodes as texts name them: one is "broker 2", several are "brokers 1, 2", and the verb follows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

PLURALS = {"is": "are", "does": "do", "has": "have", "was": "were"}


def name_ids(ids: Iterable[int]) -> str:
    """Ids in their order: "1, 2"."""
    return ", ".join(map(str, sorted(set(ids))))


def nodes(kind: str, ids: Iterable[int], verb: str = "") -> str:
    """One node is "broker 2", two are "brokers 1, 2"; with a verb, given in the singular, "broker 2 does" and
    "brokers 1, 2 do".

    ``kind``: broker, controller, voter or node. ``ids``: a sequence keeps its order.
    """
    found = list(dict.fromkeys(ids)) if isinstance(ids, Sequence) else sorted(set(ids))
    several = len(found) > 1
    named = f"{kind}{'s' if several else ''} {', '.join(map(str, found))}"
    if not verb:
        return named
    first, *others = verb.split(" ")
    if several:
        first = PLURALS.get(first) or (first.removesuffix("s"))
    return " ".join([named, first, *others])


def some(things: Iterable[object], most: int = 5, *, between: str = ", ", of: int | None = None) -> str:
    """The first few of them as they are written: "a, b and 3 more". ``of``: how many there are, where ``things`` are
    only the first.
    """
    every = list(map(str, things))
    more = (len(every) if of is None else of) - len(every[:most])
    return between.join(every[:most]) + (f" and {more} more" if more > 0 else "")


def by_number(ids: Collection[int], one: str, several: str) -> str:
    """The word for one node, or for several: "it" or "they"."""
    return several if len(set(ids)) > 1 else one


def in_markdown(text: str) -> str:
    """``text`` with its markup escaped, on one line: names come from the cluster and from whoever calls it. An
    underscore inside a word is no markup.
    """
    return "".join(c if c.isprintable() else " " for c in _MARKUP.sub(r"\\\g<0>", text))


_MARKUP = re.compile(r"[\\`*\[\]<>|#]|(?<![^\W_])_|_(?![^\W_])")
