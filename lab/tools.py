"""Kafka's own command-line tools, for what neither Python client can do."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed


def run_class(spec: ClusterSpec, class_name: str, arguments: Sequence[str], *, timeout: float = 120) -> str:
    """Run one main class of the lab's Kafka; its standard output.

    Raises StepFailed with the end of its standard error (never its output: a token's tool prints the token).
    """
    script = Path(spec.kafka.home) / "bin" / "kafka-run-class.sh"
    tool = class_name.rpartition(".")[2]
    try:
        done = subprocess.run(
            [str(script), class_name, *arguments], capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        raise StepFailed(
            f"{tool} did not end within {timeout:g} s", way_out="python -m lab status, then seed again"
        ) from None
    if done.returncode != 0:
        raise StepFailed(
            f"{tool} failed with exit code {done.returncode}: {done.stderr.strip()[-400:]}",
            way_out="python -m lab status, then seed again",
        )
    return done.stdout
