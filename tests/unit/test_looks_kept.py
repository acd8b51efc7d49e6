"""The looks that tasks leave for the dashboard: the latest whole, one line each of the last ones, and no secret."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from observations import NOW, SPEC, WHY, broker, later, observation, topics

from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.dashboard.kept_look import LookKept, QuorumKept, look_of
from kraft_runbook.dashboard.look_files import keep_look, latest_path, lines_path, read_latest, read_lines


def keep(directory: Path, seen: object, **how: float) -> list[str]:
    warned: list[str] = []
    keep_look(directory, seen, warned.append, **how)  # type: ignore[arg-type]
    return warned


def latest(directory: Path) -> LookKept:
    look = read_latest(directory, SPEC.name)
    assert isinstance(look, LookKept)
    return look


def test_the_latest_look_is_read_back_as_it_was_kept(tmp_path: Path) -> None:
    seen = observation(Phase.DUAL_WRITE)
    assert keep(tmp_path, seen) == []
    assert latest(tmp_path) == look_of(seen)
    assert latest(tmp_path).at == NOW
    assert isinstance(latest(tmp_path).quorum, QuorumKept)


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    keep(tmp_path, observation(Phase.HYBRID))
    for path in (latest_path(tmp_path, SPEC.name), lines_path(tmp_path, SPEC.name)):
        assert path.stat().st_mode & 0o777 == 0o600


def test_an_older_look_that_ends_later_does_not_take_the_place_of_a_newer_one(tmp_path: Path) -> None:
    seen = observation(Phase.HYBRID)
    keep(tmp_path, later(seen, 5))
    keep(tmp_path, seen)
    assert latest(tmp_path).at == later(seen, 5).observed_at
    lines = read_lines(tmp_path, SPEC.name)
    assert isinstance(lines, list)
    assert len(lines) == 1


def test_a_look_of_a_clock_that_is_ahead_does_not_stop_the_next_ones(tmp_path: Path) -> None:
    seen, now = observation(Phase.HYBRID), datetime.now(UTC)
    keep(tmp_path, replace(seen, observed_at=now + timedelta(hours=1)))
    keep(tmp_path, replace(seen, observed_at=now))
    assert latest(tmp_path).at == now


def test_a_look_that_is_ahead_of_its_file_does_not_stop_the_next_ones(tmp_path: Path) -> None:
    seen = observation(Phase.HYBRID)
    keep(tmp_path, later(seen, 60))
    os.utime(latest_path(tmp_path, SPEC.name), (NOW.timestamp(), NOW.timestamp()))
    keep(tmp_path, later(seen, 10))
    assert latest(tmp_path).at == later(seen, 10).observed_at


def test_a_line_tells_phase_modes_replicas_out_of_sync_and_the_quorum(tmp_path: Path) -> None:
    keep(tmp_path, topics(out_of_sync_by_broker={2: 7})(observation(Phase.DUAL_WRITE)))
    lines = read_lines(tmp_path, SPEC.name)
    assert isinstance(lines, list)
    (line,) = lines
    assert line["phase"] == "DUAL_WRITE"
    assert line["out_of_sync"] == {"2": 7}
    assert set(line["modes"]) == {"1", "2", "3"}
    assert set(line["lags"]) == {"101", "102", "103"}
    assert line["leader"] == 101
    assert {"at", "epoch", "high_watermark", "write_behind_lag"} <= set(line)


def test_what_was_not_read_is_none_and_says_why_and_is_never_zero(tmp_path: Path) -> None:
    seen = replace(observation(Phase.HYBRID), quorum=WHY, topics=WHY)
    keep(tmp_path, broker(2, running=WHY, mode=WHY, metrics=WHY)(seen))
    look = latest(tmp_path)
    assert look.quorum == WHY.reason
    assert (look.partitions, look.under_replicated, look.offline) == (None, None, None)
    two = next(b for b in look.brokers if b.id == 2)
    assert (two.running, two.mode, two.out_of_sync, two.why) == (None, None, None, WHY.reason)
    assert any("broker 2" in each for each in look.unread)


def test_before_the_first_look_there_is_none(tmp_path: Path) -> None:
    assert read_latest(tmp_path, SPEC.name) is None
    assert read_lines(tmp_path, SPEC.name) == []


@pytest.mark.parametrize("spoilt", ["", "{", "[]", "{}", '{"cluster": 3}', "\xff\x00"])
def test_a_file_that_holds_no_look_is_unread_in_words(tmp_path: Path, spoilt: str) -> None:
    keep(tmp_path, observation(Phase.HYBRID))
    latest_path(tmp_path, SPEC.name).write_bytes(spoilt.encode("latin-1"))
    look = read_latest(tmp_path, SPEC.name)
    assert isinstance(look, Unread)
    assert "can't be read" in look.reason
    assert "\n" not in look.reason


def test_the_look_of_another_cluster_in_this_one_s_file_is_unread(tmp_path: Path) -> None:
    keep(tmp_path, observation(Phase.HYBRID))
    latest_path(tmp_path, SPEC.name).rename(latest_path(tmp_path, "other"))
    assert isinstance(read_latest(tmp_path, "other"), Unread)


def test_a_spoilt_file_is_replaced_by_the_next_look(tmp_path: Path) -> None:
    seen = observation(Phase.HYBRID)
    keep(tmp_path, seen)
    latest_path(tmp_path, SPEC.name).write_text("{")
    keep(tmp_path, later(seen, 1))
    assert latest(tmp_path).at == later(seen, 1).observed_at


def test_the_lines_are_bounded_and_the_newest_stay(tmp_path: Path) -> None:
    seen = observation(Phase.HYBRID)
    for second in range(30):
        keep(tmp_path, later(seen, second), most=3_000)
    path = lines_path(tmp_path, SPEC.name)
    assert path.stat().st_size <= 3_000
    lines = [json.loads(each) for each in path.read_text().splitlines()]
    assert lines[-1]["at"] == later(seen, 29).observed_at.isoformat(timespec="seconds")
    assert 1 < len(lines) < 30


def test_a_line_that_a_crash_cut_off_is_left_out(tmp_path: Path) -> None:
    seen = observation(Phase.HYBRID)
    keep(tmp_path, seen)
    with lines_path(tmp_path, SPEC.name).open("a") as file:
        file.write('{"at": "20\n[]\n')
    keep(tmp_path, later(seen, 1))
    lines = read_lines(tmp_path, SPEC.name)
    assert isinstance(lines, list)
    assert len(lines) == 2


def test_a_directory_that_can_t_be_written_stops_nothing_and_is_said(tmp_path: Path) -> None:
    (tmp_path / "looks").write_text("in the way")
    (warned,) = keep(tmp_path, observation(Phase.HYBRID))
    assert "not kept for the dashboard" in warned


def test_a_writer_that_never_ends_stops_nobody_and_is_said(tmp_path: Path) -> None:
    seen = observation(Phase.HYBRID)
    keep(tmp_path, seen)
    with latest_path(tmp_path, SPEC.name).with_suffix(".lock").open("r+") as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        (warned,) = keep(tmp_path, later(seen, 1), patience=0.05)
    assert "another writer has held lab.lock" in warned
    assert latest(tmp_path).at == seen.observed_at
    assert keep(tmp_path, later(seen, 2)) == [], "once that writer has gone, looks are kept again"


def test_whatever_is_wrong_with_a_look_the_step_goes_on(tmp_path: Path) -> None:
    (warned,) = keep(tmp_path, replace(observation(Phase.HYBRID), topics="a part that nobody foresaw"))
    assert "not kept for the dashboard" in warned


def test_no_configuration_is_in_what_is_kept(tmp_path: Path) -> None:
    keep(tmp_path, observation(Phase.DUAL_WRITE))
    kept = latest_path(tmp_path, SPEC.name).read_text()
    assert "password" not in kept
    assert "listener" not in kept
