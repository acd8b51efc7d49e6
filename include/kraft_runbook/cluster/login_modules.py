"""The login modules in a login configuration (JAAS): their classes and, apart from these, their options, which hold
passwords; and what a broker keeps of a SCRAM password.

This file stands twice, in ``playbooks/module_utils`` for the hosts and in ``kraft_runbook.cluster``; a test compares
the two.
"""

from __future__ import annotations

import hashlib
import hmac
import re

_TOKEN = re.compile(
    r"""//[^\r\n]*|/\*.*?\*/|(?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<mark>[;{}=])|(?P<word>(?:\$\{[^}]*\}|[^\s;{}="'])+)""",
    re.DOTALL,
)
_FLAGS = ("required", "requisite", "sufficient", "optional")
_CLASS = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*")


def modules_of(line: str) -> tuple[str, ...]:
    """The classes in the value of ``sasl.jaas.config`` (``JaasConfig``), in order.

    Raises ValueError where it is not understood: a class stands before one of the four control flags, and what does not
    is taken for a secret.
    """
    return tuple(_modules(_tokens(line)))


def sections_of(text: str) -> dict[str, tuple[str, ...]]:
    """The classes of each section in a login configuration's file, by the section's name. Raises ValueError."""
    tokens = _tokens(text)
    found: dict[str, tuple[str, ...]] = {}
    at = 0
    while at < len(tokens):
        if tokens[at + 1 : at + 2] != ["{"]:
            raise ValueError("a section does not begin with its name and a brace")
        try:
            end = tokens.index("}", at)
        except ValueError:
            raise ValueError("a section does not end with a brace") from None
        found[_plain(tokens[at])] = tuple(_modules(tokens[at + 2 : end]))
        at = end + (2 if tokens[end + 1 : end + 2] == [";"] else 1)
    return found


def options_of(line: str) -> dict[str, str]:
    """The options of the one login module in the value of ``sasl.jaas.config``, as Kafka reads them: these are secrets.

    Raises ValueError where the line is not understood, or names several modules, which Kafka refuses.
    """
    tokens = _tokens(line)
    if len(_modules(tokens)) != 1:
        raise ValueError("it names no login module, or several")
    rest = tokens[2:-1] if tokens[-1] == ";" else tokens[2:]
    if len(rest) % 3 or any(mark != "=" for mark in rest[1::3]):
        raise ValueError("an option is no name with = and a value")
    return {rest[at]: _plain(rest[at + 2]) for at in range(0, len(rest), 3)}


def meaning_of(key: str, value: str) -> str:
    """A property's value in one spelling: trimmed, as Kafka does; of a login its class and its options in order."""
    if not key.endswith("sasl.jaas.config"):
        return value.strip()
    try:
        module, flag = _tokens(value)[:2]
        options = options_of(value)
    except ValueError:
        return value.strip()
    return repr((module, flag.lower(), sorted(options.items())))


_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _plain(value: str) -> str:
    """Without its quotes and escapes (``StreamTokenizer``)."""
    if value[0] not in "\"'":
        return value
    return _ESCAPE.sub(lambda m: chr(int(m[1], 8)) if m[1][0].isdigit() else _ESCAPED.get(m[1], m[1]), value[1:-1])


def stored_key(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """What a broker keeps of a password (RFC 5802, ``ScramFormatter``). ``mechanism``: SCRAM-SHA-256 or -512."""
    kind = mechanism.replace("SCRAM-SHA-", "sha")
    salted = hashlib.pbkdf2_hmac(kind, password.encode("utf-8", "replace"), salt, iterations)
    return hashlib.new(kind, hmac.new(salted, b"Client Key", kind).digest()).digest()


def is_class(name: str) -> bool:
    return bool(_CLASS.fullmatch(name))


def _tokens(text: str) -> list[str]:
    """Words and marks; a quoted text is one token that begins with its quote. Comments are left out."""
    found = [each for each in _TOKEN.finditer(text) if each.lastgroup]
    return [each.group() for each in found]


def _modules(tokens: list[str]) -> list[str]:
    found: list[str] = []
    begins = True
    for at, word in enumerate(tokens):
        if not begins:
            begins = word == ";"
            continue
        flag = tokens[at + 1] if at + 1 < len(tokens) else ""
        if flag.lower() not in _FLAGS:
            raise ValueError("a login module's class and its flag (required, optional …) do not stand first")
        name = word.strip("\"'")
        if "${" in name:
            raise ValueError("a login module's class is a reference that can't be followed from here")
        if not is_class(name):
            raise ValueError("a login module's name is not a class")
        found.append(name)
        begins = False
    return found
