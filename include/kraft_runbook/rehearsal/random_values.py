"""Random values of the shape of what they replace: a credential, an encoded password, any other text.

What Kafka reads, it reads in the new value too; what it can't read there it can't read here. Nothing of the old value
is left but its form: lengths, punctuation, iterations, algorithms.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Callable

from kraft_runbook.metadata.znodes.password_encoder import (
    OPEN_FIELDS,
    Undecodable,
    decode_password,
    encode_password,
    length_of,
)

Random = Callable[[int], bytes]
"""So many random bytes."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_OPEN = re.compile(r"[A-Za-z0-9/]{0,40}")
_LONGEST_PASSWORD = 65_536
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def new_cluster_id() -> str:
    """As Kafka makes one (``Uuid.randomUuid``): 16 random bytes in URL-safe base64, none that begins with a dash."""
    while True:
        text = base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text


def scrambled(text: str, random: Random = secrets.token_bytes) -> str:
    """Each letter replaced by a random one of its case, each digit by a digit; what else stands there stays. Never the
    text itself, unless it has neither.

    Letters and digits outside ASCII become é and ٣.
    """
    drawn = random(len(text))
    made = "".join(map(_another, text, drawn))
    if made == text and any(each.isascii() and each.isalnum() for each in text):
        return scrambled(text, random)
    return made


def _another(each: str, drawn: int) -> str:
    if not each.isascii():
        return "٣" if each.isdecimal() else "é" if each.isalnum() else each
    if each.isdigit():
        return str(drawn % 10)
    if each.isalpha():
        letter = _LETTERS[drawn % 26]
        return letter.upper() if each.isupper() else letter
    return each


def no_number(text: str) -> str:
    """A text of the same length that Java takes for no number, whatever the one it replaces was."""
    return "q" * max(1, len(text))


def credential(value: str, random: Random = secrets.token_bytes) -> str:
    """A SCRAM credential (``salt=…,stored_key=…,server_key=…,iterations=…``) with random keys of the same lengths. The
    iterations stay.
    """
    return ",".join(_field(token, random) for token in value.split(","))


def _field(token: str, random: Random) -> str:
    name, equals, value = token.partition("=")
    if not equals or name not in ("salt", "stored_key", "server_key", "iterations"):
        return scrambled(token, random)
    if name == "iterations" and _WHOLE.fullmatch(value):
        return token
    return f"{name}={_base64(value, random)}"


def _base64(value: str, random: Random) -> str:
    """As long as the value where it is base64 as Java's encoder writes it; else its letters and digits replaced."""
    try:
        decoded = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return scrambled(value, random)
    if base64.b64encode(decoded).decode() != value:
        return scrambled(value, random)
    return base64.b64encode(random(len(decoded))).decode()


def encoded_password(
    name: str, value: str, *, secret: str, source_secret: str | None, random: Random = secrets.token_bytes
) -> str:
    """A stored password (``EncryptingPasswordEncoder``) that ``secret`` opens if ``source_secret`` opens the one it
    replaces, and does not if not. ``source_secret`` None: it is taken for one that is opened. ``name``: the config's.
    """
    try:
        plain = _password(name, length_of(value), random)
        made = encode_password(plain, secret, like=value, random=random)
    except Undecodable:
        return _malformed_password(value, random)
    if source_secret is None or _opens(value, source_secret):
        return made
    while _opens(made, secret):
        made = encode_password(plain, random(32).hex(), like=value, random=random)
    return made


def _opens(value: str, secret: str) -> bool:
    try:
        decode_password(value, secret)
    except Undecodable:
        return False
    return True


def _password(name: str, length: int, random: Random) -> str:
    """As long as the old one; a login line is one again, and no shorter, for what reads it parses it."""
    if name.endswith("sasl.jaas.config"):
        return (
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="rehearsal"'
            f' password="{random(16).hex()}";'
        ).ljust(min(length, _LONGEST_PASSWORD))
    return scrambled("x" * max(1, min(length, _LONGEST_PASSWORD)), random) if length else ""


def _malformed_password(value: str, random: Random) -> str:
    """What says how it was encoded stays; of all else the letters and digits are replaced."""
    return ",".join(_part(part, random) for part in value.split(","))


def _part(part: str, random: Random) -> str:
    name, colon, value = part.partition(":")
    known = (*OPEN_FIELDS, "passwordLength", "salt", "encryptedPassword", "initializationVector")
    if not colon or name not in known:
        return scrambled(part, random)
    if name in (*OPEN_FIELDS, "passwordLength") and _OPEN.fullmatch(value):
        return part
    return f"{name}:{_base64(value, random)}"
