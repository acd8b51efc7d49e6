"""Feature levels of a real finalized cluster on 3.9: seen, walked down and up, and every refusal met by a way out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import on_kafka4
import pytest
from labs import Lab

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, LevelsInLog, NodeFeatures, NodeHost
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.io.kafka.feature_calls import UpgradeType, update_feature
from kraft_runbook.levels.answers import refused
from kraft_runbook.levels.obstacles import running_software
from kraft_runbook.levels.overview import overview
from kraft_runbook.procedures.preview_levels import preview_change
from kraft_runbook.runbook.obstacle import Obstacle
from kraft_runbook.software.way_back import way_to
from lab import ROOT
from lab.software import write_cluster_file

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def finalized() -> Iterator[Lab]:
    with on_kafka4.finalized_lab() as lab:
        yield lab


def test_every_node_shows_what_its_jar_was_read_to_support_and_the_level_that_the_log_gave(finalized: Lab) -> None:
    seen = on_kafka4.look(finalized)
    software = running_software(seen)
    assert not isinstance(software, Obstacle), software
    expected = {name: table.supported for name, table in software.features.items() if table.supported.highest}
    for node_id, node in seen.nodes.items():
        assert isinstance(node, NodeFeatures), node
        assert (node.software_version, dict(node.finalized)) == (software.version, {METADATA_VERSION: 21})
        assert dict(node.supported) == expected, seen.who(node_id)
    assert isinstance(seen.log, LevelsInLog)
    assert [(each.feature, each.level) for each in seen.log.written] == [(METADATA_VERSION, 21)]
    assert (set(seen.log.brokers), set(seen.log.controllers)) == ({1, 2, 3}, {101, 102, 103})
    assert seen.log.migration_state == 3
    for registered in (*seen.log.brokers.values(), *seen.log.controllers.values()):
        assert {name: each for name, each in registered.supported.items() if each.highest} == expected
    assert overview(seen).findings == ()


def test_each_node_s_own_disk_is_read_and_lets_it_go_on_to_kafka_4(finalized: Lab) -> None:
    seen = on_kafka4.look(finalized)
    for node_id, host in seen.hosts.items():
        assert isinstance(host, NodeHost) and not isinstance(host.disk, Unread), host
        held = dict(host.disk.snapshot.levels) if host.disk.snapshot else {}
        met = {**held, **{each.feature: each.level for each in host.disk.after}}
        assert met == {METADATA_VERSION: 21}, seen.who(node_id)
        assert host.home == finalized.spec.kafka.home
        assert isinstance(seen.log, LevelsInLog) and host.disk.end >= seen.log.end - 100
    assert finalized.spec.kafka.upgrade_to is not None
    target = on_kafka4.software(seen, finalized.spec.kafka.upgrade_to.home)
    now = on_kafka4.software(seen, finalized.spec.kafka.home)
    way = way_to(seen, target, now)
    assert way.open, way.render_text()


def test_down_and_up_the_plan_says_of_every_pair_what_the_server_says(finalized: Lab) -> None:
    """From 21 down to the lowest that can be had, and back: at each level every target is asked by validate-only."""
    asked = 0
    for level in (21, 20, 19, 18, 17):
        if level < 21:
            on_kafka4.set_level(finalized, level, down=True)
        seen = on_kafka4.look(finalized)
        answers = on_kafka4.ask_every_level(finalized, seen, METADATA_VERSION, range(1, 26))
        for target, answer in answers.items():
            assert answer.code == 0, "3.9 answers for the feature, not for the request"
            if answer.refusal:
                (code, text) = answer.features[METADATA_VERSION]
                assert code == 95 and refused(METADATA_VERSION, target, code, text).way_out
        asked += len(answers)
    assert asked == 5 * 25 - 5
    on_kafka4.set_level(finalized, 21)
    seen = on_kafka4.look(finalized)
    assert isinstance(seen.log, LevelsInLog)
    assert [each.level for each in seen.log.written] == [21, 20, 19, 18, 17, 21]
    assert seen.log.written[-1].offset > seen.log.written[0].offset


def test_what_a_step_down_would_lose_is_counted_in_the_real_log(finalized: Lab) -> None:
    seen = on_kafka4.look(finalized)
    preview = preview_change(finalized.spec, seen, METADATA_VERSION, "10", secrets=finalized.secrets)
    lost = {each.what: each.count for each in preview.losses}
    assert lost["SCRAM credentials"] == 5 and lost["delegation tokens"] == 3, lost
    assert lost["registrations of controllers"] == 3 and lost["log directories of brokers"] == 3
    assert lost["replicas assigned to a directory"] > 0
    assert preview.answer is not None and not preview.may_go
    assert "because it might delete metadata information" in preview.answer.refusal
    assert "crosses what changed metadata: 17 (3.7-IV2" in preview.render_text()
    allowed = preview_change(finalized.spec, seen, METADATA_VERSION, "3.7", secrets=finalized.secrets)
    assert (allowed.change.target, allowed.losses, allowed.may_go) == (19, (), True)


def test_who_does_not_lead_says_so_and_the_unsafe_way_does_not_exist(finalized: Lab) -> None:
    leader = on_kafka4.leader(finalized)
    other = next(each for each in finalized.spec.controller_ids if each != leader)
    answer = update_feature(
        finalized.spec,
        other,
        METADATA_VERSION,
        20,
        UpgradeType.SAFE_DOWNGRADE,
        validate_only=True,
        secrets=finalized.secrets,
    )
    codes = {answer.code, *(code for code, _ in answer.features.values())}
    assert not answer.accepted and 41 in codes
    assert "ask the new leader" in refused(METADATA_VERSION, 20, 41, "").way_out
    assert {each.name for each in UpgradeType} == {"UPGRADE", "SAFE_DOWNGRADE"}


def test_kraft_version_is_refused_here_although_the_server_would_accept_it(finalized: Lab) -> None:
    seen = on_kafka4.look(finalized)
    preview = preview_change(finalized.spec, seen, "kraft.version", "1", secrets=finalized.secrets)
    assert preview.answer is not None and preview.answer.accepted
    assert not preview.may_go and "KAFKA-18979" in preview.obstacles[0].problem


def test_the_command_shows_it(finalized: Lab, tmp_path: Path) -> None:
    write_cluster_file(tmp_path)
    shown = {}
    for flags in ((), ("--to", "3.8", "--json")):
        done = subprocess.run(
            [sys.executable, "-m", "kraft_runbook.cli.app", "features", "--cluster", "lab", *flags],
            env={**finalized.environment, "KRAFT_RUNBOOK_CLUSTERS": str(tmp_path)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        shown[flags] = done.stdout
    text = shown[()]
    assert "lab: metadata.version 21" in text and "every node runs Kafka 3.9.2" in text
    assert "every node can start on 4.1.1 now" in text
    found = json.loads(shown["--to", "3.8", "--json"])
    assert found["change"]["change"]["target"] == 20
    assert found["change"]["answer"]["features"] == {METADATA_VERSION: [0, ""]}
    assert found["others"][0]["open"] is True
