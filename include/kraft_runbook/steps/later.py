"""Waits that hold no worker: a step asks for one, and goes on with what it has seen. The triggerer looks meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from kraft_runbook.steps.handle import Cluster


@dataclass(frozen=True, slots=True)
class Later:
    """``watch``: the name of what looks; ``given``: to it, as JSON; ``until``: seconds since the epoch."""

    watch: str
    given: Mapping[str, Any]
    until: float


class Looking(Protocol):
    """Looks again and again, ``every`` so many seconds. Another process may begin anew at any moment."""

    every: ClassVar[float]

    def look(self, cluster: Cluster) -> bool:
        """Whether it is over. Raises RunbookError where nothing could be seen: it is looked at again."""

    def told(self) -> Mapping[str, Any]:
        """What was seen, as JSON, for the step."""
