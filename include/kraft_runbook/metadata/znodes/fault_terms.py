"""What a fault of a znode is told in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraft_runbook.cluster.java_values import (
    NotJson,
    parse_json,
)
from kraft_runbook.cluster.observation import Consequence

COPY, SYNC, START, DIFFERS, NOTED = (
    Consequence.COPY_FAILS,
    Consequence.SYNC_FAILS,
    Consequence.BROKER_STAYS_DOWN,
    Consequence.KRAFT_DIFFERS,
    Consequence.NOTED,
)
Said = Iterator[tuple[Consequence, str]]


def parsed_json(data: bytes) -> Any:
    """What the data says, as Kafka reads it; None where it is no JSON."""
    try:
        return parse_json(data)
    except NotJson:
        return None


def not_an_object(data: bytes) -> str:
    """In words, of data that is no JSON object."""
    return "it is not a JSON object" if data.strip() else "it is empty"
