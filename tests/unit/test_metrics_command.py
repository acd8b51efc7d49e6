"""The metrics for Prometheus: parsed by its own parser, each with a help text; what is unread has no sample."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from feature_looks import kafka4
from feature_looks import look as look_at_levels
from observations import (
    SPEC,
    WHY,
    Spoil,
    a_controller,
    broker,
    dual_writing,
    gauges,
    observation,
    part,
    with_quorum,
    zookeeper,
)
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from test_quorum_health import a_cold, c, kraft, series

from kraft_runbook.cli import metrics_command
from kraft_runbook.cli.metrics_command import write_textfile
from kraft_runbook.cli.observation_text import observation_text
from kraft_runbook.cli.outputs import ObserveOutput
from kraft_runbook.cluster.assignment import Ongoing, TopicPartition
from kraft_runbook.cluster.feature_levels import KRAFT_VERSION
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.eligibility import TOLD, Reason
from kraft_runbook.quorum.look import Series
from kraft_runbook.runbook.warm import Warmth

Samples = dict[tuple[str, ...], float]
MOVING = {TopicPartition("orders", 0): Ongoing((1, 2, 3), adding=(3,), removing=(1,))}


def exposition(seen: ClusterObservation, looks: Series, spec: ClusterSpec) -> str:
    return metrics_command.exposition(seen, looks, spec, moving=MOVING, earlier=seen)


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


def took(milliseconds: float | None) -> Spoil:
    """The active controller's writes to ZooKeeper took so long."""

    def spoil(seen: ClusterObservation) -> ClusterObservation:
        active = seen.active_controller
        assert active is not None and was_read(active.metrics)
        return a_controller(active.id, metrics=replace(active.metrics, zk_write_delta_p99_ms=milliseconds))(seen)

    return spoil


def test_how_long_a_write_to_zookeeper_takes_is_shown_in_dual_write_alone() -> None:
    slow = took(41.0)(observation(Phase.HYBRID))
    assert parsed(exposition(slow, series(kraft()), SPEC))["zookeeper_write_p99_seconds"] == {(): 0.041}
    assert "99 % of the changes took less than 41 ms to write to ZooKeeper" in observation_text(slow)
    assert ObserveOutput.of(detect_phase(slow), slow).zookeeper_write_ms == 41.0
    for seen in (took(None)(observation(Phase.HYBRID)), took(41.0)(observation(Phase.PRE_MIGRATION))):
        assert parsed(exposition(seen, series(kraft()), SPEC))["zookeeper_write_p99_seconds"] == {}
        assert "of the changes" not in observation_text(seen)
        assert ObserveOutput.of(detect_phase(seen), seen).zookeeper_write_ms is None


def test_every_feature_s_level_is_shown_and_that_of_kraft_version_by_the_leader() -> None:
    """A FeatureLevelRecord of kraft.version, as 3.9 writes one, does nothing (KAFKA-18979)."""
    seen = look_at_levels(kafka4(), 25, levels={"group.version": 1, KRAFT_VERSION: 1})
    leader = seen.controllers[101]
    assert was_read(leader)
    static = replace(leader, finalized={k: v for k, v in leader.finalized.items() if k != KRAFT_VERSION})
    for shown, level in ((seen, 1.0), (replace(seen, controllers={**seen.controllers, 101: static}), 0.0)):
        looks = replace(series(kraft()), registrations=shown)
        found = parsed(exposition(observation(Phase.FINALIZED), looks, SPEC))["feature_level"]
        assert found[("metadata.version",)] == 25.0
        assert (found[("group.version",)], found[("kraft.version",)]) == (1.0, level)
        assert found[("transaction.version",)] == found[("eligible.leader.replicas.version",)] == 0.0


def test_levels_that_were_not_read_have_no_sample() -> None:
    seen = look_at_levels(kafka4(), 25)
    for registrations in (WHY, replace(seen, log=WHY), replace(seen, log=WHY, controllers=dict.fromkeys((101,), WHY))):
        looks = replace(series(kraft()), registrations=registrations)
        assert parsed(exposition(observation(Phase.FINALIZED), looks, SPEC))["feature_level"] == {}
    unled = replace(series(kraft()), registrations=replace(seen, leader_id=WHY))
    assert ("kraft.version",) not in parsed(exposition(observation(Phase.FINALIZED), unled, SPEC))["feature_level"]


def test_the_way_back_is_said_closed_once_it_is_final() -> None:
    final = parsed(exposition(observation(Phase.FINALIZED), series(kraft()), SPEC))
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


def test_the_gates_that_lead_on_say_what_their_checks_say_and_name_each_objection() -> None:
    seen = broker(2, running=False)(observation(Phase.ZOOKEEPER))
    found = parsed(exposition(seen, series(kraft()), SPEC))
    assert found["gate"][("start", "FAIL")] == 1.0
    assert sum(found["gate"].values()) == 1.0
    assert ("KRB-PRE-004", "start") in found["gate_objection"]
    final = parsed(exposition(observation(Phase.FINALIZED), series(kraft()), SPEC))
    assert final["gate"] == final["gate_objection"] == {}


def test_the_gate_of_finalization_names_the_controller_s_check() -> None:
    seen = gauges(103, last_applied_offset=100, last_applied_lag_ms=70_661)(observation(Phase.DUAL_WRITE))
    found = parsed(exposition(seen, series(kraft()), SPEC))
    assert ("KRB-QRM-003", "finalize") in found["gate_objection"]


def test_what_moves_is_counted_by_broker_and_unread_moves_have_no_sample() -> None:
    found = parsed(exposition(observation(Phase.DUAL_WRITE), series(kraft()), SPEC))
    assert found["reassigning_partitions"] == {(): 1.0}
    assert found["replicas_being_added"] == {("1",): 0.0, ("2",): 0.0, ("3",): 1.0}
    assert found["replicas_being_removed"][("1",)] == 1.0
    dark = parsed(metrics_command.exposition(observation(Phase.DUAL_WRITE), series(kraft()), SPEC, moving=WHY))
    assert dark["reassigning_partitions"] == dark["replicas_being_added"] == {}


@pytest.mark.parametrize(
    ("phase", "spoil", "expected"),
    [
        (Phase.DUAL_WRITE, broker(2, running=False), {("2", "down", "broker")}),
        (Phase.DUAL_WRITE, broker(2, mode=WHY), {("2", "unread", "broker")}),
        (Phase.DUAL_WRITE, broker(2, software_version="3.6.1"), {("2", "software", "broker")}),
        (Phase.HYBRID, a_controller(102, mode=ControllerMode.KRAFT), {("102", "without_flag", "controller")}),
        (Phase.ZOOKEEPER, broker(1), {(str(i), "not_in_migration_mode", "broker") for i in SPEC.broker_ids}),
        (Phase.FINALIZED, broker(2, running=False), set()),
    ],
)
def test_who_is_not_ready_for_the_migration_is_named_with_the_reason(
    phase: Phase, spoil: Spoil, expected: set[tuple[str, ...]]
) -> None:
    found = parsed(exposition(spoil(observation(phase)), series(kraft()), SPEC))
    assert found["not_eligible"].keys() == expected


def test_observe_shows_who_is_not_ready_and_how_far_zookeeper_is_behind() -> None:
    seen = observation(Phase.HYBRID)
    end, migration = seen.quorum.high_watermark, seen.zookeeper.migration  # type: ignore[union-attr]
    late = zookeeper(migration=replace(migration, kraft_metadata_offset=end - 8))(seen)  # type: ignore[type-var]
    text = observation_text(a_controller(102, mode=ControllerMode.KRAFT)(late)).splitlines()
    assert "ZooKeeper is 7 records behind the quorum" in text
    assert "controller 102 is not ready for the migration: it runs without zookeeper.metadata.migration.enable" in text
    for phase in (Phase.ZOOKEEPER, Phase.FINALIZED):
        quiet = observation_text(observation(phase))
        assert "not ready" not in quiet and "behind" not in quiet
    assert TOLD.keys() == set(Reason)


def test_a_broker_that_the_quorum_does_not_know_is_not_registered() -> None:
    whole = observation(Phase.DUAL_WRITE)
    assert was_read(whole.quorum)
    left = {i: each for i, each in whole.quorum.registrations.items() if i != 3}
    found = parsed(exposition(with_quorum(registrations=left)(whole), series(kraft()), SPEC))
    assert found["not_eligible"].keys() == {("3", "not_registered", "broker")}


def test_a_textfile_can_be_read_by_another_user_and_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "kraft_runbook.prom"
    file.write_text("old")
    write_textfile(file, "new\n")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new\n", 0o644)
    assert list(tmp_path.iterdir()) == [file]
