"""Clients that Kafka 4 will not answer, added up by day: over restarts, by looks that come when they come."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from observations import WHY, later
from test_old_clients import NOBODY, counted
from test_upgrade_checks import cluster

from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.procedures.kept_old_clients import file_of, keep_old_clients, read_old_clients
from kraft_runbook.software.old_client_days import (
    DAYS,
    MOST_KINDS,
    KindDays,
    OldClientDays,
    from_json,
    table_of_days,
    to_json,
    with_look,
)

DAY = 86_400
WATCH = "cluster_watch__lab"


def at(seconds: float, **kinds: Any) -> ClusterObservation:
    """A look so long after the first one, at brokers that counted so far."""
    return later(counted(cluster(), **kinds), seconds)


def after(*looks: ClusterObservation) -> OldClientDays:
    days = None
    for each in looks:
        days = with_look(days, each)
    assert days is not None
    return days


def requests(days: OldClientDays) -> dict[str, dict[str, int]]:
    return {each.asked: dict(each.days) for each in days.asking}


def test_what_came_before_the_first_look_is_of_no_day_and_what_comes_later_is_of_its_own() -> None:
    days = after(
        at(0, b1=[("Fetch", "3", 100)], b2=[], b3=[]),
        at(60, b1=[("Fetch", "3", 130)], b2=[("Fetch", "3", 2)], b3=[]),
        at(DAY, b1=[("Fetch", "3", 130), ("Produce", "2", 1)], b2=[("Fetch", "3", 5)], b3=[]),
    )
    first, second = (f"{(cluster().observed_at + timedelta(days=n)).date()}" for n in (0, 1))
    assert requests(days) == {"Fetch 3": {first: 32, second: 3}, "Produce 2": {second: 1}}
    assert (days.looks, days.gap_seconds, days.unread) == (3, DAY - 60, frozenset())


def test_a_broker_that_counts_anew_loses_nothing_of_what_was_counted() -> None:
    days = after(
        at(0, b1=[]), at(60, b1=[("Fetch", "3", 50)]), at(120, b1=[]), at(180, b1=[("Fetch", "3", 7)]), at(240, b1=[])
    )
    (kind,) = days.asking
    assert sum(kind.days.values()) == 57
    restarted_between = after(at(0, b1=[]), at(60, b1=[("Fetch", "3", 50)]), at(120, b1=[("Fetch", "3", 7)]))
    assert sum(restarted_between.asking[0].days.values()) == 57


def test_a_broker_that_is_read_for_the_first_time_counted_before() -> None:
    days = after(at(0, b1=WHY), at(60, b1=[("Fetch", "3", 50)]), at(120, b1=[("Fetch", "3", 51)]))
    assert sum(days.asking[0].days.values()) == 1
    assert 1 in after(at(0, b1=WHY)).unread


def test_a_cluster_without_a_broker_of_kafka_3_is_not_counted() -> None:
    seen = at(0, b1=[("Fetch", "3", 1)])
    on_4 = replace(seen, brokers={n: replace(b, software_version="4.1.1") for n, b in seen.brokers.items()})
    assert with_look(None, on_4) is None
    kept = after(seen)
    assert with_look(kept, later(on_4, 60)) is kept
    assert with_look(kept, seen) is kept, "the same look twice"


def test_days_and_kinds_are_bounded() -> None:
    days = after(at(0, b1=[]), at(1, b1=[("Fetch", "3", 1)]), at((DAYS + 2) * DAY, b1=[("Fetch", "3", 1)]))
    assert days.asking == ()
    many = [("Produce", str(n), 1) for n in range(MOST_KINDS + 9)]
    days = after(at(0, b1=[]), at(1, b1=many))
    assert (len(days.asking), days.dropped) == (MOST_KINDS, True)
    assert "More than 300 kinds of client and request came" in table_of_days(days, "4.1.1", watch=WATCH)
    anew = with_look(days, at(2, b1=[]))
    assert anew is not None and len(anew.kinds) == MOST_KINDS, "the broker counts anew: nothing is left of the rest"


def test_what_more_kinds_than_are_kept_counted_before_is_never_taken_for_new() -> None:
    """Nobody asks anything for three days. Then the one does that stands last, and the one that stands first."""
    standing = {f"{n:03}": 1000 for n in range(MOST_KINDS + 9)}
    looks = [standing, standing, standing, {**standing, "000": 1002, f"{MOST_KINDS + 8}": 1001}]
    days = after(*(at(n * DAY, b1=[("Produce", *each) for each in held.items()]) for n, held in enumerate(looks)))
    assert {asked: sum(each.values()) for asked, each in requests(days).items()} == {
        "Produce 000": 2,
        f"Produce {MOST_KINDS + 8}": 1,
    }
    assert not days.dropped


@pytest.mark.filterwarnings("error")  # each look's log would have one
def test_it_comes_back_from_its_file_and_what_is_no_such_file_is_left_alone(tmp_path: Path) -> None:
    warned: list[str] = []
    for each in (at(0, b1=[]), at(10, b1=[]), at(20, b1=[("Fetch", "3", 5)])):
        keep_old_clients(tmp_path, each, warned.append)
    kept = read_old_clients(tmp_path, "lab")
    assert isinstance(kept, OldClientDays) and not warned
    assert from_json(to_json(kept)) == kept
    assert kept.looks == 2, "a look that saw nothing new, soon after the last one, is not written"
    path = file_of(tmp_path, "lab")
    for text, why in ((b"{", "Invalid JSON"), (to_json(replace(kept, version=2)), "version 2")):
        path.write_bytes(text)
        keep_old_clients(tmp_path, at(90, b1=[]), warned.append)
        assert path.read_bytes() == text and why in warned[-1]
        found = read_old_clients(tmp_path, "lab")
        assert isinstance(found, Unread) and why in found.reason
    path.write_bytes(to_json(replace(kept, cluster="other")))
    assert isinstance(read_old_clients(tmp_path, "lab"), Unread)


@pytest.mark.parametrize(
    ("days", "says"),
    [
        (None, f"Nobody has counted by day. Let {WATCH} run"),
        ("no file", f"Not read: no file. Move the file away, and {WATCH} begins anew."),
        (after(at(0, b1=[]), at(3 * DAY, b1=[])), "None came."),
        (after(at(0, b1=[]), at(DAY, b1=[("JoinGroup", "1", 4)])), "None came."),
        (after(at(0, b1=[]), at(3 * DAY, b1=WHY)), "At the last look the counts of broker 1 were not read."),
        (
            after(at(0, b1=[]), at(DAY / 2, b1=[]), at(DAY, b1=[("Fetch", "3", 1234)])),
            f"| {NOBODY} | Fetch 3 | 2026-01-03 | 1 | 1,234 | 1 |",
        ),
        (after(at(0, b1=[]), at(DAY, b1=[])), "1 d, in 2 looks; the longest time without one: 1 d."),
    ],
)
def test_what_a_person_signs(days: OldClientDays | str | None, says: str) -> None:
    shown = table_of_days(days, "4.1.1", watch=WATCH)
    assert shown.startswith("### Clients that Kafka 4.1.1 will not answer, by day\n") and says in shown


def test_for_a_target_that_may_be_4_0_0_the_days_say_that_joingroup_is_not_counted() -> None:
    """KAFKA-19444."""
    none = after(at(0, b1=[]), at(DAY, b1=[]))
    for target in ("4.0.0", "8.0.0-ccs"):
        assert "alone does not answer JoinGroup 0 and 1" in table_of_days(none, target, watch=WATCH)
    assert "JoinGroup" not in table_of_days(none, "4.0.1", watch=WATCH)


def test_names_of_clients_break_no_table() -> None:
    kind = KindDays("a|b\nc", "Fetch 3", {"2026-01-02": 1}, {1: 1})
    assert r"| a\|b c | Fetch 3 |" in table_of_days(replace(after(at(0, b1=[])), kinds=(kind,)), "4.1.1", watch=WATCH)
