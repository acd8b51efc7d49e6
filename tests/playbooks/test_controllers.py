"""Controllers: formatted once with the cluster's own id, and taken out of migration mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_runbook.clients.playbooks import finalize_controller, provision_controller, run_playbook
from kraft_runbook.clients.secrets import environment_secrets
from kraft_runbook.configuration import controller_properties
from kraft_runbook.errors import StepFailed
from kraft_runbook.observation import ControllerMode
from tests.playbooks.conftest import CLUSTER_ID, Node

SECRETS, CONFIGURATION = "Tell whether the secrets file changed", "Write the configuration"
FORMAT, STOP, START = (
    "Format the log directory with the cluster's id",
    "Stop the service if its process is older than its files",
    "Start the service if it does not run",
)


def test_a_controller_is_provisioned_once_and_finalized_once(node: Node) -> None:
    before = node.files()
    assert provision_controller(node.spec, 101, CLUSTER_ID, secrets=environment_secrets(), check=True).changed == (SECRETS, CONFIGURATION, FORMAT, START)
    assert node.files() == before
    assert provision_controller(node.spec, 101, CLUSTER_ID, secrets=environment_secrets()).changed == (SECRETS, CONFIGURATION, FORMAT, START)
    # The id begins with a dash, as one in 64 does.
    assert f"cluster.id={CLUSTER_ID}\n" in (node.directory / "data-101" / "meta.properties").read_text()
    assert provision_controller(node.spec, 101, CLUSTER_ID, secrets=environment_secrets()).changed == ()
    assert finalize_controller(node.spec, 101, secrets=environment_secrets(), check=True).changed == (CONFIGURATION, STOP, START)
    assert finalize_controller(node.spec, 101, secrets=environment_secrets()).changed == (CONFIGURATION, STOP, START)
    assert finalize_controller(node.spec, 101, secrets=environment_secrets()).changed == ()
    assert node.starts("controller-101") == ["True", "False"]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ("cluster.id=another\nnode.id=101\n", f"is formatted with cluster.id another, but it should be {CLUSTER_ID}"),
        (f"cluster.id={CLUSTER_ID}\nnode.id=7\n", "is formatted with node.id 7, but it should be 101"),
        (None, "holds a metadata log but no meta.properties"),
    ],
)
def test_a_directory_that_is_another_s_is_never_formatted(node: Node, found: str | None, said: str) -> None:
    data = node.directory / "data-101"
    (data / "__cluster_metadata-0").mkdir(parents=True)
    if found:
        (data / "meta.properties").write_text(found)
    with pytest.raises(StepFailed, match=said) as failed:
        provision_controller(node.spec, 101, CLUSTER_ID, secrets=environment_secrets())
    assert "aside" in failed.value.way_out
    assert node.starts("controller-101") == []
    assert not found or (data / "meta.properties").read_text() == found


def test_a_format_that_fails_is_shown_and_nothing_is_started(node: Node) -> None:
    Path(node.directory / "kafka" / "bin" / "kafka-storage.sh").write_text("#!/bin/sh\necho the disk is full >&2; exit 1\n")
    with pytest.raises(StepFailed, match=r"(?s)kafka-storage.sh format .*exit code 1:.*the disk is full"):
        provision_controller(node.spec, 101, CLUSTER_ID, secrets=environment_secrets())
    assert node.starts("controller-101") == []


def test_finalizing_with_properties_that_name_zookeeper_is_refused(node: Node) -> None:
    given = {"properties": controller_properties(node.spec, node.spec.controller(101), ControllerMode.MIGRATION)}
    with pytest.raises(StepFailed, match="still name ZooKeeper; nothing was changed"):
        run_playbook(node.spec, "finalize_controller", node_id=101, variables=given, secrets=environment_secrets())
    assert not Path(node.spec.controller(101).config_file).exists()
