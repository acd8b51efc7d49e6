"""What each step saw and did: records that are only ever appended, each sealed with the digest of the one before."""

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
    """One record. ``digest``: SHA-256 over sequence, previous digest, time and body, as canonical JSON."""

    sequence: int
    previous: str
    at: str
    body: Mapping[str, Any]
    digest: str

    def to_line(self) -> str:
        """One line of JSON, without a line break inside."""
        return json.dumps(
            {"sequence": self.sequence, "previous": self.previous, "at": self.at, "body": self.body, "digest": self.digest},
            sort_keys=True,
            separators=(",", ":"),
        )

    @staticmethod
    def from_line(line: str) -> EvidenceRecord:
        """Raises ValueError where the line is no record."""
        try:
            data = json.loads(line)
            return EvidenceRecord(data["sequence"], data["previous"], data["at"], data["body"], data["digest"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"not an evidence record: {error}") from None


def make_record(previous: EvidenceRecord | None, body: Mapping[str, Any], *, at: datetime) -> EvidenceRecord:
    """The record that follows ``previous`` (None: the first). The body becomes plain JSON; what JSON can't hold is written as text."""
    plain = json.loads(json.dumps(body, default=str))
    sequence, digest = (0, FIRST) if previous is None else (previous.sequence + 1, previous.digest)
    when = at.astimezone(UTC).isoformat()
    return EvidenceRecord(sequence, digest, when, plain, _digest(sequence, digest, when, plain))


def _digest(sequence: int, previous: str, at: str, body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([sequence, previous, at, body], sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def broken_link(records: Sequence[EvidenceRecord]) -> str | None:
    """Where the chain was altered; None when every record is as it was written and none is missing before the last."""
    previous = FIRST
    for place, record in enumerate(records):
        if record.sequence != place or record.previous != previous:
            return f"record {place} does not follow the one before it: a record was removed, inserted or reordered"
        if record.digest != _digest(record.sequence, record.previous, record.at, record.body):
            return f"record {place} was altered after it was written"
        previous = record.digest
    return None
