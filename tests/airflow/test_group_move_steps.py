"""What each task of a move of consumer groups does wherever the groups are on their way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from airflow.triggers.base import TriggerEvent
from group_scene import BOTH, LOGS, NEW, OLD, STOPPED, T0, T1, Scene, begin, pages_put_before, resumed
from groups_seen_as import kafka, look, member, new, zookeeper
from in_run import Claimed, Signed, run_in
from observations import SPEC, broker, observation
from signed_run import PASSED, sign

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.gates.proof import Exhibit, make_proof
from kraft_runbook.gates.signatures import standing
from kraft_runbook.groups.look import CLASSIC, CONSUMER, Kind, LogBounds
from kraft_runbook.groups.operation import GROUPS, MOVE_GROUPS, Step
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.silence import INTERVALS
from kraft_runbook.io.group_claims import Acts
from kraft_runbook.steps.examine import examines_settled
from kraft_runbook.steps.groups.files import files_of
from kraft_runbook.steps.groups.moving import give_groups_back, move_groups
from kraft_runbook.steps.groups.planning import shows_plan
from kraft_runbook.steps.groups.waiting import GRACE_SECONDS, Awaited, Waits
from kraft_runbook.steps.handle import RehearsedCluster
from kraft_runbook_airflow.base.journal import records_of
from kraft_runbook_airflow.groups.asking import AskOwner
from kraft_runbook_airflow.groups.watching import AWAKE_SECONDS, AwaitGroups, GroupTrigger
from kraft_runbook_airflow.groups.words import PARAMS

# -- the plan and the gate ---------------------------------------------------------------------------------------------


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    return begin(monkeypatch, tmp_path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return pages_put_before(monkeypatch)


def test_one_refused_group_is_named_and_the_others_are_planned(scene: Scene) -> None:
    scene.looks = (OLD, BOTH)
    assert [each.group for each in scene.plan().plans] == ["g"]
    planned, left_out = scene.told()
    assert planned == "planned: g" and left_out.startswith("left out: both: it is CONTRADICTORY")
    shown = shows_plan(scene.run)
    assert shown.exhibits[0].digest == files_of(scene.run).plan().digest
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


def sign_plan(scene: Scene, shown: str, *without: str, made_at: datetime | None = None) -> None:
    """Leave the evidence of a gate that has shown the plan with this digest."""
    found = examines_settled(GROUPS)(scene.run, MOVE_GROUPS)
    proof = make_proof(
        MOVE_GROUPS,
        observation(Phase.HYBRID),
        SPEC,
        checks=(PASSED, *found.checks),
        parity=None,
        rollback=found.way_back,
        made_at=made_at or datetime.now(UTC),
        exhibits=(Exhibit("plan", shown, ""),),
    )
    sign(scene.context["ti"], MOVE_GROUPS, proof, *without)


def test_nothing_is_changed_before_the_signature_of_this_very_plan(scene: Scene) -> None:
    digest = scene.plan().digest
    scene.read_at_the_stop()
    seen = observation(Phase.HYBRID)

    def go(*without: str, shown: str = digest) -> None:
        sign_plan(scene, shown, *without)
        move_groups(run_in(scene.context, scene.cluster, Claimed), step=Step.FENCE, number=1)

    for without in ("approve", "confirm"):
        with pytest.raises(Refused):
            go(without)
    with pytest.raises(Refused, match="Nobody has signed it"):
        go(shown="other")
    assert scene.did == []
    go()
    assert scene.did == ["fence_group g [7, 8]"] and scene.context["ti"].claimed == ["g"]
    scene.cluster.shown[:] = [observation(Phase.DUAL_WRITE)]
    go()
    scene.cluster.shown[:] = [seen]
    assert scene.did.pop() == "fence_group g [7, 8]", "a migration goes on beside the move"
    scene.cluster.shown[:] = [broker(2, running=False)(seen)]
    go()
    assert len(scene.did) == 2, "a broker that fails is no reason to ask again"
    scene.cluster.shown[:] = [observation(Phase.FINALIZED)]
    with pytest.raises(Refused, match="the phase was HYBRID, now FINALIZED"):
        move_groups(run_in(scene.context, scene.cluster, Claimed), step=Step.COMMIT, number=1)


class Busy(Signed):
    """Another run restarts a node for two looks, or for ever. ``asked``: how often."""

    asked: ClassVar[list[Any]] = []
    looks: ClassVar[int] = 2

    def take_groups(self, groups: Any, *, waits: bool = False) -> None:
        if waits:
            return
        self.asked.append(groups)
        if len(self.asked) <= self.looks:
            raise Acts("run one of zk_to_kraft_migration__lab acts on cluster lab: its task x goes on", way_out="wait")


class ForEver(Busy):
    looks = 10**6


def test_no_group_is_touched_while_another_run_restarts_a_node(scene: Scene) -> None:
    Busy.asked.clear()
    scene.plan()
    scene.read_at_the_stop()
    run = run_in(scene.context, scene.cluster, Busy)
    move_groups(run, step=Step.FENCE, number=1)
    assert len(Busy.asked) == 3 and scene.did == ["fence_group g [7, 8]"]
    assert (
        scene.cluster.told.count(
            "Waiting: run one of zk_to_kraft_migration__lab acts on cluster lab: its task x goes on"
        )
        == 2
    )
    with pytest.raises(Acts, match="its task x goes on"):
        move_groups(run_in(scene.context, scene.cluster, ForEver), step=Step.FENCE, number=1)
    assert len(scene.did) == 1


def test_a_wait_goes_on_while_another_run_acts_and_removes_nobody_meanwhile(scene: Scene) -> None:
    scene.context["params"]["direction"] = "back to ZooKeeper"
    scene.looks = (NEW,)
    scene.plan()
    run = run_in(scene.context, scene.cluster, ForEver)
    began = run.cluster.now()
    with pytest.raises(TaskDeferred):
        AwaitGroups(task_id="wait", cluster="lab", awaits=Awaited(False, 1, 60)).act(scene.context, run)
    assert run.cluster.now() == began and scene.did == []
    assert scene.cluster.told[-1].startswith("Static members are removed later: run one of zk_to_kraft_migration__lab")


def test_the_claims_on_the_groups_of_all_waves_are_renewed(scene: Scene) -> None:
    scene.context["params"]["canary"] = True
    scene.looks = tuple(replace(OLD, name=name) for name in ("a", "b"))
    scene.plan()
    with pytest.raises(TaskDeferred):
        AwaitGroups(task_id="wait", cluster="lab", awaits=Awaited(False, 1, 60)).act(scene.context, scene.run)
    assert scene.context["ti"].claimed == ["a", "b"]


def test_the_way_back_looks_for_brokers_that_serve_old_members_before_each_act(scene: Scene) -> None:
    scene.context["params"]["direction"] = "back to ZooKeeper"
    scene.looks = (NEW,)
    scene.plan()
    scene.read_at_the_stop()
    seen = observation(Phase.HYBRID)
    scene.cluster.shown[:] = [
        replace(seen, brokers={n: replace(b, mode=BrokerMode.KRAFT) for n, b in seen.brokers.items()})
    ]
    for step in (Step.COMMIT, Step.LIFT_FENCE):
        with pytest.raises(Refused, match="old consumers would find none and read nothing"):
            scene.step(step)
    assert scene.did == []


def test_the_report_gives_the_claims_on_the_groups_back(scene: Scene) -> None:
    give_groups_back(scene.run)
    assert not hasattr(scene.context["ti"], "given_back")
    scene.plan()
    give_groups_back(scene.run)
    assert scene.context["ti"].given_back == ["g"]


# -- the owner ---------------------------------------------------------------------------------------------------------


def test_the_owner_is_asked_to_stop_also_where_nobody_is_seen(scene: Scene, asked: list[str]) -> None:
    scene.plan()
    task = AskOwner(task_id="ask", cluster="lab", starts=False, wave=1)
    task.act(scene.context, scene.run)
    (page,) = asked
    assert page.startswith("Stop all old members (ZooKeeper) of these groups") and "- `g`: 2 partitions" in page
    scene.looks = (STOPPED,)
    task.act(scene.context, scene.run)
    assert len(asked) == 2, "who registers nowhere can't be seen: nobody is taken to be stopped"
    scene.read_at_the_stop()
    assert task.act(scene.context, scene.run) == {"not_asked": "already done"} and len(asked) == 2


def test_the_owner_is_asked_to_start_until_all_own_and_read(scene: Scene, asked: list[str]) -> None:
    scene.plan()
    task = AskOwner(task_id="ask", cluster="lab", starts=True, wave=1)
    with pytest.raises(Refused, match="clear the task 'silent' of its wave"):
        task.act(scene.context, scene.run)
    scene.read_at_the_stop()
    scene.step(Step.COMMIT)
    task.act(scene.context, scene.run)
    assert "Start the new members (`KafkaConsumer`" in asked[0]
    scene.missing = ()
    assert task.act(scene.context, scene.run) == {"not_asked": "already done"} and len(asked) == 1


class Lost(Signed):
    """Another run has moved the groups since."""

    def take_groups(self, groups: Any, *, waits: bool = False) -> None:
        raise Refused("lab's group g is being changed by run two", way_out="wait")


def test_a_question_of_an_older_run_is_not_asked_again(scene: Scene, asked: list[str]) -> None:
    scene.plan()
    scene.read_at_the_stop()
    scene.step(Step.COMMIT)
    for starts in (False, True):
        task = AskOwner(task_id="ask", cluster="lab", starts=starts, wave=1)
        with pytest.raises(Refused, match="is being changed by run two"):
            task.act(scene.context, run_in(scene.context, scene.cluster, Lost))
        with pytest.raises(Refused):
            task.act(scene.context, run_in(scene.context, scene.cluster, Claimed))
    assert asked == []


def test_an_answer_is_on_record_and_giving_up_ends_the_run(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HITLOperator, "execute_complete", lambda self, context, event: event)
    task = AskOwner(task_id="ask", cluster="lab", starts=False, wave=1)
    by = {"responded_by_user": {"id": "1", "name": "anna"}}
    task.execute_complete(scene.context, {**by, "chosen_options": ["Done"]})
    with pytest.raises(AirflowFailException, match="given up by anna"):
        task.execute_complete(scene.context, {**by, "chosen_options": ["Give up"]})
    assert scene.told() == ["stopped, says anna: ", "given up by anna: "]


def test_from_the_question_to_the_owner_on_the_proofs_age_stops_nobody(scene: Scene, asked: list[str]) -> None:
    """What follows may come a day later, and the applications are stopped by then."""
    digest = scene.plan().digest
    sign_plan(scene, digest, made_at=datetime.now(UTC) - timedelta(days=1))
    run = run_in(scene.context, scene.cluster, Claimed)
    task = AskOwner(task_id="ask", cluster="lab", starts=False, wave=1)
    would = RehearsedCluster(SPEC, lambda _: "", print)
    vars(would).update(ask=scene.cluster.ask, observe=scene.cluster.observe)
    task.act(scene.context, run_in(scene.context, would))
    for step in (lambda: task.act(scene.context, run), lambda: Awaited(False, 1, 60).begin(run)):
        with pytest.raises(Refused, match=r"the proof is 864\d\d s old"):
            step()
    assert asked == []
    task.act(scene.context, scene.run)
    assert len(asked) == 1
    task.act(scene.context, run)
    assert len(asked) == 2, "killed before the owner was asked, it asks"
    assert isinstance(Awaited(False, 1, 60).begin(run), Waits)
    assert Awaited(False, 1, 60).go_on(run, {"missing": {}}, until=0) == {"groups": 1, "stayed": []}
    move_groups(run, step=Step.FENCE, number=1)
    assert scene.did == ["fence_group g [7, 8]"]
    sign_plan(scene, digest, made_at=datetime.now(UTC) - timedelta(days=1))
    with pytest.raises(Refused, match="s old"):
        move_groups(run, step=Step.COMMIT, number=1)


def test_who_removes_static_members_has_begun_to_act(scene: Scene) -> None:
    """Where the task that asks the owner was marked successful by hand."""
    scene.context["params"]["direction"] = "back to ZooKeeper"
    scene.looks, scene.static = (NEW,), 1
    sign_plan(scene, scene.plan().digest)
    Awaited(False, 1, 60).begin(run_in(scene.context, scene.cluster, Claimed))
    assert standing(records_of(scene.context), MOVE_GROUPS).begun


# -- the waits ---------------------------------------------------------------------------------------------------------


def test_no_worker_waits_and_what_is_missing_at_the_deadline_is_named(scene: Scene) -> None:
    plan = scene.plan()
    with pytest.raises(TaskDeferred) as deferred:
        AwaitGroups(task_id="wait", cluster="lab", awaits=Awaited(False, 1, 60)).act(scene.context, scene.run)
    trigger = deferred.value.trigger
    assert isinstance(trigger, GroupTrigger)
    assert trigger.serialize()[1] == {
        "cluster": "lab",
        "run": files_of(scene.run).name,
        "digest": plan.digest,
        "groups": ["g"],
        "interval": 60.0,
    }
    with pytest.raises(TaskDeferred):
        resumed(scene, False, {"g": "g: registered in ZooKeeper: x"}, until=9e9)
    with pytest.raises(StepFailed, match="not silent in time: g: registered in ZooKeeper: x"):
        resumed(scene, False, {"g": "g: registered in ZooKeeper: x"}, until=0)


def test_what_was_read_at_the_stop_is_kept_and_handed_to_the_next_try(scene: Scene) -> None:
    digest = scene.plan().digest
    assert resumed(scene, False, {}, until=0) == {"groups": 1, "stayed": []}
    assert scene.kept is None
    (kept,) = files_of(scene.run).at_the_stop(digest).plans
    assert [each.offset for each in kept.offsets] == [7, 8]
    resumed(scene, False, {}, until=0)
    assert scene.kept == kept
    assert scene.told()[1] == "read at the stop: g (2 partitions)"


def test_the_run_has_moved_the_groups_once_nothing_is_missing(scene: Scene) -> None:
    scene.plan()
    scene.read_at_the_stop()
    assert resumed(scene, True, {}, until=0) == {"groups": 1, "stayed": []}
    assert scene.told()[-1] == "moved to Kafka: g"


def test_topics_that_nobody_read_are_not_told_as_taken_over(scene: Scene) -> None:
    left = zookeeper(member(Kind.OLD), offsets={T0: 5, T1: 6, ("left", 0): 7})
    scene.looks = (look(left, logs={**LOGS, "left": {0: LogBounds(0, 9)}}),)
    scene.plan()
    scene.read_at_the_stop()
    assert resumed(scene, True, {}, until=0) == {"groups": 1, "stayed": []}
    assert scene.cluster.told[-1] == "g: not so of left, which no member read before the move"


class Trigger(GroupTrigger):
    def __init__(self, looks: list[Any]) -> None:
        super().__init__("lab", "run", "digest", ["g", "h"], 60.0)
        self.looks, self.poll, self.awake = looks, 0.0, 5.0

    def watch(self) -> Any:
        trigger = self

        class Seen:
            waits: dict[str, str]

            def __call__(self) -> None:
                found = trigger.looks.pop(0)
                if isinstance(found, Exception):
                    raise found
                self.waits = found

        return Seen()


def fired(trigger: GroupTrigger) -> Any:
    async def first() -> TriggerEvent:
        return await anext(trigger.run())

    return asyncio.run(first()).payload


def test_the_wait_looks_again_after_a_look_that_failed() -> None:
    looks = [{"g": "g: x", "h": "h: x"}, Unreachable("ZooKeeper is away", way_out="start it"), {}]
    assert fired(Trigger(looks)) == {"missing": {}, "error": "", "over": False}


def test_a_group_that_is_silent_waits_for_another_of_its_wave_for_so_long() -> None:
    trigger = Trigger([{"g": "g: x", "h": "h: x"}, {"h": "h: x"}])
    trigger.grace = 0.0
    assert fired(trigger) == {"missing": {"h": "h: x"}, "error": "", "over": True}


def test_a_wait_that_can_not_begin_says_why(scene: Scene) -> None:
    """No file of the run is there, as on a triggerer that does not share the state directory."""
    told = fired(GroupTrigger("lab", "run", "digest", ["g"], 60.0))
    assert "plan.json can't be read" in told["error"] and "g" in told["missing"]


def test_silence_and_the_grace_after_it_last_less_than_a_wait_between_two_claims() -> None:
    """Else a group that is silent would wait for another one for ever: the next trigger begins anew."""
    longest = INTERVALS * PARAMS["commit_interval"].schema["maximum"]
    assert longest + GRACE_SECONDS < AWAKE_SECONDS


# -- the acts ----------------------------------------------------------------------------------------------------------


def test_to_kafka_the_fence_comes_before_the_offsets_and_stays(scene: Scene) -> None:
    scene.plan()
    scene.read_at_the_stop()
    for step in Step:
        scene.step(step)
    assert scene.did == ["fence_group g [7, 8]", "commit_group g [7, 8]"]
    assert scene.told()[-2:] == ["fenced: g (2)", "committed to Kafka: g (2)"]


def test_what_could_not_be_written_as_it_was_read_is_on_record(scene: Scene) -> None:
    scene.since = ("deleted since, and given no offset: t-1",)
    scene.plan()
    scene.read_at_the_stop()
    scene.step(Step.COMMIT)
    assert scene.told()[-1] == "committed to Kafka: g (2); g: deleted since, and given no offset: t-1"


def test_back_the_offsets_come_before_the_fence_is_lifted(scene: Scene) -> None:
    scene.context["params"]["direction"] = "back to ZooKeeper"
    scene.looks = (NEW,)
    scene.plan()
    scene.read_at_the_stop()
    for step in Step:
        scene.step(step)
    assert scene.did == ["write_back_group g [11, 11]", "lift_group g [11, 11]"]


def await_silence(scene: Scene) -> None:
    with pytest.raises(TaskDeferred):
        AwaitGroups(task_id="wait", cluster="lab", awaits=Awaited(False, 1, 60)).act(scene.context, scene.run)


def test_static_members_that_were_left_are_removed_on_the_way_back(scene: Scene) -> None:
    scene.context["params"]["direction"] = "back to ZooKeeper"
    scene.looks, scene.static = (NEW,), 1
    scene.plan()
    await_silence(scene)
    assert scene.told()[-1] == "static members removed: g (1)"


def test_static_members_of_whom_nobody_has_said_that_they_stopped_are_not_removed(scene: Scene) -> None:
    """Those found on the way to Kafka came after the plan; back, those found after the reading came after it."""
    scene.static = 1
    scene.plan()
    await_silence(scene)
    scene.read_at_the_stop()
    await_silence(scene)
    scene.context["params"]["direction"] = "back to ZooKeeper"
    scene.looks = (NEW,)
    scene.plan()
    scene.read_at_the_stop()
    await_silence(scene)
    assert not [each for each in scene.told() if "static" in each]


def test_the_dry_run_lists_the_acts_of_the_real_run_in_their_order(scene: Scene) -> None:
    scene.plan()
    would = RehearsedCluster(SPEC, lambda _: "", print)
    vars(would).update(ask=scene.cluster.ask, observe=scene.cluster.observe)
    for step in Step:
        move_groups(run_in(scene.context, would), step=step, number=1)
    assert scene.did == []
    scene.read_at_the_stop()
    for step in Step:
        scene.step(step)
    assert [each.what for each in would.acts] == [each.what for each in scene.cluster.acts]
    assert [str(each) for each in would.acts] == [
        "fence 2 partitions of group g\nt-0\nt-1",
        "write 2 offsets of group g to Kafka\nt-0: nothing -> 5\nt-1: nothing -> 6",
    ]


@pytest.mark.parametrize("group_type", [CLASSIC, CONSUMER])
@pytest.mark.parametrize("static", [0, 1])
def test_the_dry_run_back_lists_the_static_members_that_the_run_then_removes(
    scene: Scene, static: int, group_type: str
) -> None:
    """Of the consumer protocol nobody may remove one."""
    side = kafka(new("app", T0, T1, instance="a-1" if static else None), offsets={T0: 9, T1: 9})
    scene.looks = (replace(NEW, kafka=replace(side, group_type=group_type)),)
    scene.static = static if group_type == CLASSIC else 0
    scene.context["params"]["direction"] = "back to ZooKeeper"
    scene.plan()
    would = RehearsedCluster(SPEC, lambda _: "", print)
    vars(would).update(ask=scene.cluster.ask, observe=scene.cluster.observe)
    assert Awaited(False, 1, 60).begin(run_in(scene.context, would)) == {}
    for step in Step:
        move_groups(run_in(scene.context, would), step=step, number=1)
    await_silence(scene)
    scene.read_at_the_stop()
    for step in Step:
        scene.step(step)
    assert [each.what for each in would.acts] == [each.what for each in scene.cluster.acts]
    removals = [str(each) for each in would.acts[:-2]]
    assert removals == ["remove the static members of group g that are left alone in it\na-1"] * scene.static


def test_the_report_says_what_became_of_each_group(scene: Scene) -> None:
    scene.looks = (OLD, BOTH)
    scene.plan()
    scene.read_at_the_stop()
    scene.step(Step.FENCE)
    told = GROUPS.account([record.body for record in records_of(scene.context)])
    assert told is not None
    assert "- left out: both: it is CONTRADICTORY" in told and "- fenced: g (2)" in told
