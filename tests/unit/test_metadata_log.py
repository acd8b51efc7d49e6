"""The log's records add up to rows, with a history of what changed after M."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from metadata_encoding import ABORT, BEGIN, END, NO_OP, TOPIC_A, TOPIC_B, change, config, log, partition, record, topic
from whole_image import every_version

from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Fingerprints, Kind
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.metadata.log.frames import Garbled
from kraft_runbook.metadata.log.log_chunks import Chunk, SnapshotId
from kraft_runbook.metadata.log.record_schemas import RecordType

PRINTS = Fingerprints(b"salt")


def replay(*values: bytes, start: int = 10**6, snapshot: bytes | None = None) -> LogReplay:
    found = LogReplay(start, PRINTS, "3.9")
    first = 0
    if snapshot is not None:
        found.apply(Chunk(snapshot, snapshot=SnapshotId(100, 1)))
        first = 100
    found.apply(Chunk(log(*values, first=first), since=first, up_to=first + len(values)))
    return found


def values(found: LogReplay, kind: Kind) -> dict[str, list[str | None]]:
    """Each key's values, the latest first."""
    by_key: dict[str, list[str | None]] = {}
    for version in every_version(found):
        if version.kind is kind:
            by_key.setdefault(canonical_rows.describe_key(kind, version.key).split(" (")[0], []).append(
                None if version.value is None else canonical_rows.describe_value(version.value)
            )
    return by_key


def state(leader: int, epoch: int, isr: list[int], recovery: int = 0) -> str:
    return f"isr {isr}, leader {leader}, leader_epoch {epoch}, leader_recovery_state {recovery}"


def test_a_change_of_leader_raises_the_leader_epoch_and_what_it_does_not_name_stays() -> None:
    found = replay(
        topic(), partition(), change(isr=(1, 3)), change(leader=-1), change(leader=3, isr=(3,), leader_recovery_state=1)
    )
    assert values(found, Kind.PARTITION_STATE) == {"a-0": [state(3, 2, [3], 1)]}
    assert values(found, Kind.ASSIGNMENT) == {"a-0": ["adding [], removing [], replicas [1, 2, 3]"]}


def test_the_order_of_replicas_counts_and_that_of_the_isr_does_not() -> None:
    found = replay(
        topic(),
        partition(0, replicas=(3, 1, 2), isr=(2, 1)),
        change(0, adding_replicas=(5, 4), removing_replicas=(2, 1)),
    )
    assert values(found, Kind.ASSIGNMENT) == {"a-0": ["adding [4, 5], removing [1, 2], replicas [3, 1, 2]"]}
    assert values(found, Kind.PARTITION_STATE) == {"a-0": [state(1, 0, [1, 2])]}


def test_a_removed_topic_takes_its_partitions_and_configs_with_it() -> None:
    gone = record(RecordType.REMOVE_TOPIC, topic_id=TOPIC_A)
    found = replay(topic(), partition(), config("retention.ms", "5"), topic("b", TOPIC_B), gone)
    assert values(found, Kind.TOPIC) == {"b": [f"topic_id {canonical_rows.kafka_uuid(TOPIC_B)}"]}
    assert not values(found, Kind.PARTITION_STATE)
    assert not values(found, Kind.TOPIC_CONFIG)


def test_after_m_every_value_a_key_had_is_told_the_latest_first() -> None:
    found = replay(topic(), partition(), NO_OP, change(isr=(1,)), change(isr=(1, 2)), start=2)
    assert values(found, Kind.PARTITION_STATE) == {
        "a-0": [state(1, 0, [1, 2]), state(1, 0, [1]), state(1, 0, [1, 2, 3])]
    }
    assert [(v.offset, v.last) for v in every_version(found) if v.kind is Kind.PARTITION_STATE] == [
        (4, True),
        (3, False),
        (2, False),
    ]


def test_a_topic_made_and_one_removed_after_m_were_absent_for_a_while() -> None:
    gone = record(RecordType.REMOVE_TOPIC, topic_id=TOPIC_A)
    found = replay(topic(), partition(), config("x", "1"), topic("b", TOPIC_B), partition(0, TOPIC_B), gone, start=2)
    assert values(found, Kind.TOPIC)["a"] == [None, f"topic_id {canonical_rows.kafka_uuid(TOPIC_A)}"]
    assert values(found, Kind.TOPIC)["b"] == [f"topic_id {canonical_rows.kafka_uuid(TOPIC_B)}", None]
    assert values(found, Kind.TOPIC_CONFIG) == {"a: x": [None, "1"]}
    assert values(found, Kind.PARTITION_STATE)["a-0"][0] is None


def test_the_topics_touched_last_are_told_with_the_leader_epochs_they_have_now() -> None:
    made, other = topic(), topic("b", TOPIC_B)
    found = replay(made, partition(), other, partition(0, TOPIC_B), change(leader=2), config("x", "1"), start=1)
    assert found.newest_topics(5) == {"a": {0: 1}, "b": {0: 0}}
    assert list(found.newest_topics(1)) == ["a"]
    gone = record(RecordType.REMOVE_TOPIC, topic_id=TOPIC_A)
    assert replay(made, partition(), other, gone, start=2).newest_topics(5) == {"a": {}}


def test_a_transaction_takes_effect_at_its_end_and_an_aborted_one_never() -> None:
    found = replay(BEGIN, topic(), partition(), NO_OP, END, BEGIN, topic("b", TOPIC_B), ABORT, start=3)
    assert values(found, Kind.TOPIC) == {"a": [f"topic_id {canonical_rows.kafka_uuid(TOPIC_A)}", None]}
    assert {v.offset for v in every_version(found) if v.kind is Kind.TOPIC} == {4, 3}
    assert values(replay(BEGIN, topic(), partition()), Kind.TOPIC) == {}


def test_a_snapshot_and_the_log_after_it_make_one_state() -> None:
    found = replay(change(isr=(2,)), snapshot=log(topic(), partition()), start=99)
    assert values(found, Kind.PARTITION_STATE) == {"a-0": [state(1, 0, [2]), state(1, 0, [1, 2, 3])]}


def test_configs_of_brokers_have_an_empty_name_for_the_default_and_hide_passwords() -> None:
    found = replay(
        config("max.connections", "5", "", 4),
        config("max.connections", "6", "1", 4),
        config("max.connections", None, "1", 4),
        config("listener.name.x.ssl.keystore.password", "hunter2", "1", 4),
        config("interval.ms", "1", "sub", 16),
    )
    assert values(found, Kind.BROKER_CONFIG) == {
        "every broker: max.connections": ["5"],
        "broker 1: listener.name.x.ssl.keystore.password": [PRINTS.password("hunter2")],
    }


def test_quotas_of_every_entity() -> None:
    def quota(remove: bool = False, value: float = 1.0, **entity: str | None) -> bytes:
        parts = [{"entity_type": kind.replace("_", "-"), "entity_name": name} for kind, name in entity.items()]
        return record(RecordType.CLIENT_QUOTA, entity=parts, key="producer_byte_rate", value=value, remove=remove)

    found = replay(
        quota(user=None),
        quota(user="u", client_id=None, value=2.5),
        quota(ip="1.2.3.4"),
        quota(ip="1.2.3.4", remove=True),
    )
    assert values(found, Kind.CLIENT_QUOTA) == {
        "user <default>: producer_byte_rate": ["1.0"],
        "client-id <default>, user u: producer_byte_rate": ["2.5"],
    }


def test_credentials_tokens_and_acls_come_and_go() -> None:
    scram: dict[str, Any] = {
        "name": "u",
        "mechanism": 1,
        "salt": b"s",
        "stored_key": b"k",
        "server_key": b"v",
        "iterations": 4096,
    }
    entry: dict[str, Any] = {
        "resource_type": 2,
        "resource_name": "t",
        "pattern_type": 4,
        "principal": "User:u",
        "host": "*",
        "operation": 3,
    }
    token = record(
        RecordType.DELEGATION_TOKEN, token_id="id-1", owner="User:o", requester="User:r", renewers=("User:b", "User:a")
    )
    there = (
        record(RecordType.USER_SCRAM_CREDENTIAL, **scram),
        record(RecordType.ACCESS_CONTROL_ENTRY, id=UUID(int=1), permission_type=3, **entry),
        token,
    )
    found = replay(*there)
    assert list(values(found, Kind.SCRAM_CREDENTIAL)) == ["user u, SCRAM-SHA-256"]
    assert list(values(found, Kind.ACL)) == ["ALLOW READ on PREFIXED TOPIC 't' to User:u from *"]
    assert values(found, Kind.DELEGATION_TOKEN) == {
        f"token with {PRINTS.key(b'id-1')}": [
            "expires 0, issued 0, max 0, owner User:o, renewers ['User:a', 'User:b'], requester User:r"
        ]
    }
    gone = (
        record(RecordType.REMOVE_USER_SCRAM_CREDENTIAL, name="u", mechanism=1),
        record(RecordType.REMOVE_ACCESS_CONTROL_ENTRY, id=UUID(int=1)),
        record(RecordType.REMOVE_DELEGATION_TOKEN, token_id="id-1"),
    )
    emptied = replay(*there, *gone)
    assert not any(values(emptied, kind) for kind in (Kind.SCRAM_CREDENTIAL, Kind.ACL, Kind.DELEGATION_TOKEN))
    watched = replay(*there, *gone, start=2)
    assert all(
        each[0] is None
        for kind in (Kind.SCRAM_CREDENTIAL, Kind.ACL, Kind.DELEGATION_TOKEN)
        for each in values(watched, kind).values()
    )


def test_only_live_hybrid_brokers_have_a_row() -> None:
    def register(broker: int, migrating: bool) -> bytes:
        ends = [{"name": "PLAINTEXT", "host": "h", "port": 9092, "security_protocol": 0}]
        return record(
            RecordType.REGISTER_BROKER,
            3,
            broker_id=broker,
            is_migrating_zk_broker=migrating,
            end_points=ends,
            rack="r",
            fenced=True,
        )

    unfence = [
        record(RecordType.UNFENCE_BROKER, id=1),
        record(RecordType.BROKER_REGISTRATION_CHANGE, 1, broker_id=2, fenced=-1),
    ]
    found = replay(register(1, True), register(2, False), register(3, True), *unfence)
    assert values(found, Kind.BROKER) == {"broker 1": ["endpoints ['PLAINTEXT://h:9092'], rack r"]}
    fenced = replay(register(1, True), unfence[0], record(RecordType.FENCE_BROKER, id=1), start=1)
    assert values(fenced, Kind.BROKER)["broker 1"][0] is None


def test_after_the_copy_zookeeper_may_have_the_block_before_the_next_and_after_a_dual_write_only_the_next() -> None:
    copied = record(RecordType.PRODUCER_IDS, broker_id=1, broker_epoch=-1, next_producer_id=2000)
    written = record(RecordType.PRODUCER_IDS, broker_id=1, broker_epoch=7, next_producer_id=3000)
    assert values(replay(copied), Kind.PRODUCER_IDS) == {
        "/latest_producer_id_block": ["first 2000, last 2999", "first 1000, last 1999"]
    }
    assert values(replay(copied, written), Kind.PRODUCER_IDS) == {
        "/latest_producer_id_block": ["first 3000, last 3999"]
    }


def test_metadata_version_must_cover_the_inter_broker_protocol() -> None:
    level = lambda n: record(RecordType.FEATURE_LEVEL, name="metadata.version", feature_level=n)  # noqa: E731
    assert [values(replay(level(n)), Kind.METADATA_VERSION).popitem()[1] for n in (20, 21)] == [
        ["covered false, inter.broker.protocol.version 3.9"],
        ["covered true, inter.broker.protocol.version 3.9"],
    ]


def test_a_change_of_a_partition_that_never_was_is_garbled_and_named_by_its_offset() -> None:
    with pytest.raises(Garbled, match="offset 1 changes a topic or partition"):
        _ = replay(NO_OP, change()).image


def test_the_versions_of_chosen_keys_are_those_of_all_of_them() -> None:
    found = replay(topic(), partition(), config("x", "1"), change(isr=(1,)), start=2)
    everything = list(every_version(found))
    keys = {(v.kind, v.key) for v in everything}
    assert sorted(map(str, found.versions_of(keys))) == sorted(map(str, everything))
    (absent,) = found.versions_of({(Kind.TOPIC, '["never"]')})
    assert absent.value is None
