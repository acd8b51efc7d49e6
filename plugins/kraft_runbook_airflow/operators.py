"""Operators that examine or change one cluster. Each observes first, acts only where something is left to do, and
records what it did.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseOperator

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, was_read
from kraft_runbook.cluster.phases import Phase, PhaseReading, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, SecretMissing, Unreachable
from kraft_runbook.evidence.kinds import AlreadyDone, Began, Checked, Played
from kraft_runbook.io.hosts import playbooks
from kraft_runbook.io.hosts.ansible_runs import remove_what_killed_runs_left
from kraft_runbook.io.hosts.playbooks import PlaybookResult
from kraft_runbook.migration import plays
from kraft_runbook.migration.checks import CheckResult, ChecksReport, Verdict
from kraft_runbook.migration.checks.catalogue import CHECKS, DUAL_WRITING
from kraft_runbook.migration.lost_disk import why_not_anew
from kraft_runbook.migration.transitions import TABLE, Gate, Step
from kraft_runbook.procedures.copy_size import provisioning_size
from kraft_runbook.procedures.observe import Scope, observe
from kraft_runbook.procedures.settled import observe_settled
from kraft_runbook.runbook.plays import Play
from kraft_runbook_airflow.approvals import begins, require_confirmation
from kraft_runbook_airflow.claims import claim_cluster
from kraft_runbook_airflow.dual_write import require_dual_write
from kraft_runbook_airflow.environment import airflow_secrets, cluster_spec, is_dry_run
from kraft_runbook_airflow.journal import record, require_mirrored, require_shared_state, told_to_a_person
from kraft_runbook_airflow.second_look import look_and_judge
from kraft_runbook_airflow.way_back_facts import said_to_be_gone


class ClusterOperator(BaseOperator):
    """Base of the operators on one cluster: an error meant for a person fails the task at once, without a traceback or
    a retry.
    """

    template_fields: Sequence[str] = ()

    def __init__(self, *, cluster: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cluster = cluster

    def execute(self, context: Any) -> Any:
        with told_to_a_person(context, self.cluster):
            if not is_dry_run() and self.follows_a_record(context):
                require_shared_state(context)
            return self.act(context, cluster_spec(self.cluster))

    def act(self, context: Any, spec: ClusterSpec) -> Any:
        raise NotImplementedError

    def follows_a_record(self, context: Any) -> bool:
        """Whether an earlier task of the run has left a record for certain: what runs behind others runs because they
        succeeded.
        """
        return bool(self.upstream_task_ids)

    def claim(self, context: Any) -> None:
        """Make sure that no other run changes this cluster, and that what a killed try left on this machine is gone,
        whether or not this try plays anything.
        """
        spec = cluster_spec(self.cluster)
        try:
            claim_cluster(context, spec)
        except (Unreachable, SecretMissing) as error:
            if detect_phase(observe(spec, secrets=airflow_secrets())).phase is not Phase.FINALIZED:
                raise
            self.log.warning(
                "The claim is not renewed: the migration is final, and ZooKeeper is gone (%s)", error.problem
            )
        remove_what_killed_runs_left()


class ClaimOperator(ClusterOperator):
    """The first task of a run that changes a cluster: refuses while another such run is under way."""

    def act(self, context: Any, spec: ClusterSpec) -> None:
        record(context, self.cluster, Began(dry_run=is_dry_run(), host=socket.gethostname()))
        if is_dry_run():
            self.log.info("Dry run: nothing is changed, so the cluster is not claimed")
            return
        self.claim(context)
        self.log.info("This run alone may change cluster %s", self.cluster)


class PreflightOperator(ClusterOperator):
    """Every check of the observed phase, with a deep read and the hosts examined. A failed or unknown blocking check
    fails the task.
    """

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        def judge(seen: ClusterObservation, earlier: ClusterObservation | None) -> tuple[CheckResult, ...]:
            return CHECKS.run(seen, spec, detect_phase(seen).phase, earlier=earlier).results

        seen, checks = look_and_judge(
            spec,
            judge,
            tell=self.log.info,
            apart=spec.deadlines.poll,
            gone=said_to_be_gone(context, spec),
            scope=Scope.FULL,
            with_hosts=True,
        )
        reading = detect_phase(seen)
        self.log.info("Phase %s: %s", reading.phase, "; ".join(reading.reasons))
        report = ChecksReport(checks)
        self.log.info("%s", report.render_markdown())
        record(context, self.cluster, Checked(phase=reading.phase.value, checks=report.to_dict()))
        require_mirrored(context)
        if report.blocking:
            named = "\n".join(f"{c.code} {c.title}: {c.evidence}\n  What to do: {c.fix}" for c in report.blocking)
            raise Refused(
                f"preflight found {len(report.blocking)} reason(s) not to start:\n{named}",
                way_out="correct what is named above and clear this task",
            )
        return {"phase": reading.phase.value, "passed": sum(c.verdict is Verdict.PASS for c in report.results)}


def not_asked_for(context: Any, step: Step) -> str | None:
    """Why this run leaves the step out; None when it does not."""
    goal = context["params"].get("goal")
    if goal and TABLE.leaves_out(step, goal):
        return f"not asked for: the goal of this run is {goal}"
    return None


class HostStepOperator(ClusterOperator):
    """One playbook on one node, guarded by the table of transitions. Safe to kill and clear at any point."""

    ui_color = "#fde8c8"

    def __init__(self, *, step: Step, node: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.step = step
        self.node = node

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        secrets = airflow_secrets()
        unasked = not_asked_for(context, self.step)
        if unasked:
            self.log.info("%s", unasked)
            return {"changed": [], "not_asked_for": unasked}
        if is_dry_run():
            what = self.play(spec, observe(spec, secrets=secrets))
            result = playbooks.play(spec, what, secrets=secrets, check=True, on_event=self.log.info)
            self._show_plan(result)
            return {"dry_run": True}
        self.claim(context)
        seen = observe_settled(spec, secrets=secrets, tell=self.log.info, gone=said_to_be_gone(context, spec))
        reading = detect_phase(seen)
        done = self.already_done(spec, seen, reading)
        if done:
            self.log.info("already done: %s", done)
            record(
                context,
                self.cluster,
                AlreadyDone(phase=reading.phase.value, step=self.step.value, node_id=self.node, why=done),
            )
            return {"changed": [], "already_done": done}
        self.require_phase(reading, seen)
        require_confirmation(context, spec, Gate(TABLE.edge(self.step).gate), seen, node=self.node)
        self.guard(context, spec, seen)
        begins(context, self.cluster, Gate(TABLE.edge(self.step).gate))
        result = playbooks.play(spec, self.play(spec, seen), secrets=secrets, on_event=self.log.info)
        self.log.info("%s on node %d: %s", result.playbook, self.node, ", ".join(result.changed) or "nothing to change")
        seconds = round((result.finished_at - result.started_at).total_seconds(), 1)
        played = Played(
            phase=reading.phase.value,
            step=self.step.value,
            node_id=self.node,
            changed=result.changed,
            restarted=result.restarted,
            seconds=seconds,
            began_at=result.started_at,
            ended_at=result.finished_at,
        )
        record(context, self.cluster, played)
        return {"changed": list(result.changed), "seconds": seconds}

    def already_done(self, spec: ClusterSpec, seen: ClusterObservation, reading: PhaseReading) -> str | None:
        """Why nothing is left to do on this node; None when something is."""
        return (
            f"the cluster is in {reading.phase}, beyond {self.step.value}"
            if TABLE.already_past(self.step, reading.phase)
            else None
        )

    def require_phase(self, reading: PhaseReading, seen: ClusterObservation) -> None:
        """Raise Refused where the table of transitions does not let this step run in the observed phase."""
        TABLE.require(self.step, reading)

    def guard(self, context: Any, spec: ClusterSpec, seen: ClusterObservation) -> None:
        """Raise Refused where this step must not run now, though the phase allows it."""

    def play(self, spec: ClusterSpec, seen: ClusterObservation) -> Play:
        """What is played on the node."""
        raise NotImplementedError

    def _show_plan(self, result: PlaybookResult) -> None:
        self.log.info(
            "Dry run: %s on node %d would change: %s",
            result.playbook,
            self.node,
            ", ".join(result.changed) or "nothing",
        )
        for diff in result.diffs:
            self.log.info("%s", diff.render())


class ProvisionController(HostStepOperator):
    """Render, format with the cluster's own id, start."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(step=Step.PROVISION_CONTROLLERS, **kwargs)

    def already_done(self, spec: ClusterSpec, seen: ClusterObservation, reading: PhaseReading) -> str | None:
        state = seen.controllers[self.node]
        if state.running is True and state.mode == ControllerMode.MIGRATION:
            return f"controller {self.node} runs in migration mode"
        return None if self._came_down(reading, seen) else super().already_done(spec, seen, reading)

    def require_phase(self, reading: PhaseReading, seen: ClusterObservation) -> None:
        if not self._came_down(reading, seen):
            super().require_phase(reading, seen)

    def _came_down(self, reading: PhaseReading, seen: ClusterObservation) -> bool:
        """Whether this controller ended after the copy, with its disk or without: it is provisioned as before, and
        catches up from the others.
        """
        return reading.phase in (Phase.HYBRID, Phase.DUAL_WRITE) and seen.controllers[self.node].running is False

    def guard(self, context: Any, spec: ClusterSpec, seen: ClusterObservation) -> None:
        if self._came_down(detect_phase(seen), seen):
            unsafe = why_not_anew(seen, self.node)
            if unsafe:
                raise Refused(
                    unsafe,
                    way_out="bring the others up and let them catch up (kraft-runbook observe), then clear this task",
                )
        if was_read(seen.quorum) or not was_read(seen.zookeeper):
            return
        stale = seen.zookeeper.migration
        if stale is not None and not stale.is_blank:
            raise Refused(
                f"/migration of a former try is left (offset {stale.kraft_metadata_offset}): fresh controllers that"
                " find it erase every topic from ZooKeeper",
                way_out=(
                    f"trigger zk_to_kraft_rollback__{self.cluster}, which ends the former try, then clear this task"
                ),
            )
        migrating = seen.brokers_in(BrokerMode.HYBRID)
        running = [c.id for c in seen.controllers.values() if c.running is True]
        if migrating and not running:
            raise Refused(
                f"broker {', '.join(map(str, migrating))} is still in migration mode of a former quorum: it would shut"
                " itself down when fresh controllers start",
                way_out=(
                    f"trigger zk_to_kraft_rollback__{self.cluster}, which restarts it in ZooKeeper mode, then clear"
                    " this task"
                ),
            )

    def play(self, spec: ClusterSpec, seen: ClusterObservation) -> Play:
        if not was_read(seen.zookeeper) or seen.zookeeper.cluster_id is None:
            raise Refused(
                "the cluster's id could not be read from ZooKeeper",
                way_out="make ZooKeeper reachable and clear this task",
            )
        size = provisioning_size(spec, self.node, secrets=airflow_secrets(), tell=self.log.info)
        return plays.provision_controller(spec, self.node, seen.zookeeper.cluster_id, size=size)


class RestartBroker(HostStepOperator):
    """Render the configuration of the wanted mode and restart the broker once, if it does not run with it already."""

    def __init__(self, *, mode: BrokerMode, step: Step | None = None, **kwargs: Any) -> None:
        forward = Step.ROLL_BROKERS_TO_KRAFT if mode is BrokerMode.KRAFT else Step.ROLL_BROKERS_TO_HYBRID
        super().__init__(step=step or forward, **kwargs)
        self.mode = mode

    def already_done(self, spec: ClusterSpec, seen: ClusterObservation, reading: PhaseReading) -> str | None:
        state = seen.brokers[self.node]
        if state.running is True and state.mode == self.mode:
            return f"broker {self.node} is in {self.mode.value} mode"
        return None if self._left_behind(reading, seen) else super().already_done(spec, seen, reading)

    def require_phase(self, reading: PhaseReading, seen: ClusterObservation) -> None:
        if self._left_behind(reading, seen):
            self.log.error(
                "The migration was finalized while broker %d was in migration mode. KRaft mode is the only way left for"
                " it (docs/finalization.md)",
                self.node,
            )
            return
        super().require_phase(reading, seen)

    def _left_behind(self, reading: PhaseReading, seen: ClusterObservation) -> bool:
        """Whether a hand finalized the migration in the middle of the roll into KRaft mode, before this
        broker's turn.
        """
        return (
            self.mode is BrokerMode.KRAFT
            and reading.phase is Phase.FINALIZED
            and seen.brokers[self.node].mode != BrokerMode.KRAFT
        )

    def guard(self, context: Any, spec: ClusterSpec, seen: ClusterObservation) -> None:
        ended = seen.brokers[self.node].running is False  # starting it takes nothing away
        others_down = [b.id for b in seen.brokers.values() if b.id != self.node and b.running is not True]
        if others_down and not ended:
            raise Refused(
                f"broker {', '.join(map(str, others_down))} does not answer; stopping broker {self.node} too could make"
                " partitions unavailable",
                way_out="bring it back into every ISR, then clear this task",
            )
        if not ended:
            self.require_others_in_sync(seen)
        without_flag = [c.id for c in seen.controllers.values() if c.mode == ControllerMode.KRAFT]
        if without_flag and detect_phase(seen).phase is not Phase.FINALIZED:
            raise Refused(
                f"controller {', '.join(map(str, without_flag))} runs without the migration flag: the first time it"
                " leads, the migration is final, whatever the brokers are",
                way_out=(
                    "restart it with zookeeper.metadata.migration.enable=true before it is elected, then clear this"
                    " task"
                ),
            )
        if self.mode is BrokerMode.KRAFT and detect_phase(seen).phase in DUAL_WRITING:
            require_dual_write(spec, seen, tell=self.log.info)

    def require_others_in_sync(self, seen: ClusterObservation) -> None:
        """Raise Refused where a replica on another broker is out of sync."""
        if not was_read(seen.topics):
            raise Refused(
                f"the state of the partitions could not be read: {seen.topics.reason}",
                way_out="make the brokers' listener reachable and clear this task",
            )
        lagging = {b: n for b, n in seen.topics.out_of_sync_by_broker.items() if b != self.node and n}
        if lagging:
            raise Refused(
                "replicas on other brokers are out of sync"
                f" ({', '.join(f'broker {b}: {n}' for b, n in lagging.items())})",
                way_out=f"wait until they are in sync, then clear this task; broker {self.node} was not touched",
            )

    def play(self, spec: ClusterSpec, seen: ClusterObservation) -> Play:
        finalized = detect_phase(seen).phase is Phase.FINALIZED
        return plays.restart_broker(spec, self.node, self.mode, finalized=finalized)
