"""Care of a real quorum: the leadership moves, and a controller that lost its disk comes back; one at a time."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import by_hand
import pytest
from kept_journal import Kept
from labs import Lab, lab_of
from recording import run_on
from test_drill import Changed, with_spec

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec_nodes import Controller
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Checked
from kraft_runbook.io.local import supervision
from kraft_runbook.procedures.see_quorum import see_quorum
from kraft_runbook.quorum.care import CHECKS, WARM
from kraft_runbook.quorum.care_rules import Care, CareForm, whom
from kraft_runbook.quorum.look import Quorum
from kraft_runbook.restart.plays import restart_node
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.plays import Play
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.quorum_care import take_care
from kraft_runbook.steps.run import Run
from lab.layout import layout

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Changed]:
    with lab_of(("a",), mode=BrokerMode.KRAFT, clusters=tmp_path_factory.mktemp("clusters")) as made:
        yield with_spec(made, zookeeper=None)


def cluster_of(lab: Lab) -> Cluster:
    return Cluster(lab.spec, lab.secrets, print)


def run_of(lab: Lab, care: Care, controller: int | None = None) -> Run:
    form: dict[str, Any] = {"care": care.value, "controller": controller}
    cluster = cluster_of(lab)
    node = whom(CareForm.of(form), cluster.settled(), lab.spec)
    kept = Kept()  # a process that is older than the run's first record is restarted
    kept.record(Checked(phase="KRAFT", checks={}))
    return run_on(cluster, kept, answers={"preflight.checks": {"node": node}}, **form)


def warm(lab: Lab) -> None:
    cluster_of(lab).wait_for(WARM, deadline=120)


def quorum(lab: Lab) -> Quorum:
    found = see_quorum(lab.spec, secrets=lab.secrets).quorum
    assert was_read(found), found.reason
    return found


def leader(lab: Lab) -> int:
    return quorum(lab).leader_id


def test_the_leadership_moves_once(lab: Lab) -> None:
    warm(lab)
    before, run = leader(lab), run_of(lab, Care.LEADERSHIP)
    assert take_care(run)["changed"]
    warm(lab)
    assert leader(lab) != before
    assert "does not lead any more" in take_care(run)["already_done"]


def test_a_controller_that_lost_its_disk_comes_back_while_all_others_are_whole(lab: Lab) -> None:
    warm(lab)
    lost, other = [each for each in lab.spec.controller_ids if each != leader(lab)][:2]
    stop(lab, lost)
    with pytest.raises(Refused, match="holds a metadata log: it lost nothing"):
        take_care(run_of(lab, Care.LOST_DISK, lost))
    shutil.rmtree(Path(lab.spec.controller(lost).log_dir))
    stop(lab, other)
    with pytest.raises(Refused, match=f"controller {lost} was not touched"):
        take_care(run_of(lab, Care.LOST_DISK, lost))
    assert not Path(lab.spec.controller(lost).log_dir).exists()
    cluster_of(lab).play(Play("start_node", other, {}, writes_secrets=False))
    by_hand.wait_until("the other is back", lambda: cluster_of(lab).observe().controllers[other].running is True)
    run = run_of(lab, Care.LOST_DISK, lost)
    by_hand.wait_until("it is allowed", lambda: taken(run))
    warm(lab)
    assert take_care(run)["already_done"] == f"controller {lost} runs"


def test_a_controller_moves_to_another_host_and_votes_from_there(lab: Changed) -> None:
    warm(lab)
    moving = next(each for each in lab.spec.controller_ids if each != leader(lab))
    former, there = lab.spec.controller(moving), on_another_host(lab, moving)
    with pytest.raises(Refused, match=f"(?s)a process with its id fetched .* controller {moving} was not touched"):
        take_care(run_of(there, Care.LOST_DISK, moving))
    stop(lab, moving)
    let_its_service_run_there(lab, there)
    run = run_of(there, Care.LOST_DISK, moving)
    by_hand.wait_until("it is allowed", lambda: taken(run))
    warm(there)
    told = CHECKS["KRB-PRE-115"].run(cluster_of(there).observe(with_hosts=True), there.spec)
    others = sorted({*there.spec.node_ids} - {moving})
    assert [f"node {each} names {moving}@{former.address}" in told.evidence for each in others] == [True] * len(others)
    for each in (*there.spec.brokers, *there.spec.controllers):
        file = Path(each.config_file)
        file.write_text(file.read_text().replace(former.address, there.spec.controller(moving).address))
    for each in sorted(others, key=lambda i: i == leader(there)):
        cluster_of(there).play(restart_node(each, Phase.KRAFT, older_than=time.time()))
        warm(there)
    assert CHECKS["KRB-PRE-115"].run(cluster_of(there).observe(with_hosts=True), there.spec).verdict is Verdict.PASS
    led = leader(there)
    stop(there, next(each for each in there.spec.controller_ids if each not in (moving, led)))
    before = quorum(there).leader_epoch
    cluster_of(there).play(restart_node(led, Phase.KRAFT, older_than=time.time()))

    def elected() -> bool:
        found = see_quorum(there.spec, secrets=there.secrets).quorum
        return was_read(found) and found.leader_epoch > before

    by_hand.wait_until("one of two is elected, by its vote and the other's", elected)


def on_another_host(lab: Lab, moving: int) -> Lab:
    """The same cluster, whose file has this controller at another address, with an empty directory."""

    def moved(each: Controller) -> Controller:
        new = {"host": f"{lab.network}.201", "log_dir": str(Path(each.log_dir).with_name("data-there"))}
        return each.model_copy(update=new) if each.id == moving else each

    return with_spec(lab, controllers=tuple(map(moved, lab.spec.controllers)))


def let_its_service_run_there(lab: Changed, there: Lab) -> None:
    config = layout(lab.as_made).supervisor_config
    spec = lab.as_made.model_copy(update={"controllers": there.spec.controllers})
    config.write_text(supervision.render_configuration(spec))
    subprocess.run([sys.executable, "-m", "supervisor.supervisorctl", "-c", str(config), "update"], check=True)


def taken(run: Run) -> bool:
    try:
        return bool(take_care(run)["changed"])
    except Refused as not_yet:
        print(not_yet)
        return False


def stop(lab: Lab, node: int) -> None:
    cluster_of(lab).play(Play("stop_node", node, {"ends_by": "stop"}, writes_secrets=False))
