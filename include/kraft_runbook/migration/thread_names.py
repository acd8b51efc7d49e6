"""How Linux shows the name of a Java thread. Pure."""

from __future__ import annotations

SHOWN = 15
"""Characters of a thread's name that Linux keeps."""


def cut_at_the_end(name: str) -> str:
    """As Java 17 names the thread to Linux: the first 15 characters."""
    return name[:SHOWN]


def cut_in_the_middle(name: str) -> str:
    """As newer Javas do with a longer name: its first 7 characters, two dots, its last 6."""
    return name if len(name) <= SHOWN else f"{name[:7]}..{name[-6:]}"


CUTS = (cut_at_the_end, cut_in_the_middle)
"""One Java cuts the names of all its threads in one of these ways."""
