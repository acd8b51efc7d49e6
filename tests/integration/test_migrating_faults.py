"""Migrating members that are stopped, killed or cut off, as processes, in both modes. Too long for every day."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import by_hand
import pytest
from handed_out import HandedOut
from kazoo.client import KazooClient
from labs import Lab
from migrating_members import PARTITIONS, RATE, Group

from lab import ROOT

pytestmark = pytest.mark.long
SESSION_MS = 6000
COMMIT_SECONDS = 0.5
MODES = pytest.mark.parametrize("mode", ["zookeeper", "kafka"])


@dataclass
class Process:
    """One member; ``id``: as it is registered."""

    process: subprocess.Popen[str]
    id: str
    log: Path

    @property
    def read(self) -> list[HandedOut]:
        lines = [line.split() for line in self.log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [HandedOut(float(at), self.id, int(partition), int(offset)) for at, partition, offset in lines]


@contextmanager
def running(group: Group, name: str) -> Iterator[Process]:
    embedded = {"coordination.migration.session.timeout.ms": SESSION_MS}
    settings = json.dumps(group.settings(**embedded, **{"consumer.id": name}))
    log = group.where / f"{name}.records"
    program = Path(__file__).with_name("migrating_process.py")
    process = subprocess.Popen(
        [sys.executable, str(program), settings, group.name, str(log)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "include")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield Process(process, process.stdout.readline().strip(), log)
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(60)


@pytest.fixture
def group(own_lab: Lab, tmp_path: Path, request: pytest.FixtureRequest) -> Group:
    name = str(request.node.name).removeprefix("test_").translate(str.maketrans("_[]", "---"))
    made = Group(own_lab, name, tmp_path)
    made.make_topic()
    return made


@contextmanager
def three(group: Group, zookeeper: KazooClient, mode: str) -> Iterator[list[Process]]:
    """Members with two partitions each, and what all have read in the end in ``group.seen``."""
    group.set_mode(zookeeper, mode)
    with ExitStack() as stack:
        members = [stack.enter_context(running(group, name)) for name in "abc"]
        group.await_owners(zookeeper, [2, 2, 2])
        if mode == "kafka":
            by_hand.wait_until("Kafka assigns", lambda: owned_by_kafka(group, zookeeper))
        yield members

        def all_read() -> bool:
            group.seen = [each for member in members for each in member.read]
            return group.all_read()

        by_hand.wait_until("every record is read", all_read, within=60)


def owned_by_kafka(group: Group, zookeeper: KazooClient) -> bool:
    assigned = group.kafka_assigns()
    return group.owners(zookeeper) == {number: who for who, numbers in assigned.items() for number in numbers}


def read_again_at_most() -> float:
    """One member's share of the records of a commit interval, and of the time that a commit takes on a busy machine."""
    return RATE / 3 * (COMMIT_SECONDS + 1.0)


@MODES
def test_a_stopped_member_hands_out_nothing_that_is_another_s(group: Group, zookeeper: KazooClient, mode: str) -> None:
    with three(group, zookeeper, mode) as members, group.records():
        by_hand.wait_until("all read", lambda: all(len(each.read) > 100 for each in members))
        stopped = members[0]
        stopped.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        time.sleep(10)
        woke = time.monotonic()
        stopped.process.send_signal(signal.SIGCONT)
        group.await_owners(zookeeper, [2, 2, 2])
        by_hand.wait_until("it reads again", lambda: any(each.at > woke for each in stopped.read), within=60)
    found = group.account()
    assert found.lost == ()
    assert [each for each in found.overlaps if each.member == stopped.id and each.at >= woke] == []
    assert len(found.twice) <= read_again_at_most(), found.twice
    print(f"{mode}: stopped at {began:.1f}, {len(found.twice)} twice, silent {max(found.silent.values()):.1f} s")


@MODES
def test_a_killed_member_costs_what_it_has_not_committed(group: Group, zookeeper: KazooClient, mode: str) -> None:
    with three(group, zookeeper, mode) as members, group.records():
        by_hand.wait_until("all read", lambda: all(len(each.read) > 100 for each in members))
        members[0].process.kill()
        members[0].process.wait()
        group.await_owners(zookeeper, [3, 3])
        for number in range(PARTITIONS):
            after = time.monotonic()
            by_hand.wait_until(
                f"partition {number} is read",
                lambda n=number, t=after: any(
                    each.partition == n and each.at > t for member in members[1:] for each in member.read
                ),
            )
    found = group.account()
    assert found.lost == ()
    assert len(found.twice) <= read_again_at_most(), found.twice
    print(f"{mode}: {len(found.twice)} twice, silent {max(found.silent.values()):.1f} s")
