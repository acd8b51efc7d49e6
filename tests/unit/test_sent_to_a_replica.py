"""What a node that starts is sent by the quorum's leader: asked by its own position, as its Fetch would ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from feature_looks import host_module
from metadata_encoding import ABORT, BEGIN, NO_OP, batch
from observations import SPEC
from test_feature_records import level

from kraft_runbook.io.hosts.feature_state import on_disk_of
from kraft_runbook.io.kafka.metadata_log_reader import LogTruncated, MetadataLogReader, Position
from kraft_runbook.metadata.log.feature_records import levels_in
from kraft_runbook.metadata.log.log_chunks import Chunk, SnapshotId

host_module("kafka_host")
scan = host_module("metadata_log_scan")

Answers = Callable[[Position], Any]


def answer(*records: bytes, at: int = 0, snapshot: Any = None, diverging: tuple[int, int] | None = None) -> Any:
    told = None if diverging is None else SimpleNamespace(end_offset=diverging[0], epoch=diverging[1])
    return SimpleNamespace(
        records=b"".join(batch(at + n, each) for n, each in enumerate(records)),
        high_watermark=1000,
        log_start_offset=0,
        snapshot_id=snapshot,
        diverging_epoch=told,
    )


class Asked(MetadataLogReader):
    """``leader`` answers each Fetch. The newest snapshot holds level 21."""

    def __init__(self, leader: Answers) -> None:
        super().__init__(SPEC, 101, 3, secrets=lambda _: "")
        self.leader, self.positions = leader, list[Position]()

    def _following(self, position: Position) -> Any:
        self.positions.append(position)
        return self.leader(position)

    def _snapshot(self, wanted: SnapshotId) -> Iterator[Chunk]:
        yield Chunk(batch(0, NO_OP, level(21)), snapshot=wanted)
        self.position = Position(wanted.end_offset, wanted.epoch)


def sent(leader: Answers, replica: Position, end: int) -> tuple[list[tuple[int, int]], list[Position]]:
    reader = Asked(leader)
    chunks = reader.sent_to(replica, end=end)
    return [(each.level, each.offset) for chunk in chunks for each in levels_in(chunk)], reader.positions


def test_who_is_behind_is_sent_the_log_from_its_own_end_on_though_the_leader_has_a_snapshot_past_it() -> None:
    found, asked = sent(lambda _: answer(NO_OP, level(22), level(21), at=110), Position(110, 2), 112)
    assert found == [(22, 111), (21, 112)] and asked[0] == Position(110, 2)


def test_who_has_everything_is_sent_nothing_and_nobody_is_asked() -> None:
    assert sent(lambda _: answer(), Position(113, 3), 112) == ([], [])


def test_where_the_log_does_not_reach_back_the_newest_snapshot_is_sent() -> None:
    newest = SimpleNamespace(end_offset=150, epoch=3)

    def leader(position: Position) -> Any:
        return answer(NO_OP, at=150) if position.offset == 150 else answer(snapshot=newest)

    found, _ = sent(leader, Position(5, 1), 150)
    assert [number for number, _ in found] == [21]


def test_what_only_the_replica_s_log_has_is_cut_off_first() -> None:
    """It led once, and died with records that nobody has: its log ends past what is committed."""

    def leader(position: Position) -> Any:
        return answer(diverging=(108, 1)) if position.epoch == 2 else answer(level(22), at=108)

    found, asked = sent(leader, Position(110, 2), 108)
    assert found == [(22, 108)] and Position(108, 1) in asked


def test_a_leader_that_never_agrees_is_no_answer() -> None:
    with pytest.raises(LogTruncated):
        sent(lambda position: answer(diverging=(position.offset, position.epoch)), Position(110, 3), 120)


def test_a_record_of_an_aborted_transaction_counts_as_it_is_replayed() -> None:
    chunk = Chunk(b"".join(batch(at, each) for at, each in enumerate((BEGIN, level(22), ABORT))), up_to=10)
    assert [(each.level, each.offset) for each in levels_in(chunk)] == [(22, 1)]


def test_where_a_node_s_own_log_ends_and_in_which_epoch(tmp_path: Path) -> None:
    """The last batch tells, also where it is a leader's own control record."""
    log = tmp_path / "__cluster_metadata-0"
    log.mkdir()
    (log / f"{0:020d}.log").write_bytes(batch(0, level(21), epoch=4) + batch(1, NO_OP, NO_OP, epoch=6, control=True))
    disk = on_disk_of(103, scan.read_at_start(str(log)))
    assert (disk.end, disk.epoch) == (3, 6)
    (log / f"{9:020d}-{7:010d}.checkpoint").write_bytes(batch(0, level(21)))
    disk = on_disk_of(103, scan.read_at_start(str(log)))
    assert (disk.end, disk.epoch) == (9, 7)
