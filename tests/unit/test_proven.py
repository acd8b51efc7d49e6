"""A proven state on disk is the log up to its offset: reading on from it tells of every touched key what reading the
whole log tells.
"""

from __future__ import annotations

import random
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from metadata_encoding import change, config, log, partition, record, topic
from observations import SECRETS, SPEC
from test_metadata_columns import PRINTS, chunks_of, some_log

from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.metadata.canonical_rows import Kind, Row
from kraft_runbook.metadata.image.log_replay import LogReplay, StateAt
from kraft_runbook.metadata.log.log_chunks import Chunk
from kraft_runbook.metadata.log.record_schemas import RecordType
from kraft_runbook.parity.parity_report import Verdict
from kraft_runbook.parity.proven import Head, read_head, read_rows, read_state, write_proven
from kraft_runbook.parity.since import compare_since

HEAD = Head("c", "the-id", 5, 9, 11, 1, "digest", b"salt", datetime(2026, 1, 2, tzinfo=UTC), 3)
ROWS = [Row(Kind.TOPIC, '["a"]', '{"topic_id":"ü"}'), Row(Kind.ACL, '["b"]', "{}")]


@pytest.mark.parametrize("seed", range(60))
def test_reading_on_from_it_is_reading_the_whole_log(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    values = list(some_log(draw, 120, transactions=False))
    offset = draw.randrange(len(values))
    chunks = chunks_of(values, draw)
    whole = LogReplay(offset, PRINTS, "3.9")
    for chunk in chunks:
        whole.apply(chunk)
    write_proven(tmp_path / "proven", replace(HEAD, migration_offset=offset), [], whole.at_start)
    resumed = LogReplay.resumed(read_state(tmp_path / "proven"), offset, PRINTS, "3.9")
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


def empty_state() -> StateAt:
    replay = LogReplay(0, PRINTS, "3.9")
    return replay.at_start


def test_it_reads_back_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "proven"
    rows = [*ROWS, Row(Kind.BROKER, "[1]", "{}"), Row(Kind.CONTROLLER, '["/controller"]', "{}")]
    write_proven(path, HEAD, rows, empty_state())
    assert read_head(path) == HEAD
    assert list(read_rows(path)) == ROWS  # hybrid brokers and controller znodes end with ZooKeeper
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["proven"]


def test_no_secret_of_the_log_is_in_it(tmp_path: Path) -> None:
    replay = LogReplay(9, PRINTS, "3.9")
    keys = {"salt": b"salt-of-it", "stored_key": b"stored-key", "server_key": b"server-key"}
    scram = record(RecordType.USER_SCRAM_CREDENTIAL, name="alice", mechanism=1, iterations=4096, **keys)
    token = record(
        RecordType.DELEGATION_TOKEN,
        token_id="token-id",
        owner="User:alice",
        requester="User:alice",
        renewers=[],
        issue_timestamp=1,
        max_timestamp=3,
        expiration_timestamp=2,
    )
    passwords = [config("ssl.key.password", "the-password", "1", 4), config("sasl.jaas.config", "the-login", "a")]
    replay.apply(Chunk(log(topic(), partition(), scram, token, *passwords), up_to=9))
    write_proven(tmp_path / "proven", HEAD, [], replay.at_start)
    with zipfile.ZipFile(tmp_path / "proven") as archive:
        held = b"".join(archive.read(name) for name in archive.namelist())
    for secret in (b"salt-of-it", b"stored-key", b"server-key", b"token-id", b"the-password", b"the-login", b"alice"):
        assert secret not in held


def test_a_missing_a_foreign_and_a_truncated_file_are_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(RunbookError, match="there is no proven state at"):
        read_head(tmp_path / "none")
    write_proven(tmp_path / "whole", HEAD, ROWS, empty_state())
    whole = (tmp_path / "whole").read_bytes()
    for data in (b"", b"PK", b"{}" * 50, whole[: len(whole) // 2]):
        (tmp_path / "other").write_bytes(data)
        for read in (read_head, read_state, lambda path: list(read_rows(path))):
            with pytest.raises(RunbookError, match="not a whole proven state") as refused:
                read(tmp_path / "other")
            assert "full comparison" in refused.value.way_out
    write_proven(tmp_path / "newer", HEAD, ROWS, empty_state(), version=99)
    with pytest.raises(RunbookError, match="another version wrote it"):
        read_head(tmp_path / "newer")


@pytest.mark.parametrize(("hours", "refused"), [(5.9, False), (6.1, True)])
def test_a_proof_older_than_six_hours_proves_nothing_any_more(hours: float, refused: bool, tmp_path: Path) -> None:
    """Before anything is read."""

    def no_network(*_: Any, **__: Any) -> Any:
        raise Unreachable("nobody is asked here", way_out="")

    at = datetime.now(UTC) - timedelta(hours=hours)
    write_proven(tmp_path / "proven", replace(HEAD, cluster="lab", proven_at=at), ROWS, empty_state())
    report = compare_since(SPEC, tmp_path / "proven", secrets=environment_secrets(SECRETS), follow=no_network)
    assert report.verdict is Verdict.INCONCLUSIVE
    told = " ".join(f"{each.problem} {each.way_out}" for each in report.obstacles)
    assert ("more than 6:00:00 ago" in told) == refused == ("full comparison" in told)
    assert ("nobody is asked here" in told) != refused


def test_a_proof_of_another_cluster_is_an_error(tmp_path: Path) -> None:
    write_proven(tmp_path / "proven", replace(HEAD, cluster="other"), ROWS, empty_state())
    with pytest.raises(RunbookError, match="other"):
        compare_since(SPEC, tmp_path / "proven", secrets=environment_secrets(SECRETS))
