"""One run that carries out an explicit plan with log directories, wherever the cluster is on the way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from in_run import Signed, run_in
from observations import SPEC, observation
from placements import MB, tp
from recording import RecordingCluster

from kraft_runbook.cluster.assignment import Ongoing, PartitionSeen
from kraft_runbook.cluster.log_dirs import BrokerLogs, FutureCopy, LogDir
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.io.kafka.topic_ids import topic_ids
from kraft_runbook.procedures.look_at_replicas import look_at_plan, look_at_replicas
from kraft_runbook.procedures.move_between_disks import (
    copy_settings,
    disk_rate,
    held_by,
    lag_seconds,
    look_at_disks,
    set_disk_rate,
    start_disk_moves,
)
from kraft_runbook.procedures.move_replicas import start_next_batch
from kraft_runbook.procedures.throttle_replication import list_moves, read_throttles, remove_throttles, set_rate, unlist
from kraft_runbook.reassignment.batches import next_batch
from kraft_runbook.reassignment.disk_rates import CopySettings
from kraft_runbook.reassignment.disks import DiskMove
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.stages import read_plan
from kraft_runbook.reassignment.throttles import RATES, Former
from kraft_runbook.steps.handle import RehearsedCluster
from kraft_runbook.steps.reassignment import disks
from kraft_runbook.steps.reassignment.copying import WhileCopying
from kraft_runbook.steps.reassignment.directories import (
    put_all_throttles_back,
    undone,
    verify_with_directories,
    way_back_of_copies,
)
from kraft_runbook.steps.reassignment.disk_throttle import disk_throttles_left
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.reassignment.moving import move_on, rehearse_moves, save
from kraft_runbook.steps.reassignment.pace import change_pace
from kraft_runbook.steps.reassignment.planning import plan_moves, shows_plan
from kraft_runbook.steps.reassignment.throttling import set_throttle
from kraft_runbook.steps.reassignment.waiting import WhileMoving
from kraft_runbook.steps.reassignment.wanted import asks_for_goal
from kraft_runbook.steps.run import NothingToDo, Run
from kraft_runbook_airflow.reassignment.moving import MoveReplicas
from kraft_runbook_airflow.reassignment.trigger import DiskTrigger

A, B = tp("t", 0), tp("t", 1)
ONE, TWO = "/d1", "/d2"
ENTRIES = (
    {"topic": "t", "partition": 0, "replicas": [3, 2], "log_dirs": [TWO, TWO]},
    {"topic": "t", "partition": 1, "replicas": [1, 2], "log_dirs": ["any", TWO]},
)
FORM = {
    "goal": "explicit",
    "plan": json.dumps({"version": 1, "partitions": ENTRIES}),
    **dict.fromkeys(("brokers", "factor", "run", "mb_a_broker", "partitions_a_request", "moves_a_broker", "hours")),
    **dict.fromkeys(("even", "keep_order", "allow_replication_factor", "allow_racks", "allow_no_rack"), False),
    **{"topics": ".*", "exclude": "", "by": "replicas", "order": "by name", "throttle_mb": 5},
}


class Scene:
    """Three brokers with two disks each. ``silent``: those that do not describe theirs; ``produced``: bytes a second
    into each replica.
    """

    def __init__(self) -> None:
        self.present = {A: (1, 2), B: (1, 2)}
        self.placed = {1: {A: ONE, B: ONE}, 2: {A: ONE, B: ONE}, 3: {}}
        self.future: dict[int, dict[Any, FutureCopy]] = {1: {}, 2: {}, 3: {}}
        self.ongoing: dict[Any, Ongoing] = {}
        self.isr: dict[Any, tuple[int, ...]] = {}
        self.silent: set[int] = set()
        self.produced = 0
        self.rate: str | None = None
        self.rates: dict[str, str] = {}
        self.did: list[str] = []
        self.copied: list[list[DiskMove]] = []
        self.signed: list[dict[str, Any]] = []
        self.params: dict[str, Any] = dict(FORM)
        self.cluster = RecordingCluster(
            observation(Phase.FINALIZED),
            answers={
                look_at_replicas: lambda **_: self.look(),
                look_at_plan: lambda plan, **_: (self.look(), read_plan(plan, self.look().placement)),
                look_at_disks: lambda brokers=None: self.disks(brokers),
                held_by: lambda topics: (dict.fromkeys(topics, "x"), dict(self.present)),
                topic_ids: lambda topics: dict.fromkeys(topics, "x"),
                copy_settings: lambda brokers: dict.fromkeys(brokers, CopySettings()),
                lag_seconds: 30.0,
                read_throttles: lambda *_, **__: Former(self.rates, {}, {}),
                set_rate: lambda rate: setattr(self, "rates", dict.fromkeys(RATES, str(rate))),
                list_moves: None,
                unlist: None,
                remove_throttles: lambda *_: self.rates.clear() or (),
                disk_rate: lambda: self.rate,
                set_disk_rate: lambda value, brokers=(): setattr(self, "rate", value),
                start_next_batch: self.start,
                start_disk_moves: self.copy,
            },
        )

    def look(self) -> ReplicasLook:
        made = {broker: each.directories for broker, each in self.disks().items()}
        sizes = dict.fromkeys((A, B), 10 * MB)
        now = Placement(dict.fromkeys((1, 2, 3)), dict(self.present), self.ongoing, sizes=sizes, directories=made)
        seen = {p: PartitionSeen(r, r[0], self.isr.get(p, r)) for p, r in self.present.items()}
        return ReplicasLook("id", now, seen, {b: {} for b in (1, 2, 3)}, self.cluster.now())

    def disks(self, brokers: Any = None) -> Mapping[int, BrokerLogs]:
        made = tuple(LogDir(each, 10**12 + at, 10**11 + at, "", 1) for at, each in enumerate((ONE, TWO)))
        size = 10 * MB + self.produced * int(vars(self.cluster)["paused"])
        return {
            b: BrokerLogs(b, made, dict.fromkeys(held, size), dict(held), dict(self.future[b]))
            for b, held in self.placed.items()
            if b not in self.silent and (brokers is None or b in brokers)
        }

    def start(self, plan: Any, now: ReplicasLook, limits: Any, **_: Any) -> Any:
        batch = next_batch(plan, now.placement, limits)
        self.did += [f"start {m.partition}" for m in batch]
        return batch

    def moved(self, path: str = TWO) -> None:
        """The broker has made its replica there, and the move has ended."""
        self.present[A] = (3, 2)
        self.placed[3][A] = path
        del self.placed[1][A]

    def copy(self, moves: Any) -> Any:
        self.copied.append(list(moves))
        for m in moves:
            self.future[m.broker][m.partition] = FutureCopy(m.target, 0, 9)
        return tuple(moves)

    def copies_end(self) -> None:
        for broker, copies in self.future.items():
            self.placed[broker] |= {p: each.path for p, each in copies.items()}
            copies.clear()

    def run(self, cluster: Any = None, dag: str = "reassign_partitions", name: str = "one") -> Run:
        mine = self

        class Recorded(Signed):
            def require(self, *_: Any, **how: Any) -> None:
                mine.signed.append(how)

        ti = SimpleNamespace(dag_id=f"{dag}__lab", run_id=name, task_id="t")
        return run_in({"ti": ti, "params": self.params}, cluster or self.cluster, Recorded)

    def told(self) -> list[str]:
        return [told.what for _, told in of_kind(self.run().journal.records(), Moves)]

    def plan(self) -> Any:
        return plan_moves(self.run(), asks=asks_for_goal)

    def begin(self) -> None:
        save(self.run())
        set_throttle(self.run(), asks=asks_for_goal)

    def move(self) -> Any:
        return move_on(self.run(), asks=asks_for_goal)

    def verify(self) -> Any:
        return verify_with_directories(self.run(), asks=asks_for_goal)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    return Scene()


def dies(*_: Any) -> None:
    raise KeyboardInterrupt


def test_one_run_moves_copies_between_disks_and_proves_where_replicas_lie(scene: Scene) -> None:
    assert scene.plan()["partitions"] == 1
    (exhibit,) = shows_plan(scene.run()).exhibits
    assert "broker 3 is told where to make new replicas: 1 in /d2 (10.0 MB)" in exhibit.rendered
    assert "2 replicas stay on their brokers and are copied between disks" in exhibit.rendered
    assert "### Then between disks" in exhibit.rendered and "| 2 | /d1 | 2 → 0 |" in exhibit.rendered
    scene.begin()
    assert way_back_of_copies(scene.run()) == ()
    assert isinstance(scene.move(), WhileMoving) and scene.did == ["start t-0"] and not scene.copied
    scene.moved()
    wait = scene.move()
    assert isinstance(wait, WhileCopying) and wait.look(scene.cluster) == ""
    assert scene.copied == [[DiskMove(2, A, ONE, TWO, 10 * MB), DiskMove(2, B, ONE, TWO, 10 * MB)]]
    assert scene.rate == "5000000", "the throttle of the form holds for copies between disks too"
    assert put_all_throttles_back(scene.run())["left_between_disks"] == 2 and scene.rate == "5000000"
    scene.copies_end()
    assert wait.look(scene.cluster) and scene.move() == {"there": 1, "deleted_since": 0}
    assert len(undone(scene.run())) == 1, "the throttle of disks"
    put_all_throttles_back(scene.run())
    assert scene.rate is None and not scene.rates
    assert scene.verify() == {"partitions": 1, "added_since": 0, "in_their_directories": 3}
    assert undone(scene.run()) == () and len(scene.copied) == 1
    digest = files_of(scene.run()).plan().digest
    assert {each["exhibit"] for each in scene.signed} == {digest}, "one signature, on the plan with its directories"


def test_what_a_restarted_broker_made_elsewhere_is_copied_too(scene: Scene) -> None:
    scene.plan()
    scene.begin()
    scene.move()
    scene.moved(path=ONE)
    with pytest.raises(StepFailed, match=r"3 replicas do not lie where.*t-0 of broker 3 in /d1, not in /d2") as failed:
        scene.verify()
    assert "carry_out.move" in failed.value.way_out
    assert "3 replicas do not lie where the plan asks for" in undone(scene.run())[-1]
    scene.move()
    assert {(m.broker, m.partition) for m in scene.copied[0]} == {(2, A), (2, B), (3, A)}
    scene.copies_end()
    assert scene.move()["there"] == 1 and scene.verify()["in_their_directories"] == 3


def test_killed_at_any_point_it_goes_on_and_copies_nothing_twice(scene: Scene) -> None:
    scene.plan()
    scene.begin()
    scene.move()
    scene.moved()
    scene.cluster.answers[start_disk_moves] = dies  # the plan of disks is on disk, nothing was begun
    with pytest.raises(KeyboardInterrupt):
        scene.move()
    scene.cluster.answers[start_disk_moves] = lambda moves: (scene.copy(moves), dies())
    with pytest.raises(KeyboardInterrupt):
        scene.move()
    scene.cluster.answers[start_disk_moves] = scene.copy
    wait = scene.move()
    assert isinstance(wait, WhileCopying) and not wait.rests and len(scene.copied) == 1
    (files_of(scene.run()).directory / "disks.json").write_text("{}")  # changed, or cut off
    scene.copies_end()
    assert scene.move()["there"] == 1 and len(scene.copied) == 1


def test_the_proofs_age_stops_no_copy_of_a_run_that_has_moved_for_hours(scene: Scene) -> None:
    scene.plan()
    scene.begin()
    scene.move()
    scene.moved()
    scene.signed.clear()
    scene.move()
    assert [each["under_way"] for each in scene.signed] == [True, True]


def test_a_plan_of_directories_alone_moves_nothing_between_brokers(scene: Scene) -> None:
    scene.params["plan"] = json.dumps({"partitions": ENTRIES[1:]})
    assert scene.plan()["partitions"] == 0
    assert "nothing is to move between brokers" in shows_plan(scene.run()).exhibits[0].rendered
    scene.begin()
    scene.signed.clear()
    assert isinstance(scene.move(), WhileCopying) and not scene.did
    assert scene.signed[-1]["under_way"] is False, "an old proof stops it: nothing was begun"
    assert [m.partition for m in scene.copied[0]] == [B]
    scene.copies_end()
    assert scene.move()["there"] == 0 and scene.verify()["in_their_directories"] == 1
    with pytest.raises(NothingToDo, match="the cluster is as wanted"):
        scene.plan()


def test_a_broker_that_is_silent_once_all_has_moved_is_waited_for(scene: Scene) -> None:
    scene.plan()
    scene.begin()
    scene.move()
    scene.moved()
    scene.silent = {2}
    wait = scene.move()
    assert isinstance(wait, WhileCopying) and wait.rests == 30.0 and not scene.copied
    assert scene.told()[-1] == "waits" and "ended" not in scene.told()
    scene.silent = set()
    scene.move()
    assert len(scene.copied[0]) == 2 and "goes on" in scene.told()


def test_a_directory_that_no_broker_has_is_refused_before_anything_is_signed(scene: Scene) -> None:
    scene.params["plan"] = json.dumps({"partitions": [ENTRIES[0] | {"log_dirs": ["/d9", "any"]}]})
    with pytest.raises(Refused, match="/d9 is none of broker 3's: /d1, /d2"):
        scene.plan()
    scene.params["plan"] = json.dumps({"partitions": [ENTRIES[0] | {"log_dirs": [TWO]}]})
    with pytest.raises(Refused, match="t-0 names 1 log_dirs for 2 replicas"):
        scene.plan()


def test_the_task_waits_without_a_worker_for_copies_between_disks(scene: Scene) -> None:
    scene.plan()
    scene.begin()
    scene.move()
    scene.moved()
    task = MoveReplicas(task_id="move", cluster="lab", asks=asks_for_goal)
    with pytest.raises(TaskDeferred) as deferred:
        task.act({}, scene.run())
    assert isinstance(deferred.value.trigger, DiskTrigger) and deferred.value.method_name == "resume"


def test_a_dry_run_lists_the_copies_between_disks_with_their_throttle(scene: Scene) -> None:
    scene.plan()
    would = RehearsedCluster(SPEC, lambda _: "", print)
    vars(would).update(ask=scene.cluster.ask, observe=scene.cluster.observe)
    rehearse_moves(scene.run(would), asks=asks_for_goal)
    assert list(map(str, would.acts)) == [
        "move t-0\n[1, 2] -> [3, 2]\nin /d2 of broker 3",
        "throttle copies between disks to 5 MB/s a broker",
        "move t-0 of broker 2\n/d1 -> /d2",
        "move t-1 of broker 2\n/d1 -> /d2",
    ]
    assert not scene.did and not scene.copied


def test_what_it_copied_goes_back_by_the_runs_name_and_its_throttle_is_named_by_the_watch(scene: Scene) -> None:
    scene.plan()
    scene.begin()
    scene.move()
    scene.moved()
    scene.move()
    scene.copies_end()
    (way_back,) = way_back_of_copies(scene.run())
    assert "trigger move_between_disks__lab with 'back to the old disks'" in way_back
    (left,) = disk_throttles_left(scene.run(dag="reassignment_watch"))
    assert f"set by run {scene.run().name}: clear its task 'carry_out.put_throttles_back'" in left
    scene.params |= {"goal": disks.BACK, "run": scene.run().name}
    back = scene.run(dag="move_between_disks", name="two")
    assert disks.plan_between_disks(back)["replicas"] == 2
    assert {(m.source, m.target) for m in files_of(back).disk_plan.moves} == {(TWO, ONE)}


def test_a_plan_made_anew_with_other_directories_does_not_go_on_with_the_former_copies(scene: Scene) -> None:
    scene.plan()
    scene.begin()
    scene.move()
    scene.moved()
    scene.cluster.answers[start_disk_moves] = dies
    with pytest.raises(KeyboardInterrupt):
        scene.move()
    scene.cluster.answers[start_disk_moves] = scene.copy
    other = replace(files_of(scene.run()).plan(), directories={(2, A): ONE})
    files_of(scene.run()).store_plan(other, scene.present)
    assert scene.move()["there"] == 1 and not scene.copied


def test_such_a_run_is_paused_by_its_name_wherever_it_is(scene: Scene) -> None:
    """Planned anew it may have ended copies between disks, and move between brokers again."""

    def paused(batches: str) -> str:
        params = {"run": name, "batches": batches, "throttle_mb": None}
        ti = SimpleNamespace(dag_id="change_pace__lab", run_id="two", task_id="t")
        scene.cluster.told.clear()
        change_pace(run_in({"ti": ti, "params": params}, scene.cluster))
        return scene.cluster.told[-1]

    scene.plan()
    scene.begin()
    scene.move()
    scene.moved()
    scene.move()
    name = scene.run().name
    assert "2 replicas are copied between disks" in paused("pause")
    scene.copies_end()
    scene.present[A], scene.ongoing = (1, 2, 3), {A: Ongoing((3, 2, 1), (3,), (1,))}
    assert "1 partitions move, 0 are left, onto broker 3" in paused("go on")
    scene.present[A], scene.ongoing = (3, 2), {}
    with pytest.raises(Refused, match=r"all that run .* moves is there"):
        paused("pause")


def test_how_many_copies_at_once_end_is_kept_apart_for_brokers_and_for_disks(scene: Scene) -> None:
    files = files_of(scene.run())
    files.keep_most_at_once(5, 2)
    assert (files.most_at_once(5), files.most_at_once(5, of_disks=True)) == (2, 2)
    files.keep_most_at_once(5, None, of_disks=True)
    assert (files.most_at_once(5), files.most_at_once(5, of_disks=True)) == (2, None)


def test_a_throttle_under_which_copies_between_disks_never_end_is_refused_with_the_plan_and_before_they_start(
    scene: Scene,
) -> None:
    scene.produced = 9 * MB
    with pytest.raises(Refused, match="the throttle would never let it end: broker 2"):
        scene.plan()
    scene.produced = 0
    scene.plan()
    scene.begin()
    scene.move()
    scene.moved()
    scene.produced = 9 * MB
    assert scene.move().rests and not scene.copied and scene.rate is None
