"""Names and numbers in znodes, read as Kafka's Java code reads them. What it would not read, or not for certain, is
refused.

What Python takes for a number or an escape and Java does not would make two sides look the same of which Kafka can read
one.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from kraft_runbook.cluster.java_values import INT_RANGE, LONG_RANGE, is_java_double, trim

_ESCAPES = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_WHOLE = re.compile(r"[+-]?[0-9]+")

INT32, INT64 = INT_RANGE, LONG_RANGE


class BadZnode(ValueError):
    """A znode's data is not what Kafka writes; the message says what is wrong."""


def desanitize(name: str) -> str:
    """A sanitized name as Kafka reads it (``Sanitizer.desanitize``: ``URLDecoder``, so that ``+`` is a space too).
    Raises BadZnode.

    An incomplete escape is an IllegalArgumentException there, which ends the copy. Bytes that are no UTF-8 would become
    U+FFFD and with it another name.
    """
    if "%" not in name and "+" not in name:
        return name
    if "%" in _ESCAPES.sub("", name):
        raise BadZnode("its name holds a % without two hexadecimal digits: Kafka's copy ends on it")
    try:
        return _ESCAPES.sub(lambda found: unquote_to_bytes(found[0]).decode(), name.replace("+", " "))
    except UnicodeDecodeError:
        raise BadZnode("the escapes in its name are not UTF-8: Kafka would read another name") from None


def sanitize(name: str) -> str:
    """A name as Kafka spells it in a path (``Sanitizer.sanitize``: ``URLEncoder``, then ``*`` and the ``+`` of a blank
    escaped too).
    """
    return quote(name, safe="").replace("~", "%7E")


def whole(text: str, within: range = INT32) -> int:
    """``Integer.parseInt``, or ``Long.parseLong`` within INT64, of ASCII digits. Raises BadZnode."""
    if not _WHOLE.fullmatch(text) or (number := int(text)) not in within:
        raise BadZnode("a number is something else")
    return number


def double(text: str) -> float:
    """``Double.parseDouble``. Raises BadZnode."""
    if not is_java_double(text):
        raise BadZnode("a number is something else")
    text = trim(text)
    if "x" not in text.lower():
        return float(text if text[-1] in "yN" else text.rstrip("fFdD"))
    try:
        return float.fromhex(text.rstrip("fFdD"))
    except OverflowError:
        return float("-inf" if text[0] == "-" else "inf")


# -- what JSON holds, as Kafka's DecodeJson takes it: no text for a number, no number for a text


def refuse_constant(text: str) -> None:
    """NaN and Infinity, which Python's JSON has and Kafka's has not. Raises BadZnode."""
    raise BadZnode(f"{text} is not JSON")


def json_int(value: Any, within: range = INT32) -> int:
    """A JSON number without a fraction. Raises BadZnode."""
    if type(value) is not int or value not in within:
        raise BadZnode("a number is something else")
    return value


def json_text(value: Any) -> str:
    """A JSON text. Raises BadZnode."""
    if type(value) is not str:
        raise BadZnode("a text is something else")
    return value


def json_texts(value: Any) -> list[str]:
    """A JSON list of texts. Raises BadZnode."""
    if type(value) is not list:
        raise BadZnode("a list is something else")
    return [json_text(each) for each in value]


PATH_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")


def number_in_a_path(name: str) -> int:
    """A broker's or a partition's number as a znode's name. Kafka reads these znodes at a number's own spelling alone.
    Raises BadZnode.
    """
    if not PATH_NUMBER.fullmatch(name):
        raise BadZnode("its name is not how Kafka writes a number: no broker reads it")
    return int(name)
