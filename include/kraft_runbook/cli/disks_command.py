"""``kraft-runbook reassign disks``: what a move between the disks of brokers would change. Changes nothing."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kraft_runbook.cli.looking import load
from kraft_runbook.cli.options import ClusterName, ClustersDir
from kraft_runbook.cli.outputs import to_json
from kraft_runbook.cli.reassign_goal import text_of, to_the_user, write_text
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.io.secrets import Secrets, environment_secrets
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.procedures.move_between_disks import held_by, look_at_disks
from kraft_runbook.reassignment.disk_goals import (
    DiskGoal,
    EmptyDisk,
    EvenDisks,
    ExplicitDisks,
    directories_from_json,
    directories_to_json,
    plan_disks,
    still_meant,
    topics_meant,
)
from kraft_runbook.reassignment.disk_way_back import back_over
from kraft_runbook.reassignment.disks import DiskPlan, plan_from_json, without_strays
from kraft_runbook.steps.reassignment.files import DISKS, kept_beside


class DiskGoalName(StrEnum):
    """What ``--goal`` takes."""

    EVEN_DISKS = "even-disks"
    EMPTY_DISK = "empty-disk"
    EXPLICIT = "explicit"
    BACK = "back"


def disks_command(
    cluster: ClusterName,
    goal: Annotated[DiskGoalName, typer.Option("--goal", help="What is wanted.")],
    clusters_dir: ClustersDir = None,
    broker: Annotated[int | None, typer.Option("--broker", help="even-disks, empty-disk: whose.")] = None,
    directory: Annotated[
        str, typer.Option("--directory", help="empty-disk: which, as the broker's log.dirs names it.")
    ] = "",
    source: Annotated[
        Path | None,
        typer.Option("--from", help="explicit: a plan in JSON with log_dirs. back: the disks.json that a run kept."),
    ] = None,
    throttle: Annotated[
        float | None, typer.Option("--throttle", min=1e-6, help="MB/s a broker, for the estimate of time.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the plan, as kafka-reassign-partitions reads it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; its schema lies in docs/schemas.")] = False,
) -> None:
    """Plan a move of replicas between the disks of brokers (JBOD), and show it. What must not be planned is refused
    with its names.
    """
    spec, secrets = load(cluster, clusters_dir), environment_secrets()
    wanted = disk_goal_of(goal, broker, directory, source)
    seen = look_at_disks(spec, secrets=secrets)
    ids, held = held_by(spec, topics_meant(wanted, seen), secrets=secrets)
    logs, strays = without_strays(seen, held)
    plan = plan_disks(still_meant(wanted, ids, to_the_user), logs, held)
    plan = replace(plan, notes=(*plan.notes, *(strays[b] for b in plan.brokers if b in strays)))
    if out is not None:
        write_text(out, _for_kafkas_tool(spec, plan, secrets) + "\n")
    preview = plan.preview(logs, throttle=round(throttle * 1e6) if throttle else None)
    typer.echo(to_json("reassign-disks", preview) if as_json else preview.render_markdown().rstrip())


def disk_goal_of(name: DiskGoalName, broker: int | None, directory: str, source: Path | None) -> DiskGoal:
    """Raises typer.BadParameter for options that make no sense together; Refused where a file can't be read."""
    if name in (DiskGoalName.EVEN_DISKS, DiskGoalName.EMPTY_DISK) and broker is None:
        raise typer.BadParameter(f"--goal {name} needs --broker")
    if name is DiskGoalName.EMPTY_DISK and not directory:
        raise typer.BadParameter(f"--goal {name} needs --directory")
    if name in (DiskGoalName.EXPLICIT, DiskGoalName.BACK) and source is None:
        raise typer.BadParameter(f"--goal {name} needs --from")
    match name:
        case DiskGoalName.EVEN_DISKS:
            assert broker is not None
            return EvenDisks(broker)
        case DiskGoalName.EMPTY_DISK:
            assert broker is not None
            return EmptyDisk(broker, directory)
        case DiskGoalName.EXPLICIT:
            assert source is not None
            return ExplicitDisks(directories_from_json(text_of(source), source=str(source)))
        case DiskGoalName.BACK:
            assert source is not None
            files = (*(kept_beside(source) if source.name == DISKS else ()), source)
            return back_over(plan_from_json(text_of(each), source=str(each)) for each in files)


def _for_kafkas_tool(spec: ClusterSpec, plan: DiskPlan, secrets: Secrets) -> str:
    """That tool takes each partition's replicas from the file too, so they must be those that it has. Raises Refused
    where they change just now.
    """
    placement = look_at_replicas(spec, secrets=secrets, sizes_of=(), settings=False).placement
    partitions = {each.partition for each in plan.moves}
    if changing := sorted(partitions & placement.ongoing.keys() | partitions - placement.present.keys()):
        raise Refused(
            f"{len(changing)} partitions are being reassigned or deleted: {some(changing, 5)}",
            way_out="do it again once that has ended; without --out the plan is only shown",
        )
    return directories_to_json(plan.moves, placement.present)
