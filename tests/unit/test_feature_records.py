"""What the metadata log says of feature levels: each record with its offset, and who is registered."""

from __future__ import annotations

from uuid import UUID

from metadata_encoding import ABORT, BEGIN, END, NO_OP, batch, log, record

from kraft_runbook.cluster.feature_levels import Range, WrittenLevel
from kraft_runbook.metadata.log.feature_records import FeatureRecords
from kraft_runbook.metadata.log.log_chunks import Chunk, SnapshotId
from kraft_runbook.metadata.log.record_schemas import RecordType


def level(number: int, feature: str = "metadata.version") -> bytes:
    return record(RecordType.FEATURE_LEVEL, name=feature, feature_level=number)


def features(highest: int) -> list[dict[str, object]]:
    return [{"name": "metadata.version", "min_supported_version": 1, "max_supported_version": highest}]


def broker(node_id: int, highest: int, *, fenced: bool = False) -> bytes:
    return record(
        RecordType.REGISTER_BROKER,
        version=3,
        broker_id=node_id,
        incarnation_id=UUID(int=node_id),
        end_points=[],
        features=features(highest),
        fenced=fenced,
    )


def controller(node_id: int, highest: int, *hosts: str) -> bytes:
    return record(
        RecordType.REGISTER_CONTROLLER,
        controller_id=node_id,
        incarnation_id=UUID(int=node_id),
        end_points=[{"name": "CONTROLLER", "host": host, "port": 9093, "security_protocol": 0} for host in hosts],
        features=features(highest),
    )


def read(*values: bytes) -> FeatureRecords:
    state = FeatureRecords()
    state.apply(Chunk(log(*values), up_to=10_000))
    return state


def test_the_dynamic_min_insync_replicas_of_brokers_are_read_and_topics_configs_are_not() -> None:
    def config(kind: int, name: str, value: str | None, key: str = "min.insync.replicas") -> bytes:
        return record(RecordType.CONFIG, resource_type=kind, resource_name=name, name=key, value=value)

    found = read(
        config(4, "", "2"), config(4, "1", "3"), config(4, "2", "4"), config(2, "orders", "5"),
        config(4, "3", "9", "log.cleaner.threads"), config(4, "2", None),
    ).seen(5)  # fmt: skip
    assert found.min_isr == {"": 2, "1": 3}


def test_where_a_controller_is_found_is_kept() -> None:
    found = read(controller(101, 33, "one", "::1")).seen(1).controllers[101]
    assert found.endpoints == ("CONTROLLER://one:9093", "CONTROLLER://[::1]:9093")


def test_a_controller_that_was_unregistered_is_registered_no_more() -> None:
    gone = record(RecordType.UNREGISTER_CONTROLLER, controller_id=104)
    assert set(read(controller(101, 33), controller(104, 33), gone).seen(2).controllers) == {101}


def test_every_record_of_a_level_is_kept_with_its_offset_also_one_that_was_lowered_again() -> None:
    seen = read(NO_OP, level(21), NO_OP, level(22), level(1, "group.version"), level(21)).seen(5)
    assert seen.written == (
        WrittenLevel("metadata.version", 21, 1),
        WrittenLevel("metadata.version", 22, 3),
        WrittenLevel("group.version", 1, 4),
        WrittenLevel("metadata.version", 21, 5),
    )
    assert dict(seen.levels) == {"metadata.version": 21, "group.version": 1}


def test_a_level_in_a_transaction_counts_at_its_own_offset_once_that_has_ended_or_never() -> None:
    assert read(BEGIN, level(21), END).written == [WrittenLevel("metadata.version", 21, 1)]
    assert read(BEGIN, level(21), ABORT).written == []
    assert read(BEGIN, level(21)).written == []


def test_a_snapshot_replaces_all_and_its_level_has_the_offset_of_its_last_record() -> None:
    state = read(level(20), broker(7, 19))
    state.apply(Chunk(batch(0, level(21)), snapshot=SnapshotId(90, 3)))
    seen = state.seen(89)
    assert (seen.written, dict(seen.brokers)) == ((WrittenLevel("metadata.version", 21, 89, True),), {})


def test_registrations_stay_until_they_are_unregistered_whoever_runs() -> None:
    seen = read(broker(1, 21), broker(2, 19), controller(101, 21), controller(101, 27)).seen(3)
    assert {i: each.supported["metadata.version"] for i, each in seen.brokers.items()} == {
        1: Range(1, 21),
        2: Range(1, 19),
    }
    assert seen.controllers[101].supported == {"metadata.version": Range(1, 27)}
    gone = record(RecordType.UNREGISTER_BROKER, broker_id=2, broker_epoch=0)
    assert set(read(broker(1, 21), broker(2, 19), gone).seen(2).brokers) == {1}


def test_a_broker_that_stopped_is_fenced_and_still_registered() -> None:
    fence = record(RecordType.BROKER_REGISTRATION_CHANGE, version=1, broker_id=1, broker_epoch=0, fenced=1)
    unfence = record(RecordType.UNFENCE_BROKER, id=1, epoch=0)
    assert read(broker(1, 21), fence).brokers[1].fenced
    assert not read(broker(1, 21), fence, unfence).brokers[1].fenced
    other = record(RecordType.BROKER_REGISTRATION_CHANGE, version=1, broker_id=1, broker_epoch=0)
    assert read(broker(1, 21, fenced=True), other).brokers[1].fenced


def test_the_migration_s_state_is_the_last_one() -> None:
    def state(value: int) -> bytes:
        return record(RecordType.ZK_MIGRATION_STATE, zk_migration_state=value)

    assert [read().migration_state, read(state(1)).migration_state, read(state(1), state(3)).migration_state] == [
        0,
        1,
        3,
    ]
