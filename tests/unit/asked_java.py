"""Kafka's own classes, asked by a Java program of one file."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab.installation import java

SHORT_LIVED = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Java compiles the program at each start: with these it takes half the processor time."""


def ask_java(program: Path, *arguments: str | Path, jars: Path, given: str | None = None) -> str:
    """What the program writes to standard output, with these jars on its class path. ``given``: its standard input."""
    command = [java(), *SHORT_LIVED, "-cp", f"{jars}/*", program, *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
