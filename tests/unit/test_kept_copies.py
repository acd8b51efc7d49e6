"""Directories that are made once and copied by everyone: one maker at a time, none of its drafts taken, and few old
keys.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kept_copies import KEYS_KEPT, Copies

from lab import ROOT

MAKER = """
import sys, time
from pathlib import Path
from kept_copies import Copies
home, target, seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
def make(draft):
    draft.mkdir()
    (draft / "half").touch()
    (home / "makers").open("a").write("made\\n")
    time.sleep(seconds)
    (draft / "whole").touch()
Copies(home, "key").take("state", target, make)
"""


def in_another_process(home: Path, target: Path, *, seconds: float) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "integration")}
    return subprocess.Popen([sys.executable, "-c", MAKER, str(home), str(target), str(seconds)], env=environment)


def until_made_by(home: Path, count: int) -> None:
    ends = time.monotonic() + 60
    while not (home / "makers").exists() or len((home / "makers").read_text().split()) < count:
        assert time.monotonic() < ends, "nobody began"
        time.sleep(0.02)


def simple(draft: Path) -> None:
    draft.mkdir()
    (draft / "whole").write_text("as made")


def never(draft: Path) -> None:
    raise AssertionError(f"{draft} is made again")


def test_what_was_made_once_is_copied_with_its_modes_and_never_made_again(tmp_path: Path) -> None:
    def make(draft: Path) -> None:
        simple(draft)
        (draft / "secret").touch(mode=0o600)

    Copies(tmp_path / "kept", "key").take("state", tmp_path / "first", make)
    (tmp_path / "first" / "whole").write_text("changed by whoever has it")
    Copies(tmp_path / "kept", "key").take("state", tmp_path / "second", never)
    assert (tmp_path / "second" / "whole").read_text() == "as made"
    assert (tmp_path / "second" / "secret").stat().st_mode & 0o777 == 0o600


def test_of_several_processes_one_makes_and_the_others_wait_for_it(tmp_path: Path) -> None:
    home = tmp_path / "kept"
    others = [in_another_process(home, tmp_path / f"taken-{number}", seconds=1) for number in range(3)]
    assert [each.wait(60) for each in others] == [0, 0, 0]
    assert (home / "makers").read_text().split() == ["made"]
    assert all((tmp_path / f"taken-{number}" / "whole").exists() for number in range(3))


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_what_an_interrupted_maker_left_is_never_taken(tmp_path: Path, ending: signal.Signals) -> None:
    home = tmp_path / "kept"
    interrupted = in_another_process(home, tmp_path / "never", seconds=60)
    until_made_by(home, 1)
    interrupted.send_signal(ending)
    assert interrupted.wait(60) != 0
    assert not (tmp_path / "never").exists()
    assert in_another_process(home, tmp_path / "taken", seconds=0).wait(60) == 0
    assert (home / "makers").read_text().split() == ["made", "made"]
    assert (tmp_path / "taken" / "whole").exists()


def test_a_failure_of_the_maker_is_raised_and_nothing_is_kept(tmp_path: Path) -> None:
    def fail(draft: Path) -> None:
        simple(draft)
        raise RuntimeError("the lab did not come up")

    copies = Copies(tmp_path / "kept", "key")
    with pytest.raises(RuntimeError, match="did not come up"):
        copies.take("state", tmp_path / "target", fail)
    assert not (tmp_path / "target").exists()
    copies.take("state", tmp_path / "target", simple)
    assert (tmp_path / "target" / "whole").read_text() == "as made"


def test_a_copy_is_put_over_nothing(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    with pytest.raises(FileExistsError, match="target is there already"):
        Copies(tmp_path / "kept", "key").take("state", tmp_path / "target", simple)


def test_under_another_key_it_is_made_anew_and_the_keys_used_last_are_kept(tmp_path: Path) -> None:
    home = tmp_path / "kept"
    keys = [f"key-{number}" for number in range(KEYS_KEPT + 2)]
    for number, key in enumerate(keys):
        Copies(home, key).take("state", tmp_path / f"of-{key}", simple)
        os.utime(home / key, (number, number))  # as if they were taken long ago, one after the other
    Copies(home, keys[0]).take("state", tmp_path / "first-again", simple)
    assert {path.name for path in home.iterdir() if path.is_dir()} == {keys[0], *keys[-KEYS_KEPT + 1 :]}


def test_a_key_is_not_removed_while_another_process_makes_something(tmp_path: Path) -> None:
    home = tmp_path / "kept"
    other = in_another_process(home, tmp_path / "taken", seconds=2)
    until_made_by(home, 1)
    os.utime(home / "key", (1, 1))
    for number in range(KEYS_KEPT + 1):
        Copies(home, f"newer-{number}").take("another state", tmp_path / f"of-{number}", simple)
    assert other.wait(60) == 0
    assert (tmp_path / "taken" / "whole").exists()
