"""A cluster that was born on Kafka 4 goes on to later ones, 4.0 to 4.1 to 4.3, and back as far as its level allows,
under a real Airflow and a workload. The tests build on one another, in this order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import by_hand
import on_kafka4
import pytest
from labs import Lab, described_in, up
from stage import ENDED, Stage, a_stage, no_acknowledged_record_is_lost

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, LevelsInLog
from kraft_runbook.metadata.metadata_version import NEWEST_LEVEL, highest_level
from kraft_runbook.software.way_back import INTERVAL, way_to
from lab.installation import fetch_jars, install, jars_of, java
from lab.layout import load, starts

UP, BACK, LEVELS = "upgrade_software__lab", "downgrade_software__lab", "upgrade_features__lab"
FIRST, SECOND, THIRD = "4.0.2", "4.1.2", "4.3.1"
PLACE = "${KRB_LAB_DIR:-${PROJECT_ROOT}/build/lab}"
SNAPSHOT_EVERY = f"  {INTERVAL}: 30000\n"
pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


def write_file(directory: Path, now: str, home: str, target: str) -> Path:
    """The cluster file, each node with a snapshot every half a minute."""
    clusters = on_kafka4.with_target("dynamic", directory, now=(now, home), version=target)
    text = (clusters / "lab.yaml").read_text()
    for key in ("broker_properties:\n", "controller_properties:\n"):
        text = text.replace(f"\n{key}", f"\n{key}{SNAPSHOT_EVERY}", 1)
    (clusters / "lab.yaml").write_text(text)
    return clusters


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    files = tmp_path_factory.mktemp("files") / "include" / "clusters"
    with up(described_in(write_file(files, FIRST, f"{PLACE}/kafka", SECOND))) as found:
        yield found


@pytest.fixture(scope="module")
def stage(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with a_stage(lab, tmp_path_factory.mktemp("airflow"), clusters=lab.clusters) as opened:
        yield opened


def ends_well(stage: Stage, dag: str, **params: object) -> str:
    run_id = stage.start(dag, **params)
    assert stage.run_to_its_end(dag, run_id) == "success", stage.failures(dag, run_id)
    return run_id


def rolled(stage: Stage, lab: Lab, dag: str, version: str) -> None:
    """Each node is on that version, and was restarted once."""
    before = starts(lab.spec)
    run_id = ends_well(stage, dag)
    assert on_kafka4.versions(lab) == {version}
    after, again = starts(lab.spec), stage.registered_anew(dag, run_id)
    nodes = [each.service for each in (*lab.spec.brokers, *lab.spec.controllers)]
    assert {after[each] - before[each] for each in nodes if each not in again} == {1}


def level(lab: Lab) -> int:
    log = on_kafka4.look(lab).log
    assert isinstance(log, LevelsInLog)
    return log.levels[METADATA_VERSION]


def test_up_back_and_up_again_within_kafka_4_no_acknowledged_record_is_lost(
    stage: Stage, lab: Lab, tmp_path: Path
) -> None:
    assert on_kafka4.versions(lab) == {FIRST} and level(lab) == highest_level(FIRST)
    with no_acknowledged_record_is_lost(lab, tmp_path / "account.json"):
        rolled(stage, lab, UP, SECOND)
        rolled(stage, lab, BACK, FIRST)
        rolled(stage, lab, UP, SECOND)
    seen = on_kafka4.look(lab)
    on_kafka4.ask_every_level(lab, seen, METADATA_VERSION, range(5, NEWEST_LEVEL + 2))
    assert level(lab) == highest_level(FIRST)


def test_the_level_shuts_the_way_back_until_it_is_lowered_and_every_node_has_its_snapshot(
    stage: Stage, lab: Lab
) -> None:
    ends_well(stage, LEVELS, feature=METADATA_VERSION, level="4.1")
    assert level(lab) == highest_level(SECOND)
    run_id = stage.start(BACK)
    assert stage.wait(BACK, run_id, "gate_software_back.prove", ENDED) == "failed"
    said = stage.log(BACK, run_id, "gate_software_back.prove")
    assert "KRB-UPG-005" in said and "metadata.version 27" in said, said
    assert "closed: metadata.version" not in said, said
    assert stage.wait(BACK, run_id, "closing_report", ENDED) == "failed"
    ends_well(stage, LEVELS, feature=METADATA_VERSION, level=str(highest_level(FIRST)), down=True)
    by_hand.wait_until("each node's snapshot is past the level", lambda: can_go_back(lab), within=180)


def can_go_back(lab: Lab) -> bool:
    seen = on_kafka4.look(lab)
    assert lab.spec.kafka.upgrade_to is not None
    homes = (lab.spec.kafka.home, lab.spec.kafka.upgrade_to.home)
    former, now = (on_kafka4.software(seen, each) for each in homes)
    return way_to(seen, former, now).open


def test_on_to_the_next_but_one_and_past_a_level_that_changed_metadata(stage: Stage, lab: Lab, tmp_path: Path) -> None:
    assert lab.clusters is not None
    write_file(lab.clusters, SECOND, f"{PLACE}/kafka-{SECOND}", THIRD)
    place = {"KRB_LAB_DIR": str(lab.directory), "KRB_LAB_NET": lab.network, "KRB_LAB_CLUSTERS": str(lab.clusters)}
    further = replace(lab, spec=load({**os.environ, **place}))
    jars = fetch_jars(SECOND, jars=jars_of(SECOND))
    install(further.spec, jars=jars, java_command=java(), class_archive=jars / "no-archive")
    with no_acknowledged_record_is_lost(further, tmp_path / "account.json"):
        rolled(stage, further, UP, THIRD)
        on_kafka4.ask_every_level(further, on_kafka4.look(further), METADATA_VERSION, range(5, NEWEST_LEVEL + 2))
        ends_well(stage, LEVELS, feature=METADATA_VERSION, level="4.3")
    assert level(further) == highest_level(THIRD)
    run_id = stage.start(BACK)
    assert stage.wait(BACK, run_id, "gate_software_back.prove", ENDED) == "failed"
    said = stage.log(BACK, run_id, "gate_software_back.prove")
    assert "KRB-UPG-005" in said and "30 (4.3-IV0) between changed metadata" in said, said
    assert stage.wait(BACK, run_id, "closing_report", ENDED) == "failed"
