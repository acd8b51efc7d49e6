"""How far long work is, told while it goes on to whoever waits for it."""

from __future__ import annotations

from typing import Protocol


class Tell(Protocol):
    """Hears what is being done now; and of how many (``of``) so many are ``done``, where that is known."""

    def __call__(self, what: str, done: int = 0, of: int = 0, /) -> object: ...


def nobody(what: str, done: int = 0, of: int = 0, /) -> None:
    """Nobody waits."""
