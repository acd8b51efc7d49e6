"""What a fault of a znode is told in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraft_runbook.cluster.config_changes import LONGEST_TEXT
from kraft_runbook.cluster.java_values import (
    NotJson,
    parse_json,
    utf8_length,
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


def too_long(what: str, text: str) -> Said:
    """Of a text that the copy puts into a record: whether it is more than one may have. ``what``: its name, in
    words.
    """
    if utf8_length(text) > LONGEST_TEXT:
        yield COPY, f"{what} has more than {LONGEST_TEXT:,} bytes, which no record of KRaft's metadata log takes"
