"""Partitions' state znodes to columns, many at a time. A state that looks unusual in any way is not ``sure``.

What is sure is exactly what the generic rows (``znode_rows``) would say: msgspec decodes into the types below and
refuses all else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from kraft_runbook.metadata.garbage import uncollected
from kraft_runbook.metadata.topic_columns import Lists, ints

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
"""A JSON number without a fraction or an exponent."""
UNUSUAL = (msgspec.DecodeError, UnicodeDecodeError)
"""What decoding raises for any other text."""


@dataclass(frozen=True, slots=True)
class States:
    """One entry a state znode. Where ``sure`` is false the others mean nothing. ``version``: the znode's own, where it
    was given.
    """

    sure: NDArray[np.bool_]
    leader: NDArray[np.int32]
    leader_epoch: NDArray[np.int32]
    isr: Lists
    recovery: NDArray[np.int32]
    version: NDArray[np.int32]
    controller_epoch: NDArray[np.int32]


class _State(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The fields that Kafka writes (``TopicPartitionStateZNode``); those without a default it needs to read a state."""

    leader: Int32
    leader_epoch: Int32
    controller_epoch: Int32
    isr: list[Int32]
    leader_recovery_state: Annotated[int, msgspec.Meta(ge=0, le=1)] = 0
    version: int = 1


_decode = msgspec.json.Decoder(_State).decode


def states_of(texts: Sequence[bytes | None], versions: Sequence[int] = ()) -> States:
    """The states in these znodes' data, in their order; None: there is no such znode. ``versions``: the znodes'; none
    given: 0.
    """
    with uncollected():
        try:
            found = list(map(_decode, texts))  # type: ignore[arg-type]
        except (*UNUSUAL, TypeError):
            found = list(map(_usual, texts))
        isr = Lists.of([each.isr for each in found])
        return States(
            np.array([each is not _NOTHING for each in found], np.bool_) & ~repeats(isr),
            ints([each.leader for each in found]),
            ints([each.leader_epoch for each in found]),
            isr,
            ints([each.leader_recovery_state for each in found]),
            ints(versions) if versions else np.zeros(len(found), np.int32),
            ints([each.controller_epoch for each in found]),
        )


_NOTHING = _State(0, 0, 0, [])
"""Stands for a state that is not sure."""


def _usual(text: bytes | None) -> _State:
    try:
        return _NOTHING if text is None else _decode(text)
    except UNUSUAL:
        return _NOTHING


def repeats(lists: Lists) -> NDArray[np.bool_]:
    """Which of these lists name one broker twice."""
    lengths = lists.lengths
    repeats = np.zeros(len(lists), np.bool_)
    for length in np.unique(lengths):
        those = np.flatnonzero(lengths == length)
        values = (
            lists.values.reshape(-1, length)
            if len(those) == len(lists) and length
            else lists.values[lists.offsets[those][:, None] + np.arange(length)]
        )
        if length < 8:
            for one, other in combinations(range(length), 2):
                repeats[those] |= values[:, one] == values[:, other]
        else:
            values = np.sort(values, axis=1)
            repeats[those] = (values[:, 1:] == values[:, :-1]).any(axis=1)
    return repeats
