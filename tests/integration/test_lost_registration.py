"""A real controller whose registration is lost at its start on the new software, and what ends that."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import by_hand
import on_kafka4
import pytest
from labs import Lab
from recording import run_on

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, LevelsInLog
from kraft_runbook.io.local import supervision
from kraft_runbook.procedures.preview_levels import preview_change
from kraft_runbook.runbook.registrations import not_their_own
from kraft_runbook.software.conditions import CONTROLLER_ON_TARGET
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.registrations import register_anew
from kraft_runbook.steps.software import CONTROLLER_UP
from lab.layout import layout, starts

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
STARTS_TO_REGISTER = "InitializeNewPublishers: initializing ControllerRegistrationManager"
ANSWERED = "controller acknowledged ControllerRegistrationRequest"
LOST = "channel manager timed out before sending the request"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Every node but controller 101 on the new software. A request of a controller that nobody answers ends after a
    second, so that the five seconds that it is tried for are soon over.
    """
    properties = {"controller.socket.timeout.ms": "1000"}
    with on_kafka4.finalized_lab(controllers=properties, on_new=(1, 2, 3, 102, 103)) as found:
        yield found


def test_a_lost_registration_stands_in_the_way_of_a_level_until_the_roll_restarts_that_controller(lab: Lab) -> None:
    lose_registration(lab, 101)
    seen = on_kafka4.look(lab)
    assert on_kafka4.versions(lab) == {"4.1.1"} and isinstance(seen.log, LevelsInLog)
    assert list(not_their_own(seen, seen.log)) == [101]
    preview = preview_change(lab.spec, seen, METADATA_VERSION, "22", secrets=lab.secrets)
    assert preview.answer is not None and "Controller 101 only supports versions 1-21" in preview.answer.refusal
    assert (
        "controller 101 runs software with metadata.version 7-27 and is registered with 1-21" in preview.render_text()
    )

    began, told = starts(lab.spec), []
    run = run_on(Cluster(lab.spec, lab.secrets, told.append))
    within = lab.spec.deadlines.quorum

    def back(node: int) -> None:
        run.cluster.wait_for(CONTROLLER_ON_TARGET, deadline=within, node_id=node)

    assert register_anew(run, lambda _: CONTROLLER_UP, after=back) == [101], told
    ended = starts(lab.spec)
    assert {each for each in ended if ended[each] != began[each]} == {"controller-101"}
    assert preview_change(lab.spec, on_kafka4.look(lab), METADATA_VERSION, "22", secrets=lab.secrets).may_go


def lose_registration(lab: Lab, node_id: int) -> None:
    """Start a controller on the new software, and let nobody answer its registration: the others stand still from the
    moment it has read the log. Where the answer was quicker, back to the old software and once more.
    """
    assert lab.spec.kafka.upgrade_to is not None
    others = [each for each in lab.spec.controller_ids if each != node_id]
    for _ in range(5):
        stop(lab, node_id)
        on_kafka4.link(lab, node_id, lab.spec.kafka.upgrade_to.home)
        said = start(lab, node_id)
        while STARTS_TO_REGISTER not in said():
            time.sleep(0.005)
        with standing_still(lab, others):
            while LOST not in said() and ANSWERED not in said():
                time.sleep(0.1)
        by_hand.wait_until("a controller leads", lambda: bool(on_kafka4.leader(lab)), within=60)
        if LOST in said() and ANSWERED not in said():
            return
        stop(lab, node_id)
        on_kafka4.link(lab, node_id, lab.spec.kafka.home)
        start(lab, node_id)
        by_hand.wait_until("it registers as before", lambda: registered_with(lab, node_id, 21), within=60)
    pytest.fail("its registration was always answered before the others stood still")


def start(lab: Lab, node_id: int) -> Callable[[], str]:
    """Start it. Returns what reads all that it has logged since."""
    here, service = layout(lab.spec), lab.spec.controller(node_id).service
    (log,) = here.directory.rglob(f"{service}.log")
    length = log.stat().st_size
    supervision.begin_start(here, service)
    return lambda: log.read_bytes()[length:].decode(errors="replace")


def registered_with(lab: Lab, node_id: int, highest: int) -> bool:
    log = on_kafka4.look(lab).log
    assert isinstance(log, LevelsInLog)
    return log.controllers[node_id].supported[METADATA_VERSION].highest == highest


def stop(lab: Lab, node_id: int) -> None:
    node = lab.spec.controller(node_id)
    supervision.begin_stop(layout(lab.spec), node.service)
    on_kafka4.ended(lab, node)


@contextmanager
def standing_still(lab: Lab, node_ids: list[int]) -> Iterator[None]:
    processes = supervision.processes(layout(lab.spec))
    pids = [processes[lab.spec.controller(each).service].pid for each in node_ids]
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
