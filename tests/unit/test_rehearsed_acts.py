"""What a dry run lists: each controller once, nothing that is done, and said where nothing would change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from observations import SPEC, a_controller, both, broker, gauges, observation, zookeeper
from recording import AT, RecordingCluster, run_on

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, Unread, ZkMigrationState
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.io.hosts import playbooks
from kraft_runbook.io.hosts.playbooks import ConfigDiff, PlaybookResult
from kraft_runbook.migration import plays
from kraft_runbook.migration.leaving import Departure, FencePlan
from kraft_runbook.migration.never_copied import LogAccount, may_have_died_in_the_copy
from kraft_runbook.procedures.give_back import what_settling_changes
from kraft_runbook.procedures.quorum_logs import read_logs
from kraft_runbook.runbook.plays import Play
from kraft_runbook.steps.back import BACK_TO_HYBRID
from kraft_runbook.steps.finalization import finalize_active_controller
from kraft_runbook.steps.forward import FINALIZE, PROVISION, TO_KRAFT
from kraft_runbook.steps.handle import Act, RehearsedCluster
from kraft_runbook.steps.leaving import FOLLOW, leave, leaving
from kraft_runbook.steps.node_step import NodeStep, take_step
from kraft_runbook.steps.restart import CONTROLLER, restart_active_controller
from kraft_runbook.steps.restore_quorum import restore_quorum
from kraft_runbook.steps.run import Run

DIFF = ConfigDiff("/etc/kafka/server.properties", "a=1\n", "a=2\n")
DUAL_WRITE = observation(Phase.DUAL_WRITE)
UNREAD = replace(DUAL_WRITE, quorum=Unread("no controller answered"))
ACTIVE = DUAL_WRITE.quorum.leader_id  # type: ignore[union-attr]


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
    return shown(seen)


def shown(seen: ClusterObservation, intended: Departure | None = None) -> RehearsedCluster:
    """Of a cluster that no playbook is rehearsed on. ``intended``: what settling in ZooKeeper would change."""

    class Shown(RehearsedCluster):
        def observe(self, **_: Any) -> ClusterObservation:
            return seen

        settled = observe

        def ask(self, question: Callable[..., Any], *given: Any, **how: Any) -> Any:
            assert question is what_settling_changes and intended is not None
            return intended

    return Shown(SPEC, lambda ref: "a secret", lambda line: None)


Last = Callable[[Run], dict[str, Any]]
ALONE = both(*(a_controller(i, mode=ControllerMode.KRAFT) for i in (102, 103)))(DUAL_WRITE)


@pytest.mark.parametrize(
    ("step", "last", "seen", "order"),
    [
        (CONTROLLER, restart_active_controller, DUAL_WRITE, [102, 103, 101]),
        (FINALIZE, finalize_active_controller, DUAL_WRITE, [102, 103, 101]),
        (FINALIZE, finalize_active_controller, ALONE, [101]),
    ],
)
def test_each_controller_is_listed_once(
    monkeypatch: pytest.MonkeyPatch, step: NodeStep, last: Last, seen: ClusterObservation, order: list[int]
) -> None:
    """Where the active one is the only one left, it has its turn among the others; those that are done have none."""
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


@pytest.mark.parametrize(
    ("step", "node", "why"),
    [
        (PROVISION, 101, "controller 101 runs in migration mode"),
        (TO_KRAFT, 1, "broker 1 is in kraft mode"),
        (BACK_TO_HYBRID, 2, "broker 2 is in hybrid mode"),
    ],
)
def test_a_step_that_is_done_is_not_listed(step: NodeStep, node: int, why: str) -> None:
    """As of a run that goes on where another one stopped."""
    made = shown(broker(2, mode=BrokerMode.HYBRID)(DUAL_WRITE))
    assert take_step(run_on(made), step, node) == {"changed": [], "already_done": why}
    assert made.acts == []


SEEN = "see every broker follow ZooKeeper's controller, and that controller elect a leader"


@pytest.mark.parametrize(
    ("intended", "lines"),
    [
        ({}, [f"1. {SEEN}"]),
        ({"deleted": ("/migration",), "controller_epoch": 4}, ["1. delete /migration", f"2. {SEEN}"]),
        (
            {"deleted": ("/controller",), "controller_epoch": 4},
            ["1. delete /controller, so that a broker is elected anew", f"2. {SEEN}"],
        ),
        (
            {"deleted": ("/migration", "/controller"), "controller_epoch": 4, "epoch_set": 9},
            [
                "1. delete /migration and /controller in one transaction, which also sets /controller_epoch from 4 to"
                " 9, so that a broker is elected anew",
                f"2. {SEEN}",
            ],
        ),
    ],
    ids=["nothing is left", "a /migration is left", "its controller can write nothing", "an epoch is too low"],
)
def test_a_rollback_behind_the_fence_lists_what_it_would_delete_and_set(
    intended: dict[str, Any], lines: list[str]
) -> None:
    made = shown(observation(Phase.ZOOKEEPER), Departure(began_at=AT, **intended))
    leave(run_on(made), parity_task="parity")
    assert made.acts == [Act(FOLLOW.what, tuple(lines))]


@pytest.mark.parametrize("seen", [DUAL_WRITE, UNREAD], ids=["read", "its gauge says that it leads"])
def test_a_rollback_from_dual_write_lists_the_order_of_leaving(seen: ClusterObservation) -> None:
    made = shown(seen)
    leave(run_on(made), parity_task="parity")
    assert [each.what for each in made.acts] == ["leave KRaft in this order"]
    assert any(f"wait until controller {ACTIVE}, the active one, has written" in line for line in made.acts[0].lines)


NO_LEADER = gauges(ACTIVE, active=False)(UNREAD)
NO_MAJORITY = both(*(a_controller(i, running=False) for i in (101, 102)))(DUAL_WRITE)


@pytest.mark.parametrize("seen", [NO_LEADER, NO_MAJORITY])
def test_a_rollback_without_a_leader_lists_the_order_of_one_that_leads_again(seen: ClusterObservation) -> None:
    """restore_quorum starts one before: the run deletes nothing in ZooKeeper that was not drained and proven."""
    made = shown(seen)
    leave(run_on(made), parity_task="parity")
    assert made.acts == [
        Act(
            "leave KRaft in this order",
            (
                "1. raise the version of each state znode that is lower than its partition's epoch",
                "2. stop controllers 101, 102, 103 except the one that is elected: without a majority the quorum can"
                " acknowledge nothing more",
                "3. wait until the elected controller, the active one, has written everything to ZooKeeper; else start"
                " the others again, and nothing has changed",
                "4. prove in ZooKeeper what was changed since the last full parity",
                "5. stop the elected controller",
                "6. delete /migration and, if it names a KRaft controller, /controller with any"
                " /admin/reassign_partitions, in one transaction, which also sets /controller_epoch if the state of a"
                " partition may hold a greater epoch",
                f"7. {SEEN}",
            ),
        )
    ]


MAY_HAVE_DIED = both(
    zookeeper(migration=None),
    *(broker(i, mode=BrokerMode.HYBRID) for i in (1, 2, 3)),
    *(a_controller(i, metrics=Unread("down")) for i in (101, 102, 103)),
)(NO_LEADER)
PROOF = "the controllers' logs prove that the metadata copy was never committed"


def test_where_the_copy_may_have_died_in_the_middle_both_orders_are_listed() -> None:
    """What the controllers' own logs prove decides, and a dry run stops no controller to read them."""
    assert may_have_died_in_the_copy(MAY_HAVE_DIED)
    made = shown(MAY_HAVE_DIED)
    leave(run_on(made), parity_task="parity")
    assert made.acts == [
        leaving(FencePlan(None, (101, 102, 103)), where=f", if {PROOF}"),
        leaving(FencePlan(None, (101, 102, 103)), once_led=True, where=f", unless {PROOF}"),
    ]


ONE_RUNS = both(a_controller(101, running=False), a_controller(103, running=False))(MAY_HAVE_DIED)


def test_where_the_copy_may_have_died_the_stops_for_the_logs_and_the_starts_after_them_are_listed() -> None:
    made = shown(ONE_RUNS)
    assert restore_quorum(run_on(made)) == {"dry_run": True}
    assert [each.what for each in made.acts] == [
        "stop controller 102",
        *(f"start controller {each}, unless {PROOF}" for each in (101, 102, 103)),
    ]


def test_a_controller_that_is_stopped_for_its_log_is_an_act_of_the_run() -> None:
    logs = [LogAccount(each, frozenset({ZkMigrationState.PRE_MIGRATION.value})) for each in (101, 102, 103)]
    made = RecordingCluster(ONE_RUNS, answers={read_logs: lambda *, stop, **_: logs if stop else []})
    assert restore_quorum(run_on(made)) == {"started": [], "died_in_the_copy": True}
    assert made.did == ["stop controller 102"]


def test_a_rollback_lists_the_controllers_that_it_would_start_for_a_leader() -> None:
    down = [a_controller(i, running=False) for i in (101, 102)]
    made = shown(both(*down)(DUAL_WRITE))
    assert restore_quorum(run_on(made)) == {"dry_run": True}
    assert [each.what for each in made.acts] == ["start controller 101", "start controller 102"]
