"""The proven state on disk: it reads back, it is private, and half of it is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kraft_runbook.errors import RunbookError
from kraft_runbook.metadata.entities import Kind, Row
from kraft_runbook.spark.baseline import BaselineHead, read_head, read_rows, write_baseline

HEAD = BaselineHead("c", "the-id", 5, 9, 1, "digest", b"salt")
ROWS = [Row(Kind.TOPIC, '["a"]', '{"topic_id":"ü"}'), Row(Kind.ACL, '["b"]', "{}")]


def test_a_baseline_reads_back_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "base"
    write_baseline(path, HEAD, [*ROWS, Row(Kind.BROKER, "[1]", "{}"), Row(Kind.CONTROLLER, '["/controller"]', "{}")])
    assert read_head(path) == HEAD
    assert list(read_rows(path)) == ROWS  # hybrid brokers and controller znodes end with ZooKeeper
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["base"]


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
