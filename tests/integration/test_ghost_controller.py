"""A controller that registered once and is no voter any more: it stands in the way of the next level, and one start on
the new software cures it.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import by_hand
import on_kafka4
import pytest
from labs import Lab

from kraft_runbook.cluster.feature_levels import METADATA_VERSION
from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import ControllerMode
from kraft_runbook.cluster.properties_text import render_properties
from kraft_runbook.io.kafka.feature_calls import read_levels
from kraft_runbook.procedures.preview_levels import preview_change

GHOST = 104
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def on_new() -> Iterator[Lab]:
    """A finalized cluster of which every node runs 4.x."""
    with on_kafka4.finalized_lab(on_new=(1, 2, 3, 101, 102, 103)) as lab:
        yield lab


def prepare(lab: Lab) -> Path:
    """The ghost's file and formatted directory: itself in its own voters list, and nobody else's."""
    first = lab.spec.controllers[0]
    host = f"{lab.network}.{GHOST}"
    directory = lab.directory / f"controller-{GHOST}"
    ghost = first.model_copy(
        update={"id": GHOST, "host": host, "log_dir": str(directory / "data"), "config_file": str(directory / "file")}
    )
    directory.mkdir()
    voters = f"{lab.spec.quorum_voters},{GHOST}@{ghost.address}"
    properties = {
        **controller_properties(lab.spec, ghost, ControllerMode.KRAFT),
        "controller.quorum.voters": voters,
    }
    Path(ghost.config_file).write_text(render_properties(properties, header="a ghost"))
    formatted = Path(first.log_dir, "meta.properties").read_text()
    cluster_id = next(line.partition("=")[2] for line in formatted.splitlines() if line.startswith("cluster.id="))
    subprocess.run(
        [
            f"{lab.spec.kafka.home}/bin/kafka-storage.sh",
            "format",
            f"--cluster-id={cluster_id}",
            "-c",
            ghost.config_file,
        ],
        check=True,
        capture_output=True,
    )
    return Path(ghost.config_file)


@contextmanager
def running(lab: Lab, home: str, file: Path) -> Iterator[None]:
    """The ghost's process, on that software."""
    with (file.parent / "log").open("ab") as log:
        command = [f"{home}/bin/kafka-run-class.sh", "kafka.Kafka", str(file)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def supports(lab: Lab) -> int | None:
    """The highest metadata.version that the ghost registered with."""
    found = read_levels(lab.spec, secrets=lab.secrets)[1].controllers.get(GHOST)
    return found.supported[METADATA_VERSION].highest if found else None


def test_a_ghost_stands_in_the_way_by_name_and_one_start_on_the_new_software_cures_it(on_new: Lab) -> None:
    assert on_new.spec.kafka.upgrade_to is not None
    file, leader = prepare(on_new), on_kafka4.leader(on_new)
    with running(on_new, on_new.spec.kafka.home, file):
        by_hand.wait_until("the ghost registers", lambda: supports(on_new) == 21, within=60)
    seen = on_kafka4.look(on_new)
    preview = preview_change(on_new.spec, seen, METADATA_VERSION, "22", secrets=on_new.secrets)
    assert not preview.may_go and preview.answer is not None
    assert f"ontroller {GHOST} only supports versions 1-21" in preview.answer.refusal
    (obstacle,) = preview.obstacles
    assert obstacle.problem.startswith(f"controller {GHOST} is registered and no voter any more")
    with running(on_new, on_new.spec.kafka.upgrade_to.home, file):
        by_hand.wait_until("the ghost registers anew", lambda: supports(on_new) == 27, within=60)
    assert on_kafka4.leader(on_new) == leader, "it disturbs no leader"
    again = preview_change(on_new.spec, on_kafka4.look(on_new), METADATA_VERSION, "22", secrets=on_new.secrets)
    assert again.may_go, again.render_text()
