"""A proven state on disk is the log up to its offset: reading on from it tells of every touched key what reading the
whole log tells.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from metadata_encoding import change, log, partition, topic
from observations import SECRETS, SPEC
from test_metadata_columns import PRINTS, chunks_of, some_log

from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.metadata.image.image import MetadataImage
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.metadata.log.log_chunks import Chunk
from kraft_runbook.parity import recheck as rechecking
from kraft_runbook.parity.parity_report import Verdict
from kraft_runbook.parity.proven_state import ProvenHead, dump, load


@pytest.mark.parametrize("seed", range(60))
def test_reading_on_from_it_is_reading_the_whole_log(seed: int) -> None:
    draw = random.Random(seed)
    values = list(some_log(draw, 120, transactions=False))
    offset = draw.randrange(len(values))
    chunks = chunks_of(values, draw)
    proven, whole = LogReplay(offset, PRINTS, "3.9"), LogReplay(offset, PRINTS, "3.9")
    for chunk in chunks:
        whole.apply(chunk)
        if chunk.since <= offset:
            proven.apply(Chunk(chunk.data, since=chunk.since, up_to=offset))
    head = ProvenHead("c", offset, 1, "digest", datetime.now(UTC))
    image = MetadataImage(PRINTS, "3.9")
    assert load(dump(head, proven.image), image) == head
    resumed = LogReplay.resumed(image, offset)
    for chunk in chunks:
        resumed.apply(Chunk(chunk.data, since=max(chunk.since, offset + 1), up_to=chunk.up_to))
    assert resumed.touched == whole.touched
    later = draw.randrange(offset, len(values))
    expected = {
        str(v) for v in whole.versions_of(set(whole.touched), later) if v.kind.is_of_a_topic or v.offset > offset
    }
    assert {str(v) for v in resumed.versions_of(set(whole.touched), later)} == expected
    last = {(v.kind, v.key): v.value for v in whole.versions_of(set(whole.touched)) if v.last}
    assert {(v.kind, v.key): v.value for v in resumed.versions_of(set(whole.touched), 10**6) if v.last} == last


def test_at_a_later_offset_only_what_a_key_says_from_there_on_counts() -> None:
    replay = LogReplay(1, PRINTS, "3.9")
    replay.apply(Chunk(log(topic(), partition(), change(isr=(1,)), change(isr=(2,)), change(isr=(3,))), up_to=9))
    keys = set(replay.touched)
    told = {
        offset: [v.offset for v in replay.versions_of(keys, offset) if "isr" in (v.value or "")]
        for offset in (1, 2, 3, 4, 9)
    }
    assert told == {1: [4, 3, 2, 1], 2: [4, 3, 2], 3: [4, 3], 4: [4], 9: [4]}


def test_bytes_that_are_no_proven_state_are_refused_with_the_way_out() -> None:
    for data in (b"", b"PK", b"{}" * 50):
        with pytest.raises(RunbookError, match="not a proven state") as refused:
            load(data, MetadataImage(PRINTS, "3.9"))
        assert "full comparison" in refused.value.way_out


@pytest.mark.parametrize(("hours", "refused"), [(5.9, False), (6.1, True)])
def test_a_proof_older_than_six_hours_proves_nothing_any_more(
    hours: float, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is read."""

    def no_network(*_: Any, **__: Any) -> Any:
        raise Unreachable("nobody is asked here", way_out="")

    monkeypatch.setattr(rechecking, "ZookeeperReader", no_network)
    replay = LogReplay(3, PRINTS, "3.9")
    for chunk in chunks_of(list(some_log(random.Random(1), 4, transactions=False)), random.Random(1)):
        replay.apply(chunk)
    at = datetime.now(UTC) - timedelta(hours=hours)
    (tmp_path / "proven").write_bytes(dump(ProvenHead("lab", 3, 1, "digest", at), replay.image))
    report = rechecking.recheck(SPEC, tmp_path / "proven", secrets=environment_secrets(SECRETS))
    assert report.verdict is Verdict.INCONCLUSIVE
    (obstacle,) = report.obstacles
    assert ("more than 6:00:00 ago" in obstacle.problem) == refused
    assert ("run a full comparison" in obstacle.way_out) == refused


def test_a_proof_of_another_cluster_or_none_is_an_error(tmp_path: Path) -> None:
    secrets = environment_secrets(SECRETS)
    with pytest.raises(RunbookError, match="there is no proven state"):
        rechecking.recheck(SPEC, tmp_path / "proven", secrets=secrets)
    replay = LogReplay(3, PRINTS, "3.9")
    for chunk in chunks_of(list(some_log(random.Random(1), 4, transactions=False)), random.Random(1)):
        replay.apply(chunk)
    (tmp_path / "proven").write_bytes(dump(ProvenHead("other", 3, 1, "d", datetime.now(UTC)), replay.image))
    with pytest.raises(RunbookError, match="is of cluster other, not lab"):
        rechecking.recheck(SPEC, tmp_path / "proven", secrets=secrets)
