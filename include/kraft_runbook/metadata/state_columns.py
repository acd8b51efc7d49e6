"""Partitions' state znodes to columns, without an object a partition. A state that looks unusual in any way is not ``sure``.

What is sure is exactly what the generic rows would say: the parser here is pyarrow's, and it is only given texts on which it and Python's ``json`` can't
disagree (``_is_plain``). On others they do, measured with pyarrow 26: invalid UTF-8, ``Inf`` as a number, several documents on one line, null against
absent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json
from numpy.typing import NDArray

from kraft_runbook.metadata.topic_columns import Lists, ints

_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class States:
    """One entry a state znode. Where ``sure`` is false the others mean nothing."""

    sure: NDArray[np.bool_]
    leader: NDArray[np.int32]
    leader_epoch: NDArray[np.int32]
    isr: Lists
    recovery: NDArray[np.int32]


_STATE = pa.schema([("leader", pa.int32()), ("leader_epoch", pa.int32()), ("isr", pa.list_(pa.int32())), ("leader_recovery_state", pa.int32())])
_PARSING = pa.json.ParseOptions(explicit_schema=_STATE, unexpected_field_behavior="ignore")
_HARMLESS = b'abcdefghijklmnopqrstuvwxyz_0123456789-":, '


def states_of(texts: Sequence[bytes | None]) -> States:
    """The states in these znodes' data, in their order; None: there is no such znode."""
    states = _at_once(texts)
    return _one_by_one(texts) if states is None else states


def _at_once(texts: Sequence[bytes | None]) -> States | None:
    """All in one go; None unless each of them is plain."""
    if not texts or None in texts:
        return None
    joined = b"\n".join(texts)  # type: ignore[arg-type]
    if not _is_plain(joined, len(texts)):
        return None
    reading = pa.json.ReadOptions(use_threads=False, block_size=len(joined) + 1)
    try:
        table = pa.json.read_json(pa.BufferReader(joined), read_options=reading, parse_options=_PARSING)
    except pa.ArrowInvalid:
        return None
    leader, leader_epoch, isr, recovery = (table.column(name).combine_chunks() for name in _STATE.names)
    if table.num_rows != len(texts) or leader.null_count or leader_epoch.null_count or isr.null_count or isr.values.null_count:
        return None
    lists = Lists(_numbers_in(isr.offsets).astype(np.int64), _numbers_in(isr.values))
    return States(~_repeats(lists), _numbers_in(leader), _numbers_in(leader_epoch), lists, _present_or_zero(recovery))


def _numbers_in(column: pa.Int32Array) -> NDArray[np.int32]:
    """The numbers of an array, whatever stands where it is null. (``to_numpy`` would import pandas: a second of cpu time.)"""
    return np.frombuffer(column.buffers()[1], np.int32, len(column), column.offset * 4) if len(column) else np.empty(0, np.int32)


def _present_or_zero(column: pa.Int32Array) -> NDArray[np.int32]:
    """The numbers of an array, 0 where it is null."""
    if not column.null_count:
        return _numbers_in(column)
    if column.null_count == len(column):
        return np.zeros(len(column), np.int32)
    validity = np.unpackbits(np.frombuffer(column.buffers()[0], np.uint8), bitorder="little")[column.offset : column.offset + len(column)]
    return np.where(validity.astype(np.bool_), _numbers_in(column), np.int32(0))


def _is_plain(joined: bytes, count: int) -> bool:
    """Whether these texts, a line each, are flat objects on which pyarrow and ``json`` agree (the row count, no absent field and the number range come after).

    Each line is one object: it begins with its only ``{`` and ends with its only ``}``; its only list is the ISR. No upper case (Inf, NaN), no null (absent
    is another thing; and a line that begins with null ends pyarrow's process), no escapes, no control characters, nothing beyond ASCII.
    """
    return (
        joined.startswith(b"{")
        and joined.endswith(b"}")
        and joined.count(b"}\n{") == count - 1
        and joined.translate(None, _HARMLESS) == (b"{[]}\n" * count)[:-1]
        and b"null" not in joined
    )


def _one_by_one(texts: Sequence[bytes | None]) -> States:
    """Where some of them are not plain: by ``json``, one after another."""
    found = [None if text is None else _state(text) for text in texts]
    sure = np.array([each is not None for each in found], np.bool_)
    leader, epoch, recovery = (ints([each[field] if each else 0 for each in found]) for field in range(3))
    lists = Lists.of([each[3] if each else [] for each in found])
    return States(sure & ~_repeats(lists), leader, epoch, lists, recovery)


def _state(text: bytes) -> tuple[int, int, int, list[int]] | None:
    parsed = json_object(text)
    if parsed is None:
        return None
    leader, epoch, recovery, isr = parsed.get("leader"), parsed.get("leader_epoch"), parsed.get("leader_recovery_state", 0), parsed.get("isr")
    if type(isr) is not list or (isr and not are_broker_ids([isr])):
        return None
    if not all(type(each) is int and -(2**31) <= each < 2**31 for each in (leader, epoch, recovery)):
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
