"""Versions of Kafka as software names itself, in the one form in which they are compared. Pure.

Confluent Platform has numbers of its own: 7.9 is Kafka 3.9, 8.0 is Kafka 4.0 (its table of supported versions). Its
last number is its own too: nothing says which release of Kafka 3.9 holds what 7.9.2 holds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

VERSION_PATTERN = r"^\d+\.\d+\.\d+(-c(cs|e))?$"
"""What a cluster file may name: Apache Kafka's 3.9.2, or Confluent's 7.9.2-ccs (community) and 7.9.2-ce (server)."""
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
_CONFLUENT = re.compile(r"-c(cs|e)\b")
_FIRST_OF_CONFLUENT_ALONE = 5
"""Apache Kafka has no version of its own from here on."""


@dataclass(frozen=True, slots=True)
class KafkaVersion:
    """``text``: as the software names itself. ``numbers``: those of the text; none where it holds no version."""

    text: str
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> KafkaVersion:
        """Of a version of Kafka, or of its protocol (``3.9-IV0``): whatever follows the numbers is not compared."""
        found = _NUMBERS.match(text.strip())
        return cls(text, tuple(int(each) for each in found.group().split(".")) if found else ())

    @property
    def is_confluents(self) -> bool:
        return bool(_CONFLUENT.search(self.text))

    @property
    def release(self) -> tuple[int, int]:
        """Kafka's major and minor version, of Confluent's software too; (0, 0) where the text names none."""
        if len(self.numbers) < 2:
            return (0, 0)
        major, minor = self.numbers[:2]
        if not self.is_confluents:
            return (major, minor)
        if major == 6:
            return (2, 6 + minor)
        return (major - 4, minor) if major > 6 else (major - 3, minor)

    @property
    def minor(self) -> str:
        """Kafka's release as its protocol and its levels are named: ``3.9``."""
        return "{}.{}".format(*self.release)

    @property
    def patch(self) -> int | None:
        """Which release of that minor version of Kafka; None where Confluent counts, or the text does not say."""
        return self.numbers[2] if len(self.numbers) > 2 and not self.is_confluents else None

    def may_be(self, text: str) -> bool:
        """Whether this is that release of Apache Kafka, such as 4.0.0, or Confluent's software that may hold it: any of
        the same minor version, for its last number does not say.
        """
        other = KafkaVersion.of(text)
        return self.release == other.release and self.patch in (None, other.patch)

    @property
    def is_misnamed(self) -> bool:
        """Whether it is a number of Confluent's without the ending that its software shows."""
        return not self.is_confluents and bool(self.numbers) and self.numbers[0] >= _FIRST_OF_CONFLUENT_ALONE

    def newer_than(self, other: KafkaVersion) -> bool:
        """By Kafka's release; within one by their own numbers. Of two distributions in one release neither is newer."""
        if self.release != other.release or self.is_confluents != other.is_confluents:
            return self.release > other.release
        return self.numbers > other.numbers


def release_of(text: str) -> tuple[int, int]:
    """``KafkaVersion.release`` of a text."""
    return KafkaVersion.of(text).release
