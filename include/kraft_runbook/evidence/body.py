"""Reading the body of an evidence record. It may be of any version and, if somebody changed the file, of any shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

Body = Mapping[str, Any]


def clean(value: object) -> str:
    """The value as text that is safe in a terminal and on a page: control characters, text direction marks and lone
    surrogates become escapes.
    """
    plain = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return "".join(c if c.isprintable() or c == "\n" else " " if c == "\t" else f"\\x{ord(c):02x}" for c in plain)


def text(body: Body, key: str) -> str:
    """The text under the key; empty if the body has none."""
    value = body.get(key)
    return "" if value is None else clean(value)


def number(body: Body, key: str) -> float | None:
    """The number under the key; None if it is not a finite number."""
    value = body.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        return None
    return value


def whole(body: Body, key: str) -> int | None:
    """The whole number under the key; None if it is not one."""
    value = number(body, key)
    return int(value) if value is not None and value == int(value) else None


def moment(body: Body, key: str) -> datetime | None:
    """The time under the key, in UTC; None if it is no time or has no zone."""
    try:
        value = datetime.fromisoformat(text(body, key))
        return value.astimezone(UTC) if value.tzinfo else None
    except (ValueError, OverflowError):
        return None


def part(body: Body, key: str) -> Body:
    """An object inside the body; empty where there is none."""
    value = body.get(key)
    return value if isinstance(value, dict) else {}


def parts(body: Body, key: str) -> tuple[Body, ...]:
    """A list of objects inside the body."""
    value = body.get(key)
    return tuple(each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()


def texts(body: Body, key: str) -> tuple[str, ...]:
    """A list of texts inside the body."""
    value = body.get(key)
    return tuple(clean(each) for each in value) if isinstance(value, list) else ()
