"""The goal that ``kraft-runbook reassign plan`` is asked for, from its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import typer

from kraft_runbook.cluster.assignment import Replicas, TopicPartition
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.io.kafka.topic_ids import topic_ids
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.reassignment_znodes import LEGACY, ReassignmentZnodes, read_reassignment_znodes
from kraft_runbook.procedures.demote_broker import read_orders
from kraft_runbook.reassignment.goals import (
    AddBrokers,
    DemoteBrokers,
    DrainBrokers,
    EvenLeaders,
    EvenOut,
    Explicit,
    GiveBackOrder,
    Goal,
    Measure,
    MendRacks,
    ReplaceLost,
    Restore,
    SetReplicationFactor,
)
from kraft_runbook.reassignment.plan import without_made_anew
from kraft_runbook.reassignment.plan_file import directed_from_json
from kraft_runbook.reassignment.plan_file import from_json as assignment_from
from kraft_runbook.steps.reassignment.files import ORDERS
from kraft_runbook.steps.reassignment.saved_by_runs import restorable


class GoalName(StrEnum):
    """What ``--goal`` takes."""

    ADD_BROKERS = "add-brokers"
    DRAIN_BROKERS = "drain-brokers"
    DEMOTE_BROKERS = "demote-brokers"
    REPLACE_LOST = "replace-lost"
    REPLICATION_FACTOR = "replication-factor"
    EVEN_OUT = "even-out"
    EVEN_LEADERS = "even-leaders"
    MEND_RACKS = "mend-racks"
    EXPLICIT = "explicit"
    RESTORE = "restore"
    LEGACY = "legacy"


def goal_of(
    spec: ClusterSpec,
    name: GoalName,
    brokers: tuple[int, ...],
    *,
    even: bool,
    factor: int,
    by: Measure,
    within: float,
    source: Path | None,
    znodes: Callable[..., ReassignmentZnodes] = read_reassignment_znodes,
) -> Goal:
    """Raises typer.BadParameter for options that make no sense together; Refused where a file can't be read."""
    if name in (GoalName.ADD_BROKERS, GoalName.DRAIN_BROKERS, GoalName.DEMOTE_BROKERS) and not brokers:
        raise typer.BadParameter(f"--goal {name} needs --brokers")
    if name in (GoalName.EXPLICIT, GoalName.RESTORE) and source is None:
        raise typer.BadParameter(f"--goal {name} needs --from")
    if not 0 < within < 1:
        raise typer.BadParameter("--within is a part between 0 and 1, such as 0.05")
    match name:
        case GoalName.ADD_BROKERS:
            return AddBrokers(brokers, by)
        case GoalName.DRAIN_BROKERS:
            return DrainBrokers(brokers, even, by)
        case GoalName.DEMOTE_BROKERS:
            return DemoteBrokers(brokers)
        case GoalName.REPLACE_LOST:
            return ReplaceLost(brokers)
        case GoalName.REPLICATION_FACTOR:
            return SetReplicationFactor(factor)
        case GoalName.EVEN_OUT:
            return EvenOut(by, within)
        case GoalName.EVEN_LEADERS:
            return EvenLeaders()
        case GoalName.MEND_RACKS:
            return MendRacks()
        case GoalName.EXPLICIT:
            assert source is not None
            return explicit_in(source)
        case GoalName.RESTORE:
            assert source is not None
            return kept_in(source).goal
        case GoalName.LEGACY:
            return _legacy(znodes(spec, secrets=environment_secrets()).legacy)


@dataclass(frozen=True, slots=True)
class Kept:
    """What a run kept, as a goal. ``cluster_id``: whose; ``topic_ids``: of the topics then."""

    goal: Goal
    cluster_id: str
    topic_ids: Mapping[str, str]


def kept_in(source: Path) -> Kept:
    """What the file holds that a run kept, as ``restore_assignment`` gives it back: of the partitions that it planned
    to move. Of one that demoted brokers it is the order alone: its ``orders.json``, or what it saved beside that, or
    one of the ``broker-<id>.json`` of a roll. Raises Refused where it can't be read.
    """
    orders = source if source.name == ORDERS or source.stem.startswith("broker-") else source.with_name(ORDERS)
    if (kept := read_orders(orders)) is not None:
        return Kept(GiveBackOrder(kept.before, kept.after), kept.cluster_id, kept.topic_ids)
    saved = restorable(source)
    return Kept(Restore(saved.assignment), saved.cluster_id, saved.topic_ids)


def still_meant(
    spec: ClusterSpec, kept: Kept, cluster_id: str, *, ids_of: Callable[..., Mapping[str, str]] = topic_ids
) -> Goal:
    """What is to be given back of what was kept: nothing of topics that were made anew since, which the user is told.
    Raises Refused where it is of another cluster than this one.
    """
    if kept.cluster_id != cluster_id:
        raise Refused(
            f"what is to be restored was saved of cluster {kept.cluster_id}, and this is {cluster_id}",
            way_out="name what a run of this cluster saved",
        )
    now = ids_of(spec, kept.topic_ids.keys(), secrets=environment_secrets())
    return without_made_anew(kept.goal, kept.topic_ids, now, to_the_user)


def _legacy(text: str | None) -> Goal:
    """What an old tool wrote into ZooKeeper, as an explicit plan. Raises Refused where nothing is there."""
    if text is None:
        raise Refused(f"{LEGACY} does not exist", way_out="nothing is to be converted; plan with another goal")
    return Explicit(assignment_from(text, source=LEGACY, ignored=to_the_user), what=f"what {LEGACY} holds")


def explicit_in(path: Path) -> Explicit:
    """The plan that the file holds, with the log directories that it asks for. Raises Refused."""
    target, directories = directed_from_json(text_of(path), source=str(path))
    return Explicit(target, path.name, directories)


def plan_in(path: Path) -> dict[TopicPartition, Replicas]:
    """The plan that the file holds; what of it is ignored is told to the user. Raises Refused."""
    return assignment_from(text_of(path), source=str(path), ignored=to_the_user)


def to_the_user(told: str) -> None:
    """Beside a command's output, not in it."""
    typer.echo(told, err=True)


def ids_of(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(each) for each in text.split(",") if each.strip())
    except ValueError:
        raise typer.BadParameter(f"--brokers takes ids separated by commas, not {text!r}") from None


def text_of(path: Path) -> str:
    """What the file holds. Raises Refused."""
    try:
        return path.read_text()
    except OSError as error:
        raise Refused(f"{path} can't be read: {error}", way_out="name a file that exists") from None


def write_text(path: Path, text: str) -> None:
    """Raises Refused where it can't be written."""
    try:
        path.write_text(text)
    except OSError as error:
        raise Refused(f"{path} can't be written: {error}", way_out="name a file in a directory that exists") from None
