"""What a dry run lists: each controller once, and said where nothing would change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from observations import SPEC, a_controller, both, observation
from recording import AT, run_on

from kraft_runbook.cluster.observation import ClusterObservation, ControllerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.io.hosts import playbooks
from kraft_runbook.io.hosts.playbooks import ConfigDiff, PlaybookResult
from kraft_runbook.migration import plays
from kraft_runbook.runbook.plays import Play
from kraft_runbook.steps.finalization import finalize_active_controller
from kraft_runbook.steps.forward import FINALIZE
from kraft_runbook.steps.handle import RehearsedCluster
from kraft_runbook.steps.node_step import NodeStep, take_step
from kraft_runbook.steps.restart import CONTROLLER, restart_active_controller
from kraft_runbook.steps.run import Run

DIFF = ConfigDiff("/etc/kafka/server.properties", "a=1\n", "a=2\n")
DUAL_WRITE = observation(Phase.DUAL_WRITE)


def cluster(
    monkeypatch: pytest.MonkeyPatch,
    seen: ClusterObservation,
    *,
    changed: tuple[str, ...] = ("Restart",),
    diffs: tuple[ConfigDiff, ...] = (),
) -> RehearsedCluster:
    def rehearsed(_: Any, what: Play, *, check: bool, **__: Any) -> PlaybookResult:
        assert check
        return PlaybookResult(what.playbook, what.node_id, changed, diffs, 1, {}, AT, AT)

    monkeypatch.setattr(playbooks, "play", rehearsed)

    class Shown(RehearsedCluster):
        def observe(self, **_: Any) -> ClusterObservation:
            return seen

    return Shown(SPEC, lambda ref: "a secret", lambda line: None)


Last = Callable[[Run], dict[str, Any]]
ALONE = both(*(a_controller(i, mode=ControllerMode.KRAFT) for i in (102, 103)))(DUAL_WRITE)


@pytest.mark.parametrize(
    ("step", "last", "seen", "order"),
    [
        (CONTROLLER, restart_active_controller, DUAL_WRITE, [102, 103, 101]),
        (FINALIZE, finalize_active_controller, DUAL_WRITE, [102, 103, 101]),
        (FINALIZE, finalize_active_controller, ALONE, [101, 102, 103]),
    ],
)
def test_each_controller_is_listed_once(
    monkeypatch: pytest.MonkeyPatch, step: NodeStep, last: Last, seen: ClusterObservation, order: list[int]
) -> None:
    """Where the active one is the only one left, it has had its turn among the others."""
    made = cluster(monkeypatch, seen)
    run = run_on(made, nodes="both")
    for controller in SPEC.controller_ids:
        take_step(run, step, controller)
    last(run)
    assert [int(each.what.rpartition(" ")[2]) for each in made.acts] == order


@pytest.mark.parametrize(
    ("changed", "diffs", "lines"),
    [((), (), ("nothing to change there",)), (("Restart",), (), ()), (("Write",), (DIFF,), (DIFF.render(),))],
)
def test_a_play_that_would_change_nothing_says_so(
    monkeypatch: pytest.MonkeyPatch, changed: tuple[str, ...], diffs: tuple[ConfigDiff, ...], lines: tuple[str, ...]
) -> None:
    made = cluster(monkeypatch, DUAL_WRITE, changed=changed, diffs=diffs)
    made.play(plays.set_controller_aside(101))
    assert made.acts[0].lines == lines
