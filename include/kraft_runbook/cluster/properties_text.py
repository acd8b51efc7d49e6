"""Properties files as ``java.util.Properties`` writes and reads them. Pure.

Kafka reads its configuration as Latin-1 (``Utils.loadProps``) and its secrets file as UTF-8 (``FileConfigProvider``),
so what is written here is ASCII: everything else is ``\\uXXXX``, which both read. The hosts read files by the same rule
(``playbooks/module_utils/properties_text.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"}
_PLAIN = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"
_LINE_END = re.compile(r"\r\n|\n|\r")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")


def render_properties(properties: Mapping[str, str], *, header: str) -> str:
    """The text of a properties file, one key a line, in the mapping's order. ASCII alone."""
    lines = [f"# {escaped(line)}" for line in header.splitlines()]
    lines += [f"{_escaped_key(key)}={escaped(value)}" for key, value in properties.items()]
    return "\n".join(lines) + "\n"


def render_secrets(values: Mapping[str, str]) -> str:
    """The text of a host's secrets file (``spec.secrets_file``): one line a property, as Kafka's ``FileConfigProvider``
    reads it.
    """
    return render_properties(
        dict(sorted(values.items())), header="Read by Kafka's FileConfigProvider. Keep it to its owner (0600)."
    )


def escaped(value: str) -> str:
    """A value as it stands in a file. A blank at its beginning is escaped, or Java would skip it."""
    text = "".join(_escaped_character(each) for each in value)
    return f"\\{text}" if text.startswith(" ") else text


def _escaped_key(key: str) -> str:
    return "".join(f"\\{each}" if each in " =:#!" else _escaped_character(each) for each in key)


def _escaped_character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))


def parse_properties(text: str) -> dict[str, str]:
    """The properties of a file's text as java.util.Properties reads them; the last of a repeated key counts.

    A file's bytes are to be decoded as Latin-1 first. A ``\\u`` without four digits, which Java refuses, stays as it
    is.
    """
    found: dict[str, str] = {}
    for line in logical_lines(text):
        raw = _KEY.match(line)
        key = raw.group(0) if raw else ""
        rest = line[len(key) :]
        separator = _SEPARATOR.match(rest)
        found[unescaped(key)] = unescaped(rest[separator.end() :] if separator else rest)
    return found


def logical_lines(text: str) -> Iterator[str]:
    """The lines with a property: continued lines joined, without comments, blank lines and indentation."""
    held = ""
    for natural in _LINE_END.split(text):
        line = natural.lstrip(_BLANK)
        if not held and (not line or line[0] in "#!"):
            continue
        whole = held + line
        if (len(whole) - len(whole.rstrip("\\"))) % 2:
            held = whole[:-1]
        else:
            held = ""
            if whole:
                yield whole
    if held:
        yield held


def unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        escape = match.group(1)
        return chr(int(escape[1:], 16)) if len(escape) == 5 else _PLAIN.get(escape, escape)

    found = _ESCAPE.sub(plain, text)
    return found.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
