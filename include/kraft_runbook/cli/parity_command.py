"""``kraft-runbook parity``: whether ZooKeeper and the metadata log hold the same. Changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kraft_runbook.cli.looking import load
from kraft_runbook.cli.options import CANT_TELL, FINE, NO, AsJson, ClusterName, ClustersDir
from kraft_runbook.cli.outputs import to_json
from kraft_runbook.cli.progress import reading
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.parity.parity_report import Verdict as ParityVerdict


def parity_command(
    cluster: ClusterName,
    clusters_dir: ClustersDir = None,
    as_json: AsJson = False,
    baseline: Annotated[
        Path | None, typer.Option(help="After finalization: the proven state to compare with, in ZooKeeper's place.")
    ] = None,
    save_proven: Annotated[
        list[Path] | None,
        typer.Option(help="Where a MATCH in dual write leaves the proven state: --since and --baseline go on from it."),
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option(help="Compare only what changed since that full comparison (--save-proven); without Spark."),
    ] = None,
) -> None:
    """Compare the metadata in ZooKeeper with that in KRaft, by Spark; or what changed since then."""
    spec = load(cluster, clusters_dir)
    if since is not None:
        from kraft_runbook.parity.since import compare_since

        with reading(f"comparing what changed in {spec.name}"):
            report = compare_since(spec, since, secrets=environment_secrets())
    else:
        from kraft_runbook.parity.spark.full_comparison import (
            run_parity,
        )  # pyspark takes a second to import, and only this needs it

        with reading(f"comparing ZooKeeper with the metadata log of {spec.name}"):
            report = run_parity(spec, secrets=environment_secrets(), baseline=baseline, save_proven=save_proven or ())
    typer.echo(to_json("parity", report) if as_json else report.render_text())
    raise typer.Exit({ParityVerdict.MATCH: FINE, ParityVerdict.MISMATCH: NO}.get(report.verdict, CANT_TELL))
