"""Properties files as a person may see them: the values of sensitive keys hidden.

The host's own file may hold secrets that someone wrote by hand, so they are hidden before anything leaves the host.
``SENSITIVE`` and ``HARMLESS`` say the same as ``kraft_runbook.cluster.is_sensitive``; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

SENSITIVE = re.compile(r"(password|secret|\.jaas\.config$|private\.key|keystore\.key$|credential)", re.IGNORECASE)
HARMLESS = (".cipher.algorithm", ".iterations", ".key.length", ".keyfactory.algorithm")
HIDDEN = "<set>"
REFERENCE = re.compile(r"\$\{[A-Za-z0-9_.-]+:[^{}]*\}")
_KEY = re.compile(r"((?:\\.|[^\s=:\\])+)\s*[=:]?\s*(.*)", re.DOTALL)
_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\$")
_IN_A_LOG = re.compile(r"((?:password|secret|credential|jaas\.config)[\w.\-]*[\"']?\s*[=:]\s*)(?!\[hidden\])\S.*", re.IGNORECASE)


def is_sensitive(key: str) -> bool:
    return bool(SENSITIVE.search(key)) and not key.endswith(HARMLESS)


def logical_lines(text: str) -> Iterator[str]:
    """The lines of a properties file, a continued one joined with its following lines (java.util.Properties)."""
    held = ""
    for line in text.splitlines():
        part = line.lstrip() if held else line
        if not held and part.lstrip()[:1] in ("#", "!"):
            yield part
        elif _CONTINUED.search(part):
            held += part[:-1]
        else:
            yield held + part
            held = ""
    if held:
        yield held


def read(text: str) -> dict[str, str]:
    """Keys and values; those of sensitive keys hidden. The last of a repeated key counts."""
    found = {}
    for line in logical_lines(text):
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        match = _KEY.match(stripped)
        if match:
            key, value = _plain(match.group(1)), _plain(match.group(2))
            found[key] = HIDDEN if is_sensitive(key) else value
    return found


def shown(text: str) -> str:
    """The text for a diff. References to a config provider (``${secrets:/path:key}``) hold no secret and stay."""
    return "".join(f"{_shown_line(line)}\n" for line in logical_lines(text))


def _shown_line(line: str) -> str:
    stripped = line.strip()
    body = stripped.lstrip("#! ")
    match = _KEY.match(body)
    if not match or not is_sensitive(_plain(match.group(1))) or REFERENCE.fullmatch(match.group(2)) or not match.group(2):
        return line
    return f"{stripped[: len(stripped) - len(body)]}{match.group(1)}={HIDDEN}"


def shown_log(line: str) -> str:
    """A line of a log with anything that looks like a secret's value hidden (Kafka itself prints ``[hidden]``)."""
    return _IN_A_LOG.sub(rf"\1{HIDDEN}", line)


def _plain(value: str) -> str:
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t", "r": "\r"}.get(m.group(1), m.group(1)), value)
