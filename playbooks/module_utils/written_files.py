"""What this tool wrote last into a file of a node, recorded beside the file: so a change by another hand is seen before
it is written over.

The record, ``.<file>.kraft-runbook`` with mode 0600, holds the text with the values of secrets hidden, and of each
property's value a salted digest. Where there is no record, nothing is claimed.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import secrets

from ansible.module_utils.kafka_host import HostError, read_bytes, write_whole
from ansible.module_utils.properties_text import properties_of, shown

SHOWN_LINES = 40
STOP_IT = "stop whatever else writes it, such as configuration management"


def record_of(path: str) -> str:
    """The path of a file's record."""
    return os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.kraft-runbook")


class Written:
    """What was written last. ``salt``: of the digests. ``whole``: digests of the texts that count as this tool's: two
    while a file is being replaced.
    """

    def __init__(self, salt: str, whole: list, values: dict, text: str) -> None:
        self.salt = salt
        self.whole = whole
        self.values = values
        self.text = text

    @classmethod
    def of(cls, content: bytes) -> Written:
        salt = secrets.token_hex(16)
        values = {key: _digest(salt, value) for key, value in _properties(content).items()}
        return cls(salt, [_digest(salt, content.decode("latin-1"))], values, told(content))

    def is_of(self, content: bytes) -> bool:
        return _digest(self.salt, content.decode("latin-1")) in self.whole

    def changed_keys(self, content: bytes) -> list:
        """The properties whose values in that text are others than were written."""
        now = {key: _digest(self.salt, value) for key, value in _properties(content).items()}
        return sorted(key for key in now.keys() | self.values.keys() if now.get(key) != self.values.get(key))


def read_record(path: str) -> Written | None:
    """The record of a file; None where there is none, or none that can be understood. Raises OSError, HostError."""
    found = read_bytes(record_of(path))
    try:
        held = json.loads(found[0]) if found else None
        return Written(held["salt"], held["whole"], held["values"], held["text"]) if held else None
    except (ValueError, KeyError, TypeError):
        return None


def others_change(path: str, found: bytes) -> list | None:
    """The lines of a diff from what was written last to what the file holds, secrets hidden; None where this tool wrote
    it, or never did. Empty where only hidden values or the order differ.
    """
    record = read_record(path)
    if record is None or record.is_of(found):
        return None
    again = read_bytes(path)  # another node's step may have written a file that nodes of one host share
    if again is None or record.is_of(again[0]):
        return None
    found = again[0]
    lines = difflib.unified_diff(record.text.splitlines(), told(found).splitlines(), lineterm="", n=0)
    lines = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    before, now = (properties_of(text) for text in (record.text, told(found)))
    hidden = [key for key in record.changed_keys(found) if key in before and before[key] == now.get(key)]
    lines += [f"  {key}: its value, which is not shown" for key in hidden]
    lines = lines or ["  only the order of its lines, or their ends"]
    return [*lines[:SHOWN_LINES], *([f"  … {len(lines) - SHOWN_LINES} more"] if len(lines) > SHOWN_LINES else [])]


def require_own(path: str, found: bytes, wanted: bytes | None) -> None:
    """Raise HostError where another hand changed the file since this tool wrote it. ``wanted``: what is to be written;
    a change that it has too is no objection.
    """
    lines = others_change(path, found)
    if lines is None:
        return
    if wanted is not None:
        changed = read_record(path).changed_keys(found)
        held, asked = _properties(found), _properties(wanted)
        if changed and all(held.get(key) == asked.get(key) for key in changed):
            return
    raise HostError(
        "\n".join((f"another hand changed {path} since this tool wrote it (-: as written, +: as it is):", *lines)),
        f"{STOP_IT}; then take the change out of the file, or put it into the cluster file and, where the step still"
        f" stops, remove {record_of(path)} on the host: then the file counts as read. Run the step again"
        " afterwards",
    )


def require_nothing_lost(path: str, found: bytes, wanted: bytes) -> None:
    """Raise HostError where a file that this tool never wrote holds properties that are not to be written: whoever
    keeps them there needs them. No value is told.
    """
    lost = sorted(_properties(found).keys() - _properties(wanted).keys())
    if lost and read_record(path) is None:
        raise HostError(
            f"{path} was not written by this tool, and holds what would be lost, as it is written whole:"
            f" {', '.join(lost)}",
            "name these under 'secrets' in the cluster file, or move them to another file and lead there what reads"
            " them, or name another secrets_file, or take out what nothing reads; then run the step again",
        )


def record(path: str, content: bytes, before: bytes | None = None) -> None:
    """Record what is written. ``before``: what the file holds until it is replaced, which counts as this tool's too:
    whoever is killed in between has changed nothing by another hand.
    """
    made = Written.of(content)
    if before is not None:
        made.whole.append(_digest(made.salt, before.decode("latin-1")))
    held = {"salt": made.salt, "whole": made.whole, "values": made.values, "text": made.text}
    write_whole(record_of(path), json.dumps(held).encode(), 0o600, (os.geteuid(), os.getegid()))


def settle(path: str, content: bytes) -> None:
    """Leave that text alone in the record, where it is not so already. Without a record none is made."""
    found = read_record(path)
    if found is not None and not (found.is_of(content) and len(found.whole) == 1):
        record(path, content)


def told(content: bytes) -> str:
    """The text as it may be shown. A byte that is not UTF-8, which Ansible would refuse, is the character that Kafka
    reads: Latin-1.
    """
    text = content.decode("utf-8", "surrogateescape")
    return "".join(chr(ord(c) - 0xDC00) if "\udc80" <= c <= "\udcff" else c for c in shown(text))


def _properties(content: bytes) -> dict:
    return properties_of(content.decode("latin-1"))


def _digest(salt: str, text: str) -> str:
    return hashlib.sha256(f"{salt}:{text}".encode()).hexdigest()
