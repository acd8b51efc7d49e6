"""What the commands have in common: their options and exit codes (what each means: ``cli.app``)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kraft_runbook.operations import OPERATIONS

FINE, NO, CANT_TELL, ERROR, USAGE = 0, 1, 2, 3, 4

ClusterName = Annotated[str, typer.Option("--cluster", help="The cluster: the name of its file without .yaml.")]
ClustersDir = Annotated[
    Path | None,
    typer.Option(
        "--clusters-dir",
        help="Where the cluster files lie. Default: KRAFT_RUNBOOK_CLUSTERS, or include/clusters of this project.",
    ),
]
OperationName = Annotated[
    str, typer.Option("--operation", help=f"Of which operation: {', '.join(OPERATIONS)}. Default: migration.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON; its schema lies in docs/schemas.")]
Watch = Annotated[bool, typer.Option("--watch", help="Look again and again, until interrupted.")]
