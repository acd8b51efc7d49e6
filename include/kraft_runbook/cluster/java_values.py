"""Texts as Java 17 and Kafka 3.9 parse them. A text that Python accepts and Java refuses, or the other way round, is
handled as in Java. None: refused.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn, TypeGuard
from unicodedata import digit

INT_RANGE, LONG_RANGE = range(-(2**31), 2**31), range(-(2**63), 2**63)

_INTEGER = re.compile(r"[+-]?\d+")
_DOUBLE = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?|0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?)"
)
_BLANKS = "".join(map(chr, range(0x21)))
"""What ``String.trim`` takes away."""
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}|\+[0-9A-Fa-f]|-0)")
"""``URLDecoder`` has ``Integer.parseInt`` read the two digits, which takes a sign."""
_MANY = 100
"""More digits than any number has that Java reads."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]*")
_UUID = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?")


def trim(text: str) -> str:
    """``String.trim``."""
    return text.strip(_BLANKS)


def java_int(text: str) -> int | None:
    """``Integer.parseInt``: no blanks, no underscores, 32 bits."""
    return _integer(text, INT_RANGE)


def java_long(text: str) -> int | None:
    """``Long.parseLong``."""
    return _integer(text, LONG_RANGE)


def _integer(text: str, within: range) -> int | None:
    """Any script's digits count (``Character.digit``), but for those that take two of Java's characters."""
    if not _INTEGER.fullmatch(text) or max(text) > "\uffff":
        return None
    if len(text) > _MANY:  # Python reads 4,300 digits at most; Java any number of zeros before those that count
        if any(map(digit, text[text[0] in "+-" : -_MANY])):
            return None
        text = text[: text[0] in "+-"] + text[-_MANY:]
    return number if (number := int(text)) in within else None


def is_java_double(text: str) -> bool:
    """Whether ``Double.parseDouble`` takes it: blanks around it, ``NaN``, ``1d`` and hexadecimal ones too; no
    underscores, no ``inf``.
    """
    return _DOUBLE.fullmatch(trim(text)) is not None


def is_url_decodable(name: str) -> bool:
    """Whether ``Sanitizer.desanitize`` (``URLDecoder``) takes it: each % has its two hexadecimal digits. What they
    spell need not be UTF-8.
    """
    return _BROKEN_ESCAPE.search(name) is None


def is_java_base64(text: str) -> bool:
    """Whether ``Base64.getDecoder`` takes it. Padding may be left out, but not be wrong."""
    bare = text.rstrip("=")
    padding = len(text) - len(bare)
    return (
        _BASE64.fullmatch(bare) is not None
        and len(bare) % 4 != 1
        and (not padding or (padding <= 2 and len(text) % 4 == 0))
    )


def is_kafka_uuid(text: str) -> bool:
    """Whether ``Uuid.fromString`` takes it: 16 bytes in URL-safe base64."""
    return _UUID.fullmatch(text) is not None


def utf8_length(text: str) -> int:
    """The bytes of ``String.getBytes(UTF_8)``, to which half a surrogate pair is one."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def is_java_int(value: object) -> TypeGuard[int]:
    """Whether a JSON value is what Kafka's ``DecodeInt`` takes: a whole number of 32 bits, no text and no fraction."""
    return type(value) is int and value in INT_RANGE


def is_java_long(value: object) -> TypeGuard[int]:
    """The same of 64 bits (``DecodeLong``)."""
    return type(value) is int and value in LONG_RANGE


class NotJson(ValueError):
    """The data is no JSON. Kafka's ``Json.parseBytes`` then gives nothing, and what reads the znode takes
    it as empty.
    """


def parse_json(data: bytes) -> Any:
    """The JSON value with which the data begins, as Jackson reads it: what stands behind it is not looked at. None
    where there is nothing but blanks.

    Raises NotJson, which never quotes the data.
    """
    text = data.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape").lstrip(" \t\r\n")
    if not text:
        return None
    try:
        value, end = _decoder.raw_decode(text)
    except (ValueError, RecursionError):
        raise NotJson("not JSON") from None
    if _NOT_UTF_8.search(text, 0, end):
        raise NotJson("not UTF-8")
    if not isinstance(value, str | list | dict) and text[end : end + 1].strip(" \t\r\n"):
        raise NotJson("not JSON")  # what stands alone ends with a blank
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _number(text: str) -> int:
    """Jackson takes no number of more than 1,000 digits (``StreamReadConstraints``), and Python none of 4,300."""
    if len(text) - (text[0] == "-") > 1_000:
        raise ValueError("too long a number")
    return int(text)


_decoder = json.JSONDecoder(parse_constant=_refuse, parse_int=_number)
_NOT_UTF_8 = re.compile("[\udc80-\udcff]")
"""What ``surrogateescape`` puts in the place of such bytes."""
