"""The watch over the controllers' files: a wrong one counts at once, an unread one when it stays so, and nobody waits
for a reading.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from observations import SPEC, WHY, config, observation, on_host

from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import StepFailed
from kraft_runbook.migration.checks import CheckResult
from kraft_runbook_airflow.migration import disk_watch
from kraft_runbook_airflow.migration.disk_watch import DiskWatch, Hosts, read_controllers

SEEN = observation(Phase.DUAL_WRITE)
FINE = SEEN.hosts
UNFLAGGED = config(102, zookeeper__metadata__migration__enable=None)(SEEN).hosts
UNREAD = on_host(102, config=WHY)(SEEN).hosts


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[Hosts]:
    """What the next readings find, in this order. Every look may begin one."""
    ahead: list[Hosts] = []
    monkeypatch.setattr(disk_watch, "EVERY_SECONDS", 0.0)
    monkeypatch.setattr(disk_watch, "read_controllers", lambda spec: ahead.pop(0))
    return ahead


async def reading_ended() -> None:
    while len(asyncio.all_tasks()) > 1:
        await asyncio.sleep(0.01)


def looks(readings: list[Hosts], *found: Hosts, seen: ClusterObservation = SEEN) -> tuple[list[list[str]], list[str]]:
    """The evidence of what each look found broken, one a reading, and of the last reading."""
    readings[:] = found

    async def watch() -> tuple[list[list[CheckResult]], list[CheckResult]]:
        disk, each = DiskWatch(SPEC), []
        disk.look(seen)
        await reading_ended()
        while readings:
            each.append(disk.look(seen))
            await reading_ended()
        return each, await disk.last_look(seen)

    each, last = asyncio.run(watch())
    return [[r.evidence for r in results] for results in each], [r.evidence for r in last]


def test_a_file_without_the_flag_counts_at_once_and_names_the_controller(readings: list[Hosts]) -> None:
    each, _ = looks(readings, FINE, UNFLAGGED, FINE)
    assert each[0] == []
    assert (
        len(each[1]) == 1
        and "in controller 102's file" in each[1][0]
        and "zookeeper.metadata.migration.enable is missing" in each[1][0]
    )


def test_a_file_that_can_not_be_read_counts_when_it_stays_so(readings: list[Hosts]) -> None:
    each, last = looks(readings, FINE, UNREAD, UNREAD, FINE, UNREAD, UNREAD, UNREAD)
    assert each == [[]] * 6
    assert last == ["controller 102: a test did not read it"]


def test_a_watch_that_never_got_an_answer_does_not_end_well(readings: list[Hosts]) -> None:
    assert looks(readings, UNREAD) == ([], ["controller 102: a test did not read it"])
    assert looks(readings, FINE, UNREAD) == ([[]], [])


def test_after_finalization_no_file_needs_the_flag(readings: list[Hosts]) -> None:
    assert looks(readings, UNFLAGGED, UNFLAGGED, seen=observation(Phase.FINALIZED)) == ([[]], [])


def test_a_look_never_waits_and_readings_lie_a_minute_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on = [], threading.Event()

    def slow(spec: object) -> Hosts:
        began.append(spec)
        go_on.wait(10)
        return FINE

    monkeypatch.setattr(disk_watch, "read_controllers", slow)

    async def watch() -> list[CheckResult]:
        disk = DiskWatch(SPEC)
        for _ in range(5):
            assert disk.look(SEEN) == []
            await asyncio.sleep(0.02)
        go_on.set()
        await asyncio.sleep(0.1)
        disk.look(SEEN)
        return await disk.last_look(SEEN)

    assert asyncio.run(watch()) == []
    assert len(began) == 1


@pytest.mark.parametrize("fails", [StepFailed("no room", way_out="make room")])
def test_a_run_of_ansible_that_breaks_off_is_unread_not_fine(
    monkeypatch: pytest.MonkeyPatch, fails: StepFailed
) -> None:
    def broken(*_: object, **__: object) -> Callable[[], None]:
        raise fails

    monkeypatch.setattr("kraft_runbook.io.hosts.playbooks.gather_host_facts", broken)
    assert read_controllers(SPEC) == Unread("no room")
