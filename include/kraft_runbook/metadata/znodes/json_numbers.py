"""The numbers in a JSON text, all at once, and the text without them: what is left of many texts are few frames, each of which needs to be judged only once.

Read without an object a number: a million states of partitions hold seven million numbers, and pyarrow's JSON reader takes twice as long.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]

_NUMBERS = b"0123456789-"
_ZERO, _MINUS = b"0"[0], b"-"[0]
_DIGITS = 9
"""More could be beyond int32."""

_GAP = re.compile(rb'(?<=[:\[,])(?=[,\]}])|(?<=")(?=")')


def _table(*classes: bytes) -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    for number, members in enumerate(classes, 1):
        table[list(members)] = number
    return table


_BEFORE, _AFTER = _table(b":[,", b'"'), _table(b",]}", b'"')


def take_out_numbers(text: bytes) -> tuple[Ints, bytes] | None:
    """Every number, in order, and the text without them.

    None unless each stands where ``filled`` puts one back, and is written as JSON writes an int32 of at most nine digits: no zero before it, no -0.
    """
    data = np.frombuffer(text, np.uint8)
    of_number = (data - np.uint8(_ZERO) < 10) | (data == _MINUS)
    edges = np.flatnonzero(of_number[1:] != of_number[:-1]) + 1
    if not len(data) or of_number[0] or of_number[-1]:
        return None
    start, end = edges[::2], edges[1::2]
    place = _BEFORE[data[start - 1]]
    if not place.all() or not np.array_equal(place, _AFTER[data[end]]):
        return None
    negative = data[start] == _MINUS
    first = start + negative
    digits = end - first
    if text.count(b"-") != np.count_nonzero(negative) or not len(digits):
        return None
    if digits.min() < 1 or digits.max() > _DIGITS or ((data[first] == _ZERO) & ((digits > 1) | negative)).any():
        return None
    values = data[first].astype(np.int32) - _ZERO
    for more in range(1, int(digits.max())):
        longer = np.flatnonzero(digits > more)
        values[longer] = values[longer] * 10 + data[first[longer] + more] - _ZERO
    return np.where(negative, -values, values), text.translate(None, _NUMBERS)


def filled(frame: bytes) -> tuple[bytes, int]:
    """A text without its numbers with 0 in each place where one may have stood, and how many those are.

    When as many were taken out of the text, each place had exactly one; when the filled text is JSON, the text was.
    """
    return _GAP.subn(b"0", frame)
