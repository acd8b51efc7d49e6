"""Counts all and keeps the first few."""

from __future__ import annotations

from collections.abc import Iterable

from kraft_runbook.cluster.observation import Found

SAMPLES = 20


class Tally:
    def __init__(self) -> None:
        self.count = 0
        self.samples: list[str] = []

    def add(self, item: str) -> None:
        self.count += 1
        if len(self.samples) < SAMPLES:
            self.samples.append(item)

    @property
    def found(self) -> Found:
        return Found(self.count, tuple(self.samples))


def found_in(items: Iterable[str]) -> Found:
    """All of these, counted."""
    tally = Tally()
    for item in items:
        tally.add(item)
    return tally.found
