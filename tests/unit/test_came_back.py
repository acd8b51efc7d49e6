"""Controllers that run again after KRaft was left: what shows them, and what proves that ZooKeeper lacks nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from feature_looks import host_module
from metadata_encoding import NO_OP, batch, topic
from observations import Spoil, a_controller, both, broker, observation, part, zookeeper
from test_never_copied import state, written

from kraft_runbook.cluster.observation import BrokerMode, ControllerZnode, MigrationZnode, Unread
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.metadata.log.record_schemas import RecordType
from kraft_runbook.migration.came_back import came_back, why_they_may_hold_more
from kraft_runbook.migration.never_copied import LogAccount

BLANK = MigrationZnode(-1, -1, -1, -1)
LEFT = zookeeper(controller=ControllerZnode(1, -1), migration=BLANK)
BACK = LEFT(observation(Phase.HYBRID))


def test_they_hide_the_phase_and_are_seen() -> None:
    assert detect_phase(BACK).phase is Phase.HYBRID
    assert came_back(BACK) == came_back(zookeeper(migration=None)(BACK)) == (101, 102, 103)
    assert came_back(a_controller(103, running=False)(BACK)) == (101, 102)
    assert came_back(part(quorum=Unread("it forms"))(BACK)) == (101, 102, 103)


@pytest.mark.parametrize(
    "spoil",
    [
        zookeeper(controller=ControllerZnode(101, 4)),
        zookeeper(controller=None),
        zookeeper(migration=MigrationZnode(640, 101, 4, 9)),
        part(zookeeper=Unread("it is down")),
        broker(2, mode=BrokerMode.KRAFT),
        broker(2, mode=Unread("it hangs")),
    ],
)
def test_nothing_else_is_taken_for_it(spoil: Spoil) -> None:
    assert came_back(both(spoil)(BACK)) == ()


@pytest.mark.parametrize("phase", [each for each in Phase if each is not Phase.UNKNOWN])
def test_no_healthy_phase_is(phase: Phase) -> None:
    assert came_back(observation(phase)) == ()


def account(controller: int, last: dict[int, int], begins: int | None = 0) -> LogAccount:
    return LogAccount(controller, frozenset({1, 2}), end=max(last.values()) + 1, last=last, begins=begins)


BY_ITSELF = {RecordType.TOPIC.value: 99, RecordType.NO_OP.value: 130, RecordType.PARTITION_CHANGE.value: 120}


@pytest.mark.parametrize(
    ("last", "since", "why"),
    [
        (BY_ITSELF, 100, None),
        ({**BY_ITSELF, RecordType.TOPIC.value: 100}, 100, "controller 102 holds records that were written after KRaft"),
        ({**BY_ITSELF, RecordType.CONFIG.value: 111}, 100, "offset 100 or later: CONFIG"),
        ({**BY_ITSELF, 77: 111}, 100, "kind 77"),
        (BY_ITSELF, None, "no record of how far ZooKeeper was written"),
    ],
)
def test_only_what_a_quorum_writes_by_itself_may_follow(
    last: dict[int, int], since: int | None, why: str | None
) -> None:
    told = why_they_may_hold_more([account(101, BY_ITSELF), account(102, last)], since)
    assert told is None if why is None else why in str(told)


def test_a_log_that_can_not_tell_proves_nothing() -> None:
    assert "not read (it burnt)" in str(
        why_they_may_hold_more([account(101, BY_ITSELF), LogAccount(102, None, reason="it burnt")], 100)
    )
    assert "begins at offset 101, after 100" in str(why_they_may_hold_more([account(101, BY_ITSELF, begins=101)], 100))
    anew = LogAccount(101, frozenset({2}), end=5, last={RecordType.NO_OP.value: 4}, begins=0)
    assert "no log holds the end" in str(why_they_may_hold_more([anew], 100))


def test_the_scan_on_the_host_tells_the_last_of_each_kind(tmp_path: Path) -> None:
    log = written(tmp_path, batch(3, state(1), topic("a"), NO_OP), name="00000000000000000003.log")
    found = host_module("metadata_log_scan").scan(str(log))
    assert found.begins == 3
    assert found.last == {RecordType.ZK_MIGRATION_STATE: 3, RecordType.TOPIC: 4, RecordType.NO_OP: 5}
