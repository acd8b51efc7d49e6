"""Versions of Kafka and of Java, as numbers and in words."""

from __future__ import annotations

import re


def version_parts(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def name_versions(read: dict[int, str]) -> str:
    return "Kafka " + ", ".join(sorted(set(read.values())))


def java_release(version: str) -> int:
    """The release of a Java version: 8 for ``1.8.0_402``, 17 for ``17.0.9``, 0 if there is no number."""
    numbers = version_parts(version)
    return 0 if not numbers else numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]
