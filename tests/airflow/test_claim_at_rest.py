"""A task's end: the claim says that it acts no more, so that groups of other runs do not wait for it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from observations import SPEC

from kraft_runbook.errors import Unreachable
from kraft_runbook_airflow.base import claims

CLUSTER: Any = SimpleNamespace(spec=SPEC, secrets=lambda _: "")
CONTEXT: Any = {
    "ti": SimpleNamespace(task_id="roll.broker_1.restart"),
    "dag_run": SimpleNamespace(dag_id="d", run_id="r", run_after=datetime(2026, 3, 4, tzinfo=UTC)),
}


@pytest.mark.parametrize(("failures", "seconds", "says"), [(2, 60.0, ""), (9, 0.0, "still says that this task acts")])
def test_what_fails_is_tried_again_for_some_seconds(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    failures: int,
    seconds: float,
    says: str,
) -> None:
    tried: list[str] = []

    def rest_cluster(spec: Any, mine: Any, **_: Any) -> None:
        tried.append(mine.acting)
        if len(tried) <= failures:
            raise Unreachable("ZooKeeper is away", way_out="start it")

    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    claims.rest(CONTEXT, CLUSTER, within=seconds, again=0.0, say=rest_cluster)
    assert tried == ["roll.broker_1.restart"] * (failures + 1 if not says else 1)
    assert says in caplog.text and bool(says) == bool(caplog.text)
