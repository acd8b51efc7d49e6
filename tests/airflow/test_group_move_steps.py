"""What each task of a move of consumer groups does wherever the groups are on their way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from airflow.triggers.base import TriggerEvent
from in_run import Claimed, Signed, run_in
from signed_run import PASSED, sign

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.evidence.kinds import Moves as Told
from kraft_runbook.evidence.kinds import of_kind
from kraft_runbook.gates.proof import Exhibit, make_proof
from kraft_runbook.groups.look import GroupLook, Kind, LogBounds
from kraft_runbook.groups.move_plan import Direction
from kraft_runbook.groups.moves import Moves
from kraft_runbook.groups.operation import GROUPS, MOVE_GROUPS, Step
from kraft_runbook.procedures.move_group import commit_group, fence_group, lift_group, stop_read, write_back_group
from kraft_runbook.procedures.see_groups import look_at_groups, look_at_meant
from kraft_runbook.steps.handle import RehearsedCluster
from kraft_runbook_airflow.base.journal import records_of
from kraft_runbook_airflow.groups import asking, watching
from kraft_runbook_airflow.groups.asking import AskOwner
from kraft_runbook_airflow.groups.files import files_of
from kraft_runbook_airflow.groups.moving import MoveGroups
from kraft_runbook_airflow.groups.planning import PlanGroupMoves, examine, shows_plan
from kraft_runbook_airflow.groups.watching import AwaitGroups, GroupTrigger
from kraft_runbook_airflow.groups.words import PARAMS
from tests.unit.groups_seen_as import kafka, look, member, new, zookeeper
from tests.unit.observations import SPEC, broker, observation
from tests.unit.recording import RecordingCluster

T0, T1 = ("t", 0), ("t", 1)
LOGS = {"t": {0: LogBounds(0, 100), 1: LogBounds(0, 100)}}
OLD = look(zookeeper(member(Kind.OLD), offsets={T0: 5, T1: 6}), logs=LOGS)
STOPPED = look(zookeeper(offsets={T0: 7, T1: 8}), logs=LOGS)
NEW = look(zookeeper(), kafka(new("app", T0, T1), offsets={T0: 9, T1: 9}), logs=LOGS)
BOTH = replace(look(zookeeper(member(Kind.OLD)), kafka(new("app")), logs=LOGS), name="both")


class Scene:
    """One run of one cluster. ``looks``: at its groups; ``did``: what was done to them; ``failing``: groups of which an
    act is refused.
    """

    def __init__(self) -> None:
        self.looks: tuple[GroupLook, ...] = (OLD,)
        self.did: list[str] = []
        self.failing: dict[str, Exception] = {}
        self.context: dict[str, Any] = {
            "ti": SimpleNamespace(dag_id="move_consumer_group__lab", run_id="one", task_id="t"),
            "params": {"groups": "g both", "direction": "to Kafka", "without": None, "commit_interval": 60},
        }
        self.cluster = RecordingCluster(
            observation(Phase.HYBRID),
            answers={
                look_at_meant: lambda wanted: self.looks,
                look_at_groups: lambda names: [each for each in self.looks if each.name in names],
                stop_read: self.read,
                asking._not_started: lambda plans: self.missing,
                **{act: self.act(act) for act in (fence_group, commit_group, write_back_group, lift_group)},
            },
        )
        self.missing: tuple[str, ...] = ("g: without an owner: t-0",)

    @property
    def run(self) -> Any:
        return run_in(self.context, self.cluster, Signed)

    def act(self, act: Any) -> Any:
        def done(plan: Any) -> int:
            if plan.group in self.failing:
                raise self.failing[plan.group]
            self.did.append(f"{act.__name__} {plan.group} {[each.offset for each in plan.offsets]}")
            return len(plan.offsets)

        return done

    def read(self, plan: Any, without: Any, *, kept: Any) -> Any:
        self.kept = kept
        if plan.group in self.failing:
            raise self.failing[plan.group]
        return replace(plan, offsets=tuple(replace(each, offset=(each.offset or 0) + 2) for each in plan.offsets))

    def told(self) -> list[str]:
        return [f"{told.what}: {told.told}" for _, told in of_kind(records_of(self.context), Told)]

    def plan(self) -> Moves:
        PlanGroupMoves(task_id="plan", cluster="lab").act(self.context, self.run)
        return files_of(self.context).plan()

    def read_at_the_stop(self) -> None:
        task = AwaitGroups(task_id="silent", cluster="lab", starts=False, deadline=60)
        task.act_or_rehearse = lambda context, act, rehearse: act(context, self.run)  # type: ignore[method-assign]
        task.resume(self.context, {"missing": []}, until=0)

    def step(self, step: Step) -> Any:
        return MoveGroups(task_id=str(step), cluster="lab", step=step).act(self.context, self.run)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    return Scene()


# -- the plan and the gate ---------------------------------------------------------------------------------------------


def test_one_refused_group_is_named_and_the_others_are_planned(scene: Scene) -> None:
    scene.looks = (OLD, BOTH)
    assert [each.group for each in scene.plan().plans] == ["g"]
    planned, left_out = scene.told()
    assert planned == "planned: g" and left_out.startswith("left out: both: it is CONTRADICTORY")
    shown = shows_plan(scene.run)
    assert shown.exhibits[0].digest == files_of(scene.context).plan().digest
    assert (
        "t-0 · 5 · ZooKeeper · nothing" in shown.exhibits[0].rendered
        and "both is not moved" in shown.exhibits[0].rendered
    )


def test_a_run_without_a_group_that_can_be_moved_is_refused(scene: Scene) -> None:
    scene.looks = (BOTH,)
    with pytest.raises(Refused, match="no group can be moved: both: it is CONTRADICTORY"):
        scene.plan()


def test_the_way_back_needs_a_broker_that_serves_old_members(scene: Scene) -> None:
    scene.context["params"]["direction"] = "back to ZooKeeper"
    scene.looks = (NEW,)
    assert scene.plan().direction is Direction.BACK
    seen = observation(Phase.HYBRID)
    scene.cluster.shown[:] = [
        replace(seen, brokers={n: replace(b, mode=BrokerMode.KRAFT) for n, b in seen.brokers.items()})
    ]
    with pytest.raises(Refused, match="old consumers would find none and read nothing"):
        scene.plan()


def test_nothing_is_changed_before_the_signature_of_this_very_plan(scene: Scene) -> None:
    digest = scene.plan().digest
    scene.read_at_the_stop()
    seen = observation(Phase.HYBRID)

    def go(*without: str, shown: str = digest) -> None:
        found = examine(scene.run, MOVE_GROUPS)
        proof = make_proof(
            MOVE_GROUPS,
            seen,
            SPEC,
            checks=(PASSED, *found.checks),
            parity=None,
            rollback=found.way_back,
            made_at=datetime.now(UTC),
            exhibits=(Exhibit("plan", shown, ""),),
        )
        sign(scene.context["ti"], MOVE_GROUPS, proof, *without)
        task = MoveGroups(task_id="fence", cluster="lab", step=Step.FENCE)
        task.act(scene.context, run_in(scene.context, scene.cluster, Claimed))

    for without in ("approve", "confirm"):
        with pytest.raises(Refused):
            go(without)
    with pytest.raises(Refused, match="nobody has signed it"):
        go(shown="other")
    assert scene.did == []
    go()
    assert scene.did == ["fence_group g [7, 8]"]
    scene.cluster.shown[:] = [broker(2, running=False)(seen)]
    go()
    assert len(scene.did) == 2, "a broker that fails is no reason to ask again"
    scene.cluster.shown[:] = [observation(Phase.FINALIZED)]
    with pytest.raises(Refused, match="the phase was HYBRID, now FINALIZED"):
        MoveGroups(task_id="commit", cluster="lab", step=Step.COMMIT).act(
            scene.context, run_in(scene.context, scene.cluster, Claimed)
        )


# -- the owner ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    pages: list[str] = []
    monkeypatch.setattr(HITLOperator, "execute", lambda self, _: pages.append(self.body))
    return pages


def test_the_owner_is_asked_to_stop_what_is_there_and_not_where_nobody_is(scene: Scene, asked: list[str]) -> None:
    scene.plan()
    task = AskOwner(task_id="ask", cluster="lab", starts=False)
    task.act(scene.context, scene.run)
    (page,) = asked
    assert page.startswith("Stop all old members (ZooKeeper) of these groups") and "- `g`: 2 partitions" in page
    scene.looks = (STOPPED,)
    assert task.act(scene.context, scene.run) == {"not_asked": "already done"} and len(asked) == 1


def test_the_owner_is_asked_to_start_until_all_own_and_read(scene: Scene, asked: list[str]) -> None:
    scene.plan()
    task = AskOwner(task_id="ask", cluster="lab", starts=True)
    with pytest.raises(Refused, match=r"clear the task 'stop\.silent'"):
        task.act(scene.context, scene.run)
    scene.read_at_the_stop()
    task.act(scene.context, scene.run)
    assert "Start the new members (`KafkaConsumer`" in asked[0]
    scene.missing = ()
    assert task.act(scene.context, scene.run) == {"not_asked": "already done"} and len(asked) == 1


def test_an_answer_is_on_record_and_giving_up_ends_the_run(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HITLOperator, "execute_complete", lambda self, context, event: event)
    task = AskOwner(task_id="ask", cluster="lab", starts=False)
    by = {"responded_by_user": {"id": "1", "name": "anna"}}
    task.execute_complete(scene.context, {**by, "chosen_options": ["Done"]})
    with pytest.raises(AirflowFailException, match="given up by anna"):
        task.execute_complete(scene.context, {**by, "chosen_options": ["Give up"]})
    assert scene.told() == ["stopped, says anna: ", "given up by anna: "]


# -- the waits ---------------------------------------------------------------------------------------------------------


def resumed(scene: Scene, starts: bool, missing: list[str], until: float) -> Any:
    task = AwaitGroups(task_id="wait", cluster="lab", starts=starts, deadline=60)
    task.act_or_rehearse = lambda context, act, rehearse: act(context, scene.run)  # type: ignore[method-assign]
    return task.resume(scene.context, {"missing": missing}, until=until)


def test_no_worker_waits_and_what_is_missing_at_the_deadline_is_named(scene: Scene) -> None:
    plan = scene.plan()
    with pytest.raises(TaskDeferred) as deferred:
        AwaitGroups(task_id="wait", cluster="lab", starts=False, deadline=60).act(scene.context, scene.run)
    trigger = deferred.value.trigger
    assert isinstance(trigger, GroupTrigger)
    assert trigger.serialize()[1] == {
        "cluster": "lab",
        "run": files_of(scene.context).name,
        "digest": plan.digest,
        "interval": 60.0,
    }
    with pytest.raises(TaskDeferred):
        resumed(scene, False, ["g: registered in ZooKeeper: x"], until=9e9)
    with pytest.raises(StepFailed, match="not silent in 1 min: g: registered in ZooKeeper: x"):
        resumed(scene, False, ["g: registered in ZooKeeper: x"], until=0)


def test_what_was_read_at_the_stop_is_kept_and_handed_to_the_next_try(scene: Scene) -> None:
    digest = scene.plan().digest
    assert resumed(scene, False, [], until=0) == {"groups": 1}
    assert scene.kept is None
    (kept,) = files_of(scene.context).at_the_stop(digest).plans
    assert [each.offset for each in kept.offsets] == [7, 8]
    resumed(scene, False, [], until=0)
    assert scene.kept == kept
    assert scene.told()[1] == "read at the stop: g (2 partitions)"


def test_the_run_has_moved_the_groups_once_nothing_is_missing(scene: Scene) -> None:
    scene.plan()
    scene.read_at_the_stop()
    assert resumed(scene, True, [], until=0) == {"groups": 1}
    assert scene.told()[-1] == "moved to Kafka: g"


class Trigger(GroupTrigger):
    def __init__(self, looks: list[Any]) -> None:
        super().__init__("lab", "run", "digest", 60.0)
        self.looks, self.poll, self.awake = looks, 0.0, 5.0

    def watch(self) -> Any:
        def seen() -> tuple[str, ...]:
            found = self.looks.pop(0)
            if isinstance(found, Exception):
                raise found
            return tuple(found)

        return seen


def fired(trigger: GroupTrigger) -> Any:
    async def first() -> TriggerEvent:
        return await anext(trigger.run())

    return asyncio.run(first()).payload


def test_the_wait_looks_again_after_a_look_that_failed() -> None:
    assert fired(Trigger([["g: x"], Unreachable("ZooKeeper is away", way_out="start it"), ()])) == {"missing": []}


def test_a_wait_that_can_not_begin_says_why(scene: Scene) -> None:
    """No file of the run is there, as on a triggerer that does not share the state directory."""
    (missing,) = fired(GroupTrigger("lab", "run", "digest", 60.0))["missing"]
    assert "plan.json can't be read" in missing


def test_silence_that_began_lasts_less_than_a_wait_between_two_claims() -> None:
    assert 2 * PARAMS["commit_interval"].schema["maximum"] < watching.AWAKE_SECONDS


# -- the acts ----------------------------------------------------------------------------------------------------------


def test_to_kafka_the_fence_comes_before_the_offsets_and_stays(scene: Scene) -> None:
    scene.plan()
    scene.read_at_the_stop()
    for step in Step:
        scene.step(step)
    assert scene.did == ["fence_group g [7, 8]", "commit_group g [7, 8]"]
    assert scene.told()[-2:] == ["fenced: g (2)", "committed to Kafka: g (2)"]


def test_back_the_offsets_come_before_the_fence_is_lifted(scene: Scene) -> None:
    scene.context["params"]["direction"] = "back to ZooKeeper"
    scene.looks = (NEW,)
    scene.plan()
    scene.read_at_the_stop()
    for step in Step:
        scene.step(step)
    assert scene.did == ["write_back_group g [11, 11]", "lift_group g [11, 11]"]


def test_a_group_that_fails_keeps_no_other_back_and_is_named(scene: Scene) -> None:
    scene.looks = tuple(replace(OLD, name=name) for name in ("a", "b", "c"))
    scene.plan()
    scene.read_at_the_stop()
    scene.failing = {"b": Refused("group b is not silent: x", way_out="stop it")}
    with pytest.raises(StepFailed, match="group b is not silent: x"):
        scene.step(Step.COMMIT)
    assert [each.split()[1] for each in scene.did] == ["a", "c"]
    assert scene.told()[-1] == "committed to Kafka: a (2), c (2)"


def test_the_dry_run_lists_the_acts_of_the_real_run_in_their_order(scene: Scene) -> None:
    scene.plan()
    would = RehearsedCluster(SPEC, lambda _: "", print)
    vars(would).update(ask=scene.cluster.ask, observe=scene.cluster.observe)
    for step in Step:
        MoveGroups(task_id="t", cluster="lab", step=step).rehearse(scene.context, run_in(scene.context, would))
    assert scene.did == []
    scene.read_at_the_stop()
    for step in Step:
        scene.step(step)
    assert [each.what for each in would.acts] == [each.what for each in scene.cluster.acts]
    assert [str(each) for each in would.acts] == [
        "fence 2 partitions of group g\nt-0\nt-1",
        "write 2 offsets of group g to Kafka\nt-0: nothing -> 5\nt-1: nothing -> 6",
    ]


def test_the_report_says_what_became_of_each_group(scene: Scene) -> None:
    scene.looks = (OLD, BOTH)
    scene.plan()
    scene.read_at_the_stop()
    scene.step(Step.FENCE)
    told = GROUPS.account([record.body for record in records_of(scene.context)])
    assert told is not None
    assert "- left out: both: it is CONTRADICTORY" in told and "- fenced: g (2)" in told
