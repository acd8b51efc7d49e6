"""A parity report as a file."""

from __future__ import annotations

import json
from pathlib import Path

from kraft_runbook.io.private_file import write_private
from kraft_runbook.parity.comparison import ParityReport


def write_report(path: Path, report: ParityReport) -> None:
    """Write the report as JSON, the whole file or nothing, for its owner alone."""
    write_private(path, json.dumps(report.to_dict(), indent=1) + "\n")


def read_report(path: Path) -> ParityReport:
    """A report as it was written. Raises ValueError where its digest does not fit."""
    return ParityReport.from_dict(json.loads(path.read_text()))
