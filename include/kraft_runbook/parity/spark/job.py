"""The comparison as a Spark job, for spark-submit (and Airflow's SparkSubmitOperator) or plain Python.

``job.py --cluster NAME --clusters-dir DIR --output FILE [--baseline FILE] [--save-proven FILE]``

Exit codes: 0 MATCH, 1 MISMATCH, 2 INCONCLUSIVE, 3 an error, said on standard error with its way out. The report is
written whole or not at all.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.parity.comparison import Verdict
from kraft_runbook.parity.report_file import write_report
from kraft_runbook.parity.spark.full_comparison import run_parity

EXIT_CODES = {Verdict.MATCH: 0, Verdict.MISMATCH: 1, Verdict.INCONCLUSIVE: 2}
EXIT_ERROR = 3


def main(arguments: list[str] | None = None) -> int:
    """Run once; the exit code says how it went."""
    options = _parser().parse_args(arguments)
    try:
        spec = load_cluster(options.cluster, directory=options.clusters_dir, environment=os.environ)
        report = run_parity(
            spec, secrets=environment_secrets(), baseline=options.baseline, save_proven=options.save_proven
        )
        write_report(options.output, report)
    except RunbookError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_ERROR
    print(report.render_text())
    return EXIT_CODES[report.verdict]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Compare ZooKeeper with the metadata log")
    parser.add_argument("--cluster", required=True, help="the cluster file's name, without .yaml")
    parser.add_argument("--clusters-dir", required=True, type=Path, help="the directory of the cluster files")
    parser.add_argument("--output", required=True, type=Path, help="where the report goes, as JSON")
    parser.add_argument(
        "--baseline",
        "--against-baseline",
        type=Path,
        help="after finalization: the state that the last MATCH proved, to compare with in ZooKeeper's place",
    )
    parser.add_argument(
        "--save-proven",
        type=Path,
        action="append",
        default=[],
        help="where a MATCH in dual write leaves the proven state",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
