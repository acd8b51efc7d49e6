"""Properties files as a person may see them: the values of sensitive keys hidden.

The host's own file may hold secrets that someone wrote by hand, so they are hidden before anything leaves the host.
``SENSITIVE``, ``OF_PROVIDER``, ``SECRET_OF_PROVIDER``, ``OPEN_OF_PROVIDER``, ``HARMLESS`` and ``SECRET_VALUE`` say the
same as ``kraft_runbook.cluster.sensitive``; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

SENSITIVE = re.compile(
    r"(pass(word|wd|phrase)|pwd|secret|credential|\.jaas\.conf(ig)?$|private\.key|keystore\.key$|token\.master\.key$"
    r"|keystore\.certificate\.chain$|truststore\.certificates$|(^|[._\-])(pass|pw|token|license|user\.info)$"
    r"|(api|access|account|shared|encryption|signing)[._\-]?key|connection[._\-]?string)",
    re.IGNORECASE,
)
OF_PROVIDER = re.compile(r"config\.providers\..+?\.param\.")
SECRET_OF_PROVIDER = re.compile(r"(token|password|secret|key)$", re.IGNORECASE)
OPEN_OF_PROVIDER = re.compile(r"[._\-](prefix|ttl[._\-]ms|file|path|type|version)$", re.IGNORECASE)
HARMLESS = (".cipher.algorithm", ".iterations", ".key.length", ".keyfactory.algorithm", ".class", ".class.name")
SECRET_VALUE = re.compile(
    r"://[^/\s:@,]*:(?!\$\{)[^/\s@,]+@|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|(?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|(?:api|access|account|shared|private)[._\-]?key)"
    r"[\"']?\s*=\s*[\"']?(?!\$\{)[^\s\"';,&]",
    re.IGNORECASE,
)
HIDDEN = "<set>"
REFERENCE = re.compile(r"\$\{[A-Za-z0-9_.-]+:[^{}]*\}")
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_LINE_END = re.compile(r"\r\n|\n|\r")
_BLANK = " \t\f"
_IN_A_LOG = re.compile(
    r"((?:pass(?:word|wd|phrase)|pwd|secret|credential|[._\-]token|jaas\.conf|connection[._\-]?string"
    r"|(?:private|keystore|master|api|access|account)[._\-]?key)[\w.\-]*[\"']?\s*[=:]\s*)(?!\[hidden\])\S.*",
    re.IGNORECASE,
)


def is_sensitive(key: str) -> bool:
    own = OF_PROVIDER.match(key)
    name = key[own.end() :] if own else key
    if own and (OPEN_OF_PROVIDER.search(name) or SECRET_OF_PROVIDER.search(name)):
        return not OPEN_OF_PROVIDER.search(name)
    return bool(SENSITIVE.search(name)) and not name.endswith(HARMLESS)


def is_secret(key: str, value: str) -> bool:
    """Whether the value must stay on its host: by its property's name, or by itself (a URL with a password …)."""
    if REFERENCE.fullmatch(value.strip()):
        return False
    return is_sensitive(key) or bool(SECRET_VALUE.search(value))


def logical_lines(text: str) -> Iterator[str]:
    """The lines of a properties file, a continued one joined with its following lines (java.util.Properties); comments
    and blank lines as they are.
    """
    held = ""
    for natural in _LINE_END.split(text):
        line = natural.lstrip(_BLANK)
        if not held and (not line or line[0] in "#!"):
            yield natural
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


def split(line: str) -> tuple[str, str, str]:
    """A logical line's key, what separates it from its value, and its value: all as they are written."""
    key = _KEY.match(line).group(0)  # type: ignore[union-attr]
    separator = _SEPARATOR.match(line[len(key) :]).group(0)  # type: ignore[union-attr]
    return key, separator, line[len(key) + len(separator) :]


def key_of(line: str) -> str:
    """The property's name on a logical line; empty for a comment or a blank line."""
    return "" if line.lstrip(_BLANK)[:1] in ("", "#", "!") else plain(split(line)[0])


def properties_of(text: str) -> dict[str, str]:
    """Keys and values as Java reads them; the last of a repeated key counts. Values are not hidden: nothing of this may
    leave the host.
    """
    found = {}
    for line in logical_lines(text):
        if line.lstrip(_BLANK)[:1] not in ("", "#", "!"):  # key_of would take an empty name for none
            key, _, value = split(line)
            found[plain(key)] = plain(value)
    return found


def read(text: str) -> dict[str, str]:
    """Keys and values, trimmed as Kafka trims them (ConfigDef.parseType); secrets hidden. References to a config
    provider stay.
    """
    return {key: HIDDEN if is_secret(key, value) else value.strip() for key, value in properties_of(text).items()}


def shown(text: str) -> str:
    """The text for a diff. References to a config provider (``${secrets:/path:key}``) hold no secret and stay.

    Java joins no comments. But where somebody commented a property out, its further lines hold the rest of its value.
    """
    told: list[str] = []
    goes_on = False
    for line in logical_lines(text):
        comment = line.lstrip(_BLANK)[:1] in ("#", "!")
        there = f"# {HIDDEN}" if comment and goes_on else shown_log(_shown_line(line)) if comment else _shown_line(line)
        goes_on = comment and there != line and line.rstrip().endswith("\\")
        told.append(f"{there}\n")
    return "".join(told)


def _shown_line(line: str) -> str:
    stripped = line.strip()
    body = stripped.lstrip("#! ")
    key, _, value = split(body)
    if not value or not is_secret(plain(key), plain(value)):
        return line
    if body != stripped and not is_sensitive(plain(key)):  # a sentence has no key
        found = SECRET_VALUE.search(line)
        return line[: found.start()] + HIDDEN if found else line
    return f"{stripped[: len(stripped) - len(body)]}{key}={HIDDEN}"


def shown_log(line: str) -> str:
    """A line of a log with anything that looks like a secret's value hidden (Kafka itself prints ``[hidden]``)."""
    return _IN_A_LOG.sub(rf"\1{HIDDEN}", line)


def plain(text: str) -> str:
    """Without its escapes; a character beyond the sixteenth bit is two of them."""

    def one(match: re.Match) -> str:
        escape = match.group(1)
        return (
            chr(int(escape[1:], 16))
            if len(escape) == 5
            else {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}.get(escape, escape)
        )

    return _ESCAPE.sub(one, text).encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
