"""A situation of a migration: when it holds, what it means, what it waits for, the way forward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kraft_runbook.migration.situation_facts import Facts


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. ``text``: its words, with Facts in braces; where ``tell`` gives the words, a description of them."""

    text: str
    tell: Callable[[Facts], tuple[str, ...]] | None = None

    def of(self, facts: Facts) -> tuple[str, ...]:
        """The answer about this cluster, line by line."""
        return self.tell(facts) if self.tell else (self.text.format_map(_Words(facts)),)


class _Words(dict[str, str]):
    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def __missing__(self, name: str) -> str:
        return str(getattr(self._facts, name))


@dataclass(frozen=True, slots=True)
class Situation:
    """One situation. ``seen_as``: what shows it, in words; ``holds``: whether it is so. An answer that is None is that
    of the next situation that holds. ``trouble``: whether something must be mended before the table's steps go on.
    """

    name: str
    seen_as: str
    holds: Callable[[Facts], bool]
    forward: Answer
    means: Answer | None = None
    waits_for: Answer | None = None
    trouble: bool = True
