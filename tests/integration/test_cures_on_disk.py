"""Cures that the checks of what brokers keep on disk and of topics' znodes print, tried on a real cluster as they are
printed.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import by_hand
import kept_states
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from labs import Lab
from left_on_disk import drop_topic_id, leave_over

from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.local import supervision
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.procedures.observe import Scope, observe
from kraft_runbook.runbook.check_results import CheckResult, Verdict
from lab.layout import layout
from lab.tools import run_class

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def failures(lab: Lab, phase: Phase = Phase.ZOOKEEPER) -> dict[str, CheckResult]:
    seen = observe(lab.spec, secrets=lab.secrets, scope=Scope.FULL, with_hosts=True)
    return {each.code: each for each in CHECKS.run(seen, lab.spec, phase).results if each.verdict is Verdict.FAIL}


def in_sync(lab: Lab) -> bool:
    topics = observe(lab.spec, secrets=lab.secrets).topics
    return (
        was_read(topics)
        and not topics.under_replicated_count
        and not topics.offline_count
        and topics.live_broker_ids == set(lab.spec.broker_ids)
    )


def out_of_sync(lab: Lab) -> int | None:
    """How many partitions lack a replica; None: not every broker lives."""
    topics = observe(lab.spec, secrets=lab.secrets).topics
    lives = was_read(topics) and topics.live_broker_ids == set(lab.spec.broker_ids)
    return topics.under_replicated_count if was_read(topics) and lives else None


def admin(lab: Lab) -> AdminClient:
    """To be kept until its answers are there: what is asked ends with it."""
    return AdminClient({"bootstrap.servers": ",".join(lab.spec.bootstrap_servers)})


def stop(lab: Lab, broker: Broker) -> None:
    here = layout(lab.spec)
    supervision.begin_stop(here, broker.service)
    by_hand.wait_until("it stops", lambda: not supervision.processes(here)[broker.service].runs, within=330)


def start(lab: Lab, broker: Broker) -> None:
    supervision.start(layout(lab.spec), broker.service)


def replica(broker: Broker, name: str) -> Path:
    return Path(broker.log_dirs[0]) / name


def give_id(directory: Path, topic_id: str | None) -> None:
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")


def records_of(lab: Lab, topic: str) -> dict[tuple[int, int], bytes]:
    """Each record of the topic by partition and offset, read from the beginning to the end of every partition."""
    servers = {"bootstrap.servers": ",".join(lab.spec.bootstrap_servers), "group.id": "reads-back"}
    consumer = Consumer(servers | {"enable.auto.commit": False, "auto.offset.reset": "error"})
    try:
        ends = {
            number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)[1]
            for number in consumer.list_topics(topic, timeout=30).topics[topic].partitions
        }
        consumer.assign([TopicPartition(topic, number, 0) for number in ends])
        found: dict[tuple[int, int], bytes] = {}

        def all_are_read() -> bool:
            for record in consumer.consume(1_000, timeout=1):
                assert not record.error(), record.error()
                found[record.partition(), record.offset()] = record.value()
            return all(not end or (number, end - 1) in found for number, end in ends.items())

        by_hand.wait_until(f"{topic} is read to its end", all_are_read)
        return found
    finally:
        consumer.close()


def set_aside(lab: Lab) -> list[Path]:
    return [found for each in lab.spec.brokers for found in Path(each.log_dirs[0]).glob("*-stray")]


def test_ids_that_differ_by_partition_are_made_one_and_the_copy_keeps_every_record() -> None:
    """Partitions were added while ZooKeeper had another id than the replicas."""
    with kept_states.lab_in(Phase.ZOOKEEPER) as lab, by_hand.zookeeper_of(lab.spec) as client:
        before = records_of(lab, "orders")
        right, wrong = drop_topic_id(lab, "orders")
        added = (6, 7, 8)
        adding = admin(lab)
        by_hand.answered(adding.create_partitions([NewPartitions("orders", 9)]))
        files = [replica(each, f"orders-{number}") for each in lab.spec.brokers for number in added]
        by_hand.wait_until("they are on disk", lambda: all((each / "partition.metadata").exists() for each in files))
        acknowledged = [number for number in added if not by_hand.produced(lab.spec, "orders", number)]
        assert failures(lab)["KRB-PRE-084"].evidence == (
            f"topic orders: id {wrong} in ZooKeeper; partition 0 to 5: {right} on brokers 1, 2, 3;"
            f" partition 6 to 8: {wrong} on brokers 1, 2, 3"
        )

        znode = json.loads(client.get("/brokers/topics/orders")[0])
        client.set("/brokers/topics/orders", json.dumps(znode | {"topic_id": right}).encode())
        for each in files:
            give_id(each, right)
        client.delete("/controller")
        for broker in lab.spec.brokers:  # until the last has read its files, they are not in sync
            stop(lab, broker)
            start(lab, broker)
            by_hand.wait_until("every broker lives", lambda: out_of_sync(lab) is not None)
        by_hand.wait_until("every partition is in sync", lambda: in_sync(lab))
        assert "KRB-PRE-084" not in failures(lab)
        assert not {number: why for number in range(9) if (why := by_hand.produced(lab.spec, "orders", number))}
        cured = records_of(lab, "orders")
        assert before.items() <= cured.items()
        assert {(number, 1) for number in acknowledged} <= cured.keys(), "the first one, and the one after the cure"

        by_hand.to_dual_write(lab.spec, secrets=lab.secrets)
        by_hand.wait_until("every partition is in sync", lambda: in_sync(lab))
        assert records_of(lab, "orders") == cured
        assert not set_aside(lab)


def test_directories_without_an_id_are_cured_after_the_copy_and_hold_in_kraft_mode() -> None:
    """An assigned replica is given its id by hand, what is left over is moved away, in HYBRID. A broker that starts in
    KRaft mode renames a replica without an id.
    """
    with kept_states.lab_in(Phase.HYBRID) as lab:
        before, last = records_of(lab, "orders"), lab.spec.brokers[-1]
        directory, left = replica(last, "orders-0"), leave_over(last)
        right = (directory / "partition.metadata").read_text()
        (directory / "partition.metadata").unlink()
        assert failures(lab, Phase.HYBRID)["KRB-PRE-085"].evidence == (
            f"no replica of this cluster, and without partition.metadata: 1: broker {last.id}: {left};"
            f" replicas without partition.metadata: 1: broker {last.id}: {directory}"
        )
        stop(lab, last)
        shutil.move(left, lab.directory / left.name)
        give_id(directory, right.rpartition(": ")[2].strip())
        start(lab, last)
        by_hand.wait_until("every partition is in sync", lambda: in_sync(lab))
        assert not failures(lab, Phase.HYBRID).keys() & {"KRB-PRE-085", "KRB-PRE-086"}

        by_hand.roll_brokers(lab.spec, BrokerMode.KRAFT, secrets=lab.secrets)
        by_hand.wait_until("every partition is in sync", lambda: in_sync(lab))
        assert (directory / "partition.metadata").read_text().split() == right.split()
        assert not set_aside(lab)
        assert records_of(lab, "orders") == before
        assert not failures(lab, Phase.DUAL_WRITE).keys() & {"KRB-PRE-084", "KRB-PRE-085", "KRB-PRE-086"}


def test_a_torn_partition_metadata_ends_its_broker_and_is_written_anew() -> None:
    with kept_states.lab_in(Phase.ZOOKEEPER) as lab:
        last = lab.spec.brokers[-1]
        directory = replica(last, "orders-0")
        right = (directory / "partition.metadata").read_text()
        (directory / "partition.metadata").write_text("")
        assert failures(lab)["KRB-PRE-085"].evidence == (
            f"partition.metadata without a topic_id: 1: broker {last.id}: {directory}"
        )
        stop(lab, last)
        with contextlib.suppress(StepFailed):  # it may have run for a second, which counts as a start
            start(lab, last)
        here = layout(lab.spec)
        by_hand.wait_until("it ends", lambda: not supervision.processes(here)[last.service].runs, within=60)
        give_id(directory, right.rpartition(": ")[2].strip())
        start(lab, last)
        by_hand.wait_until("every partition is in sync", lambda: in_sync(lab))
        assert not failures(lab).keys() & {"KRB-PRE-084", "KRB-PRE-085"}


def test_a_new_disk_of_a_broker_in_migration_mode_is_formatted_by_its_restart_before_kraft_mode() -> None:
    with kept_states.lab_in(Phase.HYBRID) as old:
        disk = old.directory / "broker-2" / "new-disk"
        disk.mkdir()
        broker = old.spec.broker(2)
        broker = broker.model_copy(update={"log_dirs": (*broker.log_dirs, str(disk))})
        brokers = tuple(broker if each.id == 2 else each for each in old.spec.brokers)
        lab = Lab(old.spec.model_copy(update={"brokers": brokers}), old.directory, old.network)
        by_hand.write(broker, broker_properties(lab.spec, broker, BrokerMode.HYBRID))
        assert failures(lab, Phase.HYBRID)["KRB-PRE-096"].evidence == f"broker 2: {disk}: it is empty"
        by_hand.restart(broker, lab.spec)
        by_hand.wait_until("every partition is in sync", lambda: in_sync(lab))
        assert (disk / "meta.properties").exists()
        assert not failures(lab, Phase.HYBRID).keys() & {"KRB-PRE-087", "KRB-PRE-096"}
        by_hand.roll_brokers(lab.spec, BrokerMode.KRAFT, secrets=lab.secrets, only=(2,))
        by_hand.wait_until("every partition is in sync", lambda: in_sync(lab))


def made(lab: Lab, topic: str) -> bool:
    """Whether a topic can be made, and written to."""
    client = admin(lab)
    try:
        with contextlib.suppress(KafkaException):  # no controller, or it is there already
            by_hand.answered(client.create_topics([NewTopic(topic, 1, 3)], operation_timeout=5, request_timeout=10))
        return topic in client.list_topics(timeout=10).topics and not by_hand.produced(lab.spec, topic, 0)
    except KafkaException:
        return False


def test_a_bad_list_of_replicas_is_written_right_and_a_controller_is_elected_again() -> None:
    """With an empty list every election fails."""
    with kept_states.lab_in(Phase.ZOOKEEPER) as lab, by_hand.zookeeper_of(lab.spec) as client:
        path = "/brokers/topics/orders"
        right = client.get(path)[0]

        def nobody_is_elected() -> bool:
            tails = [supervision.log_tail(layout(lab.spec), each.service, lines=200) for each in lab.spec.brokers]
            return any("head of empty list" in each for each in tails)

        for bad in ([], [1, 1, 2]):
            znode = json.loads(right)
            znode["partitions"]["0"] = bad
            client.set(path, json.dumps(znode).encode())
            client.delete("/controller")
            if not bad:
                by_hand.wait_until("an election fails", nobody_is_elected, within=60)
            assert "orders-0 [" in failures(lab)["KRB-PRE-058"].evidence

            client.set(path, right)
            with contextlib.suppress(Exception):  # the election that failed may have deleted it
                client.delete("/controller")
            by_hand.wait_until("a topic can be made", lambda bad=bad: made(lab, f"made-{len(bad)}"))
            by_hand.wait_until("every partition is in sync", lambda: in_sync(lab))
            assert not by_hand.produced(lab.spec, "orders", 0)
            assert "KRB-PRE-058" not in failures(lab)


BAD, PATTERN, DECOY = "bad topic", r"bad[^\w.-]topic", "badtopic"


def test_a_topic_with_a_name_that_kafka_refuses_is_deleted_and_no_other() -> None:
    """Its plain name means another topic there. It is deleted by a pattern, or by hand where its broker is down."""
    with kept_states.lab_in(Phase.ZOOKEEPER) as lab, by_hand.zookeeper_of(lab.spec) as client:
        last = lab.spec.brokers[-1]

        def plant(*brokers: Broker) -> None:
            ids = [each.id for each in brokers]
            client.create(f"/brokers/topics/{BAD}", json.dumps({"version": 1, "partitions": {"0": ids}}).encode())
            client.create(f"/config/topics/{BAD}", b'{"version":1,"config":{}}')
            by_hand.wait_until("it is on disk", lambda: all(replica(each, f"{BAD}-0").exists() for each in brokers))

        def topics(*arguments: str) -> list[str]:
            servers = ("--bootstrap-server", ",".join(lab.spec.bootstrap_servers))
            told = run_class(lab.spec, "org.apache.kafka.tools.TopicCommand", [*servers, *arguments])
            return [line for line in told.splitlines() if line]

        def left_of_it() -> list[Path]:
            return [found for each in lab.spec.brokers for found in Path(each.log_dirs[0]).glob(f"{BAD}-*")]

        by_hand.wait_until("the other topic is made", lambda: made(lab, DECOY))  # with the bad one this ends brokers
        plant(*lab.spec.brokers)
        assert failures(lab)["KRB-PRE-059"].evidence == f"1: '{BAD}'"
        assert topics("--list", "--topic", BAD) == [DECOY]
        assert topics("--list", "--topic", PATTERN) == [BAD]
        topics("--delete", "--topic", PATTERN)
        by_hand.wait_until("nothing is left of it", lambda: not client.exists(f"/brokers/topics/{BAD}"))
        by_hand.wait_until("its directories are gone", lambda: not left_of_it(), within=180)
        assert "KRB-PRE-059" not in failures(lab)
        assert topics("--list", "--topic", DECOY) == [DECOY]

        plant(last)
        stop(lab, last)
        with contextlib.suppress(StepFailed):  # it may have run for a second, which counts as a start
            start(lab, last)
        here = layout(lab.spec)
        by_hand.wait_until("it ends", lambda: not supervision.processes(here)[last.service].runs, within=60)
        client.delete(f"/brokers/topics/{BAD}", recursive=True)
        client.delete(f"/config/topics/{BAD}", recursive=True)
        for broker in (last, *lab.spec.brokers[:-1]):
            stop(lab, broker)
            forget(broker)
            start(lab, broker)
            by_hand.wait_until("all replicas are in sync", lambda: out_of_sync(lab) == 0)
        by_hand.wait_until("every partition is in sync", lambda: in_sync(lab))
        assert "KRB-PRE-059" not in failures(lab)
        assert topics("--list", "--topic", PATTERN) == []


def forget(broker: Broker) -> None:
    """Remove the topic from what a broker that is stopped keeps."""
    shutil.rmtree(replica(broker, f"{BAD}-0"), ignore_errors=True)
    for each in Path(broker.log_dirs[0]).glob("*-offset-checkpoint"):
        version, _, *lines = each.read_text().splitlines() or ["0", "0"]
        kept = [line for line in lines if not line.startswith(f"{BAD} ")]
        each.write_text("\n".join([version, str(len(kept)), *kept]) + "\n")
