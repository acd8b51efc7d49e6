"""What a step down would lose, counted from real records by kind."""

from __future__ import annotations

from uuid import UUID

import pytest
from metadata_encoding import ABORT, BEGIN, END, TOPIC_A, TOPIC_B, batch, change, log, partition, record, topic
from test_feature_records import broker, controller

from kraft_runbook.levels.losses import read_held
from kraft_runbook.metadata.log.log_chunks import Chunk, SnapshotId
from kraft_runbook.metadata.log.record_schemas import RecordType

DIRECTORY = UUID(int=0xD1D1_D1D1_D1D1_D1D1_D1D1)
UNASSIGNED, LOST, MIGRATING = UUID(int=1), UUID(int=2), UUID(int=0)


def lost(*values: bytes, now: int = 27, target: int = 4) -> list[str]:
    return [str(each) for each in read_held([Chunk(log(*values), up_to=10_000)]).below(now, target)]


def scram(user: str, mechanism: int = 1) -> bytes:
    return record(
        RecordType.USER_SCRAM_CREDENTIAL,
        name=user,
        mechanism=mechanism,
        salt=b"s",
        stored_key=b"k",
        server_key=b"v",
        iterations=4096,
    )


def assigned(number: int, *directories: UUID, topic_id: UUID = TOPIC_A) -> bytes:
    return record(
        RecordType.PARTITION,
        version=1,
        topic_id=topic_id,
        partition_id=number,
        replicas=(1, 2, 3),
        isr=(1, 2, 3),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=directories,
    )


def with_elr(number: int, *eligible: int, topic_id: UUID = TOPIC_A) -> bytes:
    values = {"eligible_leader_replicas": eligible}
    return record(RecordType.PARTITION_CHANGE, version=2, topic_id=topic_id, partition_id=number, **values)


def test_scram_credentials_count_once_and_no_more_once_they_are_removed() -> None:
    gone = record(RecordType.REMOVE_USER_SCRAM_CREDENTIAL, name="b", mechanism=1)
    assert lost(scram("a"), scram("a"), scram("a", 2), scram("b"), gone) == ["2 SCRAM credentials (level 11)"]


def test_cordoned_directories_count_as_they_were_last_told() -> None:
    one = record(
        RecordType.REGISTER_BROKER,
        version=4,
        broker_id=1,
        incarnation_id=DIRECTORY,
        end_points=[],
        features=[],
        cordoned_log_dirs=(DIRECTORY, UUID(int=777)),
    )
    fewer = record(RecordType.BROKER_REGISTRATION_CHANGE, version=3, broker_id=1, cordoned_log_dirs=(DIRECTORY,))
    said_nothing = record(RecordType.BROKER_REGISTRATION_CHANGE, version=3, broker_id=1, fenced=1)
    assert lost(one, fewer, said_nothing, now=30, target=29) == ["1 cordoned log directories (level 30)"]
    freed = record(RecordType.BROKER_REGISTRATION_CHANGE, version=3, broker_id=1, cordoned_log_dirs=())
    assert lost(one, freed, now=30, target=29) == []


def test_delegation_tokens() -> None:
    made = record(RecordType.DELEGATION_TOKEN, token_id="t", owner="o", requester="r", renewers=())
    gone = record(RecordType.REMOVE_DELEGATION_TOKEN, token_id="t")
    assert (lost(made), lost(made, gone)) == (["1 delegation tokens (level 14)"], [])


def test_registrations_of_controllers() -> None:
    assert lost(controller(101, 21), controller(102, 21), controller(101, 27)) == [
        "2 registrations of controllers (level 15)"
    ]


def test_directories_of_brokers_and_of_replicas_that_are_really_assigned() -> None:
    values = [
        record(RecordType.REGISTER_BROKER, version=3, broker_id=1, log_dirs=(DIRECTORY,), end_points=[], features=[]),
        assigned(0, DIRECTORY, UNASSIGNED, LOST),
        assigned(1, MIGRATING, DIRECTORY, DIRECTORY),
    ]
    assert lost(*values) == [
        "1 log directories of brokers (level 17)",
        "3 replicas assigned to a directory (level 17)",
    ]
    moved = record(
        RecordType.PARTITION_CHANGE, version=1, topic_id=TOPIC_A, partition_id=0, directories=(DIRECTORY,) * 3
    )
    assert "5 replicas assigned to a directory (level 17)" in lost(*values, moved)
    assert lost(*values, record(RecordType.REMOVE_TOPIC, topic_id=TOPIC_A)) == [
        "1 log directories of brokers (level 17)"
    ]


def test_a_change_that_says_nothing_of_directories_leaves_them() -> None:
    assert lost(assigned(0, DIRECTORY), change(0, leader=2)) == ["1 replicas assigned to a directory (level 17)"]


def test_eligible_leader_replicas_are_said_to_go_without_a_word() -> None:
    values = [topic("a"), topic("b", TOPIC_B), partition(0), partition(0, TOPIC_B)]
    held = [*values, with_elr(0, 1, 2), with_elr(0, 3, topic_id=TOPIC_B)]
    assert lost(*held) == ["3 eligible leader replicas (level 23, without a word)"]
    assert lost(*held, record(RecordType.CLEAR_ELR, topic_name="a")) == [
        "1 eligible leader replicas (level 23, without a word)"
    ]
    assert lost(*held, record(RecordType.CLEAR_ELR, topic_name="")) == []


def test_the_migration_s_state_and_a_controlled_shutdown() -> None:
    stopping = record(
        RecordType.BROKER_REGISTRATION_CHANGE, version=1, broker_id=1, broker_epoch=0, in_controlled_shutdown=1
    )
    final = record(RecordType.ZK_MIGRATION_STATE, zk_migration_state=3)
    assert lost(broker(1, 21), stopping, final) == [
        "1 brokers in controlled shutdown (level 7)",
        "1 state of the migration from ZooKeeper (level 8)",
    ]


@pytest.mark.parametrize(("now", "target", "kinds"), [(21, 17, 0), (21, 16, 1), (21, 10, 2), (16, 10, 1), (16, 11, 0)])
def test_only_what_lies_between_the_two_levels_is_lost(now: int, target: int, kinds: int) -> None:
    assert len(lost(scram("a"), assigned(0, DIRECTORY), now=now, target=target)) == kinds


def test_what_was_aborted_or_stands_before_a_snapshot_does_not_count() -> None:
    assert lost(BEGIN, scram("a"), ABORT) == []
    assert lost(BEGIN, scram("a"), END) == ["1 SCRAM credentials (level 11)"]
    chunks = [Chunk(log(scram("a"), scram("b")), up_to=10), Chunk(batch(0, scram("c")), snapshot=SnapshotId(90, 1))]
    assert [str(each) for each in read_held(chunks).below(21, 4)] == ["1 SCRAM credentials (level 11)"]
