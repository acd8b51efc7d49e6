"""The scheduled look at the quorum: one sample a run, bounded; a blocking check fails the run, a warning does not."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from in_run import run_in
from recording import RecordingCluster
from test_quorum_health import a_cold, c, kraft, q, series

from kraft_runbook.cluster.unread import Unread
from kraft_runbook.evidence.entries import make_entry
from kraft_runbook.evidence.store import read_records
from kraft_runbook.procedures.kept_samples import samples_file
from kraft_runbook.procedures.see_quorum import see_series
from kraft_runbook.quorum.history import draw
from kraft_runbook.quorum.look import KeptEpoch, QuorumLook
from kraft_runbook.quorum.samples import KEPT
from kraft_runbook.runbook.warm import Warmth
from kraft_runbook.steps.quorum_watch import watch_quorum
from kraft_runbook.steps.run import Failed
from kraft_runbook_airflow.base.journal import run_file_name


class Watched(RecordingCluster):
    """A cluster whose quorum shows this look."""

    def __init__(self, look: QuorumLook) -> None:
        super().__init__()
        self.look, self.before = look, None

    def ask(self, question: Any, *given: Any, **how: Any) -> Any:
        assert question is see_series
        self.before = how["before"]
        return series(self.look, before=self.before)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    return tmp_path


def watch(look: QuorumLook, run_id: str = "r") -> tuple[dict[str, Any], Watched]:
    context = {"ti": SimpleNamespace(dag_id="d", run_id=run_id, task_id="t"), "params": {}}
    cluster = Watched(look)
    return watch_quorum(run_in(context, cluster)), cluster


def kept(state: Path) -> list[dict[str, Any]]:
    return json.loads(samples_file(state, "lab").read_text())


def test_a_healthy_quorum_leaves_a_sample_in_the_state_directory_and_in_the_evidence(state: Path) -> None:
    assert watch(kraft())[0] == {"mode": "KRAFT", "warnings": 0}
    (sample,) = kept(state)
    assert (sample["leader"], sample["epoch"], sample["high_watermark"]) == (101, 7, 1000)
    assert sample["controllers"]["102"] == {
        "warm": "warm",
        "lag": 0,
        "applied_lag_ms": 431,
        "event_queue_p99_ms": 3.0,
        "commit_latency_ms": None,
    }
    (record,) = read_records(state / "evidence", run_file_name("d", "r"))
    assert record.body["controlled_by"] == "KRAFT" and "phase" not in record.body, "who controls is no phase"
    assert make_entry(record, trusted=True).summary.endswith("checks pass; controlled by KRAFT")
    assert record.body["checks"]["sample"] == sample  # type: ignore[index]


def test_a_cold_controller_fails_the_run_which_says_what_to_do_and_keeps_its_sample(state: Path) -> None:
    with pytest.raises(Failed, match=r"KRB-QRM-003 .*controller 102 is cold: .* What to do: wait until"):
        watch(c(102, warm=Warmth.COLD, metrics=a_cold(100, 70_661)))
    assert kept(state)[0]["controllers"]["102"]["warm"] == "cold"


def test_an_epoch_that_rose_by_two_since_the_run_before_is_a_warning_and_fails_nothing(state: Path) -> None:
    watch(kraft(), "one")
    told, cluster = watch(q(leader_epoch=9), "two")
    assert cluster.before == KeptEpoch(7, kraft().looked_at + timedelta(seconds=4))
    assert told["warnings"] == 1
    assert [each["epoch"] for each in kept(state)] == [7, 9]


def test_a_week_of_samples_is_kept_and_no_more(state: Path) -> None:
    watch(kraft())
    (sample,) = kept(state)
    samples_file(state, "lab").write_text(json.dumps([sample | {"epoch": n} for n in range(KEPT)]))
    watch(q(leader_epoch=KEPT))
    assert [each["epoch"] for each in kept(state)] == list(range(1, KEPT + 1))


@pytest.mark.parametrize("spoilt", ["", "{}", "[1, null]", '[{"epoch": "x", "at": 3}, {"epoch": 3, "at": "noon"}]'])
def test_samples_that_can_t_be_read_count_as_none(spoilt: str, state: Path) -> None:
    watch(kraft())
    samples_file(state, "lab").write_text(spoilt)
    _, cluster = watch(kraft())
    assert cluster.before is None
    assert kept(state)[-1]["epoch"] == 7


def test_where_nothing_could_be_read_the_sample_has_none_and_the_run_fails(state: Path) -> None:
    unread = Unread("a test did not read it")
    dark = {i: replace(each, metrics=unread, gauges=unread, warm=unread) for i, each in kraft().controllers.items()}
    with pytest.raises(Failed, match="KRB-QRM-001"):
        watch(replace(kraft(), quorum=unread, controllers=dark))
    (sample,) = kept(state)
    assert (sample["epoch"], sample["controllers"]["102"]["warm"]) == (None, None)


def test_epochs_lag_and_latency_are_drawn_with_a_gap_where_nothing_was_read(state: Path) -> None:
    watch(kraft())
    (sample,) = kept(state)
    hour = [sample | {"at": f"2026-03-04T10:{n:02}:00+00:00", "epoch": None if n == 20 else 7 + n} for n in range(60)]
    samples_file(state, "lab").write_text(json.dumps(hour))
    watch(q(leader_epoch=99))
    drawn = ElementTree.fromstring(samples_file(state, "lab").with_suffix(".svg").read_text())
    name = "{http://www.w3.org/2000/svg}"
    lines = [len((each.get("points") or "").split()) for each in drawn.iter(f"{name}polyline")]
    assert lines[:2] == [20, 40], "the epochs before and behind the look that saw none"
    assert lines[2:4] == [61, 61]
    assert "99" in [each.text for each in drawn.iter(f"{name}text")]
    assert "commit latency, ms: not read" in draw([{"at": "2026-03-04T10:00:00+00:00", "epoch": 7}])
    assert ElementTree.fromstring(draw([{"at": "noon"}, {}])).findtext(f"{name}text") == "no samples"


def test_a_dry_run_keeps_no_sample(state: Path) -> None:
    context = {"ti": SimpleNamespace(dag_id="d", run_id="r", task_id="t"), "params": {}}
    cluster = Watched(kraft())
    cluster.rehearses = True
    watch_quorum(run_in(context, cluster))
    assert not samples_file(state, "lab").exists()
