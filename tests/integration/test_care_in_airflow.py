"""Care of the quorum by its DAG: a real Airflow, a person at the gate, and another controller that leads."""

from __future__ import annotations

from collections.abc import Iterator

import kept_states
import pytest
from labs import Lab
from stage import Stage

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.io.local.supervision import processes
from kraft_runbook.procedures.see_quorum import see_quorum
from lab.layout import layout

pytestmark = pytest.mark.long
CARE = "quorum_care__lab"


@pytest.fixture(scope="module")
def own_lab() -> Iterator[Lab]:
    """A lab that was migrated and finalized."""
    with kept_states.lab_in(Phase.FINALIZED) as lab:
        yield lab


def leader(lab: Lab) -> int:
    found = see_quorum(lab.spec, secrets=lab.secrets).quorum
    assert was_read(found), found.reason
    return found.leader_id


def pids(lab: Lab) -> dict[int, int]:
    running = processes(layout(lab.spec))
    return {each.id: running[each.service].pid for each in lab.spec.controllers}


def test_the_leadership_moves_by_one_restart_of_the_leader_that_was_signed_for(own_lab: Lab, stage: Stage) -> None:
    led, before = leader(own_lab), pids(own_lab)
    run = stage.start(CARE, care="move the leadership")
    stage.wait(CARE, run, "gate_care.approve", {"awaiting_input"})
    assert f"Restarts controller {led}" in stage.client.gate(CARE, run, "gate_care.approve")["body"]
    assert pids(own_lab) == before, "nobody has signed yet"
    stage.client.answer(CARE, run, "gate_care.approve", "Approve")
    stage.wait(CARE, run, "closing_report", {"success"})
    assert leader(own_lab) != led
    after = pids(own_lab)
    assert {each for each in before if before[each] != after[each]} == {led}, "the leader alone was restarted"
    said = stage.log(CARE, run, "closing_report")
    assert "Every controller of cluster lab runs and is warm" in said
