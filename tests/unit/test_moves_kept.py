"""Moves and throttles that the cluster itself shows, on the dashboard: also of another tool."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from observations import NOW, SPEC
from test_dashboard_facts import LINKS, facts

from kraft_runbook.cluster.assignment import Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.dashboard.kept_moves import lists_of, moves_of
from kraft_runbook.dashboard.look_files import keep_moves, moves_path, read_moves
from kraft_runbook.dashboard.page import render_cluster
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.assignment_seen import AssignmentSeen
from kraft_runbook.procedures.see_moves import see_lists, see_moves
from kraft_runbook.reassignment.throttles import DISK_RATE, Former

NOTHING = Former({}, {}, {})
RATED = Former({"leader.replication.throttled.rate": "10000000"}, {2: {"follower.replication.throttled.rate": "5"}}, {})
TWO = {TopicPartition("orders", n): Ongoing((1, 2, 4), (4,), (1,)) for n in (7, 3)}


def page(state: Path, moving: Any, throttles: Any, *, later: float = 30) -> str:
    keep_moves(state, moves_of("lab", NOW, moving, throttles), warn=pytest.fail)
    now = NOW + timedelta(seconds=later)
    return " ".join(render_cluster(facts(state, now), LINKS, now=now).split())


def test_moves_of_another_tool_are_shown_and_said_to_be_no_run_s(tmp_path: Path) -> None:
    shown = page(tmp_path, TWO, RATED)
    assert (
        "2 partitions are being reassigned, such as orders-3, orders-7; brokers that get replicas: 4; that lose"
        in shown
    )
    assert "No run that goes on, and that you may read, says that it moves them" in shown
    assert "the brokers&#39; default: leader.replication.throttled.rate=10000000; broker 2: follower" in shown
    assert "In the cluster, 30 s ago" in shown


def test_rates_without_a_move_are_a_warning_and_nothing_at_all_is_none(tmp_path: Path) -> None:
    assert "Throttle rates are set, and nothing is being reassigned" in page(tmp_path, {}, RATED)
    shown = page(tmp_path, {}, NOTHING)
    assert "No partition is being reassigned." in shown and "No broker that was asked has a throttle rate." in shown
    assert "Throttle rates are set" not in shown and "says that it moves them" not in shown


def test_a_rate_of_copies_between_disks_is_shown_and_is_no_warning(tmp_path: Path) -> None:
    """Of such copies no reassignment tells: they may go on."""
    shown = page(tmp_path, {}, Former({DISK_RATE: "5"}, {2: {DISK_RATE: "7"}}, {}))
    assert f"copies between disks: the brokers&#39; default: {DISK_RATE}=5; broker 2: {DISK_RATE}=7." in shown
    assert "No broker that was asked has a throttle rate." in shown and "Throttle rates are set" not in shown


def test_of_many_rates_the_number_is_told_and_a_broker_that_was_not_asked_is_named(tmp_path: Path) -> None:
    many = Former({}, {n: {"follower.replication.throttled.rate": "5"} for n in range(1, 8)}, {})
    keep_moves(tmp_path, moves_of("lab", NOW, TWO, many, not_asked=[9]), warn=pytest.fail)
    shown = " ".join(render_cluster(facts(tmp_path), LINKS, now=NOW).split())
    assert "Throttle rates set: 7, such as broker 1:" in shown and "broker 6" not in shown
    assert "Not read: the throttle rates of broker 9" in shown


def test_what_could_not_be_read_is_never_nothing(tmp_path: Path) -> None:
    shown = page(tmp_path, Unread("no controller"), Unread("broker 3 is silent"))
    assert "Whether partitions are being reassigned is not known" in shown
    assert "Whether throttle rates are set is not known" in shown
    assert "Not read: no controller" in shown and "Not read: broker 3 is silent" in shown


def test_an_old_look_is_called_old_and_none_is_said(tmp_path: Path) -> None:
    assert "Old, and may no longer hold: in the cluster, 10 min ago" in page(tmp_path, TWO, NOTHING, later=600)
    assert "ahead of this server" in page(tmp_path, TWO, NOTHING, later=-60)
    moves_path(tmp_path, "lab").unlink()
    assert "No watch has asked the cluster yet" in render_cluster(facts(tmp_path), LINKS, now=NOW)


@pytest.mark.parametrize("spoilt", ["", "{", '{"version": 1}', "[]"])
def test_a_spoilt_file_is_said_in_words(tmp_path: Path, spoilt: str) -> None:
    keep_moves(tmp_path, moves_of("lab", NOW, TWO, NOTHING), warn=pytest.fail)
    moves_path(tmp_path, "lab").write_text(spoilt)
    found = read_moves(tmp_path, "lab")
    assert isinstance(found, Unread) and "(lab.moves.json) can't be read" in found.reason
    assert "orders-3" not in render_cluster(facts(tmp_path), LINKS, now=NOW)


def test_one_part_that_can_not_be_asked_does_not_hide_the_other() -> None:
    def refused() -> Any:
        raise Unreachable("no controller was found", way_out="start one")

    asked: list[Any] = []

    def throttles(spec: Any, topics: Any, *, secrets: Any, live: Any, keys: Any) -> Former:
        assert DISK_RATE in keys
        asked.append((tuple(topics), live))
        return RATED

    moving, found = see_moves(SPEC, [1, 2], secrets=lambda _: "", ongoing=refused, throttles=throttles)
    assert isinstance(moving, Unread) and moving.reason == "no controller was found"
    assert found == RATED and asked == [((), [1, 2])], "topics are not asked, and a broker that is down is not either"


LISTED = {
    "orders": {"leader.replication.throttled.replicas": "0:1,0:2", "follower.replication.throttled.replicas": "0:4"},
    "old": {"follower.replication.throttled.replicas": "*"},
    "empty": {"leader.replication.throttled.replicas": ""},
}


def with_lists(state: Path, lists: Any, moving: Any, throttles: Any = NOTHING, *, later: float = 30) -> str:
    kept = moves_of("lab", NOW, moving, throttles, lists=lists_of(NOW, lists, idle=not moving))
    keep_moves(state, kept, warn=pytest.fail)
    now = NOW + timedelta(seconds=later)
    return " ".join(render_cluster(facts(state, now), LINKS, now=now).split())


def test_topics_lists_are_shown_whoever_set_them_and_are_a_warning_where_nothing_moves(tmp_path: Path) -> None:
    shown = with_lists(tmp_path, LISTED, {})
    assert (
        "Topics with lists of throttled replicas: 2, such as topic old: follower.replication.throttled.replicas=*;"
        " topic orders: leader.replication.throttled.replicas=0:1,0:2;" in shown
    )
    assert "Read 30 s ago" in shown
    assert "Replicas are listed for a throttle, and nothing is being reassigned. No broker that was asked" in shown
    assert "so nothing is slowed down now" not in with_lists(tmp_path, LISTED, {}, RATED)
    assert "Replicas are listed for a throttle" not in with_lists(tmp_path, LISTED, TWO, RATED)


def test_lists_that_were_not_read_are_never_none_and_old_ones_are_called_so(tmp_path: Path) -> None:
    assert 'No topic has a list of throttled replicas. <span class="soft">Read' in with_lists(tmp_path, {}, {})
    assert "lists of throttled replicas is not known: no broker answers." in with_lists(
        tmp_path, Unread("no broker answers"), {}
    )
    assert '<span class="warn">Read 33 min ago' in with_lists(tmp_path, LISTED, {}, later=2000)
    assert "was not asked yet" in page(tmp_path, {}, NOTHING)


def test_every_topic_is_asked_for_its_lists() -> None:
    asked: list[Any] = []

    def throttles(spec: Any, topics: Any, *, secrets: Any, live: Any) -> Former:
        asked.append((topics, live))
        return Former({}, {}, LISTED)

    def seen(spec: Any, *, secrets: Any) -> Any:
        return AssignmentSeen("id", {}, dict.fromkeys((*TWO, TopicPartition("old", 0)), PartitionSeen((1,), 1, (1,))))

    def silent(spec: Any, *, secrets: Any) -> Any:
        raise Unreachable("no broker answers", way_out="start one")

    assert see_lists(SPEC, secrets=lambda _: "", seen=seen, throttles=throttles) == LISTED
    assert asked == [({"orders", "old"}, ())]
    found = see_lists(SPEC, secrets=lambda _: "", seen=silent, throttles=throttles)
    assert isinstance(found, Unread) and found.reason == "no broker answers"
