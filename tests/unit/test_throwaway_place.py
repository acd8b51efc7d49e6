"""Where a rehearsal's throwaway lies: whose the place must be, how long its path may be, and what earlier ones left."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from rehearsing import asking, raising, rehearsed, short_directory, source_in

from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.io.local.layout import room_for_name
from kraft_runbook.procedures.throwaway_place import (
    MARK,
    one_rehearsal,
    own_directory,
    place_of,
    remove_when_free,
)
from kraft_runbook.steps.rehearse import rehearse

NOBODY = 65534
LONG = "prod-eu-west-1-payments-events-of-kafka-and-more"
tmp_path = pytest.fixture(short_directory)


def begin(place: Path) -> None:
    with one_rehearsal(Rehearsal(directory=str(place)), "prod", tell=print):
        pass


def clean_up(place: Path) -> None:
    (place / "prod").mkdir(exist_ok=True)
    remove_when_free(Rehearsal(directory=str(place)), "prod", tell=lambda line: None)


BOTH = pytest.mark.parametrize("act", [begin, clean_up])


@BOTH
@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_a_place_that_others_may_write_to_is_refused(tmp_path: Path, act: Callable[[Path], None], mode: int) -> None:
    """Whoever may could put another throwaway there, and have it started."""
    place = tmp_path / "place"
    place.mkdir()
    place.chmod(mode)
    with pytest.raises(Refused, match=rf"mode 0{mode:o}: a rehearsal needs a directory that uid"):
        act(place)
    assert not (place / "lock").exists()


@BOTH
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_place_that_another_user_made_first_is_refused(tmp_path: Path, act: Callable[[Path], None]) -> None:
    place = tmp_path / "place"
    place.mkdir(mode=0o700)
    os.chown(place, NOBODY, NOBODY)
    with pytest.raises(Refused, match=rf"belongs to uid {NOBODY}"):
        act(place)


@BOTH
def test_a_lock_that_is_a_link_is_refused_and_what_it_leads_to_stays(
    tmp_path: Path, act: Callable[[Path], None]
) -> None:
    (tmp_path / "precious").write_text("evidence")
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(Refused, match="is a link"):
        act(tmp_path / "place")
    assert (tmp_path / "precious").read_text() == "evidence"


def test_without_a_directory_it_lies_below_the_state_directory(tmp_path: Path) -> None:
    state = {"KRAFT_RUNBOOK_STATE": str(tmp_path / "state")}
    assert place_of(Rehearsal(), state) == tmp_path / "state" / "rehearsals"


def test_a_long_name_is_cut_so_that_a_socket_can_be_bound_there() -> None:
    place = Path("/var/lib/airflow/kraft-runbook/rehearsals")
    settings = Rehearsal(directory=str(place))
    assert own_directory(settings, "prod") == place / "prod"
    cut = own_directory(settings, LONG)
    assert re.fullmatch(r"prod-eu-west-1-payments-events-o-[0-9a-f]{8}", cut.name), cut.name
    assert len(cut.name) == room_for_name(place) and len(f"{cut}/supervisor.sock.4194304") <= 107
    assert own_directory(settings, f"{LONG}2") not in (cut, own_directory(settings, LONG[:-1]))


def test_a_place_too_deep_for_any_name_is_refused(tmp_path: Path) -> None:
    deep = Rehearsal(directory=str(tmp_path / ("d" * 90)))
    with pytest.raises(Refused, match="is too long a path") as refused, one_rehearsal(deep, "prod", tell=print):
        pass
    assert "rehearsal.directory" in refused.value.way_out and not (tmp_path / ("d" * 90)).exists()


# -- one rehearsal at a time, and what earlier ones left ---------------------------------------------------------------


@pytest.fixture
def source(tmp_path: Path) -> ClusterSpec:
    return source_in(tmp_path)


def test_one_place_has_one_rehearsal(source: ClusterSpec) -> None:
    refused: list[str] = []

    def copy(*_: Any, **__: Any) -> Any:
        with pytest.raises(Refused) as second:
            rehearsed(source, raising(AssertionError()))
        refused.append(second.value.problem)
        assert source.rehearsal is not None
        with pytest.raises(StepFailed) as held:
            remove_when_free(source.rehearsal, source.name, tell=refused.append, within=0.3)
        refused.append(held.value.problem)
        raise Unreachable("the first ends", way_out="x")

    rehearsed(source, copy)
    assert "another rehearsal is under way" in refused[0] and f"on {socket.gethostname()} after 0.3 s" in refused[1]


def test_one_of_the_dag_waits_for_another_and_begins_when_that_has_ended(source: ClusterSpec) -> None:
    assert source.rehearsal is not None
    told: list[str] = []
    began: list[bool] = []
    with ExitStack() as first:
        first.enter_context(one_rehearsal(source.rehearsal, "big", tell=print))

        def wait(limit: float) -> Canary:
            settings = source.rehearsal.model_copy(update={"time_limit": limit})  # type: ignore[union-attr]
            given = {"source": source.model_copy(update={"rehearsal": settings}), "secrets": lambda ref: ""}
            ask = asking(copy=raising(Unreachable("begun", way_out="x")), record=began.append, waits=True)
            return rehearse(**given, tell=told.append, ask=ask)  # type: ignore[arg-type]

        with pytest.raises(Refused, match=r"another rehearsal is under way in .* after 0.01 s"):
            wait(0.01)
        assert not began, "nothing is on record of one that never began"
        ends = threading.Timer(0.3, first.close)
        ends.start()
        assert wait(60).reasons[0].endswith("begun")
        ends.join()
    assert [line.partition(": ")[2] for line in told if "under way" in line] == [
        f"waiting up to {each} s for its end" for each in ("0.01", "60")
    ]


def test_a_clean_up_waits_for_a_killed_rehearsal_that_still_holds_the_place(source: ClusterSpec) -> None:
    assert source.rehearsal is not None
    told: list[str] = []
    with ExitStack() as killed:
        left = killed.enter_context(one_rehearsal(source.rehearsal, source.name, tell=print))
        with pytest.raises(StepFailed, match="still holds"):
            remove_when_free(source.rehearsal, source.name, tell=told.append, within=0)
        ends = threading.Timer(0.3, killed.close)
        ends.start()
        remove_when_free(source.rehearsal, source.name, tell=told.append)
        ends.join()
    assert not left.exists()
    assert told == [f"{left} on {socket.gethostname()} is removed; 0 processes were ended"]
    remove_when_free(source.rehearsal, source.name, tell=told.append)
    assert told[1:] == [f"nothing is left of a rehearsal in {left.parent} on {socket.gethostname()}"]


def test_what_an_earlier_one_left_is_removed_first(source: ClusterSpec) -> None:
    assert source.rehearsal is not None
    left = own_directory(source.rehearsal, source.name)
    left.mkdir(parents=True)
    (left / "old").touch()
    (left / MARK).touch()
    seen: list[list[str]] = []

    def copy(_: Any, into: Path, **__: Any) -> Any:
        seen.append(sorted(each.name for each in into.parent.parent.iterdir()))
        raise Unreachable("x", way_out="x")

    rehearsed(source, copy)
    assert seen == [sorted([MARK, "zookeeper"])]


def test_a_removal_that_was_cut_short_keeps_no_rehearsal_out_and_is_ended_by_the_next(
    source: ClusterSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert source.rehearsal is not None
    left = own_directory(source.rehearsal, source.name)
    others = left.parent / f".{source.name}-eu.removing-1"
    for each in (left, others):
        each.mkdir(parents=True)
        (each / MARK).touch()
        (each / "old").touch()

    def cut_short(directory: Path, **_: Any) -> None:
        (directory / MARK).unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", cut_short)
        with pytest.raises(KeyboardInterrupt):
            remove_when_free(source.rehearsal, source.name, tell=lambda line: None)
    assert len(list(left.parent.glob(f".{source.name}.removing-*/old"))) == 1
    assert rehearsed(source, raising(Unreachable("begun", way_out="x"))).reasons[0].endswith("begun")
    assert sorted(each.name for each in left.parent.iterdir()) == ["lock"]


@contextmanager
def running(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose command line has a jar in this throwaway."""
    says = "import time; print('runs', flush=True); time.sleep(60)"
    jvm = subprocess.Popen([sys.executable, "-c", says, f"{directory}/kafka/libs/x.jar"], stdout=subprocess.PIPE)
    assert jvm.stdout and jvm.stdout.readline(), "Popen returns in the exec, before the kernel has the command line"
    try:
        yield jvm
    finally:
        jvm.kill()
        jvm.wait()
        jvm.stdout.close()


def test_what_another_cluster_s_rehearsal_left_is_ended_and_removed_first(source: ClusterSpec) -> None:
    """Both have the same addresses; nobody else rehearses here."""
    assert source.rehearsal is not None
    others = own_directory(source.rehearsal, "big")
    with one_rehearsal(source.rehearsal, "big", tell=print):
        (others / "copied-tree").touch()
    real = own_directory(source.rehearsal, "real")
    real.mkdir()
    (real / "data").touch()
    with running(others) as jvm:
        assert rehearsed(source, raising(Unreachable("begun", way_out="x"))).reasons[0].endswith("begun")
        assert jvm.wait(10) != 0
    assert sorted(each.name for each in others.parent.iterdir()) == ["lock", "real"]


def test_one_that_a_person_keeps_is_left_and_refused_before_anything_is_on_record(source: ClusterSpec) -> None:
    assert source.rehearsal is not None
    kept: list[Canary] = []
    rehearsed(source, raising(Unreachable("x", way_out="x")), keep=True)
    there = own_directory(source.rehearsal, source.name)
    another = source.model_copy(update={"name": "big"})
    with running(there) as jvm:
        with pytest.raises(Refused, match=rf"of {source.name} in .* still runs: pid {jvm.pid}") as refused:
            rehearsed(another, raising(AssertionError()), record=kept.append)
        assert "10 minutes" in refused.value.way_out and jvm.poll() is None and kept == []
    rehearsed(another, raising(Unreachable("x", way_out="x")), record=kept.append)
    assert len(kept) == 2 and there.exists(), "what runs no more holds no address"
    rehearsed(source, raising(Unreachable("x", way_out="x")))
    assert not there.exists()


def test_the_clean_up_removes_what_another_removal_left(source: ClusterSpec) -> None:
    assert source.rehearsal is not None
    left = own_directory(source.rehearsal, source.name)
    half = left.parent / f".{source.name}.removing-0123"
    half.mkdir(parents=True)
    (half / "old").touch()
    remove_when_free(source.rehearsal, source.name, tell=lambda line: None)
    assert not half.exists()


def test_a_directory_that_no_rehearsal_made_is_left_alone(source: ClusterSpec) -> None:
    """It may be a real cluster's: its processes would be ended, and its data removed."""
    assert source.rehearsal is not None
    there = own_directory(source.rehearsal, source.name) / "kafka" / "data"
    there.mkdir(parents=True)
    for act in (
        lambda: rehearsed(source, raising(AssertionError())),
        lambda: remove_when_free(source.rehearsal, source.name, tell=print),  # type: ignore[arg-type]
    ):
        with pytest.raises(Refused, match="was not made by a rehearsal"):
            act()
    assert there.exists()


@pytest.mark.parametrize("named", ["link", "place/below/.."])
def test_what_runs_in_a_place_behind_a_link_is_found(source: ClusterSpec, tmp_path: Path, named: str) -> None:
    """A process there has the place's own path in its command line (run-service.sh: ``pwd -P``)."""
    assert source.rehearsal is not None
    there = tmp_path / "place" / source.name
    (tmp_path / "place" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "place")
    there.mkdir()
    (there / MARK).touch()
    settings = source.rehearsal.model_copy(update={"directory": str(tmp_path / named)})
    assert own_directory(settings, source.name) == there
    with running(there) as jvm:
        (ended,) = remove_when_free(settings, source.name, tell=lambda line: None)
        assert "x.jar" in ended and jvm.wait(10) != 0 and not there.exists()
    seen: list[Path] = []

    def copy(_: Any, into: Path, **__: Any) -> Any:
        seen.append(into.parent.parent)
        raise Unreachable("x", way_out="x")

    rehearsed(source.model_copy(update={"rehearsal": settings}), copy)
    assert seen == [there]


def test_a_link_in_the_place_of_the_throwaway_is_left_alone(source: ClusterSpec, tmp_path: Path) -> None:
    """A rehearsal makes a directory; what a link leads to is not its own, whatever mark is there."""
    assert source.rehearsal is not None
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / MARK).touch()
    (tmp_path / "place").mkdir()
    own_directory(source.rehearsal, source.name).symlink_to(tmp_path / "other")
    with pytest.raises(Refused, match="was not made by a rehearsal"):
        rehearsed(source, raising(AssertionError()))
    assert (tmp_path / "other" / MARK).exists()
