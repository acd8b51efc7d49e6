"""The proven state on disk: it reads back, it is private, and half of it is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kraft_runbook.errors import RunbookError
from kraft_runbook.metadata.canonical_rows import Kind, Row
from kraft_runbook.parity.baseline import BaselineHead, read_head, read_rows, write_baseline

HEAD = BaselineHead("c", "the-id", 5, 9, 11, 1, "digest", b"salt")
ROWS = [Row(Kind.TOPIC, '["a"]', '{"topic_id":"ü"}'), Row(Kind.ACL, '["b"]', "{}")]


def test_a_baseline_reads_back_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "base"
    write_baseline(path, HEAD, [*ROWS, Row(Kind.BROKER, "[1]", "{}"), Row(Kind.CONTROLLER, '["/controller"]', "{}")])
    assert read_head(path) == HEAD
    assert list(read_rows(path)) == ROWS  # hybrid brokers and controller znodes end with ZooKeeper
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["base"]


def test_a_baseline_of_the_first_format_is_still_of_use(tmp_path: Path) -> None:
    head = {
        "format": 1,
        "cluster": "c",
        "cluster_id": "i",
        "migration_offset": 5,
        "end_offset": 9,
        "migration_epoch": 1,
        "digest": "d",
        "salt": "00",
    }
    with gzip.open(tmp_path / "old", "wt") as file:
        file.write("\n".join([json.dumps(head), json.dumps(["ACL", '["b"]', "{}"]), json.dumps({"end": True})]))
    assert read_head(tmp_path / "old").last_offset == 9
    assert list(read_rows(tmp_path / "old")) == ROWS[1:]


def test_a_missing_a_foreign_and_a_truncated_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunbookError, match="there is no baseline"):
        read_head(tmp_path / "none")
    (tmp_path / "foreign").write_text("{}")
    with pytest.raises(RunbookError, match="not a whole baseline"):
        read_head(tmp_path / "foreign")
    write_baseline(tmp_path / "base", HEAD, ROWS)
    lines = gzip.decompress((tmp_path / "base").read_bytes()).decode().splitlines()
    with gzip.open(tmp_path / "short", "wt") as file:
        file.write("\n".join(lines[:-1]) + "\n")
    with pytest.raises(RunbookError, match="its end is missing"):
        list(read_rows(tmp_path / "short"))
