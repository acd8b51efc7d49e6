"""The errors of this package. Each names the setting or the thing, and the way out."""

from __future__ import annotations


class ConsumerError(Exception):
    """Base of every error that is meant for a person. ``problem`` says what is wrong, ``way_out`` what to do."""

    def __init__(self, problem: str, *, way_out: str) -> None:
        self.problem = problem
        self.way_out = way_out
        super().__init__(f"{problem}. What to do: {way_out}")


class SettingError(ConsumerError):
    """A setting that is missing, unknown, or has a value that can't be used."""


class Unreachable(ConsumerError):
    """ZooKeeper or Kafka did not answer."""


class Closed(ConsumerError):
    """The consumer was closed, or ended by an error, which is the cause."""
