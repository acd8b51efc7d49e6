"""``compare_assignment`` as a Spark job, for spark-submit (and Airflow's SparkSubmitOperator) or plain Python.

``assignment_job.py --cluster NAME --clusters-dir DIR --plan FILE [--before FILE] --output FILE``

Exit codes: 0 as planned, 1 not as planned, 3 an error, said on standard error with its way out. The report is written
whole or not at all.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.private_file import write_private
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.compare_assignment import compare_assignment
from kraft_runbook.procedures.move_replicas import read_assignment
from kraft_runbook.reassignment.verifying import to_report

EXIT_ERROR = 3


def main(arguments: list[str] | None = None) -> int:
    """Run once; the exit code says how it went."""
    parser = argparse.ArgumentParser(description="Compare the whole assignment with a plan")
    parser.add_argument("--cluster", required=True, help="the cluster file's name, without .yaml")
    parser.add_argument("--clusters-dir", required=True, type=Path, help="the directory of the cluster files")
    parser.add_argument("--plan", required=True, type=Path, help="the plan, in the JSON of kafka-reassign-partitions")
    parser.add_argument("--before", type=Path, help="the whole assignment before the plan, in the same JSON")
    parser.add_argument("--output", required=True, type=Path, help="where the report goes, as JSON")
    options = parser.parse_args(arguments)
    try:
        spec = load_cluster(options.cluster, directory=options.clusters_dir, environment=os.environ)
        found = compare_assignment(
            spec,
            read_assignment(options.plan),
            before=read_assignment(options.before) if options.before else {},
            secrets=environment_secrets(),
        )
        write_private(options.output, to_report(found))
    except RunbookError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_ERROR
    print(found.render_text())
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
