"""What a command shows while it is silent, and how it looks again: on a terminal, and nowhere else."""

from __future__ import annotations

import io

import pytest

from kraft_runbook.cli.progress import look_again, reading
from kraft_runbook.errors import Unreachable
from kraft_runbook.procedures import see_groups


class Stream(io.StringIO):
    """Standard error; ``terminal``: it is one."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_read_and_how_far_shows_on_a_terminal_and_a_pipe_stays_clean(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    shown = Stream(terminal=terminal)
    with reading("reading groups of [lab]", shown) as far:
        far("1,200 groups read")
    assert ("reading groups of [lab]: 1,200 groups read" in shown.getvalue()) is terminal
    assert terminal or shown.getvalue() == ""
    assert capsys.readouterr().out == "", "--json stays JSON"


def test_without_a_watch_there_is_one_look_and_its_error_is_the_command_s() -> None:
    assert look_again(False, lambda: 2, sleep=pytest.fail) == 2

    def gone() -> int:
        raise Unreachable("no broker answers", way_out="start one")

    with pytest.raises(Unreachable):
        look_again(False, gone)
    with pytest.raises(Unreachable):
        look_again(True, gone, sleep=pytest.fail)


def test_a_watch_looks_until_it_is_interrupted_also_behind_a_look_that_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    looks: list[int] = []

    def look() -> int:
        looks.append(len(looks))
        if len(looks) == 2:
            raise Unreachable("no broker answers", way_out="start one")
        if len(looks) == 4:
            raise KeyboardInterrupt
        print("seen")
        return 0

    with pytest.raises(KeyboardInterrupt):
        look_again(True, look, sleep=lambda _: None)
    told = capsys.readouterr()
    assert told.out.split() == ["seen", "seen"] and len(looks) == 4
    assert "error: no broker answers" in told.err


def test_the_scan_says_how_far_it_is_at_every_hundredth_group() -> None:
    told: list[str] = []
    assert list(see_groups._told(range(250), told.append)) == list(range(250))
    assert told == ["100 groups read", "200 groups read"]
    assert list(see_groups._told("ab", None)) == ["a", "b"]
