"""``kraft-runbook reassign``: plan a move of replicas, preview it, see how far one is, verify one. Changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kraft_runbook.cli.disks_command import disks_command
from kraft_runbook.cli.looking import load
from kraft_runbook.cli.options import CANT_TELL, FINE, NO, AsJson, ClusterName, ClustersDir, Watch
from kraft_runbook.cli.outputs import ReassignStatusOutput, StuckEntry, to_json
from kraft_runbook.cli.progress import look_again, reading
from kraft_runbook.cli.reassign_goal import (
    GoalName,
    Kept,
    explicit_in,
    goal_of,
    ids_of,
    kept_in,
    plan_in,
    still_meant,
    to_the_user,
    write_text,
)
from kraft_runbook.cluster.assignment import Assignment
from kraft_runbook.cluster.log_dirs import Directories
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.secrets import Secrets, environment_secrets
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.procedures.move_between_disks import held_by, look_at_disks
from kraft_runbook.procedures.move_replicas import read_assignment
from kraft_runbook.procedures.throttle_replication import read_throttles
from kraft_runbook.reassignment.directories import (
    brokers_asked,
    in_words,
    judge_directories,
    lie_elsewhere,
    still_held,
)
from kraft_runbook.reassignment.disks import Held, Logs
from kraft_runbook.reassignment.explain import causes_of, has_rate, progress_between
from kraft_runbook.reassignment.goals import Goal, Measure, Topics
from kraft_runbook.reassignment.look import ReplicasLook, of_hidden
from kraft_runbook.reassignment.picture import draw
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.plan_file import to_json as assignment_to
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.preview import make_preview
from kraft_runbook.reassignment.refusals import Reason, require_no_refusal
from kraft_runbook.reassignment.stages import PlanReading, PlanStage, read_plan
from kraft_runbook.reassignment.stuck import Cause
from kraft_runbook.reassignment.throttles import leftovers
from kraft_runbook.reassignment.verifying import verify
from kraft_runbook.runbook.cluster_checks import SHOW_ALL

APART_SECONDS = 5.0
"""Between the two looks that tell whether a copy grows."""

app = typer.Typer(
    help="Moving replicas: plan, preview, status, verify; between the disks of a broker: disks. Changes nothing."
)
app.command("disks")(disks_command)


class Allowed(StrEnum):
    """What ``--allow`` takes."""

    REPLICATION_FACTOR = "replication-factor"
    RACKS = "racks"
    NO_RACK = "no-rack"


REASONS = {
    Allowed.REPLICATION_FACTOR: Reason.REPLICATION_FACTOR,
    Allowed.RACKS: Reason.RACKS,
    Allowed.NO_RACK: Reason.NO_RACK,
}

PlanFile = Annotated[Path, typer.Option("--plan", help="The plan, in the JSON of kafka-reassign-partitions.")]
Allow = Annotated[list[Allowed] | None, typer.Option("--allow", help="Allow by name what is refused otherwise.")]
Throttle = Annotated[float | None, typer.Option("--throttle", help="MB/s a broker, for the estimate of time.")]
Picture = Annotated[Path | None, typer.Option("--picture", help="Also draw the preview to this SVG file.")]


@app.command("plan")
def plan_command(
    cluster: ClusterName,
    goal: Annotated[GoalName, typer.Option("--goal", help="What is wanted.")],
    clusters_dir: ClustersDir = None,
    brokers: Annotated[str, typer.Option("--brokers", help="Ids to add, drain, demote or replace, by commas.")] = "",
    even: Annotated[bool, typer.Option("--even", help="drain-brokers: also even out the brokers that stay.")] = False,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Change no order where no replica moves; leaders may be uneven.")
    ] = False,
    factor: Annotated[int, typer.Option("--factor", help="replication-factor: how many replicas.")] = 0,
    by: Annotated[Measure, typer.Option("--by", help="add-, drain-brokers, even-out: by what.")] = Measure.REPLICAS,
    within: Annotated[
        float, typer.Option("--within", help="even-out by bytes or fullness: the part that may differ.")
    ] = 0.05,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="explicit: a plan in JSON. restore: the saved.json of a run; of one that demoted brokers, the order"
            " beside it is given back.",
        ),
    ] = None,
    topics: Annotated[list[str] | None, typer.Option("--topics", help="Pattern of topics; all by default.")] = None,
    exclude: Annotated[list[str] | None, typer.Option("--exclude", help="Pattern of topics to leave out.")] = None,
    allow: Allow = None,
    throttle: Throttle = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the plan, as kafka-reassign-partitions reads it.")
    ] = None,
    before: Annotated[
        Path | None, typer.Option("--before", help="Write the whole present assignment, for verify --before.")
    ] = None,
    picture: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Make the plan of the least movement, and show it. What must not be planned is refused with its names. The goal
    legacy is what /admin/reassign_partitions holds: it is read, and never written.
    """
    spec = load(cluster, clusters_dir)
    wanted = goal_of(spec, goal, ids_of(brokers), even=even, factor=factor, by=by, within=within, source=source)
    chosen = Topics(tuple(topics or (".*",)), tuple(exclude or ()))
    kept = kept_in(source) if goal is GoalName.RESTORE and source is not None else None
    _show(spec, wanted, chosen, allow, throttle, out, before, picture, as_json, keep_order=keep_order, kept=kept)


@app.command("preview")
def preview_command(
    cluster: ClusterName,
    plan: PlanFile,
    clusters_dir: ClustersDir = None,
    allow: Allow = None,
    throttle: Throttle = None,
    picture: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Show what a plan that somebody else made would move, and refuse it where it must not be carried out."""
    _show(load(cluster, clusters_dir), explicit_in(plan), Topics(), allow, throttle, None, None, picture, as_json)


@app.command("status")
def status_command(
    cluster: ClusterName,
    clusters_dir: ClustersDir = None,
    plan: Annotated[Path | None, typer.Option("--plan", help="Say how far this plan is; else whatever moves.")] = None,
    as_json: AsJson = False,
    watch: Watch = False,
) -> None:
    """Say what moves, how far it is, what is stuck and why, and which throttles are set. Looks twice, 5 s apart."""
    spec = load(cluster, clusters_dir)
    raise typer.Exit(look_again(watch, lambda: _status(spec, plan, as_json=as_json)))


@app.command("verify")
def verify_command(
    cluster: ClusterName,
    plan: PlanFile,
    clusters_dir: ClustersDir = None,
    before: Annotated[
        Path | None,
        typer.Option(
            "--before", help="The whole assignment before: partitions outside the plan must be where they were."
        ),
    ] = None,
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Compare with what the controller's store holds, by fingerprints in Spark."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare what was found with what was planned: replicas in their order, log directories that the plan names, ISR,
    leaders, no throttle left.
    """
    spec, secrets = load(cluster, clusters_dir), environment_secrets()
    wanted = explicit_in(plan)
    target = wanted.target
    known = None if before is None else read_assignment(before, ignored=to_the_user)
    throttles = leftovers(read_throttles(spec, {p.topic for p in target}, secrets=secrets))
    if spark:
        from kraft_runbook.procedures.compare_assignment import compare_assignment  # the columns and their libraries

        found = replace(compare_assignment(spec, target, before=known or {}, secrets=secrets), throttles=throttles)
    else:
        look = look_at_replicas(spec, secrets=secrets)
        found = verify(
            target,
            look.seen,
            look.placement.ongoing,
            before=known,
            throttles=throttles,
            legacy_znode=look.legacy is not None,
            source="as brokers show it",
        )
    found = replace(found, elsewhere=replicas_elsewhere(spec, wanted.directories, secrets=secrets))
    typer.echo(to_json("reassign-verify", found) if as_json else found.render_text())
    raise typer.Exit(FINE if found.holds else NO)


def replicas_elsewhere(
    spec: ClusterSpec,
    asked: Directories,
    *,
    secrets: Secrets,
    holders: Callable[..., tuple[Mapping[str, str], Held]] = held_by,
    looks: Callable[..., Logs] = look_at_disks,
) -> tuple[str, ...]:
    """The replicas that lie in another directory than asked, in words. One that its broker does not hold is not among
    them, nor is one of a deleted topic: what that means, the comparison with the plan says.
    """
    if not asked:
        return ()
    _, held = holders(spec, {p.topic for _, p in asked}, secrets=secrets)
    asked = still_held(asked, held)
    return lie_elsewhere(asked, looks(spec, brokers_asked(asked), secrets=secrets))


def _show(
    spec: ClusterSpec,
    goal: Goal,
    topics: Topics,
    allow: list[Allowed] | None,
    throttle: float | None,
    out: Path | None,
    before: Path | None,
    picture: Path | None,
    as_json: bool,
    *,
    keep_order: bool = False,
    kept: Kept | None = None,
) -> None:
    with reading(f"reading {spec.name}") as far:
        look = look_at_replicas(spec, secrets=environment_secrets(), tell=far)
    goal = goal if kept is None else still_meant(spec, kept, look.cluster_id)
    with reading(f"planning with {len(look.seen):,} partitions") as far:
        plan = make_plan(goal, look.placement, topics=topics, keep_order=keep_order, tell=far)
        require_no_refusal(
            plan, look.placement, declared=spec.broker_ids, allowed=[REASONS[each] for each in allow or ()]
        )
        rate = int(throttle * 1e6) if throttle else None
        plan, between_disks = _with_directories(spec, plan, rate)
        far("the preview")
        preview = make_preview(plan, look.placement, throttle=rate)
    if out is not None:
        stays = {p: look.placement.present[p] for _, p in plan.directories if p not in plan.target}
        write_text(out, assignment_to({**stays, **plan.target}, plan.directories) + "\n")
    if before is not None:
        write_text(before, assignment_to(look.placement.present) + "\n")
    if picture is not None:
        write_text(picture, draw(preview))
    typer.echo(to_json("reassign-plan", preview) if as_json else preview.render_text() + between_disks)


def _with_directories(spec: ClusterSpec, plan: ReassignmentPlan, throttle: int | None) -> tuple[ReassignmentPlan, str]:
    """The plan with what is to be said of the log directories that it asks for, and each directory before and after, of
    brokers that copy between them. Raises Refused as ``judge_directories`` does.
    """
    if not plan.directories:
        return plan, ""
    logs = look_at_disks(spec, brokers_asked(plan.directories), secrets=environment_secrets())
    copies = judge_directories(plan, logs)
    shown = f"\n\nthen between disks:\n{copies.preview(logs, throttle=throttle).render_markdown()}"
    return replace(plan, notes=(*plan.notes, *in_words(plan, copies))), shown if copies.moves else ""


def _status(spec: ClusterSpec, plan: Path | None, *, as_json: bool) -> int:
    """One look at what moves. Returns the exit code."""
    secrets = environment_secrets()
    with reading(f"looking twice at what moves in {spec.name}"):
        earlier = look_at_replicas(spec, secrets=secrets, settings=False)
        time.sleep(APART_SECONDS)
        now = look_at_replicas(spec, secrets=secrets, settings=False)
    target = plan_in(plan) if plan else {p: each.target for p, each in now.placement.ongoing.items()}
    stands = _reading_of(target, now)
    former = read_throttles(spec, {p.topic for p in now.placement.ongoing}, secrets=secrets)
    causes = causes_of(earlier, now, throttled=has_rate(former))
    far = progress_between(earlier, now, stands)
    throttles = tuple(map(str, leftovers(former)))
    output = ReassignStatusOutput(
        spec.name,
        len(now.moving),
        str(stands.stage) if plan else None,
        str(far),
        tuple(StuckEntry(str(c.partition), str(c.cause), c.brokers, c.way_out) for c in causes if not c.waits),
        throttles,
        of_hidden(now.hidden) if now.hidden else "",
    )
    typer.echo(to_json("reassign-status", output) if as_json else _status_text(output, stands))
    unclear = stands.stage is PlanStage.UNKNOWN or bool(now.hidden) or any(c.cause is Cause.UNSEEN for c in causes)
    forgotten = bool(throttles) and not now.moving
    stuck = any(not c.waits for c in causes)
    return CANT_TELL if unclear else NO if stuck or forgotten else FINE


def _reading_of(target: Assignment, now: ReplicasLook) -> PlanReading:
    """Where this plan stands. What was there before it is not known here: what is neither there nor on its way is left.
    What moves and is not shown is left out, and makes the stage UNKNOWN.
    """
    hidden = now.hidden_of(target)
    shown = {p: replicas for p, replicas in target.items() if p not in hidden}
    present = {p: now.placement.present.get(p, ()) for p in shown}
    reading = read_plan(ReassignmentPlan("status", present, shown, copies=0, bound=0), now.placement)
    return replace(reading, stage=PlanStage.UNKNOWN) if hidden else reading


def _status_text(output: ReassignStatusOutput, reading: PlanReading) -> str:
    if output.stage is None and not reading.moving:
        lines = [] if output.hidden else [f"{output.cluster}: nothing is being reassigned"]
    else:
        lines = [f"{output.cluster}: {output.progress}"]
    lines += [f"the plan stands {output.stage}: {'; '.join(reading.because)}"] if output.stage else []
    lines += [f"stuck: {s.partition}: {s.cause} ({nodes('broker', s.brokers)}): {s.way_out}" for s in output.stuck]
    lines += [f"{output.hidden}. To see how far they are, {SHOW_ALL}"] if output.hidden else []
    lines += [f"throttle set: {each}" for each in output.throttles]
    return "\n".join(lines)
