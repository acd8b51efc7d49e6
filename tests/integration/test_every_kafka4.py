"""A finalized cluster goes from 3.9 to each other Kafka 4, back, and up again with the level, under a real Airflow and
a workload. The lab's own Kafka 4 has ``test_upgrade_run`` and ``test_software_back``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import on_kafka4
import pytest
from labs import Lab
from stage import Stage, a_stage, no_acknowledged_record_is_lost

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, LevelsInLog
from kraft_runbook.metadata.metadata_version import NEWEST_LEVEL
from lab.installation import OTHERS
from lab.layout import starts
from lab.software import write_cluster_file

UP, BACK, LEVELS = "upgrade_software__lab", "downgrade_software__lab", "upgrade_features__lab"
pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module", params=OTHERS)
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with on_kafka4.finalized_lab(version=request.param) as found:
        yield found


@pytest.fixture(scope="module")
def stage(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    clusters = write_cluster_file(tmp_path_factory.mktemp("files") / "clusters", target(lab)).parent
    with a_stage(lab, tmp_path_factory.mktemp("airflow"), clusters=clusters) as opened:
        yield opened


def target(lab: Lab) -> str:
    assert lab.spec.kafka.upgrade_to is not None
    return lab.spec.kafka.upgrade_to.version


def test_up_back_and_up_again_with_the_level_and_no_acknowledged_record_is_lost(
    stage: Stage, lab: Lab, tmp_path: Path
) -> None:
    with no_acknowledged_record_is_lost(lab, tmp_path / "account.json"):
        for dag_id, version in ((UP, target(lab)), (BACK, lab.spec.kafka.version), (UP, target(lab))):
            before = starts(lab.spec)
            run_id = through(stage, dag_id)
            assert on_kafka4.versions(lab) == {version}
            after, again = starts(lab.spec), stage.registered_anew(dag_id, run_id)
            nodes = [each.service for each in (*lab.spec.brokers, *lab.spec.controllers)]
            assert {after[each] - before[each] for each in nodes if each not in again} == {1}, "each was restarted once"
        what_the_plan_says_of_each_level_is_what_the_server_says(lab)
        through(stage, LEVELS, feature=METADATA_VERSION, level=target(lab).rpartition(".")[0])
    seen = on_kafka4.look(lab)
    newest = on_kafka4.software(seen, lab.spec.kafka.upgrade_to.home).features[METADATA_VERSION].supported.highest
    assert isinstance(seen.log, LevelsInLog) and seen.log.levels[METADATA_VERSION] == newest


def through(stage: Stage, dag_id: str, **params: object) -> str:
    run_id = stage.start(dag_id, **params)
    assert stage.run_to_its_end(dag_id, run_id) == "success", stage.failures(dag_id, run_id)
    return run_id


def what_the_plan_says_of_each_level_is_what_the_server_says(lab: Lab) -> None:
    on_kafka4.ask_every_level(lab, on_kafka4.look(lab), METADATA_VERSION, range(5, NEWEST_LEVEL + 2))
