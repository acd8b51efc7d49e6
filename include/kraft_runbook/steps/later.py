"""Waits that hold no worker: a step asks for one, and goes on with what it has seen. The triggerer looks meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Later:
    """``watch``: the name of what looks; ``given``: to it, as JSON; ``until``: seconds since the epoch."""

    watch: str
    given: Mapping[str, Any]
    until: float
