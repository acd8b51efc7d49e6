"""A controller that was just elected leads before it knows what is committed (its high watermark is -1): until then its
log tells no level. The newest snapshot holds a former one, and a log without a snapshot none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from feature_looks import host_module, kafka3, kafka4
from metadata_encoding import NO_OP, batch
from observations import SPEC, nobody
from test_feature_records import level

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, Answer
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.hosts.feature_state import on_disk_of
from kraft_runbook.io.kafka import feature_calls, metadata_quorum
from kraft_runbook.io.kafka.metadata_log_reader import MetadataLogReader
from kraft_runbook.io.kafka.metadata_quorum import QuorumDescription
from kraft_runbook.levels.change import plan_change
from kraft_runbook.metadata.canonical_rows import Fingerprints
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.metadata.log.log_chunks import Chunk
from kraft_runbook.parity.assignment_stores import topics_in_log
from kraft_runbook.parity.log_follower import LogFollower
from kraft_runbook.procedures import preview_levels
from kraft_runbook.procedures.change_level import Calls, Pace, change_level
from kraft_runbook.procedures.topic_margins import topic_margins

host_module("kafka_host")
scan = host_module("metadata_log_scan")


@pytest.fixture
def knows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The high watermarks that the leader shows, look by look, the last for ever. Its log holds level 25, then 26."""
    shown = [-1]

    def describe(*_: object, **__: object) -> QuorumDescription:
        return QuorumDescription(102, 5, shown.pop(0) if len(shown) > 1 else shown[0], ())

    def chunks(_: MetadataLogReader, *, end: int, start: Any = None, **__: object) -> Iterator[Chunk]:
        if end >= 0:
            yield Chunk(batch(0, level(25), level(26), NO_OP), up_to=end)

    monkeypatch.setattr(metadata_quorum, "describe_quorum", describe)
    monkeypatch.setattr(metadata_quorum.time, "sleep", lambda _: None)
    monkeypatch.setattr(MetadataLogReader, "chunks", chunks)
    return shown


def test_no_level_is_read_before_it_knows_what_is_committed(knows: list[int]) -> None:
    with pytest.raises(Unreachable, match=r"controller 102 leads the quorum and does not know yet what is committed"):
        feature_calls.read_levels(SPEC, secrets=nobody)
    knows[:] = [3]
    assert feature_calls.read_levels(SPEC, secrets=nobody)[1].levels == {METADATA_VERSION: 26}
    knows[:] = [-1, -1, 3]
    assert feature_calls.read_levels(SPEC, secrets=nobody)[0] == 102, "an election in between is waited for"


def test_nor_what_a_node_will_be_sent(knows: list[int], tmp_path: Path) -> None:
    """It would be nothing, and the node could be started on software that does not know what comes."""
    log = tmp_path / "__cluster_metadata-0"
    log.mkdir()
    (log / f"{0:020d}.log").write_bytes(batch(0, level(25), epoch=1))
    disk = on_disk_of(103, scan.read_at_start(str(log)))
    with pytest.raises(Unreachable, match="does not know yet"):
        feature_calls.levels_to_come(SPEC, [disk], secrets=nobody)


def test_nor_how_many_replicas_may_be_down(knows: list[int]) -> None:
    """It would be a cluster without a topic, in which nothing moves: a roll would be let go on."""
    with pytest.raises(Unreachable, match="does not know yet"):
        topic_margins(SPEC, secrets=nobody)
    knows[:] = [3]
    assert topic_margins(SPEC, secrets=nobody).moving.count == 0


def test_nor_the_records_of_the_cluster_nor_a_state_to_compare(knows: list[int]) -> None:
    """An empty quorum would lag nowhere, hold no broker, and have written all to ZooKeeper."""
    with pytest.raises(Unreachable, match="does not know yet"):
        metadata_quorum.read_cluster_records(SPEC, secrets=nobody)
    with pytest.raises(Unreachable, match="does not know yet"):
        LogFollower(SPEC, LogReplay(0, Fingerprints(b"1"), SPEC.kafka.ibp), secrets=nobody, looks=1).read_on()
    knows[:] = [3]
    assert metadata_quorum.read_cluster_records(SPEC, secrets=nobody).metadata_version == 26


def test_a_long_reader_waits_for_an_election_and_says_what_the_last_look_said(knows: list[int]) -> None:
    knows[:] = [-1, -1, 3]
    assert metadata_quorum.describe_elected(SPEC, secrets=nobody, looks=3, pause=0).high_watermark == 3
    knows[:] = [-1, -1, 3]
    with pytest.raises(Unreachable, match="does not know yet"):
        metadata_quorum.describe_elected(SPEC, secrets=nobody, looks=2, pause=0)


def test_nor_what_a_lower_level_would_delete_nor_an_assignment_to_compare(knows: list[int]) -> None:
    """Nothing would be lost, and no topic would be there."""
    lower = plan_change(kafka3(), METADATA_VERSION, 21, "16")
    assert lower.starred
    with pytest.raises(Unreachable, match="does not know yet"):
        preview_levels.losses_in_the_log(SPEC, lower, secrets=nobody)
    with pytest.raises(Unreachable, match="does not know yet"):
        topics_in_log(SPEC, secrets=nobody, salt=b"1", looks=1)


def test_a_change_waits_for_it_and_is_neither_refused_nor_taken_for_done(
    knows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, bool]] = []

    def update(
        _: object, leader: int, feature: str, wanted: int, *__: object, validate_only: bool, **___: object
    ) -> Answer:
        asked.append((leader, validate_only))
        return Answer(0, "", {feature: (0, "")})

    knows[:] = [-1, -1, 3]
    change = plan_change(kafka4(), METADATA_VERSION, 26, "25")
    assert change_level(SPEC, change, secrets=nobody, tell=print, calls=Calls(update=update), pace=Pace(apart=0))
    assert asked == [(102, True), (102, False)]
