"""Every DAG of the lab, task by task: ids, order, trigger rules, waits and parameters. Runs, evidence and people's
habits hang on them.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization
from dag_files import dags_of

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Step
from kraft_runbook_airflow.base.sensors import ClusterSensor
from lab import ROOT

EDGES = {
    "metadata_parity_check__lab": "parity <-",
    "way_back_watch__lab": "can_it_go_back <-",
    "rolling_restart__lab": (
        """
        preflight.claim_cluster <-
        preflight.checks <- preflight.claim_cluster
        gate_restart <- preflight.checks
        restart_controllers.controller_N <- gate_restart.confirm
        restart_controllers.active_controller_last.restart <- restart_controllers.controller_103.caught_up
        restart_brokers.broker_N <- restart_controllers.active_controller_last.restart
        closing_report <- restart_brokers.broker_3.in_sync
    """
    ),
    "zk_to_kraft_migration__lab": (
        """
        preflight.claim_cluster <-
        preflight.checks <- preflight.claim_cluster
        gate_start <- preflight.checks
        provision_controllers.controller_101.provision <- gate_start.confirm
        provision_controllers.controller_102.provision <- provision_controllers.controller_101.provision
        provision_controllers.controller_103.provision <- provision_controllers.controller_102.provision
        provision_controllers.quorum_ready <- provision_controllers.controller_103.provision
        roll_brokers_to_hybrid.broker_N <- provision_controllers.quorum_ready
        await_metadata_copy <- roll_brokers_to_hybrid.broker_3.in_sync
        parity_in_hybrid <- await_metadata_copy
        gate_dual_write <- parity_in_hybrid
        roll_brokers_to_kraft.broker_N <- gate_dual_write.confirm
        parity_in_dual_write <- roll_brokers_to_kraft.broker_3.in_sync
        soak <- parity_in_dual_write
        gate_finalize <- soak with parity_again
        finalize_controllers.controller_N <- gate_finalize.confirm
        finalize_controllers.active_controller_last.restart <- finalize_controllers.controller_103.caught_up
        finalize_controllers.finalized <- finalize_controllers.active_controller_last.restart
        finalize_controllers.zookeeper_secrets <- finalize_controllers.finalized
        closing_report <- finalize_controllers.zookeeper_secrets
    """
    ),
    "zk_to_kraft_rollback__lab": (
        """
        plan.claim_cluster <-
        plan.way_back <- plan.claim_cluster
        gate_rollback <- plan.way_back
        restore_quorum <- gate_rollback.confirm
        roll_brokers_back_to_hybrid.broker_N <- restore_quorum
        parity_before_leaving <- roll_brokers_back_to_hybrid.broker_3.in_sync
        leave_kraft <- parity_before_leaving
        restart_cut_off_brokers <- leave_kraft
        roll_brokers_to_zookeeper.broker_N <- restart_cut_off_brokers
        set_controllers_aside.controller_101 <- roll_brokers_to_zookeeper.broker_3.in_sync
        set_controllers_aside.controller_102 <- set_controllers_aside.controller_101
        set_controllers_aside.controller_103 <- set_controllers_aside.controller_102
        verify <- set_controllers_aside.controller_103
        closing_report <- verify
    """
    ),
    "move_consumer_group__lab": (
        """
        preflight.begin <-
        preflight.plan <- preflight.begin
        gate_move_groups <- preflight.plan
    """
        + "".join(
            f"""
        wave_{n}.stop.ask_owner <- {f"wave_{n - 1}.start.started" if n > 1 else "gate_move_groups.confirm"}
        wave_{n}.stop.silent <- wave_{n}.stop.ask_owner
        wave_{n}.move.fence <- wave_{n}.stop.silent
        wave_{n}.move.commit <- wave_{n}.move.fence
        wave_{n}.move.lift_fence <- wave_{n}.move.commit
        wave_{n}.start.ask_owner <- wave_{n}.move.lift_fence
        wave_{n}.start.started <- wave_{n}.start.ask_owner
    """
            for n in range(1, 13)
        )
        + """
        name_who_stayed <- wave_12.start.started
        closing_report <- name_who_stayed
    """
    ),
    "toggle_consumer_group__lab": (
        """
        preflight.begin <-
        preflight.plan <- preflight.begin
        gate_toggle_group <- preflight.plan
        toggle <- gate_toggle_group.confirm
        settled <- toggle
        soak <- settled
        closing_report <- soak
    """
    ),
    "group_watch__lab": "watch <-",
    "cancel_reassignments__lab": (
        """
        preflight.claim_cluster <-
        preflight.list <- preflight.claim_cluster
        gate_cancel <- preflight.list
        cancel <- gate_cancel.confirm
        closing_report <- cancel
    """
    ),
    "change_pace__lab": (
        """
        begin <-
        change <- begin
    """
    ),
    "reassignment_watch__lab": "watch <-",
    "quorum_watch__lab": "watch <-",
    "cluster_watch__lab": "look <-",
    "canary_migration__lab": (
        """
        rehearse <-
        remove_throwaway <- rehearse
    """
    ),
    "quorum_care__lab": (
        """
        preflight.claim_cluster <-
        preflight.checks <- preflight.claim_cluster
        gate_care <- preflight.checks
        take_care <- gate_care.confirm
        warm <- take_care
        closing_report <- warm
    """
    ),
    "move_between_disks__lab": (
        """
        preflight.claim_cluster <-
        preflight.checks <- preflight.claim_cluster
        plan <- preflight.checks
        gate_move <- plan
        carry_out.throttle <- gate_move.confirm
        carry_out.move <- carry_out.throttle
        carry_out.put_throttle_back <- carry_out.move
        carry_out.verify <- carry_out.move, carry_out.put_throttle_back
        closing_report <- carry_out.put_throttle_back, carry_out.verify
    """
    ),
    "unregister_broker__lab": (
        """
        preflight.claim_cluster <-
        preflight.checks <- preflight.claim_cluster
        gate_unregister <- preflight.checks
        unregister <- gate_unregister.confirm
        closing_report <- unregister
    """
    ),
    "quorum_drill__lab": (
        """
        preflight.claim_cluster <-
        preflight.checks <- preflight.claim_cluster
        gate_drill <- preflight.checks
        baseline <- gate_drill.confirm
        faults <- baseline
        mend <- faults
        closing_report <- mend
    """
    ),
    **dict.fromkeys(
        ("reassign_partitions__lab", "restore_assignment__lab"),
        """
        preflight.claim_cluster <-
        preflight.checks <- preflight.claim_cluster
        plan <- preflight.checks
        gate_move <- plan
        carry_out.save <- gate_move.confirm
        carry_out.throttle <- carry_out.save
        carry_out.move <- carry_out.throttle
        carry_out.put_throttles_back <- carry_out.move
        carry_out.prefer_leaders <- carry_out.move, carry_out.put_throttles_back
        carry_out.verify <- carry_out.prefer_leaders
        carry_out.compare_assignment <- carry_out.verify
        closing_report <- carry_out.compare_assignment, carry_out.put_throttles_back
    """,
    ),
}
"""Each task, and behind the arrow the tasks just before it. ``gate_…``: its tasks, one behind the other, with another
before the last one. ``…broker_N``, ``…controller_N``: of each node, its restart and the wait behind it, one node behind
the other.
"""

ALL_DONE = {
    **{
        f"{name}__lab": {"closing_report"}
        for name in (
            "move_consumer_group",
            "quorum_care",
            "rolling_restart",
            "toggle_consumer_group",
            "unregister_broker",
            "zk_to_kraft_migration",
            "zk_to_kraft_rollback",
        )
    },
}
"""The tasks that run whatever happened before; every other one runs after success alone."""
TEARDOWNS = {
    "canary_migration__lab": {"remove_throwaway"},
    "cancel_reassignments__lab": {"closing_report"},
    "reassign_partitions__lab": {"carry_out.put_throttles_back", "closing_report"},
    "restore_assignment__lab": {"carry_out.put_throttles_back", "closing_report"},
    "move_between_disks__lab": {"carry_out.put_throttle_back", "closing_report"},
    "quorum_drill__lab": {"mend", "closing_report"},
}
"""Those that also run where a person marked the run as failed."""

PACE = {
    "dry_run": False,
    "topics": ".*",
    "exclude": "",
    "throttle_mb": None,
    "partitions_a_request": None,
    "moves_a_broker": None,
    "mb_a_broker": None,
    "order": "by name",
    "hours": None,
    "allow_replication_factor": False,
    "allow_racks": False,
    "allow_no_rack": False,
    "approvals_needed": 1,
}
PARAMS = {
    "cancel_reassignments__lab": {
        "dry_run": False,
        "topics": ".*",
        "exclude": "",
        "partitions": None,
        "approvals_needed": 1,
    },
    "change_pace__lab": {"dry_run": False, "throttle_mb": None, "batches": "as they are", "run": None},
    "reassignment_watch__lab": {"dry_run": False},
    "quorum_watch__lab": {"dry_run": False},
    "cluster_watch__lab": {"dry_run": False},
    "canary_migration__lab": {"dry_run": False, "short": False},
    "quorum_care__lab": {
        "dry_run": False,
        "care": "move the leadership",
        "controller": None,
        "approvals_needed": 1,
    },
    "move_between_disks__lab": {
        "dry_run": False,
        "goal": "even the disks",
        "broker": None,
        "directory": None,
        "plan": None,
        "run": None,
        "throttle_mb": None,
        "moves_a_broker": None,
        "order": "by name",
        "hours": None,
        "approvals_needed": 1,
    },
    "unregister_broker__lab": {"dry_run": False, "broker": None, "approvals_needed": 1},
    "quorum_drill__lab": {
        "dry_run": False,
        "fault": "controller failover",
        "broker": None,
        "repeats": 1,
        "stall_budget": 60,
        "seconds": 60,
        "partitions": "",
        "approvals_needed": 1,
    },
    "reassign_partitions__lab": {
        **PACE,
        "goal": "even out",
        "brokers": None,
        "even": False,
        "keep_order": False,
        "by": "replicas",
        "factor": None,
        "plan": None,
    },
    "restore_assignment__lab": {**PACE, "run": None},
    "metadata_parity_check__lab": {"dry_run": False, "full": False},
    "rolling_restart__lab": {"dry_run": False, "nodes": "both", "files": "as they are", "approvals_needed": 1},
    "way_back_watch__lab": {"dry_run": False},
    "move_consumer_group__lab": {
        "dry_run": False,
        "groups": None,
        "direction": "to Kafka",
        "without": None,
        "wave_size": 5,
        "canary": True,
        "commit_interval": 60,
        "members_logs": None,
        "silence_at_most": None,
        "approvals_needed": 1,
    },
    "toggle_consumer_group__lab": {
        "dry_run": False,
        "group": None,
        "direction": "to Kafka",
        "commit_interval": 60,
        "soak_minutes": 10,
        "members_logs": None,
        "silence_at_most": None,
        "approvals_needed": 1,
    },
    "group_watch__lab": {"dry_run": False},
    "zk_to_kraft_migration__lab": {"dry_run": False, "soak_minutes": 60, "approvals_needed": 1},
    "zk_to_kraft_rollback__lab": {
        "dry_run": False,
        "goal": "ZOOKEEPER",
        "gone_controllers": None,
        "approvals_needed": 1,
    },
}

WAITS = {
    "provision_controllers.quorum_ready": (None, "quorum_ready", None, "{{ params.dry_run }}"),
    "warm": (None, "quorum_warm", None, "{{ params.dry_run }}"),
    "await_metadata_copy": (None, "metadata_copied", None, "{{ params.dry_run }}"),
    "finalize_controllers.finalized": (None, "finalized", None, "{{ params.dry_run }}"),
    **{
        f"finalize_controllers.controller_{i}.caught_up": (None, "controller_caught_up", i, "{{ params.dry_run }}")
        for i in (101, 102, 103)
    },
    **{
        f"restart_controllers.controller_{i}.caught_up": (
            None,
            "controller_back",
            i,
            "{{ params.dry_run or params.nodes == 'brokers' }}",
        )
        for i in (101, 102, 103)
    },
    **{
        f"restart_brokers.broker_{i}.in_sync": (
            "broker_back",
            "broker_in_sync",
            i,
            "{{ params.dry_run or params.nodes == 'controllers' }}",
        )
        for i in (1, 2, 3)
    },
    **{
        f"{roll}.broker_{i}.in_sync": (first, "broker_in_sync", i, rehearsed)
        for roll, first, rehearsed in (
            ("roll_brokers_to_hybrid", "broker_registered_as_migrating", "{{ params.dry_run }}"),
            ("roll_brokers_to_kraft", "broker_registered_in_kraft", "{{ params.dry_run }}"),
            ("roll_brokers_back_to_hybrid", "broker_back_in_migration_mode", "{{ params.dry_run }}"),
            (
                "roll_brokers_to_zookeeper",
                "broker_in_zookeeper_mode",
                "{{ params.dry_run or params.goal == 'HYBRID' }}",
            ),
        )
        for i in (1, 2, 3)
    },
}
"""A wait: what must hold first, what then, of which node, and when the run leaves it out."""

LEFT_OUT_WITH_GOAL_HYBRID = {
    Step.DEPROVISION_CONTROLLERS,
    Step.LEAVE_KRAFT,
    Step.ROLL_BROKERS_TO_ZOOKEEPER,
    Step.SET_CONTROLLERS_ASIDE,
}


@pytest.fixture(scope="module")
def dags() -> dict[str, DAG]:
    """Every DAG of every DAG file, for the lab's cluster file."""
    files = sorted((ROOT / "dags").glob("*.py"))
    with pytest.MonkeyPatch.context() as patch:
        return {
            dag_id: dag
            for file in files
            for dag_id, dag in dags_of(file.name, ROOT / "include" / "clusters", patch).items()
        }


def test_each_dag_has_these_tasks_in_this_order(dags: dict[str, DAG]) -> None:
    found = {dag_id: {task.task_id: task.upstream_task_ids for task in dag.tasks} for dag_id, dag in dags.items()}
    assert found == {
        dag_id: {task: set(before) for line in filter(str.strip, text.splitlines()) for task, before in _edges(line)}
        for dag_id, text in EDGES.items()
    }


def _edges(line: str) -> list[tuple[str, list[str]]]:
    task, _, named = line.strip().partition(" <-")
    named, _, again = named.partition(" with ")
    before = [each.strip() for each in named.split(",") if each.strip()]
    if task.startswith("gate_") and "." not in task:
        prove, first = f"{task}.prove", f"{task}.approve"
        edges = [(prove, before), (first, [prove]), (f"{task}.approve_second", [first, prove])]
        return [*edges, *_chain(f"{task}.approve_second", *([f"{task}.{again}"] if again else []), f"{task}.confirm")]
    if task.endswith("_N"):
        nodes, wait = ((1, 2, 3), "in_sync") if task.endswith("broker_N") else ((101, 102, 103), "caught_up")
        each = [f"{task[:-1]}{node}.{what}" for node in nodes for what in ("restart", wait)]
        return [(each[0], before), *_chain(*each)]
    return [(task, before)]


def _chain(*tasks: str) -> list[tuple[str, list[str]]]:
    return [(task, [before]) for before, task in pairwise(tasks)]


def test_each_dag_has_these_parameters_and_schedule(dags: dict[str, DAG]) -> None:
    assert {dag_id: dag.params.dump() for dag_id, dag in dags.items()} == PARAMS
    assert {dag_id: dag.schedule for dag_id, dag in dags.items()} == dict.fromkeys(PARAMS) | {
        "group_watch__lab": "*/10 * * * *",
        "reassignment_watch__lab": "*/10 * * * *",
        "quorum_watch__lab": "*/10 * * * *",
        "cluster_watch__lab": "*/15 * * * *",
        "way_back_watch__lab": "*/10 * * * *",
    }


def test_airflow_shows_what_a_task_does_and_not_the_class_that_does_it(dags: dict[str, DAG]) -> None:
    shown = {
        task["__var"].get("_operator_name", task["__var"]["task_type"])
        for dag in dags.values()
        for task in DagSerialization.to_dict(dag)["dag"]["tasks"]
    }
    assert {"roll brokers to kraft", "leave", "plan moves", "finalize active controller"} <= shown
    assert not shown & {"TakeStep", "TakeSteps"}


def test_only_the_closing_report_runs_whatever_happened(dags: dict[str, DAG]) -> None:
    rules = {(dag_id, task.task_id): str(task.trigger_rule.value) for dag_id, dag in dags.items() for task in dag.tasks}
    assert {at for at, rule in rules.items() if rule == "all_done"} == {
        (dag_id, task) for dag_id, tasks in ALL_DONE.items() for task in tasks
    }
    assert set(rules.values()) == {"all_success", "all_done", "all_done_setup_success", "none_failed"}
    assert [at for at, rule in rules.items() if rule == "none_failed"] == [
        ("move_consumer_group__lab", "name_who_stayed")
    ], "waves that a run does not have are left out"


def test_a_teardown_has_no_setup_that_could_keep_it_from_running_and_fails_the_run_with_it(
    dags: dict[str, DAG],
) -> None:
    """Airflow skips a teardown where every setup before it failed, and ignores its failure unless told not to."""
    found: dict[str, set[str]] = {}
    for dag_id, dag in dags.items():
        assert not [task.task_id for task in dag.tasks if task.is_setup]
        for task in dag.tasks:
            if task.is_teardown:
                # Behind one task alone, such a teardown's success is the run's, though that task failed: a failed
                # rehearsal must be a failed run, and its lease ends what the teardown could not.
                assert task.on_failure_fail_dagrun is (dag_id != "canary_migration__lab"), dag_id
                found.setdefault(dag_id, set()).add(task.task_id)
    assert found == TEARDOWNS


def test_each_wait_waits_for_this(dags: dict[str, DAG]) -> None:
    sensors = [task for dag in dags.values() for task in dag.tasks if isinstance(task, ClusterSensor)]
    found = {each.task_id: (each.first and each.first[0], each.condition, each.node, each.rehearse) for each in sensors}
    assert found == WAITS


@pytest.mark.parametrize("step", Step)
def test_a_rollback_to_hybrid_leaves_out_these_steps(step: Step) -> None:
    because = "not asked for: the goal of this run is HYBRID" if step in LEFT_OUT_WITH_GOAL_HYBRID else None
    assert MIGRATION.left_out(step, {"goal": Phase.HYBRID.value}) == because
    assert MIGRATION.left_out(step, {"goal": Phase.ZOOKEEPER.value}) is None
    assert MIGRATION.left_out(step, {}) is None
