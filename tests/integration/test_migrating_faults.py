"""Migrating members that are stopped, killed or cut off, as processes, in both modes, or kept out of Kafka's group. Too
long for every day.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import by_hand
import pytest
from fault_proxy import Proxy
from kazoo.client import KazooClient
from labs import Lab
from migrating_members import PARTITIONS, RATE, Group, note
from toggling_runs import await_shares

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.groups.fault_kinds import FaultKind
from kraft_runbook.groups.proof import HandedOut
from kraft_runbook.io.local import supervision
from kraft_runbook.procedures.see_groups import scan_groups
from kraft_runbook_consumer.mode import Mode
from kraft_runbook_consumer.sight import ASSIGNORS
from lab import ROOT
from lab.layout import ZOOKEEPER, layout, zookeeper_servers

pytestmark = pytest.mark.long
SESSION_MS = 6000
COMMIT_SECONDS = 0.5
MODES = pytest.mark.parametrize("mode", ["zookeeper", "kafka"])


@dataclass
class Process:
    """One member; ``id``: as it is registered."""

    process: subprocess.Popen[str]
    id: str
    topic: str
    log: Path

    @property
    def read(self) -> list[HandedOut]:
        lines = [line.split() for line in self.log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [
            HandedOut(self.topic, int(partition), int(offset), self.id, float(at)) for at, partition, offset in lines
        ]


@contextmanager
def running(group: Group, name: str, **changes: object) -> Iterator[Process]:
    embedded: dict[str, object] = {"coordination.migration.session.timeout.ms": SESSION_MS}
    settings = json.dumps(group.settings(**{**embedded, "consumer.id": name, **changes}))
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
        yield Process(process, process.stdout.readline().strip(), group.name, log)
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(60)


@pytest.fixture
def group(own_lab: Lab, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Group]:
    name = str(request.node.name).removeprefix("test_").translate(str.maketrans("_[]", "---"))
    made = Group(own_lab, name, tmp_path)
    made.make_topic()
    yield made
    note(made, request.node)


@pytest.fixture
def zookeeper(own_lab: Lab) -> Iterator[KazooClient]:
    """A client for each test: some end ZooKeeper."""
    client = KazooClient(own_lab.spec.ensemble.connect)
    client.start()
    yield client
    client.stop()


@contextmanager
def three(
    group: Group, zookeeper: KazooClient, mode: str, first: Mapping[str, object] = {}, **changes: object
) -> Iterator[list[Process]]:
    """Members with as many partitions each, and what all have read in the end in ``group.seen``. ``first``: further
    settings of the first one.
    """
    group.set_mode(zookeeper, mode)
    with ExitStack() as stack:
        members = [stack.enter_context(running(group, "a", **{**changes, **first}))]
        members += [stack.enter_context(running(group, name, **changes)) for name in "bc"]
        group.await_owners(zookeeper, [4, 4, 4])
        if mode == "kafka":
            by_hand.wait_until("Kafka assigns", lambda: group.owned_as_kafka_assigns(zookeeper))
        yield members

        def all_read() -> bool:
            group.seen = [each for member in members for each in member.read]
            return group.all_read()

        by_hand.wait_until("every record is read", all_read, within=60)


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
        group.await_owners(zookeeper, [4, 4, 4])
        by_hand.wait_until("it reads again", lambda: any((each.at or 0) > woke for each in stopped.read), within=60)
    found = group.proof()
    assert found.count("lost") == 0, found.render_text()
    overlaps = [each for partition in found.partitions for each in partition.overlaps]
    after_waking = [each for each in overlaps if each.member == stopped.id and each.at >= woke]
    group.counted["after_waking"] = len(after_waking)
    assert after_waking == []
    assert found.count("twice") <= read_again_at_most(), found.render_text()
    print(f"{mode}: stopped at {began:.1f}, {found.count('twice')} twice, silent {found.silent or 0:.1f} s")


def test_a_member_without_a_session_is_not_taken_for_a_new_one(group: Group, zookeeper: KazooClient) -> None:
    """Stopped for longer than ZooKeeper's session, while Kafka's lasts. Its consumer.id may be anybody's client.id."""
    lasting = {"coordination.migration.session.timeout.ms": 45_000}

    def seen() -> tuple[GroupClass, str]:
        (found,) = scan_groups(group.lab.spec, secrets=group.lab.secrets, names=[group.name]).groups
        return found.group_class, found.why

    with running(group, "a", **lasting) as stopped, running(group, "b", **lasting):
        group.await_owners(zookeeper, [6, 6])
        named = f"/consumers/{group.name}/migration/embedded/{stopped.id}"
        by_hand.wait_until("it has named itself", lambda: zookeeper.exists(named) is not None)
        by_hand.wait_until("both are seen", lambda: seen()[0] is GroupClass.ALL_MIGRATING)
        stopped.process.send_signal(signal.SIGSTOP)
        group.await_owners(zookeeper, [12])
        group_class, why = seen()
        assert group_class is GroupClass.UNKNOWN and f"{stopped.id} in Kafka's group, of a ZooKeeper consumer" in why
        stopped.process.send_signal(signal.SIGCONT)
        group.await_owners(zookeeper, [6, 6])
        by_hand.wait_until("it is back", lambda: seen()[0] is GroupClass.ALL_MIGRATING)


@MODES
def test_a_killed_member_costs_what_it_has_not_committed(group: Group, zookeeper: KazooClient, mode: str) -> None:
    with three(group, zookeeper, mode) as members, group.records():
        by_hand.wait_until("all read", lambda: all(len(each.read) > 100 for each in members))
        members[0].process.kill()
        members[0].process.wait()
        group.await_owners(zookeeper, [6, 6])
        for number in range(PARTITIONS):
            after = time.monotonic()
            by_hand.wait_until(
                f"partition {number} is read",
                lambda n=number, t=after: any(
                    each.partition == n and (each.at or 0) > t for member in members[1:] for each in member.read
                ),
            )
    found = group.proof()
    assert found.count("lost") == 0, found.render_text()
    assert found.count("twice") <= read_again_at_most(), found.render_text()
    print(f"{mode}: {found.count('twice')} twice, silent {found.silent or 0:.1f} s")


@pytest.mark.parametrize("session_ms", [40_000, 6_000])
def test_zookeeper_is_away_for_13_s_in_kafka_mode_and_nobody_notices(
    group: Group, zookeeper: KazooClient, session_ms: int
) -> None:
    """With a session of which two thirds last longer. With the default one members hand out nothing meanwhile: they
    can't know whether others have their locks.
    """
    here = layout(group.lab.spec)
    lasting = {"zookeeper.session.timeout.ms": session_ms, "coordination.migration.session.timeout.ms": 45_000}
    with ExitStack() as stack, three(group, zookeeper, "kafka", **lasting) as members, group.records():
        by_hand.wait_until("all read", lambda: all(len(each.read) > 100 for each in members))
        began = time.monotonic()
        supervision.begin_stop(here, ZOOKEEPER, signal="KILL")
        time.sleep(13)
        assert ZOOKEEPER not in supervision.running(here)
        supervision.start(here, ZOOKEEPER)
        zookeeper.stop()  # it may have lost its session
        after_it = KazooClient(group.lab.spec.ensemble.connect, connection_retry={"max_tries": -1, "max_delay": 0.2})
        after_it.start(60)
        stack.callback(after_it.stop)
        away = time.monotonic() - began
        group.await_owners(after_it, [4, 4, 4])
        after = time.monotonic()
        by_hand.wait_until("all read on", lambda: all((each.read[-1].at or 0) > after for each in members))
    found = group.proof()
    print(f"away for {away:.1f} s: {found.count('twice')} twice, silent {found.silent or 0:.2f} s")
    assert away > 13 and found.holds, found.render_text()
    if session_ms > 6_000:
        assert found.silent is not None and found.silent < 1.5, found.render_text()


ENDS = itertools.count(100)
"""Of addresses; each cable has its own, for a listener may outlast its test."""


@dataclass
class Cable:
    """What is between one member and ZooKeeper, at ``address``; ``cut`` and mended at these times."""

    proxy: Proxy
    address: str
    cut_at: float = 0.0
    mended_at: float = 0.0

    @contextmanager
    def cut(self, member: Process) -> Iterator[None]:
        self.proxy.cut([member.process.pid])
        self.cut_at = time.monotonic()
        try:
            yield
        finally:
            self.mended_at = time.monotonic()
            self.proxy.mend()


@pytest.fixture
def cable(own_lab: Lab) -> Iterator[Cable]:
    (server,) = zookeeper_servers(own_lab.spec)
    address = (f"{own_lab.network}.{next(ENDS)}", server.port)
    proxy = Proxy({address: (server.host, server.port)})
    yield Cable(proxy, "{}:{}".format(*address))
    proxy.close()


@MODES
def test_a_lost_session_costs_what_was_not_committed(
    group: Group, zookeeper: KazooClient, cable: Cable, mode: str
) -> None:
    """A member is cut off from ZooKeeper for longer than its session lasts; it lives, and comes back."""
    first = {"zookeeper.connect": cable.address}
    with three(group, zookeeper, mode, first) as members, group.records():
        by_hand.wait_until("all read", lambda: all(len(each.read) > 100 for each in members))
        with cable.cut(members[0]):
            group.await_owners(zookeeper, [6, 6])
        group.await_owners(zookeeper, [4, 4, 4])
        by_hand.wait_until("it reads on", lambda: (members[0].read[-1].at or 0) > cable.mended_at, within=60)
    found = group.proof()
    group.counted["both"] = f"{both_hand_out(group, members[0], cable):.2f}"
    print(f"{mode}: {found.count('twice')} twice, silent {found.silent or 0:.1f} s")
    assert found.count("lost") == 0, found.render_text()
    assert found.count("twice") <= read_again_at_most(), found.render_text()
    assert group.counted["both"] == "0.00"


def test_an_old_member_comes_while_one_is_cut_off_from_zookeeper(
    group: Group, zookeeper: KazooClient, cable: Cable
) -> None:
    """In kafka mode. Its session is long enough for it to go on while the others fall back to ZooKeeper.

    The old one is patient: by itself it ends after four tries to get what is still locked. It begins where ZooKeeper
    says, so what came from the one that was cut off meanwhile comes again.
    """
    patient = {"rebalance.max.retries": "100"}
    first = {"zookeeper.connect": cable.address, "zookeeper.session.timeout.ms": 20_000}

    def without_it() -> bool:
        ids = zookeeper.get_children(f"/consumers/{group.name}/ids")
        return len(ids) == 3 and members[0].id not in ids

    with three(group, zookeeper, "kafka", first) as members, group.records():
        by_hand.wait_until("all read", lambda: all(len(each.read) > 100 for each in members))
        with cable.cut(members[0]), group.old_member(patient):
            by_hand.wait_until("its session has ended, and the old one is there", without_it)
            group.await_owners(zookeeper, [4, 4, 4])
            begun = len(group.heard)
            by_hand.wait_until("the old one reads", lambda: len(group.heard) > begun + 50, within=60)
        group.await_owners(zookeeper, [4, 4, 4])
        by_hand.wait_until("it reads on", lambda: (members[0].read[-1].at or 0) > cable.mended_at, within=60)
    found, both = group.proof(), both_hand_out(group, members[0], cable)
    group.counted["both"] = f"{both:.2f}"
    went_on = max((each.at or 0.0) for each in members[0].read if (each.at or 0.0) < cable.mended_at) - cable.cut_at
    print(f"it went on for {went_on:.1f} s, {found.count('twice')} twice, both for {both:.2f} s")
    assert went_on > 5
    assert found.count("lost") == 0, found.render_text()
    assert both <= 3.0


def both_hand_out(group: Group, member: Process, cable: Cable) -> float:
    """For how long, at most, a partition came from the one that was cut off after it had come from another one."""
    longest = 0.0
    for number in range(PARTITIONS):
        meanwhile = [
            each
            for each in (*group.seen, *group.heard)
            if each.partition == number and cable.cut_at < (each.at or 0.0) < cable.mended_at
        ]
        its = [each.at or 0.0 for each in meanwhile if each.member == member.id]
        others = [each.at or 0.0 for each in meanwhile if each.member != member.id]
        if its and others:
            longest = max(longest, max(its) - min(others))
    return longest


def test_a_member_that_shares_no_assignor_with_new_ones_waits_and_says_why(
    group: Group, zookeeper: KazooClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The way back, where the new members have range alone. The scan warns of it. Once they have gone it is let in."""
    with group.records(), group.member():
        by_hand.wait_until("offsets are in Kafka", lambda: len(group.committed_to_kafka()) == PARTITIONS, within=60)
    group.set_mode(zookeeper, "kafka")
    with ExitStack() as new:
        new.enter_context(group.new_member("new", assignors="range"))
        await_shares(group, [12])
        (seen,) = scan_groups(group.lab.spec, secrets=group.lab.secrets, names=[group.name]).groups
        assert [(each.kind, each.where) for each in seen.faults] == [(FaultKind.EAGER_ASSIGNOR, ("range",))]
        with group.member() as waiting:
            by_hand.wait_until("it is refused, again and again", lambda: waiting.refused_joins > 2, within=60)
            assert waiting.mode is Mode.KAFKA and not waiting.owned
            assert "shares no assignor" in caplog.text and f"{ASSIGNORS}. It must be range,roundrobin" in caplog.text
            with group.member(**{ASSIGNORS: "range,roundrobin"}):
                await_shares(group, [6, 6])
                group.await_owners(zookeeper, [6])
            assert not waiting.owned
            new.close()
            group.await_owners(zookeeper, [12])
