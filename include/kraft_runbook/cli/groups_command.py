"""``kraft-runbook groups``: the consumer groups below /consumers, between ZooKeeper and Kafka. Changes nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from kraft_runbook.cli.cluster_files import clusters_directory
from kraft_runbook.cli.outputs import GroupsScanOutput, to_json
from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.groups.checks import judge
from kraft_runbook.groups.report import GroupScan
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.see_groups import scan_groups

FINE, NO, CANT_TELL = 0, 1, 2
PARTITIONS = 20
"""How many of a group are shown where all groups are."""

app = typer.Typer(help="Consumer groups that coordinate through ZooKeeper, or did. Changes nothing.")

ClusterName = Annotated[str, typer.Option("--cluster", help="The cluster: the name of its file without .yaml.")]
ClustersDir = Annotated[Path | None, typer.Option("--clusters-dir", help="Where the cluster files lie.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON; its schema lies in docs/schemas.")]


@app.callback()
def options() -> None:
    """What holds for every command of groups."""


@app.command("scan")
def scan_command(
    cluster: ClusterName,
    clusters_dir: ClustersDir = None,
    group: Annotated[list[str] | None, typer.Option("--group", help="Only this group; may be repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show each group: class, members, owners, offsets of both sides, lag, next step, what is refused and why."""
    spec = load_cluster(cluster, directory=clusters_directory(clusters_dir), environment=os.environ)
    scan = scan_groups(spec, secrets=environment_secrets(), names=group)
    missing = sorted(set(group or ()).difference(each.name for each in scan.groups))
    if missing:
        raise typer.BadParameter(
            f"there is no group {', '.join(missing)} below /consumers; without --group all are shown"
        )
    checks = judge(scan, spec)
    if as_json:
        typer.echo(to_json("groups-scan", GroupsScanOutput(scan, checks.results)))
    else:
        typer.echo(f"{scan.render_text(None if group else PARTITIONS)}\n\n{checks.render_text()}")
    raise typer.Exit(exit_code(scan))


def exit_code(scan: GroupScan) -> int:
    """No: a group needs ZooKeeper. Can't tell: of some group that is not known, or its class is UNKNOWN."""
    if any(each.needs_zookeeper for each in scan.groups):
        return NO
    unknown = any(each.needs_zookeeper is None or each.group_class is GroupClass.UNKNOWN for each in scan.groups)
    return CANT_TELL if unknown else FINE
