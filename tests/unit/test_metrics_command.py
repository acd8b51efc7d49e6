"""The metrics for Prometheus: parsed by its own parser, each with a help text; what is unread has no sample."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from observations import SPEC, WHY, broker, dual_writing, observation, part, zookeeper
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from test_quorum_health import a_cold, c, kraft, series

from kraft_runbook.cli.metrics_command import exposition, write_textfile
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.runbook.warm import Warmth

Samples = dict[tuple[str, ...], float]


def parsed(text: str) -> dict[str, Samples]:
    found: dict[str, Samples] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation, family.name
        assert family.type == "gauge"
        found[family.name.removeprefix("kraft_runbook_")] = {
            tuple(v for k, v in sample.labels.items() if k != "cluster"): sample.value for sample in family.samples
        }
        assert {sample.labels["cluster"] for sample in family.samples} <= {SPEC.name}
    return found


def test_a_cluster_in_dual_write_with_a_cold_controller() -> None:
    seen = dual_writing(observation(Phase.DUAL_WRITE), 3)
    cold = c(102, warm=Warmth.COLD, metrics=a_cold(100, 70_661))
    found = parsed(exposition(seen, series(cold), SPEC))
    assert [k for k, v in found["phase"].items() if v] == [("DUAL_WRITE",)]
    assert found["phase"].keys() == {(each.value,) for each in Phase}
    assert (found["way_back_open"], found["metadata_version"]) == ({(): 1.0}, {(): 21.0})
    assert {k for k, v in found["broker_mode"].items() if v} == {(str(i), "kraft") for i in SPEC.broker_ids}
    assert (found["quorum_leader"], found["quorum_epoch"], found["quorum_high_watermark"]) == (
        {(): 101.0},
        {(): 7.0},
        {(): 1000.0},
    )
    assert found["voter_lag_records"] == {("101",): 0.0, ("102",): 0.0, ("103",): 0.0}
    assert found["voter_seconds_since_fetch"][("102",)] == 0.2
    assert found["controller_warm"] == {("101",): 1.0, ("102",): 0.0, ("103",): 1.0}
    assert {k: v for k, v in found["quorum_check"].items() if k[0] == "KRB-QRM-003"} == {
        ("KRB-QRM-003", "BLOCKING", "PASS"): 0.0,
        ("KRB-QRM-003", "BLOCKING", "FAIL"): 1.0,
        ("KRB-QRM-003", "BLOCKING", "UNKNOWN"): 0.0,
    }


def test_how_far_zookeeper_is_behind_is_counted_in_dual_write_alone() -> None:
    seen = observation(Phase.HYBRID)
    end, migration = seen.quorum.high_watermark, seen.zookeeper.migration  # type: ignore[union-attr]
    late = zookeeper(migration=replace(migration, kraft_metadata_offset=end - 8))(seen)  # type: ignore[type-var]
    assert parsed(exposition(late, series(kraft()), SPEC))["zookeeper_write_behind_records"] == {(): 7.0}
    final = parsed(exposition(observation(Phase.FINALIZED), series(kraft()), SPEC))
    assert final["zookeeper_write_behind_records"] == {}
    assert final["way_back_open"] == {(): 0.0}


def test_what_was_not_read_has_no_sample_and_is_counted() -> None:
    seen = part(quorum=WHY)(broker(2, mode=WHY)(observation(Phase.DUAL_WRITE)))
    dark = replace(kraft(), quorum=WHY, controllers={i: replace(e, warm=WHY) for i, e in kraft().controllers.items()})
    found = parsed(exposition(seen, series(dark), SPEC))
    for name in ("quorum_leader", "quorum_epoch", "controller_warm", "voter_lag_records", "metadata_version"):
        assert found[name] == {}, name
    assert not [k for k in found["broker_mode"] if k[0] == "2"]
    assert found["broker_mode"][("1", BrokerMode.KRAFT.value)] == 1.0
    assert found["unread_parts"][()] >= 2


@pytest.mark.parametrize("phase", [each for each in Phase if each is not Phase.UNKNOWN])
def test_every_phase_can_be_told(phase: Phase) -> None:
    found = parsed(exposition(observation(phase), series(kraft()), SPEC))
    assert sum(found["phase"].values()) == 1.0
    assert found["phase"][(phase.value,)] == 1.0


def test_a_textfile_can_be_read_by_another_user_and_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "kraft_runbook.prom"
    file.write_text("old")
    write_textfile(file, "new\n")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new\n", 0o644)
    assert list(tmp_path.iterdir()) == [file]
