"""The steps of a run that toggles a group, taken by a test as Airflow's tasks take them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import by_hand
from migrating_members import Group
from recording import run_on

from kraft_runbook.cluster.group_toggles import GroupToggles
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.later import Later
from kraft_runbook.steps.run import Run
from kraft_runbook.steps.toggles.toggling import plan_the_toggle, settle, soak, toggle_the_group
from kraft_runbook.steps.toggles.waiting import WATCHES

INTERVAL = 0.5
"""The members' commit interval, seconds (``Group.settings``)."""


class Brisk(Cluster):
    """It pauses half a second at most between two looks: members of a test read all the time."""

    def pause(self, seconds: float) -> None:
        super().pause(min(seconds, 0.5))


def run_of(group: Group, ports: Any = None, *, toggles: GroupToggles | None = None, **params: Any) -> Run:
    spec = group.lab.spec.model_copy(update={"group_toggles": toggles})
    cluster = Brisk(spec, group.lab.secrets, print)
    form = {"group": group.name, "direction": "to Kafka", "commit_interval": INTERVAL, "soak_minutes": 0.02}
    return run_on(cluster, ports, state=group.where, **{**form, **params})


def waited(run: Run, step: Callable[[Run, Mapping[str, Any] | None], Any]) -> Any:
    """The answer of a step that waits: what the triggerer does."""
    later = step(run, None)
    if not isinstance(later, Later):
        return later
    looking, over = WATCHES[later.watch](**later.given), False
    while not over and run.cluster.now() < later.until:
        over = looking.look(run.cluster)
        time.sleep(0.0 if over else 0.2)
    return step(run, {"over": over, **looking.told()})


def await_shares(group: Group, shares: list[int]) -> None:
    """As Kafka's group assigns them."""
    by_hand.wait_until(
        f"Kafka assigns {shares}", lambda: sorted(map(len, group.kafka_assigns().values())) == shares, within=60
    )


def toggled(group: Group, direction: Direction) -> None:
    """By the steps of one run, the act twice."""
    run = run_of(group, direction=direction.value)
    plan_the_toggle(run)
    assert toggle_the_group(run)["written"] is True
    assert toggle_the_group(run)["written"] is False, "a task that is cleared writes nothing again"
    waited(run, settle)
    waited(run, soak)
