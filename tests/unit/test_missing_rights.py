"""Where Kafka refuses a request for want of a right, what is told names it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from observations import SPEC

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.io.kafka.drill_probes import GRANT, Probes, topic_of
from kraft_runbook.io.kafka.dynamic_configs import ALL_BROKERS, Entity, EntityKind, alter_configs, read_configs
from kraft_runbook.io.kafka.metadata_log_reader import MetadataLogReader
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.levels.answers import refused
from kraft_runbook.metadata.log.log_chunks import SnapshotId

GIVEN: Any = {"secrets": environment_secrets({})}


class Node:
    """A node that gives one answer to everything."""

    def __init__(self, answer: Any) -> None:
        self.send = lambda _, **__: answer

    def connect(self) -> None:
        pass

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def unreachable(self, why: str) -> Unreachable:
        return Unreachable(why, way_out="")


@pytest.mark.parametrize(
    ("entity", "code", "granted"),
    [(Entity(EntityKind.TOPIC, "orders"), 29, "--topic orders"), (ALL_BROKERS, 31, "--cluster")],
)
def test_configurations(entity: Entity, code: int, granted: str) -> None:
    """Kafka answers 29 for a topic's, 31 for a broker's."""
    one = SimpleNamespace(
        resource_type=int(entity.kind), resource_name=entity.name, error_code=code, error_message="", configs=[]
    )
    node = Node(SimpleNamespace(results=[one], responses=[one]))
    with pytest.raises(Refused) as reading:
        read_configs(SPEC, [entity], ["a"], connect=lambda *_, **__: node, **GIVEN)
    same: dict[str, str] = {}
    changes = {entity: {"a": "1"}, Entity(EntityKind.TOPIC, "as it is"): same}
    with pytest.raises(Refused) as changing:
        alter_configs(SPEC, changes, connect=lambda *_, **__: node, **GIVEN)
    assert str(entity) in reading.value.problem and str(entity) in changing.value.problem
    assert reading.value.way_out.endswith(f"--operation DescribeConfigs {granted}")
    assert changing.value.way_out.endswith(f"--operation AlterConfigs {granted}")


def test_what_was_refused_is_told_apart_from_what_was_changed() -> None:
    """An ACL may allow some topics: the others were changed, so that it is no refusal of the whole."""
    topics = [Entity(EntityKind.TOPIC, each) for each in ("orders", "payments")]
    answers = [
        SimpleNamespace(resource_type=2, resource_name=each.name, error_code=code, error_message="")
        for each, code in zip(topics, (0, 29), strict=True)
    ]
    node = Node(SimpleNamespace(responses=answers))
    with pytest.raises(StepFailed, match=r"1 configurations .* topic payments: allow it: .* --topic payments"):
        alter_configs(SPEC, {each: {"a": "1"} for each in topics}, connect=lambda *_, **__: node, **GIVEN)


def test_a_feature_s_level() -> None:
    error = refused("metadata.version", 21, 31, "Cluster authorization failed.")
    assert "UpdateFeatures (metadata.version 21) is not allowed" in error.problem and "Alter on the cluster" in (
        error.way_out or ""
    )


def test_the_metadata_log_s_snapshot() -> None:
    """Not taken for one that is gone."""
    node = Node(SimpleNamespace(error_code=31))
    with pytest.raises(Unreachable, match="31: it needs ClusterAction on the cluster"):
        next(MetadataLogReader(SPEC, 101, 1, connect=lambda *_, **__: node, **GIVEN)._snapshot(SnapshotId(5, 1)))


OF_A_NAMED_TOPIC = "allow this tool's user Describe and Write on topic orders"


@pytest.mark.parametrize(("topic", "granted"), [(topic_of("run"), GRANT), ("orders", OF_A_NAMED_TOPIC)])
def test_a_drill_s_records(topic: str, granted: str) -> None:
    """On partitions that its form names, the right is one on their topic."""
    partition = TopicPartition(topic, 0)
    probes = Probes(SPEC, topic_of("run"), "changes", partitions=[partition], key="k", **GIVEN)
    heard = probes._delivered(partition)
    heard(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), None)
    assert probes.failed == 1 and probes.why.endswith(f"; {granted}")
    heard(KafkaError(KafkaError._MSG_TIMED_OUT), None)
    assert probes.failed == 2 and "allow" not in probes.why
    heard(None, None)
    assert len(probes.answers[str(partition)]) == 1


def test_a_drill_s_producer_that_may_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """It breaks its thread. The topics are those that it was to write to."""

    def denied(*_: Any) -> Any:
        raise KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED))

    monkeypatch.setattr(Probes, "_change", lambda _: None)
    partitions = [TopicPartition(each, 0) for each in ("payments", "orders")]
    with (
        pytest.raises(StepFailed, match="Describe and Write on topics orders, payments"),
        Probes(SPEC, topic_of("run"), "changes", partitions=partitions, key="k", producer=denied, **GIVEN),
    ):
        pass
