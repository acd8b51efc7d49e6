"""Records of what each step observed and did. Records are only appended, each with the digest of the one before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

FIRST = "0" * 64
"""The previous digest of a run's first record."""


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    """One record. ``digest``: SHA-256 over sequence, previous digest, time and body, as canonical JSON. ``at``: when it
    was written, ISO 8601, UTC.
    """

    sequence: int
    previous: str
    at: str
    body: Mapping[str, Any]
    digest: str

    def to_line(self) -> str:
        """One line of JSON, without a line break inside."""
        return json.dumps(
            {
                "sequence": self.sequence,
                "previous": self.previous,
                "at": self.at,
                "body": self.body,
                "digest": self.digest,
            },
            sort_keys=True,
            separators=(",", ":"),
        )

    @staticmethod
    def from_line(line: str) -> EvidenceRecord:
        """The record in this line. Raises ValueError if the line is no record."""
        try:
            data = json.loads(line)
            record = EvidenceRecord(data["sequence"], data["previous"], data["at"], data["body"], data["digest"])
        except (KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"not an evidence record: {type(error).__name__}: {error}") from None
        texts = (record.previous, record.at, record.digest)
        if (
            not isinstance(record.sequence, int)
            or not isinstance(record.body, dict)
            or not all(isinstance(t, str) for t in texts)
        ):
            raise ValueError("not an evidence record: a field has the wrong type")
        when = datetime.fromisoformat(record.at)
        if when.tzinfo is None or when.year < 2000:
            raise ValueError("not an evidence record: it has no time")
        return record


def make_record(previous: EvidenceRecord | None, body: Mapping[str, Any], *, at: datetime) -> EvidenceRecord:
    """The record after ``previous`` (None: the first record). The body becomes plain JSON; values that JSON can't hold
    become text.
    """
    plain = json.loads(json.dumps(body, default=str))
    sequence, digest = (0, FIRST) if previous is None else (previous.sequence + 1, previous.digest)
    when = at.astimezone(UTC).isoformat()
    return EvidenceRecord(sequence, digest, when, plain, _digest(sequence, digest, when, plain))


def _digest(sequence: int, previous: str, at: str, body: Mapping[str, Any]) -> str:
    return hashlib.sha256(
        json.dumps([sequence, previous, at, body], sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


@dataclass(frozen=True, slots=True)
class Break:
    """Where a run's chain is broken. ``place`` counts records from 0; all records before it are unchanged."""

    place: int
    problem: str

    def __str__(self) -> str:
        return f"record {self.place} {self.problem}"


def find_break(records: Sequence[EvidenceRecord]) -> Break | None:
    """The first record that breaks the chain; None if every record is unchanged and none is missing before the last.

    Missing last records leave an unbroken chain: only a digest kept elsewhere shows them (``lacks``).
    """
    previous = FIRST
    for place, record in enumerate(records):
        if record.sequence != place or record.previous != previous:
            return Break(place, "does not follow the one before it: a record was removed, inserted or reordered")
        if record.digest != _digest(record.sequence, record.previous, record.at, record.body):
            return Break(place, "was altered after it was written")
        previous = record.digest
    return None


def lacks(records: Sequence[EvidenceRecord], anchor: str) -> str | None:
    """Why the chain does not hold ``anchor``, the digest of a record that somebody noted; None if it does. Later
    records may follow it.
    """
    if any(record.digest == anchor for record in records):
        return None
    return (
        f"no record has the digest {anchor} that was noted: records were cut off at the end, or the whole chain was"
        " written anew"
    )
