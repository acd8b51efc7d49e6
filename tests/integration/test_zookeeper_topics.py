"""Topics as columns from a real ZooKeeper: the same as the generic rows, the doubtful ones left out."""

from __future__ import annotations

import time

import pytest
from kazoo.client import KazooClient
from labs import Lab

from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper import reader as module
from kraft_runbook.io.zookeeper.multi_read import BulkRead
from kraft_runbook.io.zookeeper.read_columns import read_topic_columns
from kraft_runbook.io.zookeeper.read_rows import read_topics, topic_names
from kraft_runbook.io.zookeeper.read_tree import read_tree
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Fingerprints, Row
from kraft_runbook.metadata.topic_columns import TopicColumns
from kraft_runbook.metadata.znodes.znode_findings import PasswordSecrets
from kraft_runbook.metadata.znodes.znode_rows import Decoding

DECODING = Decoding(Fingerprints(b"salt"))
STATE = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":%d,"isr":[1,2]}'
PLAIN = [f"plain-{number}" for number in range(150)]


def rows_in(columns: TopicColumns) -> list[Row]:
    """What the columns say, as rows."""
    names, of = columns.names, columns.partitions
    rows = [canonical_rows.topic(name, each) for name, each in zip(names, columns.ids, strict=True)]
    for at in range(len(of)):
        name, partition = names[of.topic[at]], int(of.partition[at])
        replicas, adding, removing, isr = (
            [int(each) for each in lists.values[lists.offsets[at] : lists.offsets[at + 1]]]
            for lists in (of.replicas, of.adding, of.removing, of.isr)
        )
        rows.append(canonical_rows.assignment(name, partition, replicas, adding, removing))
        rows.append(
            canonical_rows.partition_state(
                name, partition, int(of.leader[at]), int(of.leader_epoch[at]), isr, int(of.recovery[at])
            )
        )
        rows.append(canonical_rows.partition_epoch(name, partition, int(of.epoch[at])))
    configs = columns.configs
    rows += [
        canonical_rows.topic_config(names[topic], name, value)
        for topic, name, value in zip(configs.topic, configs.name, configs.value, strict=True)
    ]
    return sorted(rows, key=repr)


@pytest.fixture(scope="module")
def own_lab(zookeeper_alone: Lab) -> Lab:
    return zookeeper_alone


@pytest.fixture(scope="module")
def tree(own_lab: Lab, zookeeper: KazooClient) -> ZooKeeper:
    """A chroot of its own: plain topics of 1 to 120 partitions, one of 3,000, and an odd one of each sort."""
    zookeeper.ensure_path("/columns-test/config/topics")
    zookeeper.ensure_path("/columns-test/brokers/topics")

    def create(name: str, count: int, *, states: int | None = None, topic_id: str = '"AAAAAAAAAAAAAAAAAAAAAA"') -> None:
        above = f"/columns-test/brokers/topics/{name}"
        partitions = ",".join(f'"{number}":[{number % 7},{number % 7 + 1}]' for number in reversed(range(count)))
        zookeeper.create(
            above,
            f'{{"removing_replicas":{{}},"partitions":{{{partitions}}},"topic_id":{topic_id},"adding_replicas":{{}},"version":3}}'.encode(),
        )
        zookeeper.create(f"{above}/partitions")
        for first in range(0, count if states is None else states, 100):
            transaction = zookeeper.transaction()
            for number in range(first, min(first + 100, count if states is None else states)):
                transaction.create(f"{above}/partitions/{number}")
                transaction.create(f"{above}/partitions/{number}/state", STATE % number)
            assert not [each for each in transaction.commit() if isinstance(each, Exception)]

    for number, name in enumerate(PLAIN):
        create(name, 1 + number * 7 % 120)
        if number % 2:
            zookeeper.create(
                f"/columns-test/config/topics/{name}", b'{"version":1,"config":{"retention.ms":"%d"}}' % (number % 5)
            )
    create("large", 3000)
    create("no-id", 2, topic_id="null")
    create("stray", 2, states=3)
    create("stateless", 3, states=2)
    zookeeper.create("/columns-test/brokers/topics/garbled", b"{")
    zookeeper.create("/columns-test/config/topics/only-a-config", b'{"version":1,"config":{}}')
    return ZooKeeper(servers=own_lab.spec.zookeeper.servers, chroot="/columns-test")


ODD = {"no-id", "stray", "stateless", "garbled", "only-a-config", "gone", "not/a name"}


@pytest.mark.parametrize("spread", [None, 0, 5])
def test_columns_say_what_the_rows_say_and_the_doubtful_topics_are_named(tree: ZooKeeper, spread: int | None) -> None:
    with ZookeeperReader(tree, secrets=environment_secrets({}), spread=spread) as reader:
        names = ["gone", *topic_names(reader), "not/a name"]
        columns, odd = read_topic_columns(reader, names)
        assert set(odd) == ODD
        assert list(columns.names) == [name for name in names if name not in ODD] == sorted([*PLAIN, "large"])
        assert rows_in(columns) == sorted(read_topics(reader, columns.names, DECODING), key=repr)
        assert [len(each) for each in read_topic_columns(reader, [])] == [0, 0]


def test_what_kafka_itself_wrote_is_not_odd(own_lab: Lab) -> None:
    with ZookeeperReader(own_lab.spec.zookeeper, secrets=environment_secrets({})) as reader:
        names = topic_names(reader)
        columns, odd = read_topic_columns(reader, names)
        assert names
        assert (tuple(columns.names), odd) == (names, ())
        assert rows_in(columns) == sorted(read_topics(reader, names, DECODING), key=repr)


def test_from_a_server_without_multi_read_all_topics_are_odd(tree: ZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BulkRead, "type", 99)  # no server knows this one
    with ZookeeperReader(tree, secrets=environment_secrets({})) as reader:
        columns, odd = read_topic_columns(reader, PLAIN)
        assert (len(columns), odd) == (0, tuple(PLAIN))
        assert len(list(read_topics(reader, PLAIN[:1], DECODING))) == 4


def test_a_lost_connection_is_read_over_again(tree: ZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    with ZookeeperReader(tree, secrets=environment_secrets({}), bulk_znodes=100) as reader:
        answers = BulkRead.deserialize
        lost = []

        def lose(self: BulkRead, reply: bytes, offset: int) -> tuple[list[bytes | None], list[int]]:
            if self.end > 1000 and len(lost) < 3:
                lost.append(self.end)
                raise module.ConnectionLoss
            return answers(self, reply, offset)

        monkeypatch.setattr(BulkRead, "deserialize", lose)
        columns, odd = read_topic_columns(reader, [*PLAIN, "large"])
        assert len(lost) == 3
        assert (list(columns.names), odd) == ([*PLAIN, "large"], ())
        assert rows_in(columns) == sorted(read_topics(reader, columns.names, DECODING), key=repr)


def test_a_rate_is_kept_by_every_way_of_reading(tree: ZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds(reader: ZookeeperReader, names: list[str]) -> float:
        started = time.monotonic()
        reader.get_many([f"/brokers/topics/{name}" for name in names])
        return time.monotonic() - started

    with ZookeeperReader(tree, secrets=environment_secrets({}), rate=300) as reader:
        assert seconds(reader, PLAIN) >= (len(PLAIN) - 30) / 300
        small = [name for number, name in enumerate(PLAIN) if number * 7 % 120 < 10]
        started = time.monotonic()
        columns, odd = read_topic_columns(reader, small)
        assert (list(columns.names), odd) == (small, ())
        assert time.monotonic() - started >= (len(columns.partitions) + 3 * len(small) - 30) / 300
        monkeypatch.setattr(reader, "_multi_read", False)
        assert seconds(reader, PLAIN) >= (len(PLAIN) - 30) / 300


def test_lists_and_names_that_no_controller_makes_and_huge_numbers_are_found(
    own_lab: Lab, zookeeper: KazooClient
) -> None:
    """``[]`` ends each election of a ZooKeeper controller; they are planted where no controller watches."""
    root, huge = "/planted-test", b"9" * 5_000
    topic = b'{"version":3,"topic_id":"%bA","partitions":{%b},"adding_replicas":{},"removing_replicas":{}}'
    planted = {
        "empty": topic % (b"B" * 21, b'"0":[],"1":[1]'),
        "twice": topic % (b"C" * 21, b'"0":[1,1,2]'),
        "__cluster_metadata": topic % (b"E" * 21, b'"0":[1,2]'),
        "a b": topic % (b"D" * 21, b'"0":[1,2]'),
        "x" * 250: topic % (b"E" * 21, b'"0":[1,2]'),
        "huge": topic % (b"F" * 21, b'"0":[%b]' % huge),
        "fine": topic % (b"G" * 21, b'"0":[1,2]'),
    }
    for name, data in planted.items():
        zookeeper.create(f"{root}/brokers/topics/{name}", data, makepath=True)
        for number in ("0", "1") if name == "empty" else ("0",):
            path = f"{root}/brokers/topics/{name}/partitions/{number}/state"
            zookeeper.create(path, STATE % 1, makepath=True)
    zookeeper.create(f"{root}/config/topics/fine", b'{"config":{"retention.ms":"%b"}}' % huge, makepath=True)
    zookeeper.create(f"{root}/config/brokers/{'7' * 5_000}", b'{"config":{}}', makepath=True)
    chroot = ZooKeeper(servers=own_lab.spec.zookeeper.servers, chroot=root)
    with ZookeeperReader(chroot, secrets=environment_secrets({})) as reader:
        seen = read_tree(reader, DECODING, PasswordSecrets())
    assert was_read(seen.bad_replica_lists) and was_read(seen.bad_topic_names)
    assert sorted(seen.bad_replica_lists.samples) == ["empty-0 []", "twice-0 [1,1,2]"]
    assert sorted(seen.bad_topic_names.samples) == ["'__cluster_metadata'", "'a b'", repr("x" * 250)]
    named = " ".join(sample for found in seen.faults.values() for sample in found.samples)
    for each in ("/brokers/topics/huge (", "/config/topics/fine (retention.ms is not a whole", "/config/brokers/777"):
        assert each in named
