"""What blocks a gate or the preflight is looked at again; what lasts still blocks, and costs a few looks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kraft_runbook.cluster.observation import ClusterObservation, ControllerZnode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.procedures.observe import Scope
from kraft_runbook_airflow.base import second_look
from kraft_runbook_airflow.base.second_look import Checks, look_and_judge
from tests.unit.observations import SPEC, apart, broker, observation, part, tree, zookeeper

WELL = observation(Phase.HYBRID)
ELECTION = zookeeper(controller=ControllerZnode(103, 3))(WELL)
N = SPEC.deadlines.healthy_in_a_row


def judge(seen: ClusterObservation, earlier: ClusterObservation | None) -> Checks:
    return CHECKS.run(seen, SPEC, Phase.HYBRID, gate="dual_write", earlier=earlier).results


class Looks:
    """In place of a cluster: the observations in their order, the last one again and again. ``deep``: of each look,
    whether it was one.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *shown: ClusterObservation) -> None:
        self.shown, self.deep, self.told = list(shown), list[bool](), list[str]()
        monkeypatch.setattr(second_look, "observe", lambda *_, **given: self.look(given))
        monkeypatch.setattr(second_look, "observe_settled", lambda *_, **given: self.look(given))
        monkeypatch.setattr(second_look, "airflow_secrets", lambda: None)
        monkeypatch.setattr(second_look, "time", SimpleNamespace(sleep=lambda _: None))

    def look(self, given: dict[str, object]) -> ClusterObservation:
        self.deep.append(given.get("scope") is Scope.FULL)
        return self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]

    def blocking(self, earlier: ClusterObservation = WELL) -> list[str]:
        given = {"tell": self.told.append, "apart": 3.0, "earlier": earlier, "scope": Scope.FULL}
        _, checks = look_and_judge(SPEC, judge, CHECKS, **given)
        return [each.code for each in checks if each.blocks]


def test_what_is_well_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch, WELL)
    assert (looks.blocking(), looks.deep, looks.told) == ([], [True], [])


def test_an_election_does_not_stop_a_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch, ELECTION, ELECTION, WELL)
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
def test_what_lasts_blocks_after_a_few_looks(
    monkeypatch: pytest.MonkeyPatch, seen: ClusterObservation, code: str
) -> None:
    looks = Looks(monkeypatch, seen)
    assert code in looks.blocking(earlier=seen)
    assert len(looks.told) == N - 1


def test_what_a_quick_look_can_t_see_blocks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch, tree(partitions_without_state=("a-0",), partitions_without_state_count=1)(WELL))
    assert looks.blocking() == ["KRB-PRE-014"]
    assert looks.deep == [True]
