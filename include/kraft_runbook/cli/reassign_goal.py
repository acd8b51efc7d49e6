"""The goal that ``kraft-runbook reassign plan`` is asked for, from its options."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import typer

from kraft_runbook.cluster.assignment import Replicas, TopicPartition
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.reassignment_znodes import LEGACY, ReassignmentZnodes, read_reassignment_znodes
from kraft_runbook.procedures.move_replicas import read_state
from kraft_runbook.reassignment.goals import (
    AddBrokers,
    DemoteBrokers,
    DrainBrokers,
    EvenLeaders,
    EvenOut,
    Explicit,
    Goal,
    Measure,
    MendRacks,
    ReplaceLost,
    Restore,
    SetReplicationFactor,
)
from kraft_runbook.reassignment.plan_file import from_json as assignment_from


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
            return Explicit(plan_in(source), what=source.name)
        case GoalName.RESTORE:
            assert source is not None
            return Restore(read_state(source).assignment)
        case GoalName.LEGACY:
            return _legacy(znodes(spec, secrets=environment_secrets()).legacy)


def _legacy(text: str | None) -> Goal:
    """What an old tool wrote into ZooKeeper, as an explicit plan. Raises Refused where nothing is there."""
    if text is None:
        raise Refused(f"{LEGACY} does not exist", way_out="nothing is to be converted; plan with another goal")
    return Explicit(assignment_from(text, source=LEGACY, ignored=to_the_user), what=f"what {LEGACY} holds")


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
