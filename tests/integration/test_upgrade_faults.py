"""What breaks while software or a level changes: a node that does not come back on the new software, and the active
controller killed while a level rises.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import by_hand
import on_kafka4
import pytest
from labs import Lab
from stage import ENDED, Stage, a_stage

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, Answer, LevelsInLog
from kraft_runbook.io.kafka.feature_calls import read_levels, update_feature
from kraft_runbook.io.local import supervision
from kraft_runbook.levels.change import plan_change
from kraft_runbook.levels.obstacles import running_software
from kraft_runbook.procedures.change_level import Calls, await_level, change_level
from kraft_runbook.runbook.obstacle import Obstacle
from lab.layout import layout
from lab.software import write_cluster_file

UP, BACK = "upgrade_software__lab", "downgrade_software__lab"
pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with on_kafka4.finalized_lab() as found:
        yield found


@contextmanager
def killed_as_it_is_asked(pid: int, delay: float) -> Iterator[Calls]:
    """While the block changes a level: the process is killed so many seconds after the request to apply it was sent."""
    killer = threading.Timer(delay, os.kill, (pid, signal.SIGKILL))

    def update(*arguments: Any, validate_only: bool, **further: Any) -> Answer:
        if not validate_only and not killer.ident:
            killer.start()
        return update_feature(*arguments, validate_only=validate_only, **further)

    yield Calls(update=update)
    killer.join()


def test_the_active_controller_is_killed_while_a_level_changes_and_it_is_there_once_and_everywhere(lab: Lab) -> None:
    """Whatever became of the request: it finds out, asks the next leader where that must be, and the level is what was
    planned.
    """
    for target, delay in ((20, 0.0), (19, 0.002), (18, 0.005), (21, 0.01), (20, 0.02), (21, 0.05)):
        seen = on_kafka4.look(lab)
        software = running_software(seen)
        assert not isinstance(software, Obstacle) and isinstance(seen.log, LevelsInLog)
        before = len(seen.log.written)
        change = plan_change(software, METADATA_VERSION, seen.log.levels[METADATA_VERSION], str(target))
        service = lab.spec.controller(on_kafka4.leader(lab)).service
        with killed_as_it_is_asked(supervision.processes(layout(lab.spec))[service].pid, delay) as calls:
            assert change_level(lab.spec, change, secrets=lab.secrets, tell=print, calls=calls)
        by_hand.wait_until(
            "supervisor sees the end",
            lambda service=service: not supervision.processes(layout(lab.spec))[service].runs,
        )
        supervision.begin_start(layout(lab.spec), service)
        on_kafka4.shown_everywhere(lab, target)
        assert not change_level(lab.spec, change, secrets=lab.secrets, tell=print), "it is there: nothing is sent"
        await_level(lab.spec, METADATA_VERSION, target, secrets=lab.secrets, tell=print)
        assert len(read_levels(lab.spec, secrets=lab.secrets)[1].written) == before + 1, "it was written once"


@pytest.fixture(scope="module")
def stage(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    clusters = write_cluster_file(tmp_path_factory.mktemp("files") / "clusters").parent
    with a_stage(lab, tmp_path_factory.mktemp("airflow"), clusters=clusters) as opened:
        yield opened


def test_a_node_that_does_not_come_back_stops_the_roll_and_the_software_goes_back(stage: Stage, lab: Lab) -> None:
    meta = Path(lab.spec.broker(2).log_dirs[0], "meta.properties")
    kept = meta.read_text()
    meta.write_text("version=1\nnode.id=2\ncluster.id=another-cluster-0000000\n")
    run_id = stage.start(UP)
    assert stage.run_to_its_end(UP, run_id) == "failed"
    restart = "roll_brokers_up.broker_2.restart"
    assert stage.wait(UP, run_id, restart, ENDED) == "failed"
    assert stage.wait(UP, run_id, "roll_brokers_up.broker_3.restart", ENDED) == "upstream_failed"
    report = stage.log(UP, run_id, "closing_report")
    assert restart in report and "trigger downgrade_software__lab" in report, report
    meta.write_text(kept)
    back = stage.start(BACK)
    assert stage.run_to_its_end(BACK, back) == "success", stage.failures(BACK, back)
    assert on_kafka4.versions(lab) == {"3.9.2"}
    again = stage.start(UP)
    assert stage.run_to_its_end(UP, again) == "success", stage.failures(UP, again)
