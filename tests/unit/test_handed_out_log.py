"""A migrating member's own log of what it hands out: a line for each record, which the proof reads."""

from __future__ import annotations

import os
import signal
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_runbook.groups.proof import HandedOut, prove
from kraft_runbook.io.members_logs import read_logs
from kraft_runbook_consumer import ConsumerError
from kraft_runbook_consumer.__main__ import main
from kraft_runbook_consumer.handed_out import HandedOutLog


def message(offset: int) -> Any:
    return SimpleNamespace(topic=lambda: "t", partition=lambda: 1, offset=lambda: offset, value=lambda: b"text")


class Member:
    """A migrating member that hands out five records and is told to end then. ``logged``: the size of its log whenever
    the next record is asked for.
    """

    def __init__(self) -> None:
        self.logged: list[int] = []
        self.member_id = "g_me"
        self.streams = [self]
        self.left = [message(n) for n in range(5)]

    def poll(self, timeout: float) -> Any:
        self.logged.append(Path("log").stat().st_size)
        if self.left:
            return self.left.pop(0)
        os.kill(os.getpid(), signal.SIGTERM)
        return None

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


ARGUMENTS = ("--topic", "t", "--log", "log", "group.id=g")


def test_the_command_logs_each_record_before_it_asks_for_the_next_one() -> None:
    member: Any = Member()
    former = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    try:
        assert main(ARGUMENTS, lambda settings, topics: member) == 0
    finally:
        signal.signal(signal.SIGTERM, former[0])
        signal.signal(signal.SIGINT, former[1])
    found = list(read_logs([Path("log")]))
    assert [(each.topic, each.partition, each.offset, each.member) for each in found] == [
        ("t", 1, n, "g_me") for n in range(5)
    ]
    assert member.logged[0] == 0 and all(before < after for before, after in pairwise(member.logged))
    assert prove(found).holds


def test_two_members_and_two_runs_may_write_to_one_file() -> None:
    with (
        HandedOutLog(Path("log"), "a", clock=lambda: 1.5) as one,
        HandedOutLog(Path("log"), "b", clock=lambda: 2) as two,
    ):
        one.write(message(1))
        two.write(message(2))
    with HandedOutLog(Path("log"), "a", clock=lambda: 3) as again:
        again.write(message(3))
    assert list(read_logs([Path("log")])) == [
        HandedOut("t", 1, 1, "a", 1.5),
        HandedOut("t", 1, 2, "b", 2.0),
        HandedOut("t", 1, 3, "a", 3.0),
    ]


def test_a_file_that_can_not_be_written_or_ends_in_a_part_of_a_line_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("log").write_text('{"topic": "t"')
    assert main(ARGUMENTS) == 2
    assert "the last line of log is not whole. What to do: name another file" in capsys.readouterr().err
    with pytest.raises(ConsumerError, match=r"no/log can't be written: No such file or directory"):
        HandedOutLog(Path("no/log"))


def test_a_full_disk_ends_the_member(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with HandedOutLog(Path("log"), "a") as log, Path("/dev/full").open("ab", buffering=0) as full:
        monkeypatch.setattr(log, "_file", full)
        with pytest.raises(ConsumerError, match="log can't be written: No space left on device"):
            log.write(message(1))
