"""Migrating members in a real group: with old clients of Kafka 1.1.1, with a new one, under toggles and a flow of
records. Each record comes once, and no partition has two.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import by_hand
import pytest
from confluent_kafka import Consumer
from kazoo.client import KazooClient
from labs import Lab
from migrating_members import LEVEL, PARTITIONS, Group, await_mode, note
from toggling_runs import await_shares, run_of, toggled

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.errors import Refused
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.procedures.see_groups import scan_groups
from kraft_runbook.steps.toggles.alarm_watch import watch_the_groups
from kraft_runbook.steps.toggles.toggling import plan_the_toggle, toggle_the_group
from kraft_runbook_consumer import ConsumerError, MigratingConsumer, Mode
from kraft_runbook_consumer.embedded import EmbeddedConsumer, make_consumer
from kraft_runbook_consumer.lease import Lease
from kraft_runbook_consumer.settings import embedded_config, read_settings
from kraft_runbook_consumer.sight import ASSIGNORS
from lab.installation import JARS, JARS4


@pytest.fixture
def group(own_lab: Lab, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Group]:
    name = re.sub(r"[^A-Za-z0-9.]+", "-", str(request.node.name).removeprefix("test_")).strip("-")
    made = Group(own_lab, name, tmp_path)
    made.make_topic()
    yield made
    note(made, request.node)


@pytest.fixture(autouse=True)
def _members_say_what_they_wait_for(caplog: pytest.LogCaptureFixture) -> None:
    """Shown where a test fails."""
    caplog.set_level("INFO", logger="kraft_runbook_consumer")


def await_class(group: Group, expected: GroupClass) -> None:
    """As the scan sees the group."""

    def classes() -> list[GroupClass]:
        found = scan_groups(group.lab.spec, secrets=group.lab.secrets, names=[group.name]).groups
        return [each.group_class for each in found]

    by_hand.wait_until(f"it is {expected}", lambda: classes() == [expected], within=60)


def test_old_disabled_and_migrating_share_a_group(group: Group, zookeeper: KazooClient) -> None:
    """They come one after the other, and the old one goes. An unconfigured member leaves no trace of the migration."""
    with ExitStack() as members:
        with group.records():
            disabled = members.enter_context(group.member(migrates=False))
            group.await_owners(zookeeper, [12])
            assert not zookeeper.exists(f"/consumers/{group.name}/migration")
            assert group.kafka_assigns() == {}
            migrating = members.enter_context(group.member())
            group.await_owners(zookeeper, [6, 6])
            with group.old_member():
                owners = group.await_owners(zookeeper, [4, 4, 4])
                assert {disabled.member_id, migrating.member_id} < set(owners.values())
                await_class(group, GroupClass.MIXED_OLD)
                assert (disabled.mode, migrating.mode) == (Mode.ZOOKEEPER, Mode.ZOOKEEPER)
                group.await_old()
            group.await_owners(zookeeper, [6, 6])
        group.require_each_once()
    assert not zookeeper.get_children(f"/consumers/{group.name}/ids")
    assert not zookeeper.get_children(f"/consumers/{group.name}/migration/ids")
    assert group.owners(zookeeper) == {}


def test_two_members_are_toggled_forth_and_back_by_the_steps_of_a_run(group: Group, zookeeper: KazooClient) -> None:
    """Records come all the time. None is lost, none comes twice, and a plan for other members toggles nothing."""
    with ExitStack() as stack:
        with group.records():
            members = [stack.enter_context(group.member()) for _ in range(2)]
            group.await_owners(zookeeper, [6, 6])
            await_shares(group, [6, 6])
            for direction, mode in ((Direction.TO_KAFKA, Mode.KAFKA), (Direction.BACK, Mode.ZOOKEEPER)):
                toggled(group, direction)
                await_mode(members, mode)
                group.await_owners(zookeeper, [6, 6])
            assert watch_the_groups(run_of(group))["alarms"] == 0
            late = run_of(group)
            plan_the_toggle(late)
            came = stack.enter_context(group.member())
            group.await_owners(zookeeper, [4, 4, 4])
            await_shares(group, [4, 4, 4])
            with pytest.raises(Refused, match=f"are not those that were planned for: {came.member_id} came"):
                toggle_the_group(late)
        told = group.require_each_once()
    print(f"{sum(group.sent.values())} records, silent at most {told.silent or 0:.2f} s")


class Heard:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.released: list[Mapping[str, Collection[int]]] = []
        self.groups: list[Mapping[str, Mapping[int, str]]] = []

    def before_releasing_partitions(self, released: Mapping[str, Collection[int]]) -> None:
        self.released.append(released)

    def before_starting_fetchers(self, member: str, group: Mapping[str, Mapping[int, str]]) -> None:
        self.groups.append(group)


@pytest.mark.long
def test_toggles_under_load(group: Group, zookeeper: KazooClient) -> None:
    """Absent, nonsense, kafka, zookeeper, and back and forth; each value means what KIP-125 says."""
    heard = Heard()
    with ExitStack() as stack:
        with group.records():
            members = [stack.enter_context(group.member()) for _ in range(2)]
            members.append(stack.enter_context(group.member(threads=2, listener=heard)))
            await_mode(members, Mode.ZOOKEEPER)
            by_hand.wait_until(
                "Kafka has assigned too",
                lambda: sorted(map(len, group.kafka_assigns().values())) == [4, 4, 4],
                within=60,
            )
            group.since = time.monotonic()
            for value, mode in (
                ("nonsense", Mode.ZOOKEEPER),
                ("kafka", Mode.KAFKA),
                ("zookeeper", Mode.ZOOKEEPER),
                ("kafka", Mode.KAFKA),
                ("", Mode.ZOOKEEPER),
                ("kafka", Mode.KAFKA),
            ):
                group.set_mode(zookeeper, value)
                await_mode(members, mode)
                assert {each.metrics()[0].value for each in members} == {float(mode is Mode.KAFKA)}
                by_hand.wait_until(f"all is owned as {mode} assigns", lambda: settled(group, zookeeper, members))
                given = {name: len(partitions) for name, partitions in group.kafka_assigns().items()}
                assert {each.member_id: each.metrics()[1].value for each in members} == given
            assert group.owned_as_kafka_assigns(zookeeper)
            await_class(group, GroupClass.ALL_MIGRATING)
        told = group.require_each_once()
        print(f"{sum(group.sent.values())} records, silent {told.silent or 0:.2f} s, toggled {group.silent():.2f} s")
    whole = heard.groups[-1][group.name]
    assert set(whole) == set(range(PARTITIONS)), "the listener sees the whole group"
    assert {thread.rpartition("-")[0] for thread in whole.values()} == {each.member_id for each in members}
    assert heard.released


def settled(group: Group, zookeeper: KazooClient, members: Collection[MigratingConsumer]) -> bool:
    """Whether each partition is owned by the one that holds it, in the mode that there is."""
    owners = group.owners(zookeeper)
    if {each.mode for each in members} == {Mode.KAFKA} and not group.owned_as_kafka_assigns(zookeeper):
        return False
    return set(owners) == set(range(PARTITIONS))


@contextmanager
def two_in_kafka_mode(group: Group, zookeeper: KazooClient, **changes: object) -> Iterator[list[MigratingConsumer]]:
    """Records come, and two members share them by Kafka's assignment; so they do at the end. Each record came once.
    ``changes``: their settings.
    """
    group.set_mode(zookeeper, "kafka")
    with ExitStack() as stack:
        with group.records():
            members = [stack.enter_context(group.member(**changes)) for _ in range(2)]
            await_mode(members, Mode.KAFKA)
            group.await_owners(zookeeper, [6, 6])
            yield members
            group.await_owners(zookeeper, [6, 6])
        group.require_each_once()


@pytest.mark.long
def test_an_old_member_brings_zookeeper_back(group: Group, zookeeper: KazooClient) -> None:
    with two_in_kafka_mode(group, zookeeper) as members:
        group.since = time.monotonic()
        with group.old_member():
            await_mode(members, Mode.ZOOKEEPER)
            group.await_owners(zookeeper, [4, 4, 4])
            group.await_old()
        await_mode(members, Mode.KAFKA)


def require_only_moved_let_go(group: Group, zookeeper: KazooClient, before: Mapping[int, tuple[str, int]]) -> None:
    """Since then each partition that has the same owner has had it without a break."""
    now = group.locks(zookeeper)
    stayed = {each for each, (owner, _) in before.items() if each in now and now[each][0] == owner}
    let_go = {each for each in stayed if now[each] != before[each]}
    group.counted |= {"let_go": len(let_go), "stayed_silent": f"{group.silent(stayed):.2f}"}
    assert let_go == set() and stayed


@pytest.mark.long
@pytest.mark.timeout(900)
def test_from_old_to_new_and_back(group: Group, zookeeper: KazooClient) -> None:
    """KIP-125's whole example in one run, while records come: each member is replaced by one of the next kind, the
    group is toggled between, and all the way back. Who comes has its share before who goes stops.
    """
    with ExitStack() as ends:

        def comes(member: AbstractContextManager[Any]) -> tuple[ExitStack, Any]:
            one = ends.enter_context(ExitStack())
            return one, one.enter_context(member)

        def old_reads_what_comes() -> bool:
            """One that is ended while it lags prints on after its last commit."""
            owned = {n for n, who in group.owners(zookeeper).items() if who not in migrating}
            last: dict[int, int] = {}
            for each in group.by_old():
                last[each.partition] = max(each.offset, last.get(each.partition, 0))
            return bool(owned) and all(group.sent[n] - last.get(n, -99) <= LEVEL for n in owned)

        migrating: set[str] = set()
        with group.records():
            old = [comes(group.old_member({"auto.offset.reset": "smallest"})) for _ in range(2)]
            group.await_owners(zookeeper, [6, 6])
            await_class(group, GroupClass.ALL_OLD)
            group.since = time.monotonic()
            ours = []
            for leaves, settled in ((old[0], GroupClass.MIXED_OLD), (old[1], GroupClass.ALL_MIGRATING)):
                ours.append(comes(group.member()))
                migrating.add(ours[-1][1].member_id)
                group.await_owners(zookeeper, [4, 4, 4])
                by_hand.wait_until("the old ones read what comes", old_reads_what_comes, within=120)
                leaves[0].close()
                group.await_owners(zookeeper, [6, 6])
                await_class(group, settled)
            await_shares(group, [6, 6])
            toggled(group, Direction.TO_KAFKA)
            new = []
            for leaves, left, settled in ((ours[0], [6], GroupClass.MIXED_NEW), (ours[1], [], GroupClass.ALL_NEW)):
                new.append(comes(group.new_member(f"new-{len(new)}")))
                await_shares(group, [4, 4, 4])
                leaves[0].close()
                await_shares(group, [6, 6])
                group.await_owners(zookeeper, left)
                await_class(group, settled)
            ours = []
            to = ([6], GroupClass.MIXED_NEW), ([6, 6], GroupClass.ALL_MIGRATING)
            for leaves, (left, settled) in zip(new, to, strict=True):
                ours.append(comes(group.member()))
                migrating.add(ours[-1][1].member_id)
                await_shares(group, [4, 4, 4])
                leaves[0].close()
                await_shares(group, [6, 6])
                group.await_owners(zookeeper, left)
                await_class(group, settled)
            toggled(group, Direction.BACK)
            for leaves, settled in ((ours[0], GroupClass.MIXED_OLD), (ours[1], GroupClass.ALL_OLD)):
                comes(group.old_member())
                group.await_owners(zookeeper, [4, 4, 4])
                leaves[0].close()
                group.await_owners(zookeeper, [6, 6])
                await_class(group, settled)
            by_hand.wait_until("the old ones read what comes", old_reads_what_comes, within=120)
        told = group.require_each_once()
    print(f"{sum(group.sent.values())} records, silent at most {group.silent():.2f} s; {'; '.join(told.summary())}")


@pytest.mark.long
@pytest.mark.parametrize("assignors", ["cooperative-sticky", "range,roundrobin"], ids=["cooperative", "eager"])
def test_migrating_and_new_share_a_group(group: Group, zookeeper: KazooClient, assignors: str) -> None:
    """A new member joins in kafka mode and leaves; while it is there nobody follows ZooKeeper, whatever is toggled. By
    an eager assignor everything is let go of at each rebalance, else only what moves.
    """
    with two_in_kafka_mode(group, zookeeper, **{ASSIGNORS: assignors}) as members:
        group.since = time.monotonic()
        before = group.locks(zookeeper)
        with group.new_member("new", assignors=assignors):
            group.await_owners(zookeeper, [4, 4])
            by_hand.wait_until("the new one reads", lambda: any(each.member == "new" for each in group.seen))
            if assignors == "cooperative-sticky":
                require_only_moved_let_go(group, zookeeper, before)
            await_class(group, GroupClass.MIXED_NEW)
            refused = [each.refused_toggles for each in members]
            group.set_mode(zookeeper, "zookeeper")
            by_hand.wait_until(
                "both refuse", lambda: [each.refused_toggles for each in members] == [each + 1 for each in refused]
            )
            assert {each.mode for each in members} == {Mode.KAFKA}
            group.await_owners(zookeeper, [4, 4])
        await_mode(members, Mode.ZOOKEEPER)


@pytest.mark.long
def test_a_new_member_that_comes_too_early_gets_its_partitions_alone(group: Group, zookeeper: KazooClient) -> None:
    """It comes while the group follows ZooKeeper. What it is given is let go of, and taken back once it has left."""
    every = set(range(PARTITIONS))
    with ExitStack() as stack:
        with group.records():
            members = [stack.enter_context(group.member()) for _ in range(2)]
            group.await_owners(zookeeper, [6, 6])
            by_hand.wait_until("offsets are in Kafka", lambda: len(group.committed_to_kafka()) == PARTITIONS, within=60)
            with group.new_member("early"):

                def alone() -> bool:
                    given = group.kafka_assigns().get("early", set())
                    return bool(given) and set(group.owners(zookeeper)) == every - given

                by_hand.wait_until("nobody else owns what it has", alone, within=60)
                assert {each.mode for each in members} == {Mode.ZOOKEEPER}
            group.await_owners(zookeeper, [6, 6])
        by_hand.wait_until("every record is read", group.all_read, within=60)
        assert group.proof().count("lost") == 0


@pytest.mark.long
@pytest.mark.parametrize("jars", [JARS, JARS4], ids=["3.9", "4.1"])
def test_migrating_and_java_share_a_group(group: Group, zookeeper: KazooClient, jars: Path) -> None:
    """Java's own list of assignors and the embedded consumer's have one in common."""
    with two_in_kafka_mode(group, zookeeper):
        group.since = time.monotonic()
        before = group.locks(zookeeper)
        with group.java_member(jars):
            group.await_owners(zookeeper, [4, 4])
            by_hand.wait_until("Java's reads", lambda: len(group.by_old()) > 50, within=60)
            require_only_moved_let_go(group, zookeeper, before)


@pytest.mark.long
def test_a_canary_gets_its_share(group: Group, zookeeper: KazooClient) -> None:
    """A KafkaConsumer beside two migrating members: of three topics with four partitions each has four, within one."""
    topics = [f"{group.name}{more}" for more in (".a", ".b", ".c")]
    for topic in topics:
        group.make_topic(topic.removeprefix(group.name), partitions=4)
    group.set_mode(zookeeper, "kafka")
    with ExitStack() as stack:
        members = [stack.enter_context(MigratingConsumer(group.settings(), dict.fromkeys(topics, 1))) for _ in range(2)]
        await_mode(members, Mode.KAFKA)
        for member in members:
            by_hand.wait_until("each has half", lambda one=member: len(one.owned) == 6, within=60)
        with group.new_member("canary", topics):

            def shares() -> list[int]:
                of_topics = [group.kafka_assigns(topic) for topic in topics]
                return sorted(sum(len(each.get(who, ())) for each in of_topics) for who in of_topics[0])

            by_hand.wait_until("each has four", lambda: shares() == [4, 4, 4], within=60)
            by_hand.wait_until("the others let go", lambda: {len(each.owned) for each in members} == {4}, within=60)


def test_the_embedded_consumer_fetches_nothing(group: Group) -> None:
    """librdkafka's own count, of a member that Kafka has assigned everything to, while records are there to be read."""
    with group.records():
        by_hand.wait_until("records are there", lambda: sum(group.sent.values()) > 50)
    counted: list[dict[str, Any]] = []

    def counting(config: Mapping[str, object], prefix: str = "") -> Consumer:
        seen = {"statistics.interval.ms": 200, "stats_cb": lambda text: counted.append(json.loads(text))}
        return make_consumer({**config, **seen}, prefix)

    config = embedded_config(read_settings(group.settings()), "counted")
    embedded = EmbeddedConsumer(config, Lease(10.0), lambda _gone, _lost: None, consumer=counting)
    embedded.subscribe([group.name])
    try:

        def polled() -> bool:
            embedded.poll()
            return len(embedded.assigned or ()) == PARTITIONS

        by_hand.wait_until("all is assigned", polled, within=60)
        until = len(counted) + 10
        by_hand.wait_until("two seconds were counted", lambda: polled() and len(counted) > until, within=60)
    finally:
        embedded.close()
    last = counted[-1]
    partitions = last["topics"][group.name]["partitions"]
    assert sum(each["rxmsgs"] for each in partitions.values()) == last["rxmsgs"] == 0
    assert sum(broker["req"].get("Fetch", 0) for broker in last["brokers"].values()) == 0
    assert len([each for number, each in partitions.items() if int(number) >= 0]) == PARTITIONS


@pytest.mark.long
def test_patterns_see_topics_that_come_later(group: Group, zookeeper: KazooClient) -> None:
    with MigratingConsumer(group.settings(), white_list=f"{group.name}.*") as consumer:
        for more, (mode, value) in enumerate(((Mode.ZOOKEEPER, "zookeeper"), (Mode.KAFKA, "kafka"))):
            group.set_mode(zookeeper, value)
            await_mode([consumer], mode)
            group.make_topic(f".{more}")
            wanted = PARTITIONS * (more + 2)
            by_hand.wait_until(f"{wanted} are owned", lambda many=wanted: len(consumer.owned) == many, within=60)


def test_bad_input_is_named(group: Group, zookeeper: KazooClient) -> None:
    with pytest.raises(ConsumerError, match="there is no topic nowhere"):
        MigratingConsumer(group.settings(), {"nowhere": 1})
    with pytest.raises(ConsumerError, match=r"zookeeper.connect=127.0.0.1:1: no session within 1 s"):
        changed = {"zookeeper.connect": "127.0.0.1:1", "zookeeper.connection.timeout.ms": 1000}
        MigratingConsumer(group.settings(**changed), {group.name: 1})
    with pytest.raises(ConsumerError, match=r"no\.such\.key.*leave out coordination\.migration\."):
        MigratingConsumer(group.settings(**{"coordination.migration.no.such.key": 1}), {group.name: 1})
    with (
        group.member(**{"consumer.id": "same"}),
        pytest.raises(ConsumerError, match=f"another member has the id {group.name}_same"),
        group.member(**{"consumer.id": "same", "zookeeper.session.timeout.ms": 4000}),
    ):
        pass
    assert not zookeeper.get_children(f"/consumers/{group.name}/ids")


@pytest.mark.long
def test_the_example_reads_as_a_member(group: Group, zookeeper: KazooClient) -> None:
    settings = [f"{key}={value}" for key, value in group.settings().items()]
    command = [sys.executable, "-m", "kraft_runbook_consumer", "--topic", group.name]
    refused = subprocess.run([*command, "group.id=x"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "zookeeper.connect is missing" in refused.stderr
    with group.records():
        example = subprocess.Popen([*command, *settings], stdout=subprocess.PIPE, text=True)
        assert example.stdout is not None
        try:
            assert example.stdout.readline().split()[1] == "0"
            assert set(group.owners(zookeeper)) == set(range(PARTITIONS))
        finally:
            example.terminate()
            example.communicate(timeout=60)
    assert example.returncode == 0 and group.owners(zookeeper) == {}
