"""Care of a real quorum: the leadership moves, and a controller that lost its disk comes back; one at a time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import by_hand
import pytest
from kept_journal import Kept
from labs import Lab, lab_of
from recording import run_on
from test_drill import with_spec

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Checked
from kraft_runbook.procedures.see_quorum import see_quorum
from kraft_runbook.quorum.care import WARM
from kraft_runbook.quorum.care_rules import Care, CareForm, whom
from kraft_runbook.runbook.plays import Play
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.quorum_care import take_care
from kraft_runbook.steps.run import Run

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
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


def leader(lab: Lab) -> int:
    return int(see_quorum(lab.spec, secrets=lab.secrets).quorum.leader_id)  # type: ignore[union-attr]


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
    by_hand.wait_until("it is allowed", lambda: taken(lab, lost))
    warm(lab)
    assert take_care(run_of(lab, Care.LOST_DISK, lost))["already_done"] == f"controller {lost} runs"


def taken(lab: Lab, lost: int) -> bool:
    try:
        return bool(take_care(run_of(lab, Care.LOST_DISK, lost))["changed"])
    except Refused as not_yet:
        print(not_yet)
        return False


def stop(lab: Lab, node: int) -> None:
    cluster_of(lab).play(Play("stop_node", node, {"ends_by": "stop"}, writes_secrets=False))
