"""Refusals of a level that need a cluster of their own: one in dual write, and one where a controller has never
registered. Each is known before the server is asked, and each way out works.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from unittest.mock import patch

import by_hand
import kept_states
import on_kafka4
import pytest
from labs import Lab, lab_of

from kraft_runbook.cluster.feature_levels import METADATA_VERSION
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.kafka.feature_calls import UpgradeType, read_levels, update_feature
from kraft_runbook.io.local import supervision
from kraft_runbook.procedures.preview_levels import preview_change
from lab import kraft
from lab.layout import layout

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def dual_write() -> Iterator[Lab]:
    """Every broker in KRaft mode. One that is not yet registers with the one level that it runs at, and the server
    refuses for that first.
    """
    with kept_states.lab_in(Phase.DUAL_WRITE) as lab:
        yield lab


def test_while_dual_write_goes_on_no_level_is_changed(dual_write: Lab) -> None:
    """Its way out, finalizing, leads to where every other test of levels begins."""
    preview = preview_change(
        dual_write.spec, on_kafka4.look(dual_write), METADATA_VERSION, "20", secrets=dual_write.secrets
    )
    assert preview.answer is not None
    assert "Unable to modify metadata.version while a ZK migration is in progress." in preview.answer.refusal
    assert "the migration from ZooKeeper is not final (ZkMigrationStateRecord 1)" in preview.render_text()


@pytest.fixture(scope="module")
def at_14(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A cluster that was formatted at 14 (3.6-IV2): below 15 no controller registers."""

    def format_storage(spec: ClusterSpec, config_file: str, cluster_id: str) -> None:
        tool = [f"{spec.kafka.home}/bin/kafka-storage.sh", "format", f"--cluster-id={cluster_id}", "-c", config_file]
        subprocess.run([*tool, "--release-version", "3.6-IV2"], check=True, capture_output=True, timeout=120)

    with (
        patch.object(kraft, "format_storage", format_storage),
        lab_of(("a",), mode=BrokerMode.KRAFT, clusters=tmp_path_factory.mktemp("clusters")) as lab,
    ):
        yield lab


def test_a_controller_that_has_never_registered_stands_in_the_way_until_it_is_started(at_14: Lab) -> None:
    leader = on_kafka4.leader(at_14)
    late = next(each for each in at_14.spec.controllers if each.id != leader)
    here = layout(at_14.spec)
    supervision.begin_stop(here, late.service)
    on_kafka4.ended(at_14, late)
    raised = update_feature(
        at_14.spec, leader, METADATA_VERSION, 15, UpgradeType.UPGRADE, validate_only=False, secrets=at_14.secrets
    )
    assert raised.accepted, "below 15 no controller is asked"
    by_hand.wait_until(
        "the others register",
        lambda: (
            set(read_levels(at_14.spec, secrets=at_14.secrets)[1].controllers)
            == set(at_14.spec.controller_ids) - {late.id}
        ),
    )
    preview = preview_change(at_14.spec, on_kafka4.look(at_14), METADATA_VERSION, "16", secrets=at_14.secrets)
    assert preview.answer is not None
    assert f"controller {late.id} has not registered, and may not support this feature" in preview.answer.refusal
    assert f"controller {late.id} has not registered, so the server does not know what it" in preview.render_text()
    supervision.begin_start(here, late.service)
    by_hand.wait_until("it registers", lambda: late.id in read_levels(at_14.spec, secrets=at_14.secrets)[1].controllers)
    again = preview_change(at_14.spec, on_kafka4.look(at_14), METADATA_VERSION, "16", secrets=at_14.secrets)
    assert again.may_go, again.render_text()
    on_kafka4.set_level(at_14, 16)
