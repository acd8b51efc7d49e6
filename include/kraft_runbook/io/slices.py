"""Long lists, asked for in requests of a size that a server takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def slices(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """The items in their order, at most ``size`` at once."""
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
