"""The order of a partition's replicas after a move: what stays keeps its place, what comes takes the place of what
goes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kraft_runbook.cluster.assignment import Replicas


def in_order(present: Replicas, wanted: Collection[int], racks: Mapping[int, str]) -> Replicas:
    """The wanted brokers in the order of ``present``. A newcomer stands where one of its own rack went, else where any
    went, else at the end. Nothing differs: nothing changes.
    """
    places: list[int | None] = [broker if broker in wanted else None for broker in present]
    left = sorted(set(wanted).difference(present))
    for same_rack in (True, False):
        for at, broker in enumerate(present if left else ()):
            if places[at] is not None:
                continue
            fits = next((b for b in left if not same_rack or racks.get(b) == racks.get(broker)), None)
            if fits is not None:
                places[at] = fits
                left.remove(fits)
    return (*(each for each in places if each is not None), *left)
