"""A scan of as many groups as a large cluster has. How long it takes is for ``benchmarks.group_bars``."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import by_hand
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from labs import Lab

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.groups.look import Partition
from kraft_runbook.procedures.see_groups import scan_groups
from kraft_runbook_consumer.znodes import GroupPaths, Registration, thread_id

GROUPS, TOPICS, PARTITIONS = 2000, 5, 10
MADE_MS = 1_699_999_999_999
A_SESSION = 100
"""Groups with members of one session. A session that ends deletes its znodes in one request, which has a largest size
(jute.maxbuffer, 1 MB).
"""


@pytest.mark.long
def test_two_thousand_groups_are_scanned_whole(
    own_lab: Lab, zookeeper: KazooClient, request: pytest.FixtureRequest
) -> None:
    """2,000 groups with 50 partitions each. Half of them have a member in ids, which owns every partition, and offsets
    in Kafka besides: 150,000 znodes of partitions and 50,000 offsets. The others have offsets in ZooKeeper alone.
    """
    made = time.time_ns()
    topics = [f"scanned-{made}-{n}" for n in range(TOPICS)]
    client = AdminClient({"bootstrap.servers": ",".join(own_lab.spec.bootstrap_servers)})
    by_hand.answered(client.create_topics([NewTopic(name, PARTITIONS, 1) for name in topics]))
    groups = [f"many-{made}-{number}" for number in range(GROUPS)]
    every = [(topic, number) for topic in topics for number in range(PARTITIONS)]
    live = groups[::2]
    with there(own_lab, zookeeper, groups, every), with_members(own_lab, live, every):
        for group in live:
            named = ConsumerGroupTopicPartitions(group, [TopicPartition(*each, 0) for each in every])
            by_hand.answered(client.alter_consumer_group_offsets([named]))
        scan = scan_groups(own_lab.spec, secrets=own_lab.secrets)
        found = {each.name: each for each in scan.groups if each.name.startswith("many-")}
        assert found.keys() == set(groups)
        assert {found[each].group_class for each in live} == {GroupClass.ALL_OLD}
        assert {found[each].group_class for each in groups[1::2]} == {GroupClass.OFFSETS_ONLY}
        assert all(len(each.partitions) == len(every) and each.lag == 0 for each in found.values())
        assert all(row.kafka_offset == 0 for each in live for row in found[each].partitions)
    counted = {"seconds": f"{scan.took_seconds:.1f}", "groups": str(len(scan.groups))}
    counted["load"] = f"{os.getloadavg()[0]:.0f}"
    request.node.user_properties += counted.items()
    print(counted)


@contextmanager
def there(lab: Lab, zookeeper: KazooClient, groups: Sequence[str], every: Sequence[Partition]) -> Iterator[None]:
    """They have an offset of 0 of each partition, and places for members and owners; all of it goes."""
    zookeeper.ensure_path("/consumers")
    topics = sorted({topic for topic, _ in every})
    made = []
    for group in groups:
        paths, root = GroupPaths(group), f"/consumers/{group}"
        above = [root, paths.ids, f"{root}/offsets", f"{root}/owners"]
        made.append([*above, *(f"{root}/{kind}/{each}" for kind in ("offsets", "owners") for each in topics)])
        act = zookeeper.transaction()
        for path in made[-1]:
            act.create(path)
        for each in every:
            act.create(paths.offset(each), b"0")
        done(act.commit())
    try:
        yield
    finally:
        for group, places in zip(groups, made, strict=True):
            act = zookeeper.transaction()
            for path in [*places, *map(GroupPaths(group).offset, every)][::-1]:
                act.delete(path)
            done(act.commit())


@contextmanager
def with_members(lab: Lab, groups: Sequence[str], every: Sequence[Partition]) -> Iterator[None]:
    """Each group has one, of its own id, which owns every partition."""
    data = Registration({topic: 1 for topic, _ in every}).encode(MADE_MS)
    with ExitStack() as sessions:
        for first in range(0, len(groups), A_SESSION):
            client = KazooClient(hosts=lab.spec.zookeeper.connect)
            client.start()
            sessions.callback(client.close)
            sessions.callback(client.stop)
            for group in groups[first : first + A_SESSION]:
                paths, member = GroupPaths(group), f"{group}_host-{MADE_MS}-0a1b2c3d"
                act = client.transaction()
                act.create(f"{paths.ids}/{member}", data, ephemeral=True)
                for each in every:
                    act.create(paths.owner(each), thread_id(member, 0).encode(), ephemeral=True)
                done(act.commit())
        yield


def done(answers: Sequence[object]) -> None:
    assert not [each for each in answers if isinstance(each, Exception)], answers[:3]
