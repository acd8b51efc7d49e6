"""Three nodes that are broker and controller in one process, and a broker alone, born in KRaft: restarted, brought to
Kafka 4 and to its level under a real Airflow and a workload, each process once a roll. The tests build on one another,
in this order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import on_kafka4
import pytest
from labs import Lab, described_in, up
from stage import Stage, a_stage, no_acknowledged_record_is_lost

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.feature_levels import METADATA_VERSION, LevelsInLog
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.evidence.kinds import Played, of_kind
from kraft_runbook.evidence.store import evidence_directory, read_records, run_name
from kraft_runbook.procedures.observe import observe
from lab import ROOT, lifecycle
from lab.installation import kafka4_version
from lab.layout import starts

RESTART, UP, BACK = "rolling_restart__lab", "upgrade_software__lab", "downgrade_software__lab"
LEVELS, CARE, DRILL = "upgrade_features__lab", "quorum_care__lab", "quorum_drill__lab"
pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with up(
        described_in(on_kafka4.with_target("both", tmp_path_factory.mktemp("files") / "include" / "clusters"))
    ) as found:
        yield found


@pytest.fixture(scope="module")
def stage(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with a_stage(lab, tmp_path_factory.mktemp("airflow"), clusters=lab.clusters) as opened:
        yield opened


def order_of(stage: Stage, dag: str, run_id: str) -> list[int]:
    """The nodes in the order in which the run restarted them, by its evidence."""
    home = evidence_directory({"KRAFT_RUNBOOK_STATE": str(stage.airflow.home / "kraft-runbook")})
    found = of_kind(read_records(home, run_name(dag, run_id)), Played)
    return [told.node_id for _, told in found if told.node_id is not None]


def leads(lab: Lab) -> int:
    return on_kafka4.leader(lab)


def restarts(lab: Lab, before: dict[str, int]) -> dict[str, int]:
    return {service: count - before[service] for service, count in starts(lab.spec).items()}


def test_a_restart_takes_each_process_once_the_active_one_last_of_those_that_vote(
    stage: Stage, lab: Lab, tmp_path: Path
) -> None:
    seen = observe(lab.spec, secrets=lab.secrets)
    assert detect_phase(seen).phase is Phase.KRAFT
    assert seen.brokers.keys() == {1, 2, 3, 4} and seen.controllers.keys() == {1, 2, 3}
    before, active = starts(lab.spec), leads(lab)
    with no_acknowledged_record_is_lost(lab, tmp_path / "account.json"):
        run_id = stage.start(RESTART)
        assert stage.run_to_its_end(RESTART, run_id) == "success", stage.failures(RESTART, run_id)
    assert restarts(lab, before) == {"node-1": 1, "node-2": 1, "node-3": 1, "node-4": 1}
    order = order_of(stage, RESTART, run_id)
    others = [each for each in (1, 2, 3) if each != active]
    assert order == [*others, active, 4], (order, active)


@pytest.mark.parametrize(("nodes", "broker_alone"), [("controllers", 0), ("brokers", 1)])
def test_a_run_for_one_role_takes_those_that_have_both(stage: Stage, lab: Lab, nodes: str, broker_alone: int) -> None:
    before = starts(lab.spec)
    run_id = stage.start(RESTART, nodes=nodes)
    assert stage.run_to_its_end(RESTART, run_id) == "success", stage.failures(RESTART, run_id)
    assert restarts(lab, before) == {"node-1": 1, "node-2": 1, "node-3": 1, "node-4": broker_alone}


def test_what_is_made_for_one_role_is_refused_by_name_before_anything_changes(stage: Stage, lab: Lab) -> None:
    before = starts(lab.spec)
    for dag, given, words in (
        (CARE, {"care": "move the leadership"}, "has both roles in one process, and care of the quorum"),
        (DRILL, {"fault": "controller failover"}, "has both roles in one process, and a drill"),
    ):
        run_id = stage.start(dag, **given)
        assert stage.run_to_its_end(dag, run_id) == "failed"
        assert words in stage.failures(dag, run_id)
    assert starts(lab.spec) == before


def test_the_software_roll_starts_each_process_once_and_the_level_rises(stage: Stage, lab: Lab, tmp_path: Path) -> None:
    before, active = starts(lab.spec), leads(lab)
    with no_acknowledged_record_is_lost(lab, tmp_path / "account.json"):
        run_id = stage.start(UP)
        assert stage.run_to_its_end(UP, run_id) == "success", stage.failures(UP, run_id)
        order = order_of(stage, UP, run_id)
        again = order[4:] if active == order[2] else order  # a lost registration costs one more restart
        assert order[:2] == [each for each in (1, 2, 3) if each != active], (order, active)
        found = restarts(lab, before)
        assert all(count in (1, 1 + again.count(int(name[-1]))) for name, count in found.items()), (found, order)
        assert on_kafka4.versions(lab) == {kafka4_version()}
        raised = stage.start(LEVELS, feature=METADATA_VERSION, level="4.0")
        stage.wait(LEVELS, raised, "gate_level.approve", {"awaiting_input"})
        body = stage.client.gate(LEVELS, raised, "gate_level.approve")["body"]
        assert "the quorum's leader accepts it" in body
        assert stage.run_to_its_end(LEVELS, raised) == "success", stage.failures(LEVELS, raised)
    log = on_kafka4.look(lab).log
    assert isinstance(log, LevelsInLog) and log.levels[METADATA_VERSION] == 25


def test_the_lab_comes_up_on_kafka_4_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    plain = described_in(ROOT / "lab" / "both")
    place = {**plain.place, "KRB_LAB_KAFKA": kafka4_version(), "PROJECT_ROOT": str(ROOT)}
    spec = load_cluster("lab", directory=ROOT / "lab" / "both", environment={**os.environ, **place})
    with up(replace(plain, spec=spec)) as fresh:
        seen = observe(spec, secrets=fresh.secrets)
        assert detect_phase(seen).phase is Phase.KRAFT
        assert {each.software_version for each in seen.brokers.values()} == {kafka4_version()}
        lifecycle.down(spec)
