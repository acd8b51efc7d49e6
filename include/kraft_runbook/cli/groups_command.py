"""``kraft-runbook groups``: the consumer groups below /consumers, between ZooKeeper and Kafka. Changes nothing."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Annotated

import typer

from kraft_runbook.cli.asking import asking
from kraft_runbook.cli.looking import load
from kraft_runbook.cli.options import CANT_TELL, FINE, NO, AsJson, ClusterName, ClustersDir
from kraft_runbook.cli.outputs import GroupsScanOutput, to_json
from kraft_runbook.cli.progress import reading
from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.errors import Refused
from kraft_runbook.groups.checks import judge
from kraft_runbook.groups.moves import plan_moves
from kraft_runbook.groups.planned_offsets import Direction, parse_without
from kraft_runbook.groups.proof import prove, read_bounds
from kraft_runbook.groups.report import GroupScan
from kraft_runbook.groups.toggles.several import plan_toggles
from kraft_runbook.io.members_logs import read_logs
from kraft_runbook.io.secrets import environment_secrets

PARTITIONS = 20
"""How many of a group are shown where all groups are."""

app = typer.Typer(help="Consumer groups that coordinate through ZooKeeper, or did. Changes nothing.")


@app.callback()
def options() -> None:
    """What holds for every command of groups."""


@app.command("scan")
def scan_command(
    context: typer.Context,
    cluster: ClusterName,
    clusters_dir: ClustersDir = None,
    group: Annotated[list[str] | None, typer.Option("--group", help="Only this group; may be repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show each group: class, members, owners, offsets of both sides, lag, next step, what is refused and why."""
    spec = load(cluster, clusters_dir)
    with reading(f"reading the consumer groups of {spec.name}") as far:
        scan = asking(context).scan(spec, secrets=environment_secrets(), names=group, tell=far)
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


@app.command("plan")
def plan_command(
    context: typer.Context,
    cluster: ClusterName,
    group: Annotated[list[str], typer.Option("--group", help="A group, or a pattern of names; may be repeated.")],
    clusters_dir: ClustersDir = None,
    back: Annotated[bool, typer.Option("--back", help="From Kafka back to ZooKeeper.")] = False,
    without: Annotated[
        str,
        typer.Option(
            help="Where a partition without an offset begins: earliest, 'end at the stop', an offset, or"
            " topic-partition=offset for each. There is no default.",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show what move_consumer_group would do: the offset of each partition and where it is from, or why not."""
    spec = load(cluster, clusters_dir)
    looks = asking(context).meant(spec, group, secrets=environment_secrets())
    moves = plan_moves(looks, Direction.BACK if back else Direction.TO_KAFKA, parse_without(without))
    typer.echo(to_json("groups-plan", moves) if as_json else moves.render_text())
    raise typer.Exit(NO if moves.refused else FINE)


@app.command("toggle-plan")
def toggle_plan_command(
    context: typer.Context,
    cluster: ClusterName,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", help="A group, or a pattern of names; may be repeated. Default: migrating members."),
    ] = None,
    clusters_dir: ClustersDir = None,
    back: Annotated[bool, typer.Option("--back", help="From Kafka's assignment back to ZooKeeper's.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what toggle_consumer_group would do to a group of migrating members, or every reason against it."""
    spec = load(cluster, clusters_dir)
    ask = asking(context)
    looks = ask.meant(spec, group or [".*"], secrets=environment_secrets())
    if not group:
        looks = tuple(each for each in looks if not was_read(each.zookeeper) or each.zookeeper.migrating_ids)
    names = [each.name for each in looks]
    if names:
        time.sleep(ask.glance)
    now = ask.meant(spec, [re.escape(each) for each in names], secrets=environment_secrets()) if names else ()
    toggles = plan_toggles(looks, now, Direction.BACK if back else Direction.TO_KAFKA)
    typer.echo(to_json("groups-toggle-plan", toggles) if as_json else toggles.render_text())
    raise typer.Exit(NO if toggles.refused else FINE)


@app.command("proof")
def proof_command(
    logs: Annotated[list[Path], typer.Argument(help="The members' logs: a JSON line for each record (docs/proof.md).")],
    produced: Annotated[
        Path | None, typer.Option(help="What was produced: JSON, by topic and partition [first offset, one behind].")
    ] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Read and judge them in Spark.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say which of a group's records were lost, twice or handed out by two at once, and how long none came."""
    try:
        bounds = read_bounds(produced.read_text(), source=str(produced)) if produced else None
    except OSError as error:
        raise Refused(f"{error.filename} can't be read: {error.strerror}", way_out="name files that exist") from None
    if spark:
        from kraft_runbook.parity.spark.consumption import prove_in_spark  # pyspark is an extra

        found = prove_in_spark(logs, bounds)
    else:
        found = prove(read_logs(logs), bounds)
    typer.echo(to_json("groups-proof", found) if as_json else found.render_text())
    raise typer.Exit(FINE if found.holds else NO)


def exit_code(scan: GroupScan) -> int:
    """No: a group needs ZooKeeper. Can't tell: of some group that is not known, or its class is UNKNOWN."""
    if any(each.needs_zookeeper for each in scan.groups):
        return NO
    unknown = any(each.needs_zookeeper is None or each.group_class is GroupClass.UNKNOWN for each in scan.groups)
    return CANT_TELL if unknown else FINE
