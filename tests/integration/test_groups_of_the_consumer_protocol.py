"""A group of the consumer protocol (KIP-848), which DescribeGroups calls Dead, is read as what it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import by_hand
import pytest
from confluent_kafka import Consumer
from labs import Lab, described_in, up
from moving_groups import PARTITIONS, TOPIC, make_topic

from kraft_runbook.cluster.observation import BrokerMode, Loading
from kraft_runbook.groups.look import CONSUMER, KafkaSide
from kraft_runbook.io.kafka.connection import connect_to
from kraft_runbook.io.kafka.coordinators import coordinators_of
from kraft_runbook.io.kafka.group_commits import commit_offsets
from kraft_runbook.io.kafka.groups_seen import read_kafka_groups
from lab.cluster_file import write_cluster_file
from lab.installation import kafka4_version

GROUP = "new"
ALONE = {"offsets.topic.replication.factor": "1", "min.insync.replicas": "1"}
EVERY = {(TOPIC, number): number for number in range(PARTITIONS)}

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One broker of Kafka 4, which lets such groups be; Kafka 3.9 does as a preview that librdkafka does not speak."""
    clusters = tmp_path_factory.mktemp("clusters")
    write_cluster_file(clusters, racks=("a",))
    plain = described_in(clusters)
    spec = plain.spec.model_copy(
        update={
            "kafka": plain.spec.kafka.model_copy(update={"version": kafka4_version()}),
            "broker_properties": {**plain.spec.broker_properties, **ALONE},
        }
    )
    with up(replace(plain, spec=spec), new_in=BrokerMode.KRAFT) as found:
        make_topic(found, replicas=1)
        yield found


def seen(lab: Lab, *names: str) -> Any:
    return read_kafka_groups(lab.spec, names, secrets=lab.secrets)


def consume(lab: Lab) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": ",".join(lab.spec.bootstrap_servers),
            "group.id": GROUP,
            "client.id": "app",
            "group.protocol": "consumer",
            "group.remote.assignor": "uniform",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    return consumer


def test_its_members_and_offsets_are_read_and_offsets_are_committed_once_it_is_empty(lab: Lab) -> None:
    assert seen(lab, GROUP, "none") == {GROUP: None, "none": None}
    commit_offsets(lab.spec, GROUP, EVERY, secrets=lab.secrets)
    consumer = consume(lab)

    def owns_all() -> bool:
        consumer.poll(0.2)
        return len(consumer.assignment()) == PARTITIONS

    by_hand.wait_until("the member owns every partition", owns_all, within=60)
    found = seen(lab, GROUP, "none")
    assert found["none"] is None
    live = found[GROUP]
    assert isinstance(live, KafkaSide)
    assert (live.state, live.group_type, live.protocol_type, live.assignor) == ("Stable", CONSUMER, CONSUMER, "uniform")
    (member,) = live.members
    assert (member.client_id, member.host, member.partitions) == ("app", "127.0.0.1", EVERY.keys())
    assert live.offsets == EVERY, "those of the simple group that was there before"
    consumer.close()
    by_hand.wait_until("nobody is in it", lambda: seen(lab, GROUP)[GROUP].state == "Empty", within=60)
    further = {partition: offset + 1 for partition, offset in EVERY.items()}
    commit_offsets(lab.spec, GROUP, further, secrets=lab.secrets)
    left = seen(lab, GROUP)[GROUP]
    assert (left.group_type, left.members, dict(left.offsets)) == (CONSUMER, (), further)


def test_a_broker_that_has_loaded_its_groups_says_so_and_names_none(lab: Lab) -> None:
    (broker,) = lab.spec.brokers
    answers: list[Any] = []

    @contextmanager
    def heard(*given: Any, **how: Any) -> Iterator[Any]:
        with connect_to(*given, **how) as connection:

            def send(request: Any, **within: Any) -> Any:
                answers.append(connection.send(request, **within))
                return answers[-1]

            yield SimpleNamespace(send=send)

    found = coordinators_of(lab.spec, broker, secrets=lab.secrets, connect=heard)
    assert found == Loading(groups=False, transactions=False)
    groups, transactions = answers
    assert (list(groups.groups), list(transactions.transaction_states)) == ([], [])
