"""A confirmation looks again at a node that is too busy to say what it said for the proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from observations import WHY, a_controller, observation
from recording import Evidence, RecordingCluster, run_on

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.restart.operation import RESTART, RESTARTS
from kraft_runbook.runbook.changes import state_of, unread_since
from kraft_runbook.steps.examine import Examined, Shown
from kraft_runbook.steps.gates import confirm, keep_proof, prove
from kraft_runbook.steps.run import Run

WHOLE = observation(Phase.KRAFT)
BUSY = a_controller(102, mode=WHY)(WHOLE)


class OfTheProof(Evidence):
    """Its records are those of the gate's proving task."""

    def records(self) -> tuple[EvidenceRecord, ...]:
        return tuple(replace(each, body={**each.body, "task": f"gate_{RESTART}.prove"}) for each in super().records())


def shows(*looks: ClusterObservation) -> tuple[Callable[[Run, str], Examined], list[ClusterObservation]]:
    """What each look shows, the last one again and again; and those that were not asked for."""
    left = list(looks)

    def examine(run: Run, gate: str) -> Examined:
        seen = left.pop(0) if len(left) > 1 else left[0]
        return Examined(seen, (), RESTARTS.way_back(seen, run.spec))

    return examine, left


def confirmed(tmp_path: Path, *looks: ClusterObservation) -> tuple[RecordingCluster, str, int]:
    """The cluster, why the gate stays closed, and how many looks were left over."""
    cluster = RecordingCluster(WHOLE)
    run = run_on(cluster, OfTheProof(), state=tmp_path)
    proof = prove(run, RESTARTS, RESTART, Shown(), shows(WHOLE)[0], triggered_by=None)[1]
    keep_proof(run, proof, passed=False)
    examine, left = shows(*looks)
    with pytest.raises(Refused) as refused:  # nobody has signed in this test
        confirm(run, RESTARTS, RESTART, examine, lambda _: None)
    return cluster, str(refused.value), len(left)


def test_it_looks_again_until_the_node_says_it(tmp_path: Path) -> None:
    cluster, _, left = confirmed(tmp_path, BUSY, WHOLE)
    assert left == 1 and cluster.paused == cluster.spec.deadlines.poll
    assert "looking again, this may be over in a moment: controller 102 runs (mode not read)" in cluster.told


def test_it_gives_up_after_as_many_looks_as_make_a_node_healthy(tmp_path: Path) -> None:
    cluster, _, _ = confirmed(tmp_path, BUSY)
    assert cluster.paused == (cluster.spec.deadlines.healthy_in_a_row - 1) * cluster.spec.deadlines.poll


def test_one_look_is_enough_where_all_was_read(tmp_path: Path) -> None:
    cluster, _, _ = confirmed(tmp_path, WHOLE)
    assert cluster.paused == 0


def test_what_was_never_read_is_not_looked_for() -> None:
    assert unread_since(state_of(BUSY), state_of(BUSY)) == []
    assert unread_since(state_of(WHOLE), state_of(BUSY)) == ["controller 102 runs (mode not read)"]
