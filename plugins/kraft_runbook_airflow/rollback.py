"""The way back: from any phase before finalization to ZooKeeper, or to HYBRID, leaving alone what is back already."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.phases import Phase, PhaseReading, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import LeftKraft, LogsRead, Planned, Restored
from kraft_runbook.migration import conditions, plays
from kraft_runbook.migration.checks.catalogue import DUAL_WRITING
from kraft_runbook.migration.leaving import Departure, FencePlan, fence_plan, gone_risk, why_no_fence
from kraft_runbook.migration.never_copied import may_have_died_in_the_copy, why_not_proven
from kraft_runbook.migration.signatures import concluded
from kraft_runbook.migration.transitions import TABLE, Gate, Step
from kraft_runbook.migration.way_back import quorum_is_lost, way_back
from kraft_runbook.parity.final_proof import what_lies_behind
from kraft_runbook.parity.parity_report import Verdict
from kraft_runbook.procedures.known_controller import knows_controller
from kraft_runbook.procedures.leave_kraft import leave_kraft, settle_in_zookeeper
from kraft_runbook.procedures.observe import observe
from kraft_runbook.procedures.quorum_logs import read_logs
from kraft_runbook.procedures.settled import observe_settled
from kraft_runbook.procedures.start_controllers import start_controllers
from kraft_runbook.runbook.plays import Play
from kraft_runbook.runbook.way_back import render_estimate
from kraft_runbook_airflow.approvals import begins, require_confirmation
from kraft_runbook_airflow.claims import claim_cluster
from kraft_runbook_airflow.environment import airflow_secrets, cluster_spec, is_dry_run
from kraft_runbook_airflow.journal import record, records_of
from kraft_runbook_airflow.operators import (
    ClusterOperator,
    HostStepOperator,
    PreflightOperator,
    RestartBroker,
    not_asked_for,
)
from kraft_runbook_airflow.parity import ParityOperator
from kraft_runbook_airflow.waiting import wait_for
from kraft_runbook_airflow.way_back_facts import examine_the_hosts_of_those_down, not_deletable, said_to_be_gone

KNOWN_WITHIN = 120.0
"""Seconds that UpdateMetadata of the elected ZooKeeper controller may take to reach every broker (measured: below 1,
once 47).
"""


class PlanRollback(ClusterOperator):
    """Show the way back from here. Refuses where there is none, saying what remains possible."""

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        gone = said_to_be_gone(context, spec)
        seen = examine_the_hosts_of_those_down(
            spec, observe_settled(spec, secrets=airflow_secrets(), tell=self.log.info, gone=gone), gone
        )
        reading = detect_phase(seen)
        behind = (
            what_lies_behind(spec, secrets=airflow_secrets())
            if reading.phase in DUAL_WRITING and not quorum_is_lost(seen)
            else None
        )
        plan = way_back(seen, spec, gone=gone, not_deletable=not_deletable(spec), lies_behind=behind)
        goal = context["params"].get("goal", Phase.ZOOKEEPER.value)
        self.log.info("%s is in %s (%s); the goal is %s", self.cluster, reading.phase, "; ".join(reading.reasons), goal)
        if not plan.possible and not plan.steps:
            raise Refused(
                f"there is no way back now: {plan.why}",
                way_out="mend what is named (docs/rollback.md), then clear this task",
            )
        self.log.info(
            "The way back%s:\n%s",
            render_estimate(plan),
            "\n".join(f"{n}. {step}" for n, step in enumerate(plan.steps, 1)) or "nothing is left to do",
        )
        record(
            context,
            self.cluster,
            Planned(phase=reading.phase.value, goal=goal, steps=plan.steps, risks=plan.risks, gone=tuple(sorted(gone))),
        )
        return {"phase": reading.phase.value, "steps": list(plan.steps)}


class RestoreQuorum(ClusterOperator):
    """Where controllers should lead and none does, start those that are down, with the files they have, once all are
    proven to be in migration mode.

    Not where their own logs prove that they died in the copy before anything was acknowledged: they would copy again,
    and die again.
    """

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        seen = observe_settled(spec, secrets=airflow_secrets(), tell=self.log.info, gone=said_to_be_gone(context, spec))
        lost = quorum_is_lost(seen)
        if not lost:
            self.log.info("already done: the quorum leads, or none is needed")
            return {"started": []}
        if is_dry_run():
            self.log.info(
                "Dry run: would start the controllers, or read their logs where they may have died in the copy: %s",
                lost,
            )
            return {"dry_run": True}
        if self.died_in_the_copy(context, spec, seen):
            return {"started": [], "died_in_the_copy": True}
        return {"started": self.restore(context, spec, seen, lost)}

    def died_in_the_copy(self, context: Any, spec: ClusterSpec, seen: ClusterObservation) -> bool:
        """Whether the controllers' own logs prove that the copy was never committed. Ends those that still run, without
        a leader.

        Raises Refused without the gate's signature.
        """
        if not may_have_died_in_the_copy(seen):
            return False
        self.claim(context)
        require_confirmation(context, spec, Gate.ROLLBACK, seen)
        self.log.info("nothing shows that the copy was completed: reading the controllers' own logs")
        logs = read_logs(spec, stop=True, gone=said_to_be_gone(context, spec), tell=self.log.info)
        why_not = why_not_proven(logs, spec.controller_ids)
        record(
            context,
            self.cluster,
            LogsRead(phase=detect_phase(seen).phase.value, logs=tuple(map(str, logs)), why_not=why_not),
        )
        self.log.info("%s", "\n".join(map(str, logs)))
        self.log.info("%s", why_not or "the copy was never committed: the quorum acknowledged nothing, and stays down")
        return why_not is None

    def restore(self, context: Any, spec: ClusterSpec, seen: ClusterObservation, lost: str) -> list[int]:
        """Start what is down and wait for a leader. Raises Refused without the gate's signature, StepFailed where no
        majority comes up.
        """
        self.claim(context)
        require_confirmation(context, spec, Gate.ROLLBACK, seen)
        begins(context, self.cluster, Gate.ROLLBACK)
        self.log.info("%s: starting the controllers that are down", lost)
        gone = said_to_be_gone(context, spec)
        down = [
            c.id
            for c in observe(spec, secrets=airflow_secrets(), gone=gone).controllers.values()
            if c.running is not True and c.id not in gone
        ]
        started = list(start_controllers(spec, down, secrets=airflow_secrets(), tell=self.log.info, gone=gone))
        wait_for(spec, conditions.QUORUM_LED, deadline=spec.deadlines.quorum, say=self.log.info, gone=gone)
        record(context, self.cluster, Restored(phase=detect_phase(seen).phase.value, why=lost, started=tuple(started)))
        return started


class RestartBrokerBack(RestartBroker):
    """Restart a broker one mode back. Into ZooKeeper mode only once it knows its ZooKeeper controller: else it would
    hang for five minutes.
    """

    def already_done(self, spec: ClusterSpec, seen: ClusterObservation, reading: PhaseReading) -> str | None:
        if self.mode is BrokerMode.HYBRID and seen.brokers[self.node].mode == BrokerMode.ZOOKEEPER:
            return f"broker {self.node} is in ZooKeeper mode, further back"
        if (
            self.mode is BrokerMode.HYBRID
            and may_have_died_in_the_copy(seen)
            and seen.brokers[self.node].mode != BrokerMode.KRAFT
        ):
            return (
                f"nothing shows that a copy was completed, so no broker left migration mode; broker {self.node} is"
                " restarted once the quorum is left"
            )
        return super().already_done(spec, seen, reading)

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        self.gone = said_to_be_gone(context, spec)
        return super().act(context, spec)

    def play(self, spec: ClusterSpec, seen: ClusterObservation) -> Play:
        return plays.restart_broker(spec, self.node, self.mode, way_back=True, gone=self.gone)

    def guard(self, context: Any, spec: ClusterSpec, seen: ClusterObservation) -> None:
        super().guard(context, spec, seen)
        if self.mode is not BrokerMode.ZOOKEEPER or seen.brokers[self.node].running is False:
            return
        if not was_read(seen.zookeeper) or seen.zookeeper.controller is None:
            raise Refused(
                "ZooKeeper names no controller",
                way_out="clear this task once a broker was elected (kraft-runbook observe)",
            )
        controller = seen.zookeeper.controller.broker_id
        unknowing = knows_controller(
            spec, spec.broker(self.node), controller, secrets=airflow_secrets(), within=KNOWN_WITHIN
        )
        if unknowing:
            raise Refused(
                unknowing,
                way_out=(
                    "stop no broker that does not know its controller: it would hang for five minutes. Clear this task"
                    " to look again"
                ),
            )


class ProveBeforeLeaving(ParityOperator):
    """The last full parity. Left out where there are no two stores to compare: before the copy, and after the cluster
    left KRaft.
    """

    def execute(self, context: Any) -> Any:
        unasked = not_asked_for(context, Step.LEAVE_KRAFT)
        if unasked:
            self.log.info("%s", unasked)
            return None
        return super().execute(context)

    def nothing_to_compare(self, reading: PhaseReading) -> Any:
        if may_have_died_in_the_copy(observe(cluster_spec(self.cluster), secrets=airflow_secrets())):
            self.log.info(
                "nothing shows that the copy was completed: leaving proves from the controllers' own logs that it"
                " was not"
            )
            return None
        if reading.phase in (Phase.PRE_MIGRATION, Phase.ZOOKEEPER):
            self.log.info("%s: ZooKeeper is the only store, there is nothing to compare", reading.phase)
            return None
        return super().nothing_to_compare(reading)


class LeaveKraft(RestoreQuorum):
    """Give the controller's office back to ZooKeeper: fence, drain, prove, stop, delete, see every broker follow. Safe
    to kill and clear anywhere.
    """

    ui_color = "#f6d5d5"

    def __init__(self, *, parity_task: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.parity_task = parity_task

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        unasked = not_asked_for(context, Step.LEAVE_KRAFT)
        if unasked:
            self.log.info("%s", unasked)
            return {"not_asked_for": unasked}
        seen = observe_settled(spec, secrets=airflow_secrets(), tell=self.log.info, gone=said_to_be_gone(context, spec))
        lost = quorum_is_lost(seen)
        if lost and not is_dry_run():  # an earlier try was killed in the middle: begin again from a quorum that leads
            if self.died_in_the_copy(context, spec, seen):
                return self._leave_what_was_never_copied(context, spec)
            self.restore(context, spec, seen, lost)
            seen = observe_settled(
                spec, secrets=airflow_secrets(), tell=self.log.info, gone=said_to_be_gone(context, spec)
            )
        reading = detect_phase(seen)
        if is_dry_run():
            self.log.info("Dry run: would fence %s", fence_plan(seen))
            return {"dry_run": True}
        self.claim(context)
        if reading.phase is Phase.ZOOKEEPER:
            require_confirmation(context, spec, Gate.ROLLBACK, seen)  # a /migration that is left is deleted here
            departure = settle_in_zookeeper(
                spec, secrets=airflow_secrets(), tell=self.log.info, known_within=KNOWN_WITHIN
            )
            self.log.info("already done: broker %s holds the office, and every broker knows it", departure.controller)
            return {"already_done": "ZooKeeper holds the office"}
        step = Step.DEPROVISION_CONTROLLERS if reading.phase is Phase.PRE_MIGRATION else Step.LEAVE_KRAFT
        edge = TABLE.require(step, reading)
        require_confirmation(context, spec, Gate(edge.gate), seen)
        gone = said_to_be_gone(context, spec)
        seen = examine_the_hosts_of_those_down(spec, seen, gone)
        self._guard(spec, seen, gone)
        begins(context, self.cluster, Gate.ROLLBACK)
        if step is Step.LEAVE_KRAFT:
            seen = wait_for(
                spec, conditions.READY_TO_LEAVE, deadline=spec.deadlines.metadata_copy, say=self.log.info, gone=gone
            )
        departure = leave_kraft(
            spec,
            fence_plan(seen, gone=gone),
            proven_since=self._proven_since(context) if step is Step.LEAVE_KRAFT else None,
            secrets=airflow_secrets(),
            tell=self.log.info,
            known_within=KNOWN_WITHIN,
            still_mine=lambda: claim_cluster(context, spec),
        )
        return self._report(context, reading.phase, departure)

    def _leave_what_was_never_copied(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        """Every controller died in the copy. A broker that is down waits for nothing here: while nobody leads, no other
        takes over what it led.
        """
        gone = said_to_be_gone(context, spec)
        seen = observe(spec, secrets=airflow_secrets(), gone=gone)
        self._guard(
            spec, replace(seen, brokers={i: b for i, b in seen.brokers.items() if b.running is not False}), gone
        )
        plan = FencePlan(None, tuple(i for i in spec.controller_ids if i not in gone), tuple(sorted(gone)))
        begins(context, self.cluster, Gate.ROLLBACK)
        departure = leave_kraft(
            spec,
            plan,
            proven_since=None,
            secrets=airflow_secrets(),
            tell=self.log.info,
            known_within=KNOWN_WITHIN,
            still_mine=lambda: claim_cluster(context, spec),
        )
        return self._report(context, detect_phase(seen).phase, departure)

    def _guard(self, spec: ClusterSpec, seen: ClusterObservation, gone: Collection[int]) -> None:
        fence = why_no_fence(seen, spec, gone=gone)
        if fence:
            raise Refused(
                f"the quorum can't be fenced: {fence}",
                way_out="docs/rollback.md says what can be done; nothing was changed",
            )
        wrong = [
            f"broker {b.id}" for b in seen.brokers.values() if b.mode not in (BrokerMode.HYBRID, BrokerMode.ZOOKEEPER)
        ]
        if wrong:
            raise Refused(
                f"{', '.join(wrong)} is not proven to run in migration or ZooKeeper mode",
                way_out="bring it back into migration mode first (the roll before this task)",
            )
        if not was_read(seen.zookeeper):
            raise Refused(
                f"ZooKeeper can't be read: {seen.zookeeper.reason}", way_out="make it reachable and clear this task"
            )
        absent = [i for i in seen.brokers if i not in seen.zookeeper.brokers]
        if absent:
            raise Refused(
                f"broker {', '.join(map(str, absent))} is not in /brokers/ids: a ZooKeeper controller would take it for"
                " dead",
                way_out="wait until it is, then clear this task",
            )

    def _proven_since(self, context: Any) -> int:
        compared = context["ti"].xcom_pull(task_ids=self.parity_task) or {}
        found = concluded(
            records_of(context), self.parity_task, compared.get("digest", "")
        )  # an XCom can be written by hand
        if found is None or found.verdict is not Verdict.MATCH or found.offset is None:
            raise Refused(
                "no full parity of this run is on record (a task marked successful by hand proves nothing)",
                way_out=f"clear {self.parity_task}",
            )
        return found.offset

    def _report(self, context: Any, phase: Phase, departure: Departure) -> dict[str, Any]:
        told = departure.to_dict()
        if departure.raised:
            self.log.info(
                "%d state znodes were written again, since their version lay behind the partition's epoch: %s",
                len(departure.raised),
                ", ".join(told["raised"]),
            )
        self.log.info(
            "No metadata could be changed for %s s; ZooKeeper was written up to offset %s, %s touched keys were proven",
            *(told[k] for k in ("window_seconds", "migration_offset", "touched_keys")),
        )
        record(context, self.cluster, LeftKraft(values=told, phase=phase.value))
        return told


class SetControllerAside(HostStepOperator):
    """Stop a controller where it runs, and give its data and configuration a name with the time. Only once every broker
    is back in ZooKeeper mode.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(step=Step.SET_CONTROLLERS_ASIDE, **kwargs)

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        self.gone = said_to_be_gone(context, spec)
        return super().act(context, spec)

    def guard(self, context: Any, spec: ClusterSpec, seen: ClusterObservation) -> None:
        not_back = [b.id for b in seen.brokers.values() if b.mode != BrokerMode.ZOOKEEPER]
        if not_back:
            raise Refused(
                f"broker {', '.join(map(str, not_back))} is not proven to be back in ZooKeeper mode",
                way_out="finish its restart first; the controllers' data may still be needed",
            )

    def already_done(self, spec: ClusterSpec, seen: ClusterObservation, reading: PhaseReading) -> str | None:
        if self.node in self.gone:
            self.log.warning("%s", gone_risk([self.node]))
            return (
                f"controller {self.node} is gone with its host, as the trigger form says: nothing can be set aside"
                " there"
            )
        return super().already_done(spec, seen, reading)

    def play(self, spec: ClusterSpec, seen: ClusterObservation) -> Play:
        return plays.set_controller_aside(self.node)


class VerifyRollback(PreflightOperator):
    """The cluster is where the run was to take it; back in ZooKeeper it passes every check that a new migration begins
    with.
    """

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        goal = Phase(context["params"].get("goal", Phase.ZOOKEEPER.value))
        if is_dry_run():
            self.log.info("Dry run: would see that the cluster is in %s", goal)
            return {"dry_run": True}
        if goal is Phase.HYBRID:
            reading = detect_phase(
                observe_settled(
                    spec, secrets=airflow_secrets(), tell=self.log.info, gone=said_to_be_gone(context, spec)
                )
            )
            if reading.phase in (Phase.DUAL_WRITE, Phase.UNKNOWN):
                raise AirflowFailException(
                    f"the cluster is in {reading.phase}, not in HYBRID: {'; '.join(reading.reasons)}"
                )
            return {"phase": reading.phase.value}
        found = super().act(context, spec)
        if found["phase"] != goal.value:
            raise AirflowFailException(f"the cluster is in {found['phase']}, not in {goal}")
        return found
