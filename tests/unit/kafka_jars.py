"""Kafka's own jars, which some tests ask: of the version that the lab runs, from `make jars`."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.installation import JARS
from lab.layout import load


def kafka_jar(name: str) -> Path:
    """The jar of this artifact. `make test` always brings it, so a missing one fails the test that asks for it."""
    jar = JARS / f"{name}-{load().kafka.version}.jar"
    if not jar.is_file():
        pytest.fail(f"{jar} is not here: make jars")
    return jar
