"""The soak's watch: what it makes of what it sees. Its looks and what lies on the hosts are given, and time is a
number; checks and their counting are real.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from observations import SPEC, Spoil, broker, config, dual_writing, observation, part, zookeeper
from recording import RecordingCluster

from kraft_runbook.cluster.observation import ClusterObservation, ControllerZnode, Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Unreachable
from kraft_runbook.evidence.kind import Kind
from kraft_runbook.evidence.kinds import Compared
from kraft_runbook.evidence.record import EvidenceRecord, make_record
from kraft_runbook.runbook.digests import sha256_of
from kraft_runbook.steps.disk_watch import Hosts
from kraft_runbook.steps.soak_watch import Watched, soak_in_words, stretch_on_record, watch_health

HEALTHY = observation(Phase.DUAL_WRITE)
FINE = HEALTHY.hosts
UNFLAGGED = config(102, zookeeper__metadata__migration__enable=None)(HEALTHY).hosts
NOT_ASKED = part(hosts=Unread("not asked for"))
AT = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
Watch = Any


class Shows(RecordingCluster):
    """``seen``: look by look. ``lies``: on the controllers' hosts, or why that can't be read."""

    def __init__(self, seen: Iterator[ClusterObservation], lies: Hosts) -> None:
        super().__init__()
        vars(self).update(
            observe=lambda: next(seen), hosts=lambda _: refuse(lies) if isinstance(lies, Unread) else lies
        )


def refuse(unread: Unread) -> None:
    raise Unreachable(unread.reason, way_out="")


@pytest.fixture
def watch() -> Watch:
    """Watches dual write, look by look; ``spoil``: what is wrong at which look, from 0. Returns what broke;
    ``watch.ended_at``: when, of how many seconds; ``watch.watched``: all that it says.
    """
    now = [1_000_000.0]

    async def sleep(seconds: float) -> None:
        now[0] += seconds
        while len(asyncio.all_tasks()) > 1:  # a reading of the hosts takes less than a look
            await asyncio.sleep(0.001)

    def looks(spoil: dict[int, Spoil], dead_from: float) -> Iterator[ClusterObservation]:
        began, number = now[0], 0
        while True:
            seconds = now[0] - began
            seen = dual_writing(HEALTHY, min(seconds, dead_from))
            if seconds > dead_from:
                seen = dual_writing(seen, seconds - dead_from, dead=True)
            yield spoil.get(number, lambda each: each)(NOT_ASKED(seen))
            number += 1

    def go(
        seconds: float, *, spoil: dict[int, Spoil] | None = None, hosts: Hosts = FINE, dead_from: float = 1e9
    ) -> str | None:
        began, seen = now[0], looks(spoil or {}, dead_from)
        cluster = Shows(seen, hosts)
        vars(cluster)["now"] = lambda: now[0]
        found = asyncio.run(watch_health(cluster, now[0] + seconds, sleep=sleep))
        go.ended_at = now[0] - began  # type: ignore[attr-defined]
        go.watched = found  # type: ignore[attr-defined]
        return found.broken

    return go


def test_a_healthy_watch_lasts_its_time_and_ends_well(watch: Watch) -> None:
    assert watch(60) is None
    assert 60 <= watch.ended_at < 64


def test_a_file_without_the_flag_ends_the_watch_at_its_first_reading(watch: Watch) -> None:
    broken = watch(3600, hosts=UNFLAGGED)
    assert (
        broken is not None
        and broken.startswith("KRB-PRE-047")
        and SPEC.controller(102).config_file in broken
        and "What to do: put the named keys back" in broken
    )
    assert watch.ended_at < 10


def test_a_watch_that_could_not_read_any_file_does_not_end_well(watch: Watch) -> None:
    broken = watch(20, hosts=Unread("permission denied"))
    assert broken is not None and "permission denied" in broken
    assert watch.ended_at >= 20


def test_dual_write_that_dies_ends_the_watch_and_is_named(watch: Watch) -> None:
    broken = watch(3600, dead_from=30)
    assert broken is not None and "KRB-DW-001" in broken and "ZooKeeper is no longer written" in broken
    assert 30 < watch.ended_at < 60


def test_what_is_wrong_for_two_looks_is_no_outage_and_for_three_it_is(watch: Watch) -> None:
    down = broker(2, running=False, mode=Unread("it does not run"))
    assert watch(60, spoil=dict.fromkeys((4, 5, 8, 9), down)) is None
    broken = watch(60, spoil=dict.fromkeys((4, 5, 6), down))
    assert broken is not None and "broker 2 does not run" in broken
    assert watch.ended_at < 30


def test_what_breaks_at_the_very_end_is_looked_at_until_it_is_certain(watch: Watch) -> None:
    down = broker(2, running=False, mode=Unread("it does not run"))
    broken = watch(6, spoil=dict.fromkeys(range(2, 30), down))
    assert broken is not None and "broker 2 does not run" in broken
    assert watch(6, spoil=dict.fromkeys((2, 3), down)) is None, "two looks are no outage"
    assert watch.ended_at > 9


def test_a_watch_that_is_taken_over_behind_its_time_looks_once_more(watch: Watch) -> None:
    """The triggerer died: what blocked then is known to nobody."""
    down = broker(2, running=False, mode=Unread("it does not run"))
    broken = watch(-1, spoil=dict.fromkeys(range(99), down))
    assert broken is not None and "broker 2 does not run" in broken
    assert watch(-1) is None


def test_what_breaks_in_turns_behind_the_end_is_no_good_end(watch: Watch) -> None:
    turns = broker(2, running=False, mode=Unread("it does not run")), part(topics=Unread("no answer in 2 s"))
    broken = watch(6, spoil={look: turns[look % 2] for look in range(2, 99)})
    assert broken is not None
    assert 60 < watch.ended_at < 75, "in turns nothing is wrong for three looks"


def test_what_can_not_be_read_counts_as_broken(watch: Watch) -> None:
    broken = watch(60, spoil=dict.fromkeys(range(3, 30), part(zookeeper=Unread("no answer in 2 s"))))
    assert broken is not None and "no answer in 2 s" in broken


def test_two_controllers_at_work_end_the_watch(watch: Watch) -> None:
    broken = watch(60, spoil=dict.fromkeys(range(3, 30), zookeeper(controller=ControllerZnode(102, 4))))
    assert broken is not None and "KRB-GATE-006" in broken


def test_it_says_how_long_it_watched_and_what_was_amiss_for_a_moment(watch: Watch) -> None:
    down = broker(2, running=False, mode=Unread("it does not run"))
    assert watch(60, spoil=dict.fromkeys((4, 5, 8, 9), down)) is None
    told = watch.watched
    assert 60 <= told.seconds == watch.ended_at and 15 <= told.looks <= 21 and told.checks > 20
    assert told.amiss["KRB-PRE-004"] == 4
    assert json.loads(json.dumps(told.to_dict())) == told.to_dict(), "Airflow hands it over as JSON"


def records(*told: Kind) -> list[EvidenceRecord]:
    found: list[EvidenceRecord] = []
    for each in told:
        found.append(make_record(found[-1] if found else None, {"task": "soak", **each.body()}, at=AT))
    return found


def stretch(soak: str, **more: Any) -> Kind:
    watched = Watched(None, **{"seconds": 900.0, "looks": 290, "checks": 31, "amiss": {}, **more})
    return stretch_on_record(watched.to_dict(), soak=soak, now=AT)


def test_the_gate_says_what_the_last_soak_watched_and_for_how_long() -> None:
    once = Compared(values={}, verdict=None, digest="d", offset=1, report="r", final=False, phase="DUAL_WRITE")
    found = soak_in_words(
        records(
            stretch("an earlier one", looks=99),
            once,
            stretch("now", amiss={"KRB-PRE-004": 2}),
            once,
            stretch("now", seconds=420.0, looks=130, amiss={"KRB-PRE-004": 1, "KRB-GATE-009": 1}),
            once,
        ),
        "soak",
    )
    assert found is not None
    assert "**22.0 min** of watching between 2026-01-01 11:45:00 and 2026-01-01 12:00:00 UTC" in found.rendered
    assert "420 looks, each with 31 checks\n" in found.rendered
    assert "`KRB-GATE-009` at 1; `KRB-PRE-004` at 3" in found.rendered
    assert found.digest == sha256_of(found.rendered)


def test_of_a_task_that_watched_nothing_nothing_is_said() -> None:
    assert soak_in_words(records(stretch("now")), "parity_in_hybrid") is None
