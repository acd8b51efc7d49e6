"""The watch over the controllers' files: a wrong one counts at once, an unread one when it stays so, and nobody waits
for a reading.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence

import pytest
from observations import WHY, config, observation, on_host
from recording import RecordingCluster

from kraft_runbook.cluster.observation import ClusterObservation, HostState, Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import StepFailed
from kraft_runbook.migration.checks import CheckResult
from kraft_runbook.steps.disk_watch import DiskWatch, Hosts, read_controllers

SEEN = observation(Phase.DUAL_WRITE)
FINE = SEEN.hosts
UNFLAGGED = config(102, zookeeper__metadata__migration__enable=None)(SEEN).hosts
UNREAD = on_host(102, config=WHY)(SEEN).hosts


class Read(RecordingCluster):
    """``ahead``: what the next readings find, in this order."""

    ahead: list[Hosts]

    def hosts(self, node_ids: Sequence[int]) -> Mapping[int, HostState]:
        found = self.ahead.pop(0)
        if isinstance(found, Unread):
            raise StepFailed(found.reason, way_out="")
        return found


@pytest.fixture
def readings() -> list[Hosts]:
    """What the next readings find, in this order. Every look may begin one."""
    return []


async def reading_ended() -> None:
    while len(asyncio.all_tasks()) > 1:
        await asyncio.sleep(0.01)


def looks(readings: list[Hosts], *found: Hosts, seen: ClusterObservation = SEEN) -> tuple[list[list[str]], list[str]]:
    """The evidence of what each look found broken, one a reading, and of the last reading."""
    readings[:] = found

    async def watch() -> tuple[list[list[CheckResult]], list[CheckResult]]:
        cluster = Read()
        vars(cluster)["ahead"] = readings
        disk, each = DiskWatch(cluster, every=0.0), []
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


def test_a_look_never_waits_and_readings_lie_a_minute_apart() -> None:
    began, go_on = [], threading.Event()

    class Slow(RecordingCluster):
        def hosts(self, node_ids: Sequence[int]) -> Mapping[int, HostState]:
            began.append(node_ids)
            go_on.wait(10)
            assert not isinstance(FINE, Unread)
            return FINE

    async def watch() -> list[CheckResult]:
        disk = DiskWatch(Slow())
        for _ in range(5):
            assert disk.look(SEEN) == []
            await asyncio.sleep(0.02)
        go_on.set()
        await asyncio.sleep(0.1)
        disk.look(SEEN)
        return await disk.last_look(SEEN)

    assert asyncio.run(watch()) == []
    assert len(began) == 1


def test_a_run_of_ansible_that_breaks_off_is_unread_not_fine() -> None:
    class Broken(RecordingCluster):
        def hosts(self, node_ids: Sequence[int]) -> Mapping[int, HostState]:
            raise StepFailed("no room", way_out="make room")

    assert read_controllers(Broken()) == Unread("no room")
