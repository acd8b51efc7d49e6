"""The quorum and its log on real controllers: modes, snapshots, a log that was truncated, a leader that is none."""

from __future__ import annotations

from pathlib import Path

import by_hand
import pytest
from labs import Lab
from whole_image import every_row

from kraft_runbook.cluster.observation import BrokerMode, ControllerMode, ZkMigrationState
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.metadata_log_reader import LogTruncated, MetadataLogReader, Position
from kraft_runbook.io.kafka.metadata_quorum import (
    broker_mode,
    controller_mode,
    describe_quorum,
    quorum_cluster_id,
    read_cluster_records,
)
from kraft_runbook.metadata.canonical_rows import Fingerprints, Kind
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.parity.log_follower import LogFollower
from lab.layout import layout

SNAPSHOTS = {"metadata.log.max.snapshot.interval.ms": "2000"}
SHORT_LOG = SNAPSHOTS | {
    "metadata.max.retention.bytes": "100000",
    "metadata.log.segment.bytes": "1048576",
    "metadata.log.segment.min.bytes": "1048576",
    "metadata.log.segment.ms": "3000",
}


def restart_controllers(lab: Lab, properties: dict[str, str]) -> None:
    for controller in lab.spec.controllers:
        path = Path(controller.config_file)
        kept = [line for line in path.read_text().splitlines() if not line.startswith("metadata.")]
        path.write_text("\n".join([*kept, *(f"{name}={value}" for name, value in properties.items())]) + "\n")
        by_hand._restart(layout(lab.spec), controller.service)
    by_hand.wait_until("a leader", lambda: describe_quorum(lab.spec, secrets=lab.secrets).leader_id > 0)


def replay(lab: Lab, start: int, end: int | None = None) -> LogReplay:
    """What the log gives up to ``end``, its high watermark if none is given."""
    found = LogReplay(start, Fingerprints(b"x"), lab.spec.kafka.ibp)
    with LogFollower(lab.spec, found, secrets=lab.secrets) as log:
        log.read_on() if end is None else log.read_to(end)
    return found


def state(found: LogReplay) -> set[str]:
    return {str(row) for row in every_row(found.image)}


def declared(found: LogReplay) -> set[str]:
    """What only a person changes: a busy machine may shrink an ISR while the controllers are restarted."""
    return {
        str(row)
        for row in every_row(found.image)
        if row.kind in (Kind.TOPIC, Kind.ASSIGNMENT, Kind.TOPIC_CONFIG, Kind.ACL)
    }


def last_offset(lab: Lab) -> int:
    return describe_quorum(lab.spec, secrets=lab.secrets).high_watermark - 1


def newest_snapshot_and_log_start(lab: Lab) -> tuple[int, int]:
    found = describe_quorum(lab.spec, secrets=lab.secrets)
    with MetadataLogReader(lab.spec, found.leader_id, found.leader_epoch, secrets=lab.secrets) as reader:
        first = reader._following(Position(0, 0))
    return (first.snapshot_id.end_offset if first.snapshot_id else -1), first.log_start_offset


def test_modes_of_running_nodes_and_the_cluster_records(dual_write: Lab) -> None:
    spec, secrets = dual_write.spec, dual_write.secrets
    assert {controller_mode(spec, each, secrets=secrets) for each in spec.controllers} == {ControllerMode.MIGRATION}
    assert {broker_mode(spec, each, secrets=secrets) for each in spec.brokers} == {BrokerMode.HYBRID}
    records = read_cluster_records(spec, secrets=secrets)
    assert set(records.registrations) == set(spec.broker_ids)
    assert all(each.is_migrating_zk_broker and not each.fenced for each in records.registrations.values())
    assert (records.metadata_version, records.migration_state_record) == (21, ZkMigrationState.MIGRATION)
    assert quorum_cluster_id(spec, spec.controllers[0].id, secrets=secrets) == by_hand.cluster_id(spec, secrets=secrets)
    later = read_cluster_records(spec, secrets=secrets, since=records)
    assert later.position.offset >= records.position.offset
    assert later.registrations == records.registrations


def test_a_reader_sent_to_a_follower_goes_on_with_the_leader(dual_write: Lab) -> None:
    found = describe_quorum(dual_write.spec, secrets=dual_write.secrets)
    follower = next(each for each in dual_write.spec.controller_ids if each != found.leader_id)
    with MetadataLogReader(dual_write.spec, follower, found.leader_epoch, secrets=dual_write.secrets) as reader:
        assert sum(1 for chunk in reader.chunks(end=found.high_watermark - 1) for _ in chunk.records()) > 0
        assert reader.position.offset == found.high_watermark


def test_a_leader_that_the_cluster_file_does_not_know_is_named(dual_write: Lab) -> None:
    with pytest.raises(Unreachable, match="controller 999, which the cluster file does not declare"):
        MetadataLogReader(dual_write.spec, 999, 1, secrets=dual_write.secrets)


def test_snapshots_and_the_whole_log_give_the_same_state_and_a_truncated_log_says_so(dual_write: Lab) -> None:
    before = replay(dual_write, 100)
    restart_controllers(dual_write, SNAPSHOTS)
    by_hand.wait_until("a snapshot", lambda: newest_snapshot_and_log_start(dual_write)[0] > 0)
    start = newest_snapshot_and_log_start(dual_write)[0] + 5
    by_hand.wait_until("records behind the snapshot", lambda: last_offset(dual_write) > start)
    end = last_offset(dual_write)
    from_the_snapshot = replay(dual_write, start, end)
    whole = replay(dual_write, 100, end)  # from the first record: the log still begins at 0
    assert state(from_the_snapshot) == state(whole)
    assert declared(whole) == declared(before) != set()

    read = read_cluster_records(dual_write.spec, secrets=dual_write.secrets)
    restart_controllers(dual_write, SHORT_LOG)
    by_hand.wait_until("a truncated log", lambda: newest_snapshot_and_log_start(dual_write)[1] > 0, within=240)
    with pytest.raises(LogTruncated, match="does not reach back to offset 100"):
        replay(dual_write, 100)
    newest, oldest = newest_snapshot_and_log_start(dual_write)
    end = last_offset(dual_write)
    from_the_oldest = replay(dual_write, oldest + 1, end)
    assert state(from_the_oldest) == state(replay(dual_write, newest + 1, end))
    assert declared(from_the_oldest) == declared(before)
    after = read_cluster_records(
        dual_write.spec, secrets=dual_write.secrets, since=read
    )  # our position may be gone: read anew
    assert after.registrations.keys() == read.registrations.keys()
