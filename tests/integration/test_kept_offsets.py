"""Offsets that are committed to a group whose members left long ago: Kafka counts their expiry from when those left, so
they are given a time of their own (OffsetCommit 4).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import by_hand
import pytest
from confluent_kafka import Consumer
from labs import Lab, described_in, up
from moving_groups import PARTITIONS, TOPIC, make_topic

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.groups.look import KafkaSide, Partition
from kraft_runbook.io.kafka.group_commits import commit_offsets
from kraft_runbook.io.kafka.groups_seen import read_kafka_groups
from lab.cluster_file import write_cluster_file
from lab.installation import kafka4_version

SOON_GONE = {
    "offsets.topic.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "2000",
}
EVERY = {(TOPIC, number): number for number in range(PARTITIONS)}

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", params=["ZooKeeper's", "Kafka 4's"])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The old group coordinator, and the one of Kafka 4."""
    clusters = tmp_path_factory.mktemp("clusters")
    write_cluster_file(clusters, racks=("a",))
    plain = described_in(clusters)
    old = request.param == "ZooKeeper's"
    version = plain.spec.kafka.version if old else kafka4_version()
    spec = plain.spec.model_copy(
        update={
            "kafka": plain.spec.kafka.model_copy(update={"version": version}),
            "broker_properties": {**plain.spec.broker_properties, **SOON_GONE},
        }
    )
    with up(replace(plain, spec=spec), new_in=BrokerMode.ZOOKEEPER if old else BrokerMode.KRAFT) as found:
        make_topic(found, replicas=1)
        yield found


def committed(lab: Lab, group: str) -> dict[Partition, int]:
    found = read_kafka_groups(lab.spec, [group], secrets=lab.secrets)[group]
    if found is None:
        return {}
    assert isinstance(found, KafkaSide) and isinstance(found.offsets, dict)
    return dict(found.offsets)


def had_a_member(lab: Lab, group: str) -> None:
    servers = ",".join(lab.spec.bootstrap_servers)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False})
    consumer.subscribe([TOPIC])

    def owns_all() -> bool:
        consumer.poll(0.2)
        return len(consumer.assignment()) == PARTITIONS

    by_hand.wait_until("the member owns every partition", owns_all, within=60)
    consumer.close()


def test_they_stay_where_those_of_the_brokers_own_time_expire_at_once(lab: Lab) -> None:
    for group in ("plain", "kept"):
        commit_offsets(lab.spec, group, EVERY, secrets=lab.secrets)
        had_a_member(lab, group)
    time.sleep(65)
    for group in ("plain", "kept"):
        commit_offsets(lab.spec, group, EVERY, kept=group == "kept", secrets=lab.secrets)
    by_hand.wait_until("those of the brokers' time are gone", lambda: committed(lab, "plain") == {}, within=60)
    assert committed(lab, "kept") == EVERY
