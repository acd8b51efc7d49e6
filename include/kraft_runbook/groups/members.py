"""What registered itself below /consumers/<group>/ids: the Scala client, or somebody else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kraft_runbook.groups.look import Kind, Registration

STATIC, WHITE_LIST, BLACK_LIST = "static", "white_list", "black_list"
PATTERNS = frozenset({STATIC, WHITE_LIST, BLACK_LIST})
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
"""``Topic.isInternal`` of Kafka 1.1.1: no pattern fits them (exclude.internal.topics)."""

_SCALA_ID = re.compile(r".+-\d{10,}-[0-9a-f]{1,8}", re.DOTALL)
"""``<host>-<milliseconds>-<8 hexadecimal digits>`` (``ZookeeperConsumerConnector``)."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", re.IGNORECASE)
"""At the end of ids that other libraries make (kazoo-go, kafka-node)."""
_JAVAS_TOKENS = re.compile(r"\\Q(?P<quoted>.*?)(?:\\E|$)|\\p\{(?P<posix>\w+)\}|\\.|\[\^?\]?|&&|.", re.DOTALL)
_MANY = frozenset({r"\w", r"\d", r"\s", r"\W", r"\D", r"\S"})
"""No range begins at one of these, so in Java a - behind it is itself."""
_POSIX = {"Lower": "a-z", "Upper": "A-Z", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9"}
_MILLISECONDS = re.compile(r"\d{12,}")


def registration(group: str, member_id: str, data: bytes, migrating: frozenset[str]) -> Registration:
    """One registered member. ``migrating``: the names below migration/ids.

    The Scala client's id is ``<group>_<consumer.id or host-ms-hex>``, its data JSON with version, subscription, pattern
    and a timestamp that is a text of milliseconds. A pattern is one entry. Other libraries differ in one of these:
    pykafka's data is a topic's name, kazoo-go's timestamp a number of seconds, kafka-node's white list names many
    topics. An id that has the Scala client's form with data that can't be read is unreadable, not foreign.
    """
    parsed = _object(data)
    subscription = _subscription(parsed)
    pattern = str(parsed.get("pattern", "static")) if parsed is not None else "static"
    if member_id in migrating:
        kind = Kind.MIGRATING
    elif parsed is not None and subscription is not None and _is_scala(group, member_id, parsed, subscription):
        kind = Kind.OLD
    else:
        kind = Kind.FOREIGN
    unreadable = ""
    if subscription is None and (is_scala_id(group, member_id) or kind is Kind.MIGRATING):
        unreadable = f"the registration of {member_id} is not what the Scala client writes"
    return Registration(member_id, kind, subscription or {}, pattern, unreadable)


@lru_cache(maxsize=256)  # many groups have the same pattern, and each look asks more than once
def topics_meant(pattern: str, text: str, every: frozenset[str]) -> frozenset[str]:
    """The topics that an entry of a subscription means: itself where the pattern is static, else those of ``every``
    that the expression fits, or does not fit (``TopicFilter``: commas are alternatives, spaces and quotes go). What was
    escaped twice means what was to be escaped once: no topic's name holds a backslash.

    Raises ValueError where nobody can tell: Python does not read the expression, or reads it otherwise than Java.
    """
    if pattern == STATIC:
        return frozenset({text})
    if pattern not in PATTERNS:
        raise ValueError(f"{pattern} is no kind of subscription")
    once = text.replace("\\\\", "\\")
    try:
        expression = re.compile(_in_python(once.strip().replace(",", "|").replace(" ", "").strip("\"'")))
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None
    wanted = pattern == WHITE_LIST
    return frozenset(each for each in every - INTERNAL_TOPICS if (expression.fullmatch(each) is not None) is wanted)


def unclear(pattern: str, text: str) -> str:
    """Why nobody can tell which topics an entry of a subscription means; empty: one can."""
    try:
        topics_meant(pattern, text, frozenset())
    except ValueError as error:
        return str(error)
    return ""


def _in_python(expression: str) -> str:
    """The same expression of Java's in Python's words. Raises ValueError for a class that is made of classes."""
    parts: list[str] = []
    within = after_many = False
    for token in _JAVAS_TOKENS.finditer(expression):
        found, quoted, posix = token[0], token["quoted"], token["posix"]
        if quoted is not None:
            parts.append(re.escape(quoted))
        elif posix in _POSIX:
            parts.append(_POSIX[posix] if within else f"[{_POSIX[posix]}]")
        elif found == r"\z":
            parts.append(r"\Z")
        elif within and (found == "&&" or found.startswith("[")):
            raise ValueError("it has a class within a class")
        elif within and found == "-" and after_many:
            parts.append(r"\-")
        else:
            parts.append(found)
            within = found.startswith("[") or (within and found != "]")
        after_many = posix is not None or found in _MANY
    return "".join(parts)


def is_scala_id(group: str, name: str) -> bool:
    """Whether the name is one that the Scala client makes up for itself, without a consumer.id."""
    return name.startswith(f"{group}_") and _SCALA_ID.fullmatch(name[len(group) + 1 :]) is not None


def _is_scala(group: str, member_id: str, parsed: Mapping[str, Any], subscription: Mapping[str, int]) -> bool:
    stamp, pattern = parsed.get("timestamp"), parsed.get("pattern")
    return (
        member_id.startswith(f"{group}_")
        and not _UUID.search(member_id)
        and parsed.get("version") == 1
        and pattern in PATTERNS
        and (pattern == "static" or len(subscription) == 1)
        and isinstance(stamp, str)
        and _MILLISECONDS.fullmatch(stamp) is not None
    )


def _object(data: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _subscription(parsed: Mapping[str, Any] | None) -> dict[str, int] | None:
    """Threads by topic or pattern; None where it is not that."""
    found = parsed.get("subscription") if parsed is not None else None
    if not isinstance(found, dict) or not all(type(n) is int and n > 0 for n in found.values()):
        return None
    return found if all(map(_is_text, found)) else None


def _is_text(name: str) -> bool:
    """JSON can spell half of a surrogate pair, which no topic's name holds and nothing can send or print."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)
