"""A parity report as a file."""

from __future__ import annotations

import json
import os
from pathlib import Path

from kraft_runbook.metadata.comparison import ParityReport


def write_report(path: Path, report: ParityReport) -> None:
    """Write the report as JSON, the whole file or nothing."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    draft.write_text(json.dumps(report.to_dict(), indent=1) + "\n")
    draft.replace(path)


def read_report(path: Path) -> ParityReport:
    """A report as it was written. Raises ValueError where its digest does not fit."""
    return ParityReport.from_dict(json.loads(path.read_text()))
