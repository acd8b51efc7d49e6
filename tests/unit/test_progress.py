"""What a command shows while it is silent, and how it looks again: on a terminal, and nowhere else."""

from __future__ import annotations

import io

import pytest
from observations import SPEC
from placements import of, tp

from kraft_runbook.cli.progress import Far, look_again, reading
from kraft_runbook.cluster.assignment import PartitionSeen
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.assignment_seen import AssignmentSeen
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures import see_groups
from kraft_runbook.procedures.look_at_replicas import agreed
from kraft_runbook.reassignment.goals import EvenOut
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.planner import make_plan


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


def test_the_scan_says_how_far_it_is_at_every_hundredth_group_and_of_how_many() -> None:
    told: list[tuple[object, ...]] = []
    heard = see_groups._told(range(250), 250, lambda *said: told.append(said))
    assert list(heard) == list(range(250))
    assert told == [("groups read", done, 250) for done in (0, 100, 200)]


def test_what_is_done_says_how_long_the_rest_takes_and_another_part_begins_anew() -> None:
    far = Far(iter([0.0, 0.0, 1.0, 30.0, 100.0, 100.0, 101.0]).__next__)
    assert [far.words(*told) for told in (("a", 0, 40), ("a", 5, 40), ("a", 10, 40), ("b",), ("c", 4, 8))] == [
        "a, 0 of 40",
        "a, 5 of 40",  # too soon to tell
        "a, 10 of 40, about 90 s more",
        "b",
        "c, 4 of 8",
    ]


def test_planning_says_each_part_and_how_far_it_is() -> None:
    even = Placement(dict.fromkeys((1, 2, 3, 4)), of(a=[(1,)] * 12, b=[(2,)] * 12, c=[(3,)] * 12))
    told: list[str] = []
    make_plan(EvenOut(), even, tell=lambda what, done=0, of=0: told.append(f"{what} {done} {of}"))
    assert told == [
        "replicas by broker 0 0",
        *(f"topics by broker {at} 4" for at in range(4)),
        "topics by broker, chosen anew 0 1",
        "leaders 0 0",
    ]


def test_partitions_are_counted_while_they_are_read_until_two_answers_agree() -> None:
    told: list[str] = []
    seen = {
        replicas: AssignmentSeen("id", {}, {tp("a", 0): PartitionSeen(replicas, 1, (1,))}) for replicas in ((1,), (2,))
    }
    answers = iter([seen[1,], seen[2,], seen[2,]])
    found = agreed(
        SPEC,
        secrets=environment_secrets(),
        seen_by=lambda *_, **__: next(answers),
        apart=0,
        tell=lambda what, *_: told.append(what),
    )
    assert found is seen[2,]
    assert told == [f"1 partitions, look {look}, until two agree" for look in (2, 3)]
