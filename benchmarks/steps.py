"""Where a migration's seconds go: the tasks of the last demo by what they do.

    make demo APPROVE=auto && .venv/bin/python -m benchmarks.steps

It reads the demo's report (``build/demo-report.json``). What is not in a task lies between two: Airflow's scheduler.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.checkout import commit
from lab.layout import ROOT

KINDS = (
    (r"^preflight\.", "preflight"),
    (r"\.prove$", "gates: proofs"),
    (r"\.(approve|approve_second)$", "gates: answers"),
    (r"\.confirm$", "gates: confirmations"),
    (r"\.provision$", "provisioning of controllers"),
    (r"^roll_brokers_.*\.restart$", "restarts of brokers"),
    (r"\.restart$", "restarts of controllers"),
    (r"(\.quorum_ready|\.in_sync|^await_metadata_copy|\.caught_up|\.finalized)$", "waits"),
    (r"(^parity_|\.parity_again$)", "comparisons"),
    (r"^soak$", "the soak, its comparison included"),
    (r"", "ZooKeeper's secrets, the closing report"),
)
"""A pattern of a task's id, and what such tasks are; the first that fits counts."""
BETWEEN = "between two tasks: Airflow's scheduler"


def by_kind(report: Mapping[str, Any]) -> dict[str, tuple[int, float]]:
    """What -> how many tasks, and their seconds, the longest first; last what lies between the tasks."""
    found: dict[str, tuple[int, float]] = {}
    for step in report["steps"]:
        kind = next(kind for pattern, kind in KINDS if re.search(pattern, step["task"]))
        tasks, seconds = found.get(kind, (0, 0.0))
        found[kind] = tasks + 1, seconds + step["seconds"]
    within = sum(seconds for _, seconds in found.values())
    ordered = dict(sorted(found.items(), key=lambda each: -each[1][1]))
    return {**ordered, BETWEEN: (0, report["seconds"]["migration"] - within)}


def render(report: Mapping[str, Any]) -> str:
    """The table."""
    rows = [f"| {what} | {tasks or ''} | {seconds:.1f} |" for what, (tasks, seconds) in by_kind(report).items()]
    total = report["seconds"]["migration"]
    return "\n".join([f"{commit()}: {total:.1f} s", "", "| what | tasks | s |", "|---|---|---|", *rows])


def main(arguments: list[str] | None = None) -> int:
    """Prints the table; 1 where there is no report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steps", description=__doc__)
    parser.add_argument("--report", type=Path, default=ROOT / "build" / "demo-report.json")
    file = parser.parse_args(arguments).report
    if not file.is_file():
        print(f"error: there is no {file}; run make demo APPROVE=auto first", file=sys.stderr)
        return 1
    print(render(json.loads(file.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
