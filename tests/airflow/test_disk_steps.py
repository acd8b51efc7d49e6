"""The tasks that move replicas between disks, wherever the brokers are on the way. What a task calls is recorded."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dag_files import dags_of
from in_run import Claimed, Signed, run_in
from moves_seen import TO_4, moves_seen
from observations import SPEC, broker, observation
from placements import MB, tp
from recording import RecordingCluster
from signed_run import PASSED, sign

from kraft_runbook.cluster.log_dirs import BrokerLogs, FutureCopy, LogDir
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.gates.proof import make_proof
from kraft_runbook.procedures.move_between_disks import (
    CopiedInPart,
    copy_settings,
    disk_rate,
    held_by,
    look_at_disks,
    set_disk_rate,
    start_disk_moves,
)
from kraft_runbook.procedures.see_reassignment import see_reassignment
from kraft_runbook.reassignment.disk_rates import CopySettings
from kraft_runbook.reassignment.disks import DiskMove
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.stages import MOVE
from kraft_runbook.reassignment.throttles import DISK_RATE, EVERYWHERE, Leftover
from kraft_runbook.steps.handle import RehearsedCluster
from kraft_runbook.steps.reassignment import disks
from kraft_runbook.steps.reassignment.copying import WhileCopying, move_between_disks
from kraft_runbook.steps.reassignment.disk_throttle import (
    PUT_BACK,
    disk_throttles_left,
    put_disk_throttle_back,
    throttle_disks,
)
from kraft_runbook.steps.reassignment.files import DISK_RATE as DISK_RATE_FILE
from kraft_runbook.steps.reassignment.files import DISKS, files_of
from kraft_runbook.steps.run import NothingToDo, Run
from kraft_runbook_airflow.reassignment.disk_words import DiskTrigger
from lab import ROOT

A, B = tp("t", 0), tp("t", 1)
ONE, TWO = "/d1", "/d2"
FORM = {"goal": disks.EMPTY, "broker": 1, "directory": ONE, "plan": None, "run": None, "throttle_mb": 5}


class Scene:
    """One broker with two disks. ``rate``: of the default of all brokers; ``settings``: the broker's own. ``id``: of
    the topic; ``held``: of which partitions the broker has a replica by the controller.
    """

    def __init__(self) -> None:
        self.placed = {A: ONE, B: ONE}
        self.future: dict[Any, FutureCopy] = {}
        self.away, self.id, self.held, self.free = False, "x", {A, B}, 10**11
        self.rate: str | None = "7"
        self.settings = CopySettings()
        self.params: dict[str, Any] = {**FORM, "moves_a_broker": 1, "order": "by name", "hours": None}
        self.started: list[list[DiskMove]] = []
        self.cluster = RecordingCluster(
            observation(Phase.FINALIZED),
            answers={
                look_at_disks: lambda *_: self.look(),
                held_by: lambda topics: (
                    dict.fromkeys(topics, self.id),
                    {p: (1, 2) for p in self.held if p.topic in topics},
                ),
                start_disk_moves: self.start,
                copy_settings: lambda brokers: dict.fromkeys(brokers, self.settings),
                disk_rate: lambda: self.rate,
                set_disk_rate: lambda value, brokers=(): setattr(self, "rate", value),
            },
        )

    def look(self) -> Mapping[int, BrokerLogs]:
        if self.away:
            return {}
        made = tuple(LogDir(each, 10**12 + at, self.free + at, "", 1) for at, each in enumerate((ONE, TWO)))
        sizes = dict.fromkeys(self.placed, 10 * MB)
        return {1: BrokerLogs(1, made, sizes, dict(self.placed), dict(self.future))}

    def start(self, moves: Any) -> Any:
        self.started.append(list(moves))
        self.future |= {m.partition: FutureCopy(m.target, 0, 9) for m in moves}
        return tuple(moves)

    def end(self) -> None:
        self.placed |= {p: copy.path for p, copy in self.future.items()}
        self.future.clear()

    def run(self, ports: Any = Signed, name: str = "one", cluster: Any = None) -> Run:
        ti = SimpleNamespace(dag_id="move_between_disks__lab", run_id=name, task_id="t")
        return run_in({"ti": ti, "params": self.params}, cluster or self.cluster, ports)

    def told(self) -> list[str]:
        return [told.what for _, told in of_kind(self.run().journal.records(), Moves)]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    made = Scene()
    disks.plan_between_disks(made.run())
    return made


def test_a_run_moves_some_at_once_verifies_and_puts_the_former_throttle_back(scene: Scene) -> None:
    run = scene.run()
    (exhibit,) = disks.shows_disks(run).exhibits
    assert "| 1 | /d1 | 2 → 0 |" in exhibit.rendered
    assert throttle_disks(run) == {"bytes_a_second": 5 * MB} and scene.rate == "5000000"
    for partition in (A, B):
        wait = move_between_disks(run)
        assert isinstance(wait, WhileCopying) and [m.partition for m in scene.started[-1]] == [partition]
        assert wait.look(scene.cluster) == "", "one at once"
        assert put_disk_throttle_back(run) == {"left": 1} and scene.rate == "5000000"
        scene.end()
        assert wait.look(scene.cluster)
    assert move_between_disks(run) == {"there": 2, "gone": 0}
    assert disks.disks_not_done(run) == ("the throttle of copies between disks is not put back",)
    assert put_disk_throttle_back(run) == {"left": 0} and scene.rate == "7"
    assert disks.verify_disks(run) == {"there": 2, "gone": 0} and disks.disks_not_done(run) == ()
    assert scene.told()[-4:] == ["started", "ended", "put back", "verified"]


@pytest.mark.parametrize("why", ["hours", "pause"])
def test_while_a_run_waits_until_it_may_start_the_proofs_age_stops_nobody(scene: Scene, why: str) -> None:
    """Signed at ten for ten at night, or paused before its first copy."""
    if why == "hours":
        scene.params["hours"] = "22:00-06:00"
    disks.plan_between_disks(scene.run())
    (exhibit,) = disks.shows_disks(scene.run()).exhibits
    assert ("New batches start within **22:00-06:00 UTC** alone" in exhibit.rendered) is (why == "hours")
    seen, files, signed = observation(Phase.FINALIZED), files_of(scene.run()), scene.run(Claimed)
    proof = make_proof(
        MOVE,
        seen,
        SPEC,
        checks=(PASSED,),
        parity=None,
        rollback=REASSIGNMENT.way_back(seen, SPEC),
        made_at=datetime.now(UTC) - timedelta(seconds=SPEC.approvals.valid_for + 60),
        exhibits=(exhibit,),
    )
    sign(SimpleNamespace(dag_id="move_between_disks__lab", run_id="one"), MOVE, proof)
    if why == "pause":
        files.pause(scene.cluster.now() + 3 * 3600)
    with pytest.raises(Refused, match=r"the proof is .* s old"):
        move_between_disks(signed)
    move_between_disks(scene.run())
    assert isinstance(move_between_disks(signed), WhileCopying) and not scene.started
    if why == "pause":
        files.pause(None)
    else:
        vars(scene.cluster)["paused"] = 12 * 3600
    scene.cluster.answers[start_disk_moves] = dies
    with pytest.raises(KeyboardInterrupt):
        move_between_disks(signed)
    scene.cluster.answers[start_disk_moves] = scene.start
    move_between_disks(signed)
    assert len(scene.started) == 1, "killed right before its first copy, it goes on"
    scene.future.clear()
    with pytest.raises(Refused, match=r"the proof is .* s old"):
        move_between_disks(signed)  # nothing of it was begun, and it waits for nobody


def test_where_nothing_is_to_move_what_stays_uneven_is_named(scene: Scene) -> None:
    scene.placed = {A: TWO}
    scene.params |= {"goal": disks.EVEN, "directory": None}
    with pytest.raises(NothingToDo, match=r"between disks; .* of broker 1 stay uneven: /d1 .*; /d2 holds 10\.0 MB"):
        disks.plan_between_disks(scene.run())


def dies(*_: Any) -> None:
    raise KeyboardInterrupt


def raises(error: Exception) -> None:
    raise error


def test_each_task_can_be_killed_and_cleared(scene: Scene) -> None:
    """Killed right before and right after each act: nothing is sent twice, and the former throttle stays known."""
    run = scene.run()
    for before in (True, False):
        real = scene.cluster.answers[set_disk_rate]
        scene.cluster.answers[set_disk_rate] = lambda value, _, first=before, real=real: (
            dies()
            if first
            else (
                real(value),
                dies(),
            )
        )
        with pytest.raises(KeyboardInterrupt):
            throttle_disks(run)
        scene.cluster.answers[set_disk_rate] = real
    throttle_disks(run)
    scene.cluster.answers[start_disk_moves] = lambda moves: (scene.start(moves), dies())
    with pytest.raises(KeyboardInterrupt):
        move_between_disks(run)
    scene.cluster.answers[start_disk_moves] = scene.start
    move_between_disks(run)
    assert len(scene.started) == 1, "it goes on already"
    scene.end()
    scene.future.clear()
    scene.placed[B] = TWO
    put_disk_throttle_back(run)
    assert scene.rate == "7"


def test_a_throttle_that_somebody_else_set_meanwhile_stays(scene: Scene) -> None:
    run = scene.run()
    throttle_disks(run)
    scene.rate = "9"
    assert put_disk_throttle_back(run) == {"left": 0} and scene.rate == "9"
    assert put_disk_throttle_back(run) is None


def test_a_throttle_of_a_run_that_failed_is_named_and_the_way_back_puts_it_back(scene: Scene) -> None:
    run = scene.run()
    throttle_disks(run)
    move_between_disks(run)
    assert put_disk_throttle_back(run) == {"left": 1} and disk_throttles_left(run) == []
    scene.end()
    (named,) = disk_throttles_left(run)
    assert run.name in named and "put_throttle_back" in named
    scene.params |= {"goal": disks.BACK, "run": run.name, "throttle_mb": None}
    back = scene.run(name="two")
    disks.plan_between_disks(back)
    assert put_disk_throttle_back(back) == {"left": 0} and scene.rate == "7"
    assert disk_throttles_left(run) == []


def test_a_throttle_of_no_run_is_named_where_no_broker_makes_a_copy(scene: Scene) -> None:
    """kafka-reassign-partitions leaves it on each broker; the one of a run is judged by that run."""
    run = scene.run()
    throttle_disks(run)
    mine, own = Leftover(EVERYWHERE, DISK_RATE, "5000000"), Leftover("broker 1", DISK_RATE, "5000000")
    move_between_disks(run)
    assert disk_throttles_left(run, [mine, own]) == [], "copies go on"
    scene.end()
    foreign, of_run = disk_throttles_left(run, [mine, own])
    assert foreign == f"a throttle of copies between disks without a copy: broker 1: {DISK_RATE}=5000000"
    assert run.name in of_run
    put_disk_throttle_back(run)
    former = Leftover(EVERYWHERE, DISK_RATE, "7")
    assert disk_throttles_left(run, [former]) == [f"a throttle of copies between disks without a copy: {former}"]


def test_a_throttle_that_was_put_back_after_a_failure_is_set_again_before_the_next_copy(scene: Scene) -> None:
    run = scene.run()
    throttle_disks(run)
    assert put_disk_throttle_back(run) == {"left": 0} and scene.rate == "7"
    move_between_disks(run)
    assert scene.rate == "5000000" and len(scene.started) == 1
    scene.end()
    assert put_disk_throttle_back(run) == {"left": 0} and scene.rate == "7"


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("4.1.1", ["broker 1 runs a release with a known fault: KAFKA-19571: a log directory may go offline"]),
        ("4.1.2", []),
        ("3.9.2", ["broker 1 runs a release with a known fault: KAFKA-19571 (a log directory may go offline"]),
        ("3.9.3", ["whether broker 1 runs a release with a fault in such moves is not known"]),
        (Unread("no metrics"), ["whether broker 1 runs a release with a fault in such moves is not known"]),
    ],
)
def test_the_gate_names_what_is_known_to_go_wrong_in_the_brokers_releases(version: Any, said: list[str]) -> None:
    seen = broker(1, software_version=version)(observation(Phase.FINALIZED))
    found = list(disks.known_faults(seen, (1,)))
    assert len(found) == len(said) and all(map(str.startswith, found, said))


def second(scene: Scene, megabytes: int) -> Run:
    """Another run, of what is left, while the first has failed; planned and throttled."""
    scene.params |= {"throttle_mb": megabytes}
    run = scene.run(name="two")
    disks.plan_between_disks(run)
    throttle_disks(run)
    return run


@pytest.mark.parametrize("megabytes", [3, 5])
@pytest.mark.parametrize("first_ends_first", [True, False])
def test_of_two_runs_none_gives_back_what_the_other_has_set(
    scene: Scene, megabytes: int, first_ends_first: bool
) -> None:
    """The first was killed before it copied anything, a second began: whichever ends first, the rate from before both
    is there at the end."""
    one = scene.run()
    throttle_disks(one)
    two = second(scene, megabytes)
    scene.placed = dict.fromkeys(scene.placed, TWO)
    for run in (one, two) if first_ends_first else (two, one):
        assert put_disk_throttle_back(run) == {"left": 0}
    assert scene.rate == "7" and disk_throttles_left(one) == []


def test_a_run_ends_while_copies_of_another_go_on_and_leaves_them_throttled(scene: Scene) -> None:
    one = scene.run()
    throttle_disks(one)
    two = second(scene, 3)
    scene.params["throttle_mb"] = 5  # as the first one's form says
    move_between_disks(one)  # t-0 is copied, and the second run's plan of it is not its own any more
    plan = files_of(two).disk_plan
    other = replace(plan, moves=tuple(m for m in plan.moves if m.partition == B))
    (files_of(two).directory / DISKS).write_text(other.to_json())
    scene.placed[B] = TWO
    assert put_disk_throttle_back(two) == {"left": 0} and scene.rate == "5000000"
    scene.end()
    assert put_disk_throttle_back(one) == {"left": 0} and scene.rate == "7"


def test_a_run_that_goes_on_after_another_has_put_the_same_rate_back_sets_it_again(scene: Scene) -> None:
    one = scene.run()
    throttle_disks(one)
    two = second(scene, 5)
    scene.rate = "7"  # the second put it back
    move_between_disks(one)
    assert scene.rate == "5000000" and len(scene.started) == 1
    scene.rate = "9"  # a person's
    move_between_disks(two)
    assert scene.rate == "9"


def test_the_plan_is_read_once_while_copies_go_on(scene: Scene) -> None:
    wait = move_between_disks(scene.run())
    assert isinstance(wait, WhileCopying) and wait.look(scene.cluster) == ""
    (files_of(scene.run()).directory / DISKS).unlink()
    assert wait.look(scene.cluster) == ""


def test_a_throttle_stays_while_a_broker_that_copied_is_away(scene: Scene) -> None:
    """Kafka goes on with its copies once it is back."""
    run = scene.run()
    throttle_disks(run)
    move_between_disks(run)
    scene.away = True
    assert put_disk_throttle_back(run) == {"left": 1} and scene.rate == "5000000"
    scene.away = False
    assert put_disk_throttle_back(run) == {"left": 1}
    scene.end()
    assert put_disk_throttle_back(run) == {"left": 0} and scene.rate == "7"


def test_a_broker_that_is_lost_for_good_keeps_no_throttle_once_others_have_its_replicas(scene: Scene) -> None:
    run = scene.run()
    throttle_disks(run)
    move_between_disks(run)
    scene.away = True
    assert put_disk_throttle_back(run) == {"left": 1} and scene.rate == "5000000"
    scene.held = set()
    assert put_disk_throttle_back(run) == {"left": 0} and scene.rate == "7"
    assert move_between_disks(run) == {"there": 0, "gone": 2} and disks.disks_not_done(run) == ()


def test_the_lost_plan_of_another_run_leaves_no_throttle_behind(scene: Scene) -> None:
    """Whether copies of that run go on is not known, so its own rate stays for them, and the watch names it."""
    other = scene.run()
    throttle_disks(other)
    scene.params |= {"throttle_mb": 6}
    run = scene.run(name="two")
    disks.plan_between_disks(run)
    throttle_disks(run)
    (files_of(other).directory / DISKS).unlink()
    assert scene.rate == "6000000"
    assert put_disk_throttle_back(run) == {"left": 0} and scene.rate == "5000000"
    (named,) = disk_throttles_left(run)
    assert files_of(other).name in named


def test_a_throttle_of_another_cluster_s_run_is_none_of_this_cluster_s(scene: Scene) -> None:
    """Its name may begin with this one's."""
    run = scene.run()
    throttle_disks(run)
    place = files_of(run).directory
    place.rename(place.with_name(place.name.replace("__lab__", "__lab-secure__")))
    assert disk_throttles_left(run) == []


def test_a_run_of_another_cluster_is_not_undone_and_its_throttle_stays_known(scene: Scene) -> None:
    """The task that puts throttles back runs though the plan was refused."""
    run = scene.run()
    throttle_disks(run)
    other = files_of(run).directory
    other = other.rename(other.with_name(other.name.replace("__lab__", "__prod__")))
    scene.params |= {"goal": disks.BACK, "run": other.name}
    back = scene.run(name="two")
    with pytest.raises(Refused, match="moved replicas between disks of cluster lab"):
        disks.plan_between_disks(back)
    assert put_disk_throttle_back(back) is None
    assert (other / DISK_RATE_FILE).exists(), "its own cluster has that throttle still"


def test_a_broker_that_is_lost_is_waited_for_once_copies_were_started(scene: Scene) -> None:
    run = scene.run()
    scene.away = True
    with pytest.raises(Unreachable, match="broker 1 does not answer"):
        move_between_disks(run)
    scene.away = False
    move_between_disks(run)
    scene.away = True
    wait = move_between_disks(run)
    assert isinstance(wait, WhileCopying) and wait.rests and "waits" in scene.told()
    given = DiskTrigger.of("lab", wait).serialize()[1]
    assert DiskTrigger(**given).rests == wait.rests
    scene.away = False
    move_between_disks(run)
    assert "goes on" in scene.told()


def test_what_left_the_broker_and_still_lies_there_ends_no_wait_and_the_rest_is_copied(scene: Scene) -> None:
    """Its topic was made anew, or it is no replica of the broker any more: nothing of it would ever be taken, and to
    wake the task for it would be to wake it for ever."""
    scene.held, scene.params["moves_a_broker"] = {A}, 2
    run = scene.run()
    wait = move_between_disks(run)
    assert isinstance(wait, WhileCopying) and wait.look(scene.cluster) == ""
    assert DiskTrigger(**DiskTrigger.of("lab", wait).serialize()[1]).looks()(scene.cluster) == ""
    scene.end()
    assert wait.look(scene.cluster) == "the plan stands as planned"
    assert move_between_disks(run) == {"there": 1, "gone": 1} and len(scene.started) == 1
    put_disk_throttle_back(run)
    assert disks.verify_disks(run) == {"there": 1, "gone": 1} and disks.disks_not_done(run) == ()


def test_a_topic_that_was_made_anew_while_others_are_copied_ends_no_wait(scene: Scene) -> None:
    run = scene.run()
    move_between_disks(run)
    scene.id, scene.placed[A] = "another", ONE
    wait = move_between_disks(run)
    assert wait == {"there": 0, "gone": 2}


def test_copies_of_which_none_is_taken_are_tried_again_for_a_while_and_then_named(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that has just lost its replicas shows them still. One that never takes them would be asked for ever."""
    scene.cluster.answers[start_disk_moves] = lambda moves: ()
    wait = move_between_disks(scene.run())
    assert isinstance(wait, WhileCopying) and wait.rests
    assert "started" not in scene.told() and scene.told()[-1] == "tries again"
    later = time.time() + SPEC.reassignment.refused + 1
    monkeypatch.setattr(RecordingCluster, "now", lambda _: later)
    with pytest.raises(StepFailed, match="nothing was taken of 1 copies"):
        move_between_disks(scene.run())
    assert scene.told()[-1] == "gave up"


def test_what_a_broker_took_beside_a_refused_copy_is_on_record_and_the_refused_one_is_tried_again(
    scene: Scene,
) -> None:
    scene.params["moves_a_broker"] = 2

    def in_part(moves: Any) -> Any:
        raise CopiedInPart("1 copies were refused: t-1", way_out="mend it", done=scene.start(moves[:1]))

    scene.cluster.answers[start_disk_moves] = in_part
    wait = move_between_disks(scene.run())
    assert isinstance(wait, WhileCopying) and wait.rests
    assert scene.told()[-2:] == ["started", "tries again"]
    silent = Unreachable("no broker answers", way_out="start one")
    before, scene.cluster.answers[look_at_disks] = scene.cluster.answers[look_at_disks], lambda *_: raises(silent)
    move_between_disks(scene.run())
    scene.cluster.answers[look_at_disks] = before
    scene.cluster.answers[start_disk_moves] = lambda moves: raises(CopiedInPart("refused", way_out="mend it", done=()))
    move_between_disks(scene.run())
    assert scene.told()[-2:] == ["waits", "goes on"], "the other goes on lasting"
    scene.away = True
    for _ in range(2):
        assert move_between_disks(scene.run()).rests
    assert scene.told()[-2:] == ["refused no more", "waits"]
    scene.away = False
    scene.cluster.answers[start_disk_moves] = scene.start
    move_between_disks(scene.run())
    assert [[m.partition for m in each] for each in scene.started] == [[A], [B]]


def test_copies_of_a_task_that_died_before_it_put_them_on_record_are_waited_for_like_any_other(scene: Scene) -> None:
    scene.future[A] = FutureCopy(TWO, 0, 9)
    scene.params["moves_a_broker"] = 2
    silent = Unreachable("broker 1 does not answer", way_out="start it")
    scene.cluster.answers[start_disk_moves] = lambda moves: raises(silent)
    wait = move_between_disks(scene.run())
    assert isinstance(wait, WhileCopying) and wait.rests and "started" in scene.told()


def test_a_disk_that_somebody_else_has_filled_takes_no_more_and_the_run_says_so(scene: Scene) -> None:
    scene.free = 11 * MB  # 10 % of which stay free
    no_room = "2 copies are left for which there is no room: t-0 of broker 1 in /d2, t-1 of broker 1 in /d2"
    with pytest.raises(StepFailed, match=no_room) as refused:
        move_between_disks(scene.run())
    assert "free disk there, then clear this task" in refused.value.way_out
    scene.free = 21 * MB
    move_between_disks(scene.run())
    assert [[m.partition for m in each] for each in scene.started] == [[A]]
    scene.params["moves_a_broker"] = 2
    wait = move_between_disks(scene.run())
    assert isinstance(wait, WhileCopying) and not wait.rests and wait.look(scene.cluster) == ""
    assert "1 copies are left for which there is no room: t-1 of broker 1 in /d2. They wait" in scene.cluster.told
    scene.end()
    scene.free = 11 * MB
    assert move_between_disks(scene.run()).rests and scene.told()[-1] == "tries again"
    scene.free = 12 * MB
    assert wait.look(scene.cluster) == "there is room for the next batch"
    move_between_disks(scene.run())
    assert [m.partition for m in scene.started[-1]] == [B] and scene.told()[-1] == "refused no more"


def test_what_somebody_else_moves_stops_the_run(scene: Scene) -> None:
    scene.future[A] = FutureCopy("/d3", 1, 1)
    with pytest.raises(Refused, match=r"not as the plan found them.*t-0 of broker 1"):
        move_between_disks(scene.run())
    assert not scene.started
    with pytest.raises(StepFailed, match="not as planned"):
        disks.verify_disks(scene.run())


@pytest.mark.parametrize("does", [throttle_disks, move_between_disks])
def test_no_step_acts_without_the_signature(scene: Scene, does: Any) -> None:
    with pytest.raises(Refused, match="no proof is on record for gate move"):
        does(scene.run(Claimed))
    assert not scene.started and scene.rate == "7"


def test_the_way_back_is_a_run_of_its_own_by_the_first_ones_name(scene: Scene) -> None:
    first = scene.run()
    move_between_disks(first)
    scene.params |= {"goal": disks.BACK, "run": first.name}
    back = scene.run(name="two")
    assert disks.plan_between_disks(back)["replicas"] == 1
    move_between_disks(back)
    assert [(m.partition, m.target) for m in scene.started[-1]] == [(A, ONE)], "where it lies: that ends the copy"
    scene.future.clear()
    with pytest.raises(NothingToDo):
        disks.plan_between_disks(scene.run(name="three"))
    scene.placed, scene.future = {A: TWO, B: ONE}, {B: FutureCopy(TWO, 0, 9)}
    back = scene.run(name="paused")
    assert disks.plan_between_disks(back)["replicas"] == 2
    files_of(back).pause(scene.cluster.now() + 3600)
    move_between_disks(back)
    assert [m.partition for m in scene.started[-1]] == [B], "to end a copy waits for nothing"
    del scene.future[B]
    assert move_between_disks(back).look(scene.cluster) == "" and len(scene.started) == 3
    scene.params["run"] = "nobody"
    with pytest.raises(Refused, match="no run named 'nobody'"):
        disks.plan_between_disks(scene.run(name="four"))


def test_the_way_back_goes_over_all_that_a_run_moved_that_was_planned_anew(scene: Scene) -> None:
    """Somebody copied t-1 elsewhere, and the rest was planned anew, as the run says: disks.json does not name t-0."""
    run = scene.run()
    move_between_disks(run)
    scene.end()
    scene.future = {B: FutureCopy("/d9", 0, 1)}
    with pytest.raises(Refused, match="not as the plan found them"):
        move_between_disks(run)
    scene.future.clear()
    assert disks.plan_between_disks(run)["replicas"] == 1
    while isinstance(move_between_disks(run), WhileCopying):
        scene.end()
    assert scene.placed == {A: TWO, B: TWO} and disks.verify_disks(run) == {"there": 1, "gone": 0}
    scene.params |= {"goal": disks.BACK, "run": run.name}
    back = scene.run(name="two")
    assert disks.plan_between_disks(back)["replicas"] == 2
    while isinstance(move_between_disks(back), WhileCopying):
        scene.end()
    assert scene.placed == {A: ONE, B: ONE}


def test_a_way_back_that_is_planned_anew_keeps_the_copies_that_it_has_begun(scene: Scene) -> None:
    first = scene.run()
    scene.params |= {"moves_a_broker": 2, "throttle_mb": None}
    move_between_disks(first)
    scene.end()
    scene.params |= {"goal": disks.BACK, "run": first.name, "moves_a_broker": 1, "throttle_mb": 5}
    back = scene.run(name="two")
    disks.plan_between_disks(back)
    throttle_disks(back)
    move_between_disks(back)
    assert scene.future.keys() == {A}
    assert disks.plan_between_disks(back)["replicas"] == 2, "the one that is copied, and the one that is left"
    scene.placed[B] = ONE
    assert isinstance(move_between_disks(back), WhileCopying)
    assert put_disk_throttle_back(back) == {"left": 1} and scene.rate == "5000000"
    with pytest.raises(StepFailed, match="1 there, 1 moving"):
        disks.verify_disks(back)
    scene.end()
    assert put_disk_throttle_back(back) == {"left": 0} and disks.verify_disks(back) == {"there": 2, "gone": 0}


def test_copies_by_an_earlier_plan_of_a_run_keep_its_throttle(scene: Scene) -> None:
    """Its broker was away when the rest was planned anew, and goes on with them once it is back."""
    run = scene.run()
    throttle_disks(run)
    move_between_disks(run)
    rest = replace(files_of(run).disk_plan, moves=(DiskMove(1, B, ONE, TWO),))
    files_of(run).store_disk_plan(rest, begun=True)
    scene.placed[B] = TWO
    assert disks.verify_disks(run) == {"there": 1, "gone": 0}
    for scene.away in (True, False):
        assert put_disk_throttle_back(run) == {"left": 1} and scene.rate == "5000000"
    assert disk_throttles_left(run) == []
    scene.end()
    assert len(disk_throttles_left(run)) == 1
    assert put_disk_throttle_back(run) == {"left": 0} and scene.rate == "7"


@pytest.mark.parametrize("copying", [False, True])
def test_a_replica_on_a_disk_that_failed_is_named_on_the_way_back(scene: Scene, copying: bool) -> None:
    """The broker shows no log of it, and the controller still counts it as the broker's."""
    first = scene.run()
    scene.params["moves_a_broker"] = 2
    move_between_disks(first)
    if not copying:
        scene.end()
    scene.params |= {"goal": disks.BACK, "run": first.name}
    both = dict(scene.placed)
    scene.placed = {}
    with pytest.raises(Refused, match=r"nothing can go back: broker 1 shows no log of them \(t-0 of .*, t-1 of broker"):
        disks.plan_between_disks(scene.run(name="two"))
    scene.placed = {B: both[B]}
    two = scene.run(name="two")
    assert disks.plan_between_disks(two)["replicas"] == 1
    (exhibit,) = disks.shows_disks(two).exhibits
    assert "- 1 replicas stay where they lie (t-0 of broker 1): broker 1 shows no log of them" in exhibit.rendered
    scene.held = {B}
    disks.plan_between_disks(two)
    (exhibit,) = disks.shows_disks(two).exhibits
    assert "t-0" not in exhibit.rendered, "it is none of the broker's any more"


@pytest.mark.parametrize("goes_back", [False, True])
def test_what_hinders_a_move_alone_does_not_hinder_the_way_back(scene: Scene, goes_back: bool) -> None:
    """Copies are ended when something is wrong: partitions are being reassigned, a broker does not answer."""
    first = scene.run()
    asked: list[bool] = []

    def see(*, tell: Any, settings: bool) -> Any:
        asked.append(settings)
        return moves_seen(moving={tp("a"): TO_4}, phase=Phase.FINALIZED)

    scene.cluster.answers[see_reassignment] = see
    if goes_back:
        scene.params |= {"goal": disks.BACK, "run": first.name}
        disks.check_before_copying(scene.run(name="two"))
    else:
        with pytest.raises(Refused, match="KRB-MOV-003"):
            disks.check_before_copying(first)
    found = disks.examine_disks(scene.run(name="two"), MOVE)
    assert ("KRB-MOV-003" in [each.code for each in found.checks]) is not goes_back
    assert asked == [not goes_back] * 2, "without what every broker must answer for"


def test_a_plan_that_nothing_was_copied_by_is_not_undone(scene: Scene) -> None:
    """What somebody else moved the same way meanwhile is theirs."""
    scene.placed = {A: TWO, B: ONE}
    run = scene.run()
    disks.plan_between_disks(run)
    move_between_disks(run)
    scene.end()
    scene.params |= {"goal": disks.BACK, "run": run.name}
    back = scene.run(name="two")
    assert disks.plan_between_disks(back)["replicas"] == 1


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"directory": None}, "the form must name them"),
        ({"goal": disks.EVEN, "broker": None}, "the form must name them"),
        ({"goal": disks.EXPLICIT}, "holds no plan"),
    ],
)
def test_a_form_that_lacks_something_is_refused(scene: Scene, form: dict[str, Any], said: str) -> None:
    scene.params |= form
    with pytest.raises(Refused, match=said):
        disks.plan_between_disks(scene.run(name="other"))


def test_a_dry_run_names_every_move_and_makes_none(scene: Scene) -> None:
    would = RehearsedCluster(SPEC, lambda _: "", print)
    vars(would).update(ask=scene.cluster.ask, observe=scene.cluster.observe)
    for does in (throttle_disks, move_between_disks, put_disk_throttle_back, disks.verify_disks):
        does(scene.run(cluster=would))
    assert [each.what for each in would.acts] == [
        "throttle copies between disks to 5 MB/s a broker",
        "move t-0 of broker 1",
        "move t-1 of broker 1",
        "put the throttle of copies between disks back",
    ]
    assert not scene.started and scene.rate == "7"
    run = scene.run()
    throttle_disks(run)
    while isinstance(move_between_disks(run), WhileCopying):
        scene.end()
    put_disk_throttle_back(run)
    assert scene.cluster.acts == would.acts, "what the run then does"


@pytest.mark.parametrize(("megabytes", "since", "listed"), [(None, None, 1), (3, None, 1), (None, "9", 0)])
def test_a_dry_run_of_the_way_back_lists_that_the_undone_run_s_throttle_is_put_back(
    scene: Scene, megabytes: int | None, since: str | None, listed: int
) -> None:
    """Once, also where the way back has a throttle of its own; not where somebody has set another one since."""
    first = scene.run()
    throttle_disks(first)
    move_between_disks(first)
    scene.end()
    scene.rate = since or scene.rate
    scene.params |= {"goal": disks.BACK, "run": first.name, "throttle_mb": megabytes}
    back = scene.run(name="two")
    disks.plan_between_disks(back)
    would = RehearsedCluster(SPEC, lambda _: "", print)
    vars(would).update(ask=scene.cluster.ask, observe=scene.cluster.observe)
    for does in (throttle_disks, move_between_disks, put_disk_throttle_back):
        does(scene.run(name="two", cluster=would))
    assert would.acts.count(PUT_BACK) == listed
    before = scene.cluster.acts.count(PUT_BACK)
    throttle_disks(back)
    while isinstance(move_between_disks(back), WhileCopying):
        scene.end()
    put_disk_throttle_back(back)
    assert scene.cluster.acts.count(PUT_BACK) - before == listed and scene.rate == (since or "7")


def test_a_plan_that_was_changed_on_disk_is_not_carried_out(scene: Scene) -> None:
    path = files_of(scene.run()).directory / DISKS
    path.write_text(path.read_text().replace(TWO, "/d9"))
    with pytest.raises(Refused, match="was changed since"):
        move_between_disks(scene.run())


def test_the_throttle_and_the_report_come_whatever_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = dags_of("move_between_disks.py", ROOT / "include" / "clusters", monkeypatch)["move_between_disks__lab"]
    back, report = dag.get_task("carry_out.put_throttle_back"), dag.get_task("closing_report")
    assert back.is_teardown and report.is_teardown and "carry_out.put_throttle_back" in report.upstream_task_ids
    assert dag.get_task("carry_out.verify").upstream_task_ids >= {"carry_out.move", "carry_out.put_throttle_back"}
    assert dag.get_task("plan").upstream_task_ids == {"preflight.checks"}
    assert dag.get_task("preflight.checks").does is disks.check_before_copying
    assert dag.get_task("gate_move.prove").examine is disks.examine_disks
