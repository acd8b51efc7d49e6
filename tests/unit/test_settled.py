"""An UNKNOWN phase is looked at again before it is believed: how often, how long, and what is said meanwhile."""

from __future__ import annotations

import pytest
from observations import SPEC, WHY, a_controller, both, gauges, observation, part, zookeeper

from kraft_runbook.cluster.observation import ClusterObservation, ControllerMode, ControllerZnode, ZkMigrationState
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.procedures.settled import observe_settled

CLEAR = observation(Phase.PRE_MIGRATION)
NOT_PUBLISHED = both(
    *(gauges(i, zk_migration_state=ZkMigrationState.NOT_PUBLISHED) for i in (101, 102, 103)), part(quorum=WHY)
)
STARTING = both(NOT_PUBLISHED, zookeeper(controller=ControllerZnode(101, 4)))(observation(Phase.PRE_MIGRATION))
LASTING = both(NOT_PUBLISHED, a_controller(102, mode=ControllerMode.KRAFT))(observation(Phase.PRE_MIGRATION))
N = SPEC.deadlines.healthy_in_a_row


class Looks:
    """In place of a cluster: the observations in their order, the last one again and again; and a clock that only
    sleeping moves.
    """

    def __init__(self, *shown: ClusterObservation) -> None:
        self.shown, self.deep, self.now, self.told = list(shown), [], 0.0, list[str]()
        self.takes: list[float] = []

    def observe(
        self, spec: object, *, secrets: object, scope: Scope = Scope.LIVE, with_hosts: bool = False, gone: object = ()
    ) -> ClusterObservation:
        self.deep.append(scope is Scope.FULL)
        self.now += self.takes.pop(0) if self.takes else 0
        return self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def settle(self, **options: object) -> Phase:
        options |= {"look": self.observe, "sleep": self.sleep, "monotonic": lambda: self.now}
        seen = observe_settled(SPEC, secrets=environment_secrets({}), tell=self.told.append, **options)  # type: ignore[arg-type]
        return detect_phase(seen).phase


def test_a_clear_phase_is_looked_at_once() -> None:
    looks = Looks(CLEAR)
    assert looks.settle() is Phase.PRE_MIGRATION
    assert (looks.deep, looks.told, looks.now) == ([False], [], 0.0)


def test_a_node_that_starts_is_given_its_time_and_named_once() -> None:
    looks = Looks(*[STARTING] * 20, CLEAR)
    assert looks.settle() is Phase.PRE_MIGRATION
    assert len(looks.told) == 1 and "/controller names KRaft controller 101" in looks.told[0]


def test_a_start_that_never_ends_is_refused_at_the_deadline() -> None:
    looks = Looks(STARTING)
    assert looks.settle() is Phase.UNKNOWN
    assert looks.now == pytest.approx(SPEC.deadlines.quorum, abs=2 * SPEC.deadlines.poll)
    looks = Looks(STARTING)
    assert looks.settle(within=5.0) is Phase.UNKNOWN
    assert looks.now == pytest.approx(5.0, abs=2 * SPEC.deadlines.poll)


def test_a_contradiction_that_is_no_start_is_refused_after_a_few_looks() -> None:
    looks = Looks(LASTING)
    assert looks.settle() is Phase.UNKNOWN
    assert len(looks.deep) == N + 1, "the last one as it was asked for"


def test_time_in_which_nobody_looked_does_not_count() -> None:
    """A deep look of minutes, and a machine that stood still between two looks."""
    looks = Looks(STARTING, STARTING, STARTING, CLEAR)
    looks.takes = [1000.0, 1000.0]
    assert looks.settle(scope=Scope.FULL) is Phase.PRE_MIGRATION


def test_only_what_lasts_in_a_row_counts() -> None:
    looks = Looks(*[LASTING] * (N - 1), STARTING, *[LASTING] * (N - 1), CLEAR)
    assert looks.settle() is Phase.PRE_MIGRATION


def test_the_looks_in_between_are_quick_and_a_deep_one_comes_last() -> None:
    looks = Looks(STARTING, STARTING, CLEAR)
    assert looks.settle(scope=Scope.FULL, with_hosts=True) is Phase.PRE_MIGRATION
    assert looks.deep == [True, False, False, True]
    looks = Looks(LASTING)
    assert looks.settle(scope=Scope.FULL) is Phase.UNKNOWN
    assert looks.deep == [True, *[False] * (N - 1), True]
