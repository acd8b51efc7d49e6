"""Clusters that were born in KRaft with a dynamic quorum (KIP-853): controllers and brokers in processes of their own,
and nodes with both roles. Every operation takes them, under a real Airflow and a workload. The tests build on one
another, in this order.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import by_hand
import on_kafka4
import pytest
from labs import Lab, described_in, up
from replicas import Ground
from stage import Stage, a_stage, no_acknowledged_record_is_lost

from kraft_runbook.cluster.feature_levels import KRAFT_VERSION, METADATA_VERSION, LevelsInLog
from kraft_runbook.cluster.modes import BrokerMode
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.quorum_seen import QuorumState
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.io.local import supervision
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.operations import OPERATIONS
from kraft_runbook.procedures.observe import observe
from kraft_runbook.quorum.care import QUORUM_CARE
from lab import ROOT
from lab.installation import kafka4_version
from lab.layout import layout, starts

RESTART, UP, LEVELS, CARE, REASSIGN = (
    f"{name}__lab"
    for name in ("rolling_restart", "upgrade_software", "upgrade_features", "quorum_care", "reassign_partitions")
)
CARES = {"KRB-CARE-003", "KRB-CARE-004", "KRB-CARE-005", "KRB-CARE-006"}
"""What asks whether there is something to care for."""
BORN = {"dynamic": "", "both": "quorum: dynamic\n"}
"""The lab, and what makes its quorum a dynamic one where its file says nothing of it."""
pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module", params=BORN)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    files = tmp_path_factory.mktemp("files") / "include" / "clusters"
    with up(described_in(on_kafka4.with_target(request.param, files, BORN[request.param]))) as found:
        yield found


@pytest.fixture(scope="module")
def stage(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with a_stage(lab, tmp_path_factory.mktemp("airflow"), clusters=lab.clusters) as opened:
        yield opened


def quorum(lab: Lab) -> QuorumState:
    found = observe(lab.spec, secrets=lab.secrets).quorum
    assert was_read(found), found.reason
    return found


def ends_well(stage: Stage, dag: str, **params: object) -> None:
    run_id = stage.start(dag, **params)
    assert stage.run_to_its_end(dag, run_id) == "success", stage.failures(dag, run_id)


def preflight(lab: Lab, operation: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "kraft_runbook.cli.app", "preflight", "--cluster", "lab", "--operation", operation]
    done = subprocess.run(command, env=lab.environment, cwd=ROOT, capture_output=True, text=True, timeout=180)
    return done.returncode, done.stdout + done.stderr


def test_it_is_seen_as_what_it_is_and_every_operation_may_begin(lab: Lab) -> None:
    seen = observe(lab.spec, secrets=lab.secrets)
    assert detect_phase(seen).phase is Phase.KRAFT
    assert quorum(lab).is_dynamic and {each.id for each in quorum(lab).voters} == set(lab.spec.controller_ids)
    features = on_kafka4.look(lab)
    assert features.level(KRAFT_VERSION) == 1 and on_kafka4.versions(lab) == {lab.spec.kafka.version}
    for operation in OPERATIONS.values():
        if operation in (MIGRATION, QUORUM_CARE):
            continue
        code, said = preflight(lab, operation.name)
        assert code == 0, f"{operation.name}: {said}"
    _, said = preflight(lab, QUORUM_CARE.name)
    refused = set(re.findall(r"^(?:FAIL|UNKNOWN) +(KRB-[A-Z]+-\d+)", said, re.MULTILINE))
    assert all(code in CARES for code in refused), f"nothing is lost, to add or to remove, and no more: {said}"


def test_restarted_moved_and_led_by_another_it_loses_no_acknowledged_record(
    stage: Stage, lab: Lab, tmp_path: Path
) -> None:
    ground = Ground(lab, BrokerMode.KRAFT)
    topic = ground.topic((1, 2), (2, 1), megabytes=1)
    with no_acknowledged_record_is_lost(lab, tmp_path / "account.json"):
        before = starts(lab.spec)
        ends_well(stage, RESTART)
        assert {count - before[service] for service, count in starts(lab.spec).items()} == {1}, "each process once"
        ends_well(stage, REASSIGN, goal="drain brokers", brokers="1", topics=topic)
        assert not any(1 in r for p, r in ground.look(settings=False).placement.present.items() if p.topic == topic)
        _the_leadership_moves(stage, lab)


def test_brought_to_kafka_4_and_its_level_it_loses_no_acknowledged_record(
    stage: Stage, lab: Lab, tmp_path: Path
) -> None:
    with no_acknowledged_record_is_lost(lab, tmp_path / "account.json"):
        ends_well(stage, UP)
        assert on_kafka4.versions(lab) == {kafka4_version()}
        ends_well(stage, LEVELS, feature=METADATA_VERSION, level="4.0")
    log = on_kafka4.look(lab).log
    assert isinstance(log, LevelsInLog) and log.levels[METADATA_VERSION] == 25
    assert quorum(lab).is_dynamic


def _the_leadership_moves(stage: Stage, lab: Lab) -> None:
    led = quorum(lab).leader_id
    run_id = stage.start(CARE, care="move the leadership")
    ended = stage.run_to_its_end(CARE, run_id)
    if lab.spec.has_both_roles(led):
        assert ended == "failed" and "has both roles in one process" in stage.failures(CARE, run_id)
    else:
        assert ended == "success" and quorum(lab).leader_id != led, stage.failures(CARE, run_id)


def test_a_controller_that_lost_its_disk_votes_again_with_another_directory(stage: Stage, lab: Lab) -> None:
    before = {each.id: each.directory for each in quorum(lab).voters}
    lost = next(each for each in lab.spec.controllers if each.id != quorum(lab).leader_id)
    if lab.spec.has_both_roles(lost.id):
        pytest.skip("care of the quorum is made for controllers alone")
    supervision.begin_stop(layout(lab.spec), lost.service)
    by_hand.wait_until("it ends", lambda: not supervision.processes(layout(lab.spec))[lost.service].runs, within=330)
    shutil.rmtree(Path(lost.log_dir))
    ends_well(stage, CARE, care="bring back a controller that lost its disk", controller=lost.id)
    after = {each.id: each.directory for each in quorum(lab).voters}
    assert after.keys() == before.keys() and {i for i in after if after[i] != before[i]} == {lost.id}
