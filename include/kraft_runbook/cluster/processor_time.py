"""Processor time that processes have spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kraft_runbook.cluster.unread import Unread, was_read


@dataclass(frozen=True, slots=True)
class Spent:
    """``process``: tells a process from another one that has its place later. ``seconds``: user and system time since
    it began.
    """

    process: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Used:
    """Processor seconds between two looks that lie ``seconds`` apart, by the names of the processes; ``unread``: why
    there is none.
    """

    seconds: float = 0.0
    by_name: Mapping[str, float] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "seconds": round(self.seconds, 1),
            "by_name": {name: round(each, 2) for name, each in sorted(self.by_name.items())},
            "unread": dict(self.unread),
        }

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Used:
        """Raises KeyError, TypeError or ValueError where it is no such value."""
        by_name = {str(name): float(each) for name, each in body["by_name"].items()}
        return cls(float(body["seconds"]), by_name, {str(name): str(why) for name, why in body["unread"].items()})


def used_between(before: Mapping[str, Spent | Unread], after: Mapping[str, Spent | Unread], seconds: float) -> Used:
    """Of each process that ran from one look to the other. What one spent that was stopped in between is not known, and
    what its successor spent is its start.
    """
    by_name: dict[str, float] = {}
    unread: dict[str, str] = {}
    for name, then in before.items():
        now = after.get(name, Unread("it was not looked at again"))
        if not was_read(then):
            unread[name] = then.reason
        elif not was_read(now):
            unread[name] = now.reason
        elif then.process != now.process:
            unread[name] = "it was restarted"
        else:
            by_name[name] = max(0.0, now.seconds - then.seconds)
    return Used(seconds, by_name, unread)
