"""Copies between disks are paused, kept to hours, follow the brokers, and take another throttle while they go on."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from in_run import run_in
from observations import SPEC
from placements import MB
from test_disk_steps import TWO, A, B, Scene
from test_moves_follow_in_steps import BOUNDS, FEWER, FOLLOWING, MORE
from test_reassignment_steps import look, why_awake

from kraft_runbook.cluster.log_dirs import BrokerLogs, FutureCopy
from kraft_runbook.cluster.observation import Timed
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.procedures.read_load import read_load
from kraft_runbook.reassignment.concurrency import BrokerLoad, Pace
from kraft_runbook.reassignment.disk_rates import CopySettings
from kraft_runbook.steps.reassignment import disks
from kraft_runbook.steps.reassignment.asked_rate import THROTTLE_REFUSED
from kraft_runbook.steps.reassignment.copying import WhileCopying, move_between_disks
from kraft_runbook.steps.reassignment.disk_throttle import disk_throttles_left, put_disk_throttle_back, throttle_disks
from kraft_runbook.steps.reassignment.files import DISK_RATE, RunFiles, files_of
from kraft_runbook.steps.reassignment.pace import TAKEN_UP_SECONDS, change_pace
from kraft_runbook.steps.run import NothingToDo
from kraft_runbook_airflow.reassignment.disk_words import DiskTrigger


class Paced(Scene):
    """A run that copies one of its two replicas at 5 MB/s, and one that changes its pace. ``grows``: bytes that are
    produced into each replica between two looks. ``meanwhile``: what happens while the second one waits. ``takes``: how
    long Produce requests take each broker from now on.
    """

    def __init__(self) -> None:
        super().__init__()
        self.grows, self.sizes = 0, {A: 10 * MB, B: 40 * MB}
        self.meanwhile: Callable[[], object] = lambda: None
        self.form: dict[str, Any] = {"throttle_mb": None, "run": None, "batches": "as they are"}
        self.takes: dict[int, float] = dict.fromkeys(SPEC.broker_ids, 4.0)
        self._requests = 0
        vars(self.cluster)["pause"] = self._pause
        self.cluster.answers |= {look_at_replicas: lambda **_: look(), read_load: self.load}

    def look(self) -> Mapping[int, BrokerLogs]:
        if self.away:
            return {}
        found = super().look()
        vars(self)["sizes"] = {p: size + self.grows for p, size in self.sizes.items()}
        mine = found[1]
        return {1: BrokerLogs(1, mine.directories, self.sizes, mine.placed, mine.future)}

    def _pause(self, seconds: float) -> None:
        vars(self.cluster)["paused"] += seconds
        if seconds < 5:
            self.meanwhile()

    def load(self, brokers: Collection[int]) -> tuple[Mapping[int, BrokerLoad], Mapping[int, str]]:
        self._requests += 10
        assert brokers == {1, 2, 3}
        return {b: BrokerLoad(Timed(self._requests, self.takes[b]), 0) for b in brokers}, {}

    @property
    def files(self) -> RunFiles:
        return files_of(self.run())

    def moves(self) -> Any:
        return move_between_disks(self.run())

    def change(self, **form: Any) -> Any:
        ti = SimpleNamespace(dag_id="change_pace__lab", run_id="two", task_id="change")
        return change_pace(run_in({"ti": ti, "params": {**self.form, **form}}, self.cluster))

    def said(self, what: str) -> list[str]:
        return [told.told for _, told in of_kind(self.run().journal.records(), Moves) if told.what == what]


@pytest.fixture
def paced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Paced:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    made = Paced()
    disks.plan_between_disks(made.run())
    throttle_disks(made.run())
    made.moves()
    return made


def test_the_run_that_copies_takes_the_rate_up_and_both_have_it_on_record(paced: Paced) -> None:
    paced.meanwhile = paced.moves
    name = paced.files.name
    assert paced.change(throttle_mb=8) == {"run": name, "bytes_a_second": 8 * MB, "paused": False}
    assert paced.rate == "8000000" and paced.said("throttled") == ["5 MB/s a broker", "8 MB/s a broker"]
    with pytest.raises(NothingToDo, match="goes on as the form asks already"):
        paced.change(throttle_mb=8)
    assert (
        f"Run {name} (empty /d1 of broker 1): 1 replicas are copied between disks, 1 are left."
        " Its throttle: 5 MB/s a broker, to be 8 MB/s a broker" in paced.cluster.told
    )
    paced.end()
    paced.moves()
    paced.end()
    assert put_disk_throttle_back(paced.run()) == {"left": 0} and paced.rate == "7"


def test_a_worker_killed_before_the_new_rate_was_set_leaves_none_of_both_behind(paced: Paced) -> None:
    """Both rates are noted: whichever is there is the run's own."""
    files = paced.files
    files.will_throttle_disks(files.disk_rate.and_then(8 * MB))
    paced.placed = dict.fromkeys(paced.placed, TWO)
    paced.future.clear()
    assert paced.rate == "5000000"
    assert put_disk_throttle_back(paced.run()) == {"left": 0} and paced.rate == "7"


def test_the_wait_ends_for_another_rate_and_only_for_another(paced: Paced) -> None:
    wait = paced.moves()
    assert isinstance(wait, WhileCopying) and wait.look(paced.cluster) == ""
    paced.files.keep_throttle(8 * MB)
    assert wait.look(paced.cluster) == "the throttle is to change"
    again = paced.moves()
    assert again.throttled == 8 * MB and again.look(paced.cluster) == ""


def test_a_rate_that_would_never_let_a_copy_end_is_refused_and_the_rate_in_force_stays(paced: Paced) -> None:
    paced.grows, paced.meanwhile = 10 * MB, paced.moves
    with pytest.raises(Refused, match=r"it stays 5 MB/s a broker: the throttle would never let it end: broker 1"):
        paced.change(throttle_mb=3)
    assert paced.rate == "5000000" and len(paced.said(THROTTLE_REFUSED)) == 1
    assert paced.files.wanted_throttle(None) == 5 * MB
    paced.grows = 0
    assert paced.change(throttle_mb=3)["bytes_a_second"] == 3 * MB


def test_such_a_rate_is_refused_in_the_form_too(paced: Paced) -> None:
    paced.grows = 20 * MB
    paced.future.clear()
    with pytest.raises(Refused, match="would never let it end") as refused:
        disks.plan_between_disks(paced.run(name="other"))
    assert "give a throttle well above" in refused.value.way_out


@pytest.mark.parametrize(
    ("at_once", "threads", "fewer"),
    [
        (2, None, "no more than 1 copies go on at once at each, instead of 2: with more, broker 1: 8,000,000 bytes/s"),
        (None, 2, "no more than 1 copies go on at once at each, instead of 20"),
        (1, None, ""),
        (2, 1, ""),
    ],
)
def test_a_rate_must_do_for_all_replicas_that_a_broker_copies_at_the_same_time_or_fewer_go_on(
    paced: Paced, at_once: int | None, threads: int | None, fewer: str
) -> None:
    """As many as it has directories, or threads: 4 MB/s are produced into each of two."""
    paced.grows = 20 * MB
    paced.future.clear()
    paced.settings = CopySettings(threads)
    paced.params |= {"throttle_mb": 10, "moves_a_broker": at_once}
    other = paced.run(name="other")
    assert disks.plan_between_disks(other)["replicas"] == 2
    (exhibit,) = disks.shows_disks(other).exhibits
    assert fewer in exhibit.rendered and ("instead of" in exhibit.rendered) is bool(fewer)
    throttle_disks(other)
    paced.started.clear()
    wait = move_between_disks(other)
    (batch,) = paced.started
    assert (len(batch), wait.at_once) == (1 if fewer or at_once == 1 else 2, 1 if fewer else at_once)
    assert wait.look(paced.cluster) == ""


@pytest.mark.parametrize(
    ("own", "given", "said"),
    [
        (
            3,
            50,
            "broker 1: its own replica.alter.log.dirs.io.max.bytes.per.second=3,000,000 counts there, and 4,000,000",
        ),
        (50, 3, ""),
    ],
)
def test_a_rate_that_the_broker_has_of_its_own_is_judged_and_not_the_one_of_the_form(
    paced: Paced, own: int, given: int, said: str
) -> None:
    """kafka-reassign-partitions sets it, and may leave it: 4 MB/s are produced."""
    paced.grows = 20 * MB
    paced.future.clear()
    paced.settings = CopySettings(None, own * MB)
    paced.params["throttle_mb"] = given
    other = paced.run(name="other")
    if said:
        with pytest.raises(Refused, match="would never let it end") as refused:
            disks.plan_between_disks(other)
        assert said in refused.value.problem and "--delete-config" in refused.value.way_out
    else:
        disks.plan_between_disks(other)
        (exhibit,) = disks.shows_disks(other).exhibits
        assert "its own replica.alter.log.dirs.io.max.bytes.per.second=50,000,000 counts there" in exhibit.rendered


def test_a_brokers_own_rate_under_which_fewer_copies_at_once_would_end_is_not_refused(paced: Paced) -> None:
    paced.grows = 20 * MB
    paced.future.clear()
    paced.settings = CopySettings(None, 10 * MB)
    paced.params |= {"throttle_mb": 50, "moves_a_broker": 2}
    other = paced.run(name="other")
    disks.plan_between_disks(other)
    (exhibit,) = disks.shows_disks(other).exhibits
    assert "no more than 1 copies go on at once at each, instead of 2: with more, broker 1: its own" in exhibit.rendered
    throttle_disks(other)
    assert move_between_disks(other).at_once == 1


def test_the_way_back_that_ends_copies_alone_is_refused_for_no_rate(paced: Paced) -> None:
    """However much is produced into the replica: nothing of it is copied."""
    paced.grows = 20 * MB
    paced.params |= {"goal": disks.BACK, "run": paced.files.name, "throttle_mb": 1}
    assert disks.plan_between_disks(paced.run(name="back"))["replicas"] == 1
    paced.end()
    with pytest.raises(Refused, match="would never let it end"):
        disks.plan_between_disks(paced.run(name="later"))


def test_a_run_that_does_not_go_on_is_named_with_its_own_way_out(paced: Paced) -> None:
    with pytest.raises(StepFailed, match=f"in {TAKEN_UP_SECONDS:g} s") as failed:
        paced.change(throttle_mb=8)
    assert "trigger move_between_disks__lab with 'back to the old disks'" in failed.value.way_out


def test_a_paused_run_starts_no_copy_until_it_goes_on(paced: Paced) -> None:
    assert paced.change(batches="pause")["paused"]
    paced.end()
    wait = paced.moves()
    assert len(paced.started) == 1 and wait.look(paced.cluster) == ""
    assert paced.files.resting == "the run is paused, until 2026-03-05 10:00 UTC"
    assert disk_throttles_left(paced.run()) == [], "its throttle is kept for its next copies"
    assert paced.change(batches="go on")["paused"] is False, "it is found, though nothing of it is copied"
    assert wait.look(paced.cluster) == "there is room for the next batch"
    paced.moves()
    assert [m.partition for m in paced.started[-1]] == [B] and paced.files.resting == ""


@pytest.mark.parametrize("hours", [None, "22:00-06:00"])
def test_a_run_that_may_start_nothing_once_its_copies_have_ended_says_that_it_rests(
    paced: Paced, hours: str | None
) -> None:
    """All places of the broker were taken when it was paused, or when its hours ended: nobody asked then."""
    paced.params["hours"] = hours
    wait = paced.moves()
    if hours is None:
        paced.change(batches="pause")
    assert wait.look(paced.cluster) == "" and paced.files.resting == ""
    paced.end()
    assert wait.look(paced.cluster) == "there is room for the next batch, and none may start now"
    wait = paced.moves()
    assert len(paced.started) == 1 and disk_throttles_left(paced.run()) == []
    assert wait.look(paced.cluster) == "", "it has said so"


def test_a_pause_that_was_forgotten_ends_the_task_with_the_way_out_of_disks(paced: Paced) -> None:
    paced.change(batches="pause")
    paced.end()
    vars(paced.cluster)["paused"] += paced.cluster.spec.reassignment.pause + 1
    with pytest.raises(Refused, match="was to go on by 2026-03-05 10:00 UTC") as refused:
        paced.moves()
    assert "move_between_disks__lab with 'back to the old disks'" in refused.value.way_out
    assert put_disk_throttle_back(paced.run()) == {"left": 0} and paced.rate == "7", "no copy goes on"


@pytest.mark.parametrize(("hours", "starts"), [("22:00-06:00", False), ("09:30-10:01", True)])
def test_new_copies_start_within_their_hours_alone(paced: Paced, hours: str, starts: bool) -> None:
    """The test's clock says 10:00 UTC."""
    paced.end()
    paced.params["hours"] = hours
    wait = paced.moves()
    assert (len(paced.started) == 2) is starts
    given = DiskTrigger.of("lab", wait).serialize()[1]
    assert given["given"]["hours"] == hours and given["given"]["throttled"] == 5 * MB
    paced.future.clear()  # as if that copy had been ended
    assert bool(DiskTrigger(**given).looks()(paced.cluster)) is starts


@pytest.mark.parametrize(("order", "first"), [("by name", A), ("small first", A), ("large first", B)])
def test_the_form_says_which_copies_go_first(paced: Paced, order: str, first: Any) -> None:
    paced.future.clear()
    paced.params["order"] = order
    paced.moves()
    assert paced.started[-1][0].partition == first


def test_copies_at_once_follow_the_brokers_and_the_form_is_the_most(paced: Paced) -> None:
    vars(paced.cluster)["spec"] = FOLLOWING
    paced.params["moves_a_broker"] = None
    paced.files.keep_pace(Pace(1))
    wait = paced.moves()
    assert wait.at_once == 1 and wait.look(paced.cluster) == ""
    paced.cluster.pause(30)
    assert wait.look(paced.cluster) == MORE
    wait = paced.moves()
    assert [m.partition for m in paced.started[-1]] == [B] and paced.said("moves at once") == [MORE]
    paced.takes[2] = 300.0
    paced._requests = 0
    paced.files.keep_pace(Pace(2))
    wait.look(paced.cluster)
    paced.cluster.pause(30)
    assert "2 300 ms" in wait.look(paced.cluster) and paced.moves().at_once == 1
    assert FEWER in paced.said("moves at once")
    paced.params["moves_a_broker"] = 1
    assert BOUNDS.within(1).most == 1 and paced.moves().most == 1


def test_the_trigger_waits_with_what_the_task_gave_it(paced: Paced, monkeypatch: pytest.MonkeyPatch) -> None:
    trigger = DiskTrigger(**DiskTrigger.of("lab", paced.moves()).serialize()[1])
    monkeypatch.setattr(DiskTrigger, "hand", lambda _: paced.cluster)
    trigger.poll, trigger.awake = 0.001, 0.05
    assert asyncio.run(why_awake(trigger)) == "the claim is renewed"
    paced.files.keep_throttle(8 * MB)
    assert asyncio.run(why_awake(trigger)) == "the throttle is to change"


def test_how_far_it_is_is_told_and_kept_for_the_dashboard(paced: Paced) -> None:
    wait = paced.moves()
    wait.look(paced.cluster)
    paced.future[A] = FutureCopy(TWO, 6 * MB, 9)
    paced.cluster.pause(29)
    wait.look(paced.cluster)
    kept = paced.files.directory / "progress.json"
    assert json.loads(kept.read_text())["bytes_a_second"] is None, "too soon"
    paced.cluster.pause(1)
    wait.look(paced.cluster)
    told = json.loads(kept.read_text())
    assert (told["partitions"], told["there"], told["moving"], told["throttle"]) == (2, 0, 1, 5 * MB)
    assert told["bytes_a_second"] == pytest.approx(0.2 * MB) and told["seconds_left"] == pytest.approx(220)
    assert told["bytes_left"] == 44 * MB, "of those that wait, what they had when they were planned"


def test_a_run_whose_plan_was_spoilt_hides_no_other(paced: Paced, caplog: pytest.LogCaptureFixture) -> None:
    spoilt = paced.run(name="zwei")
    files_of(spoilt).directory.mkdir(parents=True)
    (files_of(spoilt).directory / "disks.json").write_text("{}")
    left_out = f"The plan of run {files_of(spoilt).name} is left out"
    assert paced.change(batches="pause", run=paced.files.name)["run"] == paced.files.name
    assert left_out not in caplog.text, "the named one alone is read"
    assert paced.change(batches="go on")["run"] == paced.files.name
    assert left_out in caplog.text


def test_of_two_runs_that_may_be_meant_the_form_must_name_one(paced: Paced) -> None:
    """One that was given up left a copy or its pause behind: it is not told from one that goes on."""
    other = RunFiles(shutil.copytree(paced.files.directory, files_of(paced.run(name="zwei")).directory))
    with pytest.raises(Refused, match="2 runs may be meant: Run move_between_disks__lab__zwei"):
        paced.change(batches="pause")
    assert paced.change(batches="pause", run=paced.files.name)["paused"] is True
    assert not other.paused


def test_a_dry_run_of_the_same_moves_is_no_run_that_may_be_meant(paced: Paced) -> None:
    """It has planned them, and has done nothing."""
    dry = RunFiles(shutil.copytree(paced.files.directory, files_of(paced.run(name="zwei")).directory))
    (dry.directory / DISK_RATE).unlink()
    assert paced.change(batches="pause")["run"] == paced.files.name
    with pytest.raises(Refused, match=f"run {dry.name} has moved nothing"):
        paced.change(batches="pause", run=dry.name)


def test_a_pause_that_was_given_up_hides_no_later_one(paced: Paced) -> None:
    given_up = RunFiles(shutil.copytree(paced.files.directory, files_of(paced.run(name="zwei")).directory))
    paced.end()
    given_up.pause(paced.cluster.now() - 60)
    paced.files.pause(paced.cluster.now() + 3600)
    assert paced.change(batches="go on")["run"] == paced.files.name


def test_a_run_outside_its_hours_sleeps_though_a_disk_has_failed(paced: Paced) -> None:
    """A failed directory shows no replica, and the controller names its broker still: they are left, not gone."""
    paced.end()
    paced.params["hours"] = "02:00-02:01"
    paced.placed = {}
    wait = paced.moves()
    assert isinstance(wait, WhileCopying) and paced.files.resting
    assert wait.look(paced.cluster) == ""


def test_the_note_of_another_run_that_is_spoilt_keeps_no_throttle_from_being_put_back(paced: Paced) -> None:
    other = RunFiles(shutil.copytree(paced.files.directory, files_of(paced.run(name="zwei")).directory))
    (other.directory / DISK_RATE).write_text("{")
    paced.end()
    paced.moves()
    paced.end()
    assert put_disk_throttle_back(paced.run()) == {"left": 0} and paced.rate == "7"
    assert f"What run {other.name} set is not known" in "\n".join(paced.cluster.told)


def test_a_run_that_waits_for_its_first_hours_may_be_meant(paced: Paced) -> None:
    """It has copied nothing, and has no throttle."""
    waits = RunFiles(shutil.copytree(paced.files.directory, files_of(paced.run(name="zwei")).directory))
    (waits.directory / DISK_RATE).unlink()
    waits.rest("it is not within 02:00-02:01 UTC")
    assert paced.change(batches="pause", run=waits.name)["paused"] is True and waits.paused
