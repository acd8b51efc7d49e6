"""A group's claim beside the cluster's: which runs go on beside each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from observations import SPEC

from kraft_runbook.errors import Refused
from kraft_runbook.io.cluster_claim import Claim, RunState, hold_cluster, lease_end, rest_cluster
from kraft_runbook.io.group_claims import (
    Acts,
    group_lease_end,
    hold_groups,
    refuse_while_cluster_acts,
    refuse_while_groups_act,
    release_groups,
    rest_group,
)
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.claim_znode import PATH, ClaimZnode, group_path
from kraft_runbook.io.zookeeper.znode import Znode

NOW = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
ONE = Claim("zk_to_kraft_migration__lab", "one", "2026-03-04T09:00:00+00:00", "host-a", NOW + timedelta(hours=2))
TWO = Claim("move_consumer_group__lab", "two", "2026-03-04T09:30:00+00:00", "host-b", NOW + timedelta(hours=2))
ACTING = replace(ONE, acting="roll_brokers_to_kraft.broker_1.restart")
MOVING = replace(TWO, acting="wave_1.move.commit")
SECRETS = environment_secrets({})


class Znodes:
    """In place of ZooKeeper, its reader and its writer: znodes by path."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}

    def get(self, path: str) -> Znode | None:
        return Znode(path, self.data[path], 0, 0, 0, 0, 0) if path in self.data else None

    def create(self, path: str, data: bytes) -> bool:
        self.data[path] = data
        return True

    def replace(self, znode: Znode, data: bytes) -> bool:
        self.data[znode.path] = data
        return True

    def delete(self, znode: Znode) -> bool:
        return self.data.pop(znode.path, None) is not None

    def at(self, path: str) -> Any:
        return ClaimZnode(self, path, writer=lambda reader: reader)  # type: ignore[arg-type, return-value]

    def hold(
        self, groups: list[str], mine: Claim, directory: Path, state: RunState = RunState.ACTIVE, **how: Any
    ) -> None:
        given: dict[str, Any] = {"secrets": SECRETS, "directory": directory, "now": NOW, **how}
        hold_groups(SPEC, groups, mine, ask=lambda _: state, znodes=lambda *_, **__: nullcontext(self.at), **given)

    def refuse(
        self, mine: Claim, state: RunState = RunState.ACTIVE, over: Callable[[Claim], bool] = lambda _: False
    ) -> tuple[str, ...]:
        """As a task that restarts a node asks, once its claim on the cluster says that it acts."""
        claims = {group: self.at(group_path(group)) for group in ("a", "b", "c") if group_path(group) in self.data}
        given: dict[str, Any] = {"secrets": SECRETS, "znodes": lambda *_, **__: nullcontext(claims)}
        return refuse_while_groups_act(SPEC, mine, ask=lambda _: state, over=over, now=NOW, **given)

    def rest(self, group: str, mine: Claim) -> None:
        rest_group(SPEC, group, mine, secrets=SECRETS, znodes=lambda *_, **__: nullcontext(self.at))


@pytest.fixture
def znodes() -> Znodes:
    return Znodes()


def test_groups_are_claimed_beside_a_run_that_holds_the_cluster_and_waits(znodes: Znodes, tmp_path: Path) -> None:
    znodes.data[PATH] = ONE.to_json()
    znodes.hold(["a", "b"], TWO, tmp_path)
    znodes.hold(["a", "b"], TWO, tmp_path)
    assert set(znodes.data) == {PATH, group_path("a"), group_path("b")} and znodes.data[PATH] == ONE.to_json()
    given: dict[str, Any] = {"secrets": SECRETS, "znodes": lambda *_, **__: nullcontext(znodes.at)}
    release_groups(SPEC, ["a", "b", "never claimed"], TWO, **given)
    assert set(znodes.data) == {PATH}


def test_no_group_is_claimed_while_the_run_that_holds_the_cluster_acts(znodes: Znodes, tmp_path: Path) -> None:
    znodes.data[PATH] = ACTING.to_json()
    for state in (RunState.ACTIVE, RunState.UNKNOWN):
        with pytest.raises(Acts, match=r"run one .* its task roll_brokers_to_kraft\.broker_1\.restart goes on"):
            znodes.hold(["a"], TWO, tmp_path, state)
    assert set(znodes.data) == {PATH}
    znodes.hold(["a"], TWO, tmp_path, RunState.ENDED)
    assert group_path("a") in znodes.data


def test_between_two_groups_a_run_sees_that_a_node_s_task_waits_for_it(znodes: Znodes, tmp_path: Path) -> None:
    given: dict[str, Any] = {"secrets": SECRETS, "directory": tmp_path, "ask": lambda _: RunState.ACTIVE, "now": NOW}
    given["znodes"] = lambda *_, **__: nullcontext(znodes.at)
    znodes.hold(["a"], MOVING, tmp_path)
    refuse_while_cluster_acts(SPEC, MOVING, **given)
    znodes.data[PATH] = ONE.to_json()
    refuse_while_cluster_acts(SPEC, MOVING, **given)
    znodes.data[PATH] = ACTING.to_json()
    with pytest.raises(Acts, match=r"run one .* acts on cluster lab"):
        refuse_while_cluster_acts(SPEC, MOVING, **given)
    assert znodes.data == {PATH: ACTING.to_json(), group_path("a"): MOVING.to_json()}, "it only looks"


def test_a_run_that_waits_renews_its_claims_while_another_one_acts(znodes: Znodes, tmp_path: Path) -> None:
    znodes.data[PATH] = ACTING.to_json()
    znodes.hold(["a"], TWO, tmp_path, waits=True)
    assert group_path("a") in znodes.data
    with pytest.raises(Refused, match="lab's group a is being changed by run two"):
        znodes.hold(["a"], ONE, tmp_path, waits=True)


def test_a_claim_on_groups_lasts_longer_than_the_question_and_the_waits_of_a_wave() -> None:
    assert group_lease_end(SPEC, NOW) - NOW == timedelta(hours=27)
    deadlines = SPEC.deadlines.model_copy(update={"metadata_copy": 3 * 86400.0})
    slow = SPEC.model_copy(update={"deadlines": deadlines})
    assert group_lease_end(slow, NOW) == lease_end(slow, NOW) > group_lease_end(SPEC, NOW)


def test_a_group_that_another_run_moves_is_refused_and_none_of_the_others_is_kept(
    znodes: Znodes, tmp_path: Path
) -> None:
    znodes.hold(["b"], ONE, tmp_path)
    with pytest.raises(Refused, match="lab's group b is being changed by run one"):
        znodes.hold(["a", "b"], TWO, tmp_path)
    assert set(znodes.data) == {group_path("b")}
    znodes.hold(["a"], TWO, tmp_path)


def test_a_claim_of_a_version_that_says_nothing_of_acting_is_a_run_that_waits() -> None:
    data = json.loads(ONE.to_json())
    del data["acting"]
    assert Claim.from_json(json.dumps(data).encode()) == ONE


def test_a_run_that_waits_says_so_where_it_still_holds_the_claim(znodes: Znodes, tmp_path: Path) -> None:
    given: dict[str, Any] = {"secrets": SECRETS, "directory": tmp_path}
    given["znode"] = lambda *_, **__: nullcontext(znodes.at(PATH))
    rest_cluster(SPEC, ACTING, **given)
    assert znodes.data == {}, "what was given back is not taken again"
    hold_cluster(SPEC, ACTING, ask=lambda _: RunState.ACTIVE, now=NOW, **given)
    rest_cluster(SPEC, replace(ACTING, acting="another.task"), **given)
    assert znodes.data[PATH] == ACTING.to_json(), "what another task of the run has said is left alone"
    rest_cluster(SPEC, ACTING, **given)
    assert znodes.data[PATH] == ONE.to_json()
    beside = replace(ONE, acting="roll_brokers_to_kraft.broker_2.restart")
    for each in (ACTING, beside):
        hold_cluster(SPEC, each, ask=lambda _: RunState.ACTIVE, now=NOW, **given)
    rest_cluster(SPEC, beside, **given)
    assert znodes.data[PATH] == ACTING.to_json(), "the task beside it still acts"
    rest_cluster(SPEC, ACTING, **given)
    assert znodes.data[PATH] == ONE.to_json()
    znodes.hold(["a"], TWO, tmp_path)
    znodes.data[PATH] = ACTING.to_json()
    rest_cluster(SPEC, replace(TWO, acting=ACTING.acting), **given)
    assert znodes.data[PATH] == ACTING.to_json(), "another run's claim is left alone"


def test_no_task_acts_on_the_cluster_while_one_acts_on_a_group(znodes: Znodes, tmp_path: Path) -> None:
    znodes.hold(["b", "a"], MOVING, tmp_path)
    assert znodes.data[group_path("b")] == MOVING.to_json() and znodes.data[group_path("a")] == TWO.to_json()
    for state in (RunState.ACTIVE, RunState.UNKNOWN):
        with pytest.raises(Acts, match=r"run two of .* acts on group b of cluster lab: its task wave_1\.move\.commit"):
            znodes.refuse(ACTING, state)
    znodes.refuse(ACTING, RunState.ENDED)
    znodes.refuse(MOVING)
    znodes.rest("b", MOVING)
    assert znodes.data[group_path("b")] == TWO.to_json(), "the run still has the group"
    znodes.refuse(ACTING)


def test_a_killed_task_s_act_on_a_group_is_said_and_not_waited_for(znodes: Znodes, tmp_path: Path) -> None:
    znodes.hold(["a"], MOVING, tmp_path)
    asked: list[str] = []

    def over(holder: Claim) -> bool:
        asked.append(holder.acting)
        return True

    (told,) = znodes.refuse(ACTING, RunState.ACTIVE, over)
    assert told.startswith(
        "the claim of run two of move_consumer_group__lab says that wave_1.move.commit acts on group a"
    )
    assert asked == [MOVING.acting]
    with pytest.raises(Acts):
        znodes.refuse(ACTING, RunState.UNKNOWN, over)
    assert asked == [MOVING.acting], "of another Airflow's tasks this one knows nothing"
    znodes.data[PATH] = ACTING.to_json()
    with pytest.raises(Acts):
        znodes.hold(["b"], replace(MOVING, run_id="three"), tmp_path)


def test_a_run_with_groups_that_waits_does_not_hold_up_a_restart(znodes: Znodes, tmp_path: Path) -> None:
    znodes.hold(["a"], MOVING, tmp_path, waits=True)
    assert znodes.data == {group_path("a"): TWO.to_json()}
    znodes.refuse(ACTING)
    znodes.hold(["a"], MOVING, tmp_path)
    znodes.hold(["a"], replace(TWO, acting="wave_1.start.started"), tmp_path, waits=True)
    assert znodes.data == {group_path("a"): MOVING.to_json()}, "another task of the run still acts"


def test_of_two_that_begin_at_the_same_moment_the_one_with_the_groups_gives_way(znodes: Znodes, tmp_path: Path) -> None:
    """The node's task says that it acts after the group's task has looked, and before it has said so itself."""
    znodes.hold(["a"], TWO, tmp_path, waits=True)
    create = znodes.create

    def meanwhile(path: str, data: bytes) -> bool:
        znodes.data[PATH] = ACTING.to_json()
        return create(path, data)

    znodes.create = meanwhile  # type: ignore[method-assign]
    with pytest.raises(Acts, match=r"run one .* acts on cluster lab: its task roll_brokers"):
        znodes.hold(["a", "b"], MOVING, tmp_path)
    assert znodes.data == {PATH: ACTING.to_json(), group_path("a"): TWO.to_json()}, "what it had, it keeps"
    znodes.refuse(ACTING)
