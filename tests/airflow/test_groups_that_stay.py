"""Groups that are refused on the way, and offsets that expire: one group keeps no other back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from group_scene import NEW, OLD, T0, T1, Scene, begin, pages_put_before, resumed
from groups_seen_as import zookeeper
from in_run import Signed, run_in

from kraft_runbook.errors import Refused, RunbookError, StepFailed, Unreachable
from kraft_runbook.groups.expiry import Retention
from kraft_runbook.groups.look import LogBounds, Owner
from kraft_runbook.groups.operation import Step
from kraft_runbook.groups.quiet import Quiet
from kraft_runbook.io.group_claims import ANSWER_SECONDS, Acts
from kraft_runbook.procedures.move_group import NotSeen
from kraft_runbook.procedures.offsets_retention import read_offsets_retention
from kraft_runbook.steps.claim_of_run import BUSY_SECONDS
from kraft_runbook.steps.groups.acts import remove_static
from kraft_runbook.steps.groups.files import files_of
from kraft_runbook.steps.groups.moving import move_groups, name_who_stayed
from kraft_runbook.steps.groups.waiting import Awaited
from kraft_runbook.steps.run import NothingToDo
from kraft_runbook_airflow.groups.asking import AskOwner
from kraft_runbook_airflow.groups.watching import AwaitGroups


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    return begin(monkeypatch, tmp_path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return pages_put_before(monkeypatch)


def test_a_group_that_fails_keeps_no_other_back_and_is_named(scene: Scene) -> None:
    scene.looks = tuple(replace(OLD, name=name) for name in ("a", "b", "c"))
    scene.plan()
    scene.read_at_the_stop()
    scene.failing = {"b": Refused("group b is not silent: x", way_out="stop it")}
    assert scene.step(Step.FENCE)["stayed"] == ["b"]
    assert scene.told()[-2:] == ["stayed: b: group b is not silent: x; stop it", "fenced: a (2), c (2)"]
    scene.failing = {}
    scene.step(Step.COMMIT)
    assert [each.split()[1] for each in scene.did] == ["a", "c", "a", "c"]
    assert scene.told()[-1] == "committed to Kafka: a (2), c (2)"
    with pytest.raises(StepFailed, match="2 groups were moved to Kafka, 1 stayed and may be stopped now: b: group b"):
        name_who_stayed(scene.run)
    scene.step(Step.FENCE)
    with pytest.raises(StepFailed, match="nobody saw the members of 3 groups read on the other side: a, b, c"):
        name_who_stayed(scene.run)  # the wait for them was marked successful by hand
    files = files_of(scene.run)
    files.keep_started(files.plan().digest, ["a", "b", "c"], 0.0)
    assert name_who_stayed(scene.run) == {"moved": 3}, "cleared, it is tried again"


def test_where_every_group_is_refused_the_task_fails(scene: Scene) -> None:
    scene.plan()
    scene.read_at_the_stop()
    scene.failing = {"g": Refused("group g is not silent: x", way_out="stop it")}
    with pytest.raises(Refused, match="group g is not silent: x"):
        scene.step(Step.FENCE)


def test_of_fifty_groups_one_that_is_refused_keeps_no_other_back(scene: Scene) -> None:
    scene.context["params"] |= {"canary": True}
    names = [f"g{n:02}" for n in range(50)]
    scene.looks = tuple(replace(OLD, name=name) for name in names)
    plan = scene.plan()
    assert "wave 1: g00\nwave 2: g01, g02, g03, g04, g05" in files_of(scene.run).shown(plan)
    scene.failing = {"g17": Refused("t-1 of g17 has no offset", way_out="name it in the form")}
    scene.missing = ()
    for wave in range(1, 12):
        assert resumed(scene, False, {}, until=0, wave=wave)["groups"] + (wave == 5) in (1, 4, 5)
        for step in (Step.FENCE, Step.COMMIT):
            scene.step(step, wave)
        resumed(scene, True, {}, until=0, wave=wave)
    with pytest.raises(NothingToDo):
        scene.step(Step.FENCE, 12)
    moved = [told for told in scene.told() if told.startswith("moved to Kafka: ")]
    assert len(moved) == 11 and len(" ".join(moved).split("g")) - 1 == 49
    with pytest.raises(StepFailed, match="49 groups were moved to Kafka, 1 stayed and may be stopped now: g17: t-1 of"):
        name_who_stayed(scene.run)


def test_a_group_that_does_not_fall_silent_stays_and_the_offsets_of_the_others_are_kept(scene: Scene) -> None:
    scene.looks = tuple(replace(OLD, name=name) for name in ("a", "b"))
    digest = scene.plan().digest
    quiet = Quiet({T0: 5}, {T0: 90})
    files_of(scene.run).keep_quiet("a", quiet)
    with pytest.raises(TaskDeferred):
        resumed(scene, False, {"b": "b: registered: x"}, until=9e9)
    assert resumed(scene, False, {"b": "b: registered: x"}, until=9e9, over=True) == {"groups": 1, "stayed": ["b"]}
    assert [each.group for each in files_of(scene.run).at_the_stop(digest).plans] == ["a"]
    assert scene.quiet == {"a": quiet}
    assert scene.told()[-1].startswith("stayed: b: not silent in time: b: registered: x")
    resumed(scene, False, {}, until=0)
    assert [each.group for each in files_of(scene.run).at_the_stop(digest).plans] == ["a", "b"]
    assert files_of(scene.run).stayed(digest) == {}


def test_a_group_that_turns_out_to_be_well_is_not_told_to_stay(scene: Scene) -> None:
    """``silent`` is cleared for another group; at its first look the one that has started rebalances."""
    scene.looks = tuple(replace(OLD, name=name) for name in ("a", "b"))
    digest = scene.plan().digest
    scene.read_at_the_stop()
    for step in (Step.FENCE, Step.COMMIT):
        scene.step(step)
    resumed(scene, True, {"b": "b: x"}, until=0)
    scene.missing = ("a", "b")
    with pytest.raises(TaskDeferred) as deferred:
        AwaitGroups(task_id="wait", cluster="lab", awaits=Awaited(False, 1, 3600)).act(scene.context, scene.run)
    assert deferred.value.trigger.groups == ["a", "b"]
    scene.missing, of_a = ("b",), {"a": "a: in Kafka's group, which is Stable: app"}
    with pytest.raises(TaskDeferred) as deferred:
        resumed(scene, False, {**of_a, "b": "b: silent for 1 of 120 s"}, until=9e9)
    assert deferred.value.trigger.groups == ["b"]
    assert resumed(scene, False, of_a, until=9e9) == {"groups": 1, "stayed": []}
    assert files_of(scene.run).stayed(digest) == {}


def test_a_plan_that_is_made_anew_moves_no_end_at_the_stop(scene: Scene) -> None:
    """Producers go on meanwhile, and nobody consumes: what comes after the stop would be skipped."""
    scene.plan()
    files, quiet, later = files_of(scene.run), Quiet({T0: 7}, {T1: 110}), Quiet({T0: 9}, {T1: 120})
    files.keep_quiet("g", quiet)
    scene.context["params"]["without"] = "end at the stop"
    ended = {"t": {0: LogBounds(0, 5000), 1: LogBounds(0, 5000)}}
    scene.looks = (replace(OLD, zookeeper=zookeeper(owners={T0: Owner("fence", True)}, offsets={T0: 7}), logs=ended),)
    assert [each.offset for each in scene.plan().plans[0].offsets] == [7, None]
    scene.read_at_the_stop()
    assert scene.quiet == {"g": quiet}
    files.keep_quiet("g", later)
    (files.directory / "quiet-0123456789abcdef.json").write_text(json.dumps({"g": quiet.to_dict()}))
    assert files.quiet() == {"g": later}
    (files.directory / "quiet.json").unlink()
    assert files.quiet() == {"g": quiet}, "as earlier releases wrote it"


def test_a_group_that_has_started_is_left_alone_where_a_task_is_cleared_for_another(
    scene: Scene, asked: list[str]
) -> None:
    """Its members consume: nothing waits for them to go, and nobody is asked to stop them."""
    scene.looks = tuple(replace(OLD, name=name) for name in ("a", "b"))
    digest = scene.plan().digest
    scene.read_at_the_stop()
    for step in (Step.FENCE, Step.COMMIT):
        scene.step(step)
    assert resumed(scene, True, {"b": "b: x"}, until=0) == {"groups": 1, "stayed": ["b"]}
    scene.did.clear()
    scene.missing = ("b",)
    with pytest.raises(TaskDeferred) as deferred:
        AwaitGroups(task_id="wait", cluster="lab", awaits=Awaited(False, 1, 60)).act(scene.context, scene.run)
    assert deferred.value.trigger.groups == ["b"]
    resumed(scene, False, {}, until=0)
    assert scene.step(Step.FENCE) == {"groups": 1, "stayed": []}
    assert scene.step(Step.COMMIT) == {"groups": 1, "stayed": []}
    assert [each.split()[1] for each in scene.did] == ["b", "b"]
    assert resumed(scene, True, {}, until=0) == {"groups": 2, "stayed": []}
    assert set(files_of(scene.run).started(digest)) == {"a", "b"}
    scene.missing, did = (), len(scene.did)
    assert resumed(scene, False, {}, until=0) == {"groups": 0, "stayed": []}
    assert scene.step(Step.FENCE) == {"groups": 0, "stayed": []} and len(scene.did) == did
    scene.context["ti"].claimed = []
    scene.step(Step.FENCE)
    assert scene.context["ti"].claimed == ["a", "b"], "the claims are renewed though nothing is left to do"
    stop = AskOwner(task_id="ask", cluster="lab", starts=False, wave=1)
    assert stop.act(scene.context, scene.run) == {"not_asked": "already done"}
    scene.missing = ("a",)
    assert scene.step(Step.FENCE) == {"groups": 1, "stayed": []}, "what a look does not confirm is not taken to be so"
    scene.step(Step.COMMIT)
    assert scene.did[-1] == "commit_group a [7, 8] begun", "the commit is told that its members have started before"


class Busy(Signed):
    """A node's task of another run waits until this run rests; ``goes``: whether it is over then."""

    goes = True

    def refuse_while_cluster_acts(self) -> None:
        if "rests" not in self.context["scene"].did:
            raise Acts("run two acts on cluster lab: its task restart goes on", way_out="wait")

    def rest(self) -> None:
        self.context["scene"].did.append("rests")

    def take_groups(self, groups: Any, *, waits: bool = False) -> None:
        if self.context["scene"].did and not self.goes:
            raise Acts("run two acts on cluster lab: its task restart goes on", way_out="clear it")
        if self.context["scene"].did:
            self.context["scene"].did.append("claims")


@pytest.mark.parametrize("goes", [True, False])
def test_between_two_groups_a_wave_gives_way_to_a_node(scene: Scene, goes: bool) -> None:
    """Where the node's task does not end, the groups that were not tried stay, and those that were are on record."""
    scene.looks = tuple(replace(OLD, name=name) for name in ("a", "b", "c"))
    scene.plan()
    scene.read_at_the_stop()
    scene.context["scene"] = scene
    run = run_in(scene.context, scene.cluster, type("Ports", (Busy,), {"goes": goes}))
    answer = move_groups(run, step=Step.COMMIT, number=1)
    told = [each for each in scene.cluster.told if each.startswith("The next group waits: run two acts")]
    files = files_of(scene.run)
    written = set(files.written(files.plan().digest))
    assert len(told) == 1
    if goes:
        assert [each.split()[:2][-1] for each in scene.did] == ["a", "rests", "claims", "b", "c"]
        assert answer == {"groups": 3, "stayed": []} and written == {"a", "b", "c"}
        return
    assert scene.did[1:] == ["rests"] and scene.cluster.paused >= BUSY_SECONDS
    assert answer == {"groups": 1, "stayed": ["b", "c"]} and written == {"a"}
    assert scene.told()[-2].startswith("stayed: c: run two acts on cluster lab")


class Silent(Signed):
    """ZooKeeper does not answer for so many seconds."""

    silent = 30.0

    def refuse_while_cluster_acts(self) -> None:
        scene = self.context["scene"]
        if scene.cluster.paused < self.silent:
            raise Unreachable("ZooKeeper did not answer", way_out="start it")


@pytest.mark.parametrize(("silent", "stayed"), [(30.0, []), (1e9, ["b", "c"])])
def test_a_moment_without_zookeeper_between_two_groups_holds_no_other_up(
    scene: Scene, silent: float, stayed: list[str]
) -> None:
    scene.looks = tuple(replace(OLD, name=name) for name in ("a", "b", "c"))
    scene.plan()
    scene.read_at_the_stop()
    scene.context["scene"] = scene
    run = run_in(scene.context, scene.cluster, type("Ports", (Silent,), {"silent": silent}))
    assert move_groups(run, step=Step.COMMIT, number=1) == {"groups": 3 - len(stayed), "stayed": stayed}
    assert scene.cluster.told.count("The next group waits: ZooKeeper did not answer") >= 30 / 5
    assert not stayed or scene.cluster.paused >= BUSY_SECONDS


def test_static_members_of_further_groups_are_removed_once_the_node_is_back(scene: Scene) -> None:
    scene.looks, scene.static = tuple(replace(NEW, name=name) for name in ("a", "b")), 1
    scene.context["params"] |= {"direction": "back to ZooKeeper"}
    plans = scene.plan().plans
    scene.context["scene"], scene.did = scene, ["a"]
    remove_static(run_in(scene.context, scene.cluster, Busy), plans, ["a", "b"])
    assert [each for each in scene.told() if "static" in each] == ["static members removed: a (1)"]
    assert scene.did == ["a", "claims", "rests"]
    assert scene.cluster.told[-1].startswith("Static members are removed later: run two acts on cluster lab")


# -- offsets that expire -----------------------------------------------------------------------------------------------


def test_no_group_is_planned_where_its_offsets_would_be_gone_before_somebody_starts_it(scene: Scene) -> None:
    scene.retention = Retention(1)
    with pytest.raises(Refused, match=r"offsets\.retention\.minutes is 1: the offsets could be gone"):
        scene.plan()


def test_the_start_is_asked_for_no_longer_than_the_offsets_are_safe(scene: Scene, asked: list[str]) -> None:
    scene.plan()
    scene.read_at_the_stop()
    scene.step(Step.COMMIT)
    scene.retention = Retention(8 * 60)
    scene.cluster.pause(1800.0)
    task = AskOwner(task_id="ask", cluster="lab", starts=True, wave=1)
    task.act(scene.context, scene.run)
    assert task.response_timeout is not None and task.response_timeout.total_seconds() == 5.5 * 3600
    assert "This question ends in 5 h, long enough before Kafka's offsets of a group without members expire" in asked[0]
    scene.cluster.pause(5.5 * 3600)
    with pytest.raises(Refused, match="committed 6 h ago; its members must start within 6 h"):
        task.act(scene.context, scene.run)


def test_a_group_that_had_members_in_kafka_may_start_whenever_its_offsets_are_there(
    scene: Scene, asked: list[str]
) -> None:
    """They were committed with a time of their own. Beside it a group that never had any is in time, then too late."""
    scene.looks = tuple(replace(OLD, name=name) for name in ("a", "b"))
    scene.had_members = ("a",)
    scene.plan()
    scene.read_at_the_stop()
    scene.step(Step.COMMIT)
    scene.missing, scene.retention = ("a", "b"), Retention(8 * 60)
    task = AskOwner(task_id="ask", cluster="lab", starts=True, wave=1)
    task.act(scene.context, scene.run)
    assert "- `a`" in asked[0] and "- `b`" in asked[0]
    scene.cluster.pause(100 * 86400.0)
    task.act(scene.context, scene.run)
    assert task.response_timeout is not None and task.response_timeout.total_seconds() == ANSWER_SECONDS
    page, refused = asked[1].split("Do not start these")
    assert "- `a`" in page and "This question ends in 24 h. The offsets" in page
    assert "- `b`: the offsets of group b were committed 100 days ago; its members must start within 6 h" in refused
    scene.missing = ("a",)
    scene.cluster.answers[read_offsets_retention] = lambda: pytest.fail("what the brokers say counts for no group")
    assert resumed(scene, True, {}, until=0) == {"groups": 1, "stayed": []}
    task.act(scene.context, scene.run)


def test_offsets_that_are_gone_before_the_start_is_asked_for_are_named(scene: Scene, asked: list[str]) -> None:
    scene.looks = tuple(replace(OLD, name=name) for name in ("a", "b"))
    scene.plan()
    scene.read_at_the_stop()
    scene.step(Step.COMMIT)
    scene.missing = ("a", "b")
    scene.failing = {"b": Refused("group b: no offset in Kafka any more: t-0", way_out="clear 'commit'")}
    task = AskOwner(task_id="ask", cluster="lab", starts=True, wave=1)
    task.act(scene.context, scene.run)
    page, refused = asked[0].split("Do not start these")
    assert "- `a`" in page and "`b`" not in page and "- `b`: group b: no offset in Kafka any more" in refused
    assert resumed(scene, True, {}, until=0) == {"groups": 1, "stayed": []}
    scene.failing = {each: scene.failing["b"] for each in ("a", "b")}
    with pytest.raises(Refused, match="no offset in Kafka any more"):
        task.act(scene.context, scene.run)


def test_offsets_that_are_lost_while_members_are_awaited_end_the_wait_for_that_group(scene: Scene) -> None:
    scene.looks = tuple(replace(OLD, name=name) for name in ("a", "b"))
    digest = scene.plan().digest
    scene.read_at_the_stop()
    scene.step(Step.COMMIT)
    scene.failing = {"b": Refused("group b: no offset in Kafka any more: t-0", way_out="clear 'commit'")}
    both = {"a": "a: x", "b": "b: x"}
    with pytest.raises(TaskDeferred) as deferred:
        resumed(scene, True, both, until=9e9)
    assert deferred.value.trigger.groups == ["a"]
    assert list(files_of(scene.run).stayed(digest)) == ["b"]
    assert resumed(scene, True, {}, until=0) == {"groups": 1, "stayed": []}
    assert list(files_of(scene.run).stayed(digest)) == ["b"]
    files_of(scene.run).keep_stayed(digest, ["b"], {})
    assert resumed(scene, True, {"b": "b: x"}, until=9e9) == {"groups": 1, "stayed": ["b"]}, "a has started"
    assert scene.told()[-1] == "moved to Kafka: a"


def test_offsets_are_looked_at_right_after_the_owners_answer(scene: Scene) -> None:
    """Nothing looks while the question waits; who starts then would begin where auto.offset.reset says."""
    scene.looks = tuple(replace(OLD, name=name) for name in ("a", "b"))
    digest = scene.plan().digest
    scene.read_at_the_stop()
    scene.step(Step.COMMIT)
    scene.missing = ("a", "b")
    scene.failing = {"b": Refused("group b: no offset in Kafka any more: t-0", way_out="clear 'commit'")}
    task = AwaitGroups(task_id="wait", cluster="lab", awaits=Awaited(True, 1, 60))
    with pytest.raises(TaskDeferred) as deferred:
        task.act(scene.context, scene.run)
    assert deferred.value.trigger.groups == ["a"]
    assert list(files_of(scene.run).stayed(digest)) == ["b"]
    scene.failing["a"] = scene.failing["b"]
    with pytest.raises(Refused, match="no offset in Kafka any more"):
        task.act(scene.context, scene.run)


@pytest.mark.parametrize("kind", [NotSeen, Unreachable])
def test_a_group_that_can_not_be_read_at_this_moment_is_waited_for(scene: Scene, kind: type[RunbookError]) -> None:
    digest = scene.plan().digest
    scene.read_at_the_stop()
    scene.step(Step.COMMIT)
    scene.failing = {"g": kind("Kafka's group was not read: its coordinator loads it", way_out="wait")}
    with pytest.raises(TaskDeferred):
        resumed(scene, True, {"g": "g: x"}, until=9e9)
    assert files_of(scene.run).stayed(digest) == {}
    with pytest.raises(StepFailed, match="g: not started in 1 min"):
        resumed(scene, True, {"g": "g: x"}, until=0)


def test_where_only_logs_can_not_be_read_the_wait_ends_with_these_named(scene: Scene) -> None:
    """A partition whose only replica is lost has no leader for ever, and the new members own it."""
    scene.looks = tuple(replace(OLD, name=name) for name in ("a", "b"))
    digest = scene.plan().digest
    scene.read_at_the_stop()
    scene.step(Step.COMMIT)
    both, unread = {"a": "a: not known yet", "b": "b: x"}, {"a": "t-1 (it has no leader)"}
    with pytest.raises(TaskDeferred):
        resumed(scene, True, both, until=9e9, unread=unread)
    assert resumed(scene, True, both, until=0, unread=unread) == {"groups": 1, "stayed": ["b"]}
    assert list(files_of(scene.run).started(digest)) == ["a"]
    assert scene.told()[-2:] == [
        "moved to Kafka: a",
        "not seen to be read: a: whether its members read it is not known, since the log was not read:"
        " t-1 (it has no leader)",
    ]
    scene.failing = {"a": Refused("group a: no offset in Kafka any more: t-0", way_out="clear 'commit'")}
    with pytest.raises(Refused, match="group a: no offset in Kafka any more"):
        resumed(scene, True, both, until=0, unread=unread)


def test_a_group_that_does_not_start_in_time_is_named_and_the_others_have_moved(scene: Scene) -> None:
    scene.looks = tuple(replace(OLD, name=name) for name in ("a", "b"))
    scene.plan()
    scene.read_at_the_stop()
    scene.step(Step.COMMIT)
    with pytest.raises(StepFailed, match="a: not started in 1 min: a: x; b: not started in 1 min: b: x"):
        resumed(scene, True, {"a": "a: x", "b": "b: x"}, until=0)
    assert resumed(scene, True, {"b": "b: x"}, until=0) == {"groups": 1, "stayed": ["b"]}
    assert scene.told()[-1] == "moved to Kafka: a"
