"""The topics' names as the metadata log has them: what was removed, is not committed yet or was replaced by a snapshot
is not among them.
"""

from __future__ import annotations

import pytest
from metadata_encoding import ABORT, BEGIN, END, TOPIC_A, TOPIC_B, log, record, topic

from kraft_runbook.cluster.observation import ZkMigrationState
from kraft_runbook.metadata.log.cluster_records import BrokersAndFeatures
from kraft_runbook.metadata.log.log_chunks import Chunk, SnapshotId
from kraft_runbook.metadata.log.record_schemas import RecordType

GONE = record(RecordType.REMOVE_TOPIC, topic_id=TOPIC_A)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ((topic("a"), topic("b", TOPIC_B)), {"a", "b"}),
        ((topic("a"), GONE), set()),
        ((topic("a"), GONE, topic("a", TOPIC_B)), {"a"}),
        ((BEGIN, topic("a")), set()),
        ((BEGIN, topic("a"), END), {"a"}),
        ((topic("b", TOPIC_B), BEGIN, topic("a"), ABORT), {"b"}),
    ],
)
def test_topics_are_known_by_name(values: tuple[bytes, ...], names: set[str]) -> None:
    state = BrokersAndFeatures()
    for at, value in enumerate(values):  # as it is kept between two looks
        state = state.copy()
        state.apply(Chunk(log(value, first=at), since=at, up_to=100))
    assert set(state.topics.values()) == names


def test_a_snapshot_replaces_all() -> None:
    state = BrokersAndFeatures()
    state.apply(Chunk(log(topic("a")), up_to=100))
    state.apply(Chunk(log(topic("b", TOPIC_B)), snapshot=SnapshotId(6, 1)))
    assert set(state.topics.values()) == {"b"}


def config(resource_type: int, name: str, value: str | None = "x", key: str = "k") -> bytes:
    return record(RecordType.CONFIG, resource_type=resource_type, resource_name=name, name=key, value=value)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (
            (config(16, "apps"), config(32, "orders"), config(2, "t"), config(4, "1")),
            {"client-metrics apps", "groups orders"},
        ),
        ((config(16, "apps"), config(16, "apps", None)), set()),
        ((config(16, "apps"), config(16, "apps", key="other"), config(16, "apps", None)), {"client-metrics apps"}),
        ((config(16, "apps", None),), set()),
        ((BEGIN, config(32, "orders"), ABORT), set()),
        ((config(64, "later"),), {"type 64 later"}),
    ],
)
def test_configs_that_zookeeper_can_t_hold_are_known_by_name(values: tuple[bytes, ...], found: set[str]) -> None:
    """As long as any config of that resource is there. A topic's and a broker's are none of them."""
    state = BrokersAndFeatures()
    for at, value in enumerate(values):
        state = state.copy()
        state.apply(Chunk(log(value, first=at), since=at, up_to=100))
    assert set(state.kraft_only) == found
    state.apply(Chunk(log(topic("b", TOPIC_B)), snapshot=SnapshotId(6, 1)))
    assert state.kraft_only == ()


def test_the_records_that_form_a_quorum_count_together() -> None:
    """Until they are all committed there is neither metadata.version nor a migration state, which does not mean a
    cluster created in KRaft mode.
    """
    formed = (
        record(RecordType.BEGIN_TRANSACTION, name="Bootstrap records"),
        record(RecordType.FEATURE_LEVEL, name="metadata.version", feature_level=21),
        record(RecordType.ZK_MIGRATION_STATE, zk_migration_state=2),
        END,
    )
    state = BrokersAndFeatures()
    state.apply(Chunk(log(*formed[:3]), up_to=100))
    assert (state.features, state.migration_state) == ({}, None)
    state.apply(Chunk(log(formed[3], first=3), since=3, up_to=100))
    assert (state.features, state.migration_state) == ({"metadata.version": 21}, ZkMigrationState.PRE_MIGRATION)
