"""Controllers: formatted once with the cluster's own id, and taken out of migration mode."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from played import finalize_controller, provision_controller, run_playbook, set_controller_aside
from stand_in_node import CLUSTER_ID, Node

from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import ControllerMode
from kraft_runbook.cluster.properties_text import parse_properties
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.hosts.host_facts import gather_host_facts
from kraft_runbook.io.hosts.playbooks import forget_zookeeper_secrets
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.migration.controller_files import settled_size
from kraft_runbook.migration.copy_tuning import LARGE, TUNED_PROPERTIES

SECRETS, CONFIGURATION = "Tell whether the secrets file changed", "Write the configuration"
FORMAT, STOP, START = (
    "Format the log directory with the cluster's id",
    "Stop the service if its process is older than its files",
    "Start the service if it does not run, and wait for its port",
)


def test_a_controller_is_provisioned_once_and_finalized_once(node: Node) -> None:
    before = node.files()
    assert provision_controller(node.spec, 101, CLUSTER_ID, secrets=environment_secrets(), check=True).changed == (
        SECRETS,
        CONFIGURATION,
        FORMAT,
        START,
    )
    assert node.files() == before
    assert provision_controller(node.spec, 101, CLUSTER_ID, secrets=environment_secrets()).changed == (
        SECRETS,
        CONFIGURATION,
        FORMAT,
        START,
    )
    # The id begins with a dash, as one in 64 does.
    assert f"cluster.id={CLUSTER_ID}\n" in (node.directory / "data-101" / "meta.properties").read_text()
    assert provision_controller(node.spec, 101, CLUSTER_ID, secrets=environment_secrets()).changed == ()
    assert finalize_controller(node.spec, 101, secrets=environment_secrets(), check=True).changed == (
        CONFIGURATION,
        STOP,
        START,
    )
    assert finalize_controller(node.spec, 101, secrets=environment_secrets()).changed == (CONFIGURATION, STOP, START)
    assert "password.encoder.secret" in Path(node.spec.secrets_file or "").read_text(), (
        "until all are finalized one of them may need it"
    )
    assert forget_zookeeper_secrets(node.spec, secrets=environment_secrets()) != ()
    assert parse_properties(Path(node.spec.secrets_file or "").read_text()) == {}
    assert forget_zookeeper_secrets(node.spec, secrets=environment_secrets()) == ()
    assert finalize_controller(node.spec, 101, secrets=environment_secrets()).changed == ()
    assert node.starts("controller-101") == ["True", "False"]


LOGGERS = "Write the loggers"
LOG4J = {"log4j.rootLogger": "INFO, stdout", "log4j.logger.org.apache.kafka.image": "INFO"}
"""What the stand-in's cluster file says of its controller's loggers."""


def large(node: Node) -> tuple[Node, Path]:
    """The node as a large cluster's, whose file names the controller's loggers."""
    file = node.directory / "controller-101" / "log4j.properties"
    controllers = tuple(c.model_copy(update={"log4j_file": str(file)}) for c in node.spec.controllers)
    return replace(
        node, spec=node.spec.model_copy(update={"controllers": controllers, "controller_log4j": LOG4J})
    ), file


def test_what_shortens_the_copy_is_written_once_read_back_and_gone_after_finalization(node: Node) -> None:
    node, loggers = large(node)
    file, secrets = Path(node.spec.controller(101).config_file), environment_secrets()
    assert provision_controller(node.spec, 101, CLUSTER_ID, size=LARGE, secrets=secrets).changed == (
        SECRETS,
        CONFIGURATION,
        LOGGERS,
        FORMAT,
        START,
    )
    assert dict(LARGE.properties).items() <= parse_properties(file.read_text()).items()
    assert parse_properties(loggers.read_text()) == {
        **LOG4J,
        **{f"log4j.logger.{name}": level for name, level in LARGE.loggers.items()},
    }
    on_host = gather_host_facts(node.spec, [101])[101].config
    assert isinstance(on_host, dict)
    size = settled_size(node.spec, {101: on_host})
    assert size is LARGE
    assert provision_controller(node.spec, 101, CLUSTER_ID, size=size, secrets=secrets).changed == ()
    assert finalize_controller(node.spec, 101, secrets=secrets).changed == (CONFIGURATION, LOGGERS, STOP, START)
    assert not TUNED_PROPERTIES & parse_properties(file.read_text()).keys()
    assert parse_properties(loggers.read_text()) == LOG4J
    assert finalize_controller(node.spec, 101, secrets=secrets).changed == ()
    assert node.starts("controller-101") == ["True", "False"]


@pytest.mark.long
def test_loggers_that_changed_alone_restart_the_controller(node: Node) -> None:
    node, loggers = large(node)
    provision_controller(node.spec, 101, CLUSTER_ID, size=LARGE, secrets=environment_secrets())
    loggers.write_text("log4j.rootLogger=DEBUG, stdout\n")
    loggers.with_name(f".{loggers.name}.kraft-runbook").unlink()  # as of a version that wrote other loggers
    assert provision_controller(node.spec, 101, CLUSTER_ID, size=LARGE, secrets=environment_secrets()).changed == (
        LOGGERS,
        STOP,
        START,
    )


def test_a_controller_set_aside_leaves_nothing_of_the_copys_tuning(node: Node) -> None:
    node, loggers = large(node)
    provision_controller(node.spec, 101, CLUSTER_ID, size=LARGE, secrets=environment_secrets())
    set_controller_aside(node.spec, 101)
    assert not loggers.exists() and not Path(node.spec.controller(101).config_file).exists()
    assert [path.name.partition(".set-aside-")[0] for path in loggers.parent.glob("log4j.properties*")] == [
        "log4j.properties"
    ]
    assert set_controller_aside(node.spec, 101).changed == ()


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
    Path(node.directory / "kafka" / "bin" / "kafka-storage.sh").write_text(
        "#!/bin/sh\necho the disk is full >&2; exit 1\n"
    )
    with pytest.raises(StepFailed, match=r"(?s)kafka-storage.sh format .*exit code 1:.*the disk is full"):
        provision_controller(node.spec, 101, CLUSTER_ID, secrets=environment_secrets())
    assert node.starts("controller-101") == []


def test_finalizing_with_properties_that_name_zookeeper_is_refused(node: Node) -> None:
    given = {"properties": controller_properties(node.spec, node.spec.controller(101), ControllerMode.MIGRATION)}
    with pytest.raises(StepFailed, match="still name ZooKeeper; nothing was changed"):
        run_playbook(node.spec, "finalize_controller", node_id=101, variables=given, secrets=environment_secrets())
    assert not Path(node.spec.controller(101).config_file).exists()
