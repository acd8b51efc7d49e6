"""Partitions' state znodes to columns, without an object a partition. A state that looks unusual in any way is not ``sure``.

What is sure is exactly what the generic rows would say: the texts' numbers are taken out, and the few frames that are left are judged by Python's ``json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraft_runbook.metadata.topic_columns import Lists, ints, offsets_of, within_each
from kraft_runbook.metadata.znodes.json_numbers import filled, take_out_numbers
from kraft_runbook.metadata.znodes.znode_values import refuse_constant

_decode = json.JSONDecoder(parse_constant=refuse_constant).raw_decode
_PLAIN_NAME = re.compile(r"[a-z_]+")


@dataclass(frozen=True, slots=True)
class States:
    """One entry a state znode. Where ``sure`` is false the others mean nothing. ``version``: the znode's own, where it was given."""

    sure: NDArray[np.bool_]
    leader: NDArray[np.int32]
    leader_epoch: NDArray[np.int32]
    isr: Lists
    recovery: NDArray[np.int32]
    version: NDArray[np.int32]


def states_of(texts: Sequence[bytes | None], versions: Sequence[int] = ()) -> States:
    """The states in these znodes' data, in their order; None: there is no such znode. ``versions``: the znodes'; none given: 0."""
    states = _at_once(texts)
    states = _one_by_one(texts) if states is None else states
    return replace(states, version=ints(versions)) if versions else states


_Layout = tuple[int, int, int, int, int, int]
"""How many numbers a text holds, and which of them are the leader, its epoch, the recovery state (-1: there is none), the ISR's first; and the ISR's length."""


def _at_once(texts: Sequence[bytes | None]) -> States | None:
    """All in one go; None unless each of them is a flat object of numbers and the ISR, as Kafka writes it."""
    if not texts or None in texts:
        return None
    found = take_out_numbers(b"\n".join(texts))  # type: ignore[arg-type]
    if found is None:
        return None
    numbers, frames = found
    each = frames.split(b"\n")
    kinds = {frame: kind for kind, frame in enumerate(set(each))}
    layouts = [layout for frame in kinds if (layout := _layout(frame)) is not None]
    if len(each) != len(texts) or len(layouts) != len(kinds):
        return None
    count, leader, leader_epoch, recovery, isr, replicas = np.array(layouts, np.int64)[list(map(kinds.__getitem__, each))].T
    bounds = offsets_of(count)
    if bounds[-1] != len(numbers):
        return None
    start = bounds[:-1]
    lists = Lists(offsets_of(replicas), numbers[np.repeat(start + isr, replicas) + within_each(replicas)])
    recovered = np.where(recovery < 0, np.int32(0), numbers[start + recovery])
    sure = ~_repeats(lists) & (recovered >> 1 == 0)
    return States(sure, numbers[start + leader], numbers[start + leader_epoch], lists, recovered, np.zeros(len(texts), np.int32))


@lru_cache(maxsize=1024)
def _layout(frame: bytes) -> _Layout | None:
    """How the numbers taken out of a text are to be read; None where it is anything else than numbers and an ISR, each under a plain name of its own."""
    text, places = filled(frame)
    parsed = json_object(text)
    if parsed is None or not all(map(_PLAIN_NAME.fullmatch, parsed)) or text.count(b'"') != 2 * len(parsed):
        return None
    at: dict[str, int] = {}
    numbers = 0
    for name, value in parsed.items():
        at[name] = numbers
        values = value if name == "isr" and type(value) is list else [value]
        if not all(type(each) is int for each in values):
            return None
        numbers += len(values)
    if numbers != places or not {"leader", "leader_epoch", "controller_epoch"} <= at.keys() or type(parsed.get("isr")) is not list:
        return None  # without any of them Kafka does not read it
    return (numbers, at["leader"], at["leader_epoch"], at.get("leader_recovery_state", -1), at["isr"], len(parsed["isr"]))


def _one_by_one(texts: Sequence[bytes | None]) -> States:
    """Where some of them are not plain: by ``json``, one after another."""
    found = [None if text is None else _state(text) for text in texts]
    sure = np.array([each is not None for each in found], np.bool_)
    leader, epoch, recovery = (ints([each[field] if each else 0 for each in found]) for field in range(3))
    lists = Lists.of([each[3] if each else [] for each in found])
    return States(sure & ~_repeats(lists), leader, epoch, lists, recovery, np.zeros(len(texts), np.int32))


def _state(text: bytes) -> tuple[int, int, int, list[int]] | None:
    parsed = json_object(text)
    if parsed is None:
        return None
    leader, epoch, recovery, isr = parsed.get("leader"), parsed.get("leader_epoch"), parsed.get("leader_recovery_state", 0), parsed.get("isr")
    if type(isr) is not list or (isr and not are_broker_ids([isr])):
        return None
    if not all(type(each) is int and -(2**31) <= each < 2**31 for each in (leader, epoch, parsed.get("controller_epoch"))):
        return None  # Kafka does not read it
    if type(recovery) is not int or recovery not in (0, 1):
        return None
    return leader, epoch, recovery, isr  # type: ignore[return-value]


def _repeats(lists: Lists) -> NDArray[np.bool_]:
    """Which of these lists name one broker twice."""
    lengths = lists.lengths
    repeats = np.zeros(len(lists), np.bool_)
    for length in np.unique(lengths):
        those = np.flatnonzero(lengths == length)
        values = lists.values.reshape(-1, length) if len(those) == len(lists) and length else lists.values[lists.offsets[those][:, None] + np.arange(length)]
        if length < 8:
            for one, other in combinations(range(length), 2):
                repeats[those] |= values[:, one] == values[:, other]
        else:
            values = np.sort(values, axis=1)
            repeats[those] = (values[:, 1:] == values[:, :-1]).any(axis=1)
    return repeats


# -- what topics' own znodes are parsed with, too


def json_object(data: bytes) -> dict[str, Any] | None:
    """The JSON object, as ``json.loads`` gives it; None for anything else, and for blanks around it. Invalid UTF-8 and other encodings end here."""
    try:
        text = data.decode()
        parsed, end = _decode(text)
    except (ValueError, RecursionError):
        return None
    return parsed if type(parsed) is dict and end == len(text) else None


def are_broker_ids(lists: list[Any]) -> bool:
    """Whether these are lists of int32, none of them empty. Nothing else in JSON has elements that are int. Raises TypeError for what has none."""
    flat = list(chain.from_iterable(lists))
    return all(lists) and set(map(type, flat)) == {int} and max(flat) < 2**31 and min(flat) >= -(2**31)
