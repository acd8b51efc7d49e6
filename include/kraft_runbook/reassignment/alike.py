"""Which partitions are alike, found in arrays: of hundreds of thousands, many lie on the same brokers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from kraft_runbook.reassignment.cheapest_flow import Array

NOBODY = -1
"""Where a partition has fewer replicas than others."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Groups of partitions. ``order``: the places of all, group by group, in the order in which groups are first met;
    ``counts``: how many each group has.
    """

    order: Array
    counts: Array

    @property
    def one_of_each(self) -> Array:
        """Of each group the place of its first."""
        places: Array = self.order[np.cumsum(self.counts) - self.counts]
        return places

    def groups(self) -> Iterator[list[int]]:
        """Of each group all places."""
        places = self.order.tolist()
        return (places[start:end] for start, end in pairwise([0, *np.cumsum(self.counts).tolist()]))


def rows_of(orders: Collection[Collection[int]]) -> Array:
    """The replicas of each partition in a row, with NOBODY at its end where others have more; one column at least."""
    many = np.fromiter(map(len, orders), dtype=np.int64)
    rows = np.full((len(many), many.max(initial=1)), NOBODY)
    rows[np.arange(rows.shape[1]) < many[:, None]] = np.fromiter(chain.from_iterable(orders), dtype=np.int64)
    return rows


def alike(keys: Array) -> Alike:
    """Groups of those that have equal rows of ``keys``. There must be one row at least."""
    side_by_side = np.lexsort(keys.T)
    rows = keys[side_by_side]
    begins = np.concatenate(([True], (rows[1:] != rows[:-1]).any(axis=1)))
    # Here groups stand in the order of their keys. Whose first partition comes first is to be the first of them.
    number = np.argsort(np.argsort(side_by_side[begins]))
    group = np.empty_like(side_by_side)
    group[side_by_side] = number[np.cumsum(begins) - 1]
    return Alike(np.argsort(group, kind="stable"), np.bincount(group))
