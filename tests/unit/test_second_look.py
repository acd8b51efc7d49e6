"""What blocks a gate or the preflight is looked at again; what lasts still blocks, and costs a few looks."""

from __future__ import annotations

import pytest
from observations import SPEC, apart, broker, observation, part, tree, zookeeper
from recording import RecordingCluster

from kraft_runbook.cluster.observation import ClusterObservation, ControllerZnode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.steps.second_look import Checks, look_and_judge

WELL = observation(Phase.HYBRID)
ELECTION = zookeeper(controller=ControllerZnode(103, 3))(WELL)
N = SPEC.deadlines.healthy_in_a_row


def judge(seen: ClusterObservation, earlier: ClusterObservation | None) -> Checks:
    return CHECKS.run(seen, SPEC, Phase.HYBRID, gate="dual_write", earlier=earlier).results


class Looks(RecordingCluster):
    @property
    def deep(self) -> list[bool]:
        """Of each look, whether it was one."""
        return [look.get("scope") is Scope.FULL for look in self.looks]

    def blocking(self, earlier: ClusterObservation = WELL) -> list[str]:
        _, checks = look_and_judge(self, judge, CHECKS, apart=0.0, earlier=earlier, scope=Scope.FULL)
        return [each.code for each in checks if each.blocks]


def test_what_is_well_is_looked_at_once() -> None:
    looks = Looks(WELL)
    assert (looks.blocking(), looks.deep, looks.told) == ([], [True], [])


def test_an_election_does_not_stop_a_gate() -> None:
    looks = Looks(ELECTION, ELECTION, WELL)
    assert looks.blocking() == []
    assert looks.deep == [True, False, False, True], "quick looks in between, a deep one last"
    assert "KRB-GATE-006 /controller names 103, the quorum's leader is 101" in looks.told[0]


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        (ELECTION, "KRB-GATE-006"),
        (broker(2, running=False)(WELL), "KRB-PRE-004"),
        (part(topics_apart=apart(["lost"]))(WELL), "KRB-GATE-004"),
    ],
)
def test_what_lasts_blocks_after_a_few_looks(seen: ClusterObservation, code: str) -> None:
    looks = Looks(seen)
    assert code in looks.blocking(earlier=seen)
    assert len(looks.told) == N - 1


def test_what_a_quick_look_can_t_see_blocks_at_once() -> None:
    looks = Looks(tree(partitions_without_state=("a-0",), partitions_without_state_count=1)(WELL))
    assert looks.blocking() == ["KRB-PRE-014"]
    assert looks.deep == [True]
