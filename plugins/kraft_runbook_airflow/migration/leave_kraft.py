"""Leaving KRaft: the quorum is fenced, drained, proven and stopped, and a ZooKeeper controller leads again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import LeftKraft
from kraft_runbook.gates.signatures import concluded
from kraft_runbook.migration import conditions
from kraft_runbook.migration.leaving import Departure, FencePlan, fence_plan, why_no_fence
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import TABLE, Gate, Step
from kraft_runbook.migration.way_back import quorum_is_lost
from kraft_runbook.parity.parity_report import Verdict
from kraft_runbook.procedures.leave_kraft import leave_kraft, settle_in_zookeeper
from kraft_runbook.steps.back import KNOWN_WITHIN
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.restore_quorum import died_in_the_copy, restore
from kraft_runbook.steps.run import Run
from kraft_runbook.steps.way_back_facts import examine_the_hosts_of_those_down
from kraft_runbook_airflow.base.journal import records_of
from kraft_runbook_airflow.base.operators import ClusterOperator


def leaving(plan: FencePlan) -> Act:
    """The act of leaving KRaft, with the controllers that are stopped, in their order."""
    return Act("leave KRaft in this order", tuple(plan.render().splitlines()))


class LeaveKraft(ClusterOperator):
    """Give the controller role back to ZooKeeper: fence, drain, prove, stop, delete, wait for every broker. Safe
    to kill and clear anywhere.
    """

    ui_color = "#f6d5d5"

    def __init__(self, *, parity_task: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.parity_task = parity_task

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        unasked = MIGRATION.left_out(Step.LEAVE_KRAFT, run.params)
        if unasked:
            self.log.info("%s", unasked)
            return {"not_asked_for": unasked}
        seen = run.cluster.settled()
        lost = quorum_is_lost(seen)
        if lost:  # an earlier try was killed in the middle: begin again from a quorum that leads
            if died_in_the_copy(run, seen):
                return self._leave_what_was_never_copied(run)
            restore(run, seen, lost)
            seen = run.cluster.settled()
        run.claim.take()
        if detect_phase(seen).phase is Phase.ZOOKEEPER:
            return self._settle(run, seen)
        return self._leave(context, run, seen)

    def rehearse(self, context: Any, run: Run) -> dict[str, Any]:
        """Log the plan: the controllers that it would stop, in order, and what it would prove and delete."""
        unasked = MIGRATION.left_out(Step.LEAVE_KRAFT, run.params)
        if unasked:
            self.log.info("%s", unasked)
            return {"not_asked_for": unasked}
        plan = fence_plan(run.cluster.settled(), gone=run.cluster.gone)
        run.cluster.do(leave_kraft, plan, would=[leaving(plan)])
        return {"dry_run": True}

    def _settle(self, run: Run, seen: ClusterObservation) -> dict[str, Any]:
        """ZooKeeper has the controller already. A /migration that is left is deleted, a /controller_epoch that is too
        low is set, and every broker is seen to follow.
        """
        run.signatures.require(MIGRATION, Gate.ROLLBACK, seen)

        def departed(moments: Departure) -> None:
            if "/controller" in moments.deleted:
                _record(run, moments, Phase.ZOOKEEPER)

        departure = run.cluster.do(
            settle_in_zookeeper,
            would=[Act("let the brokers follow a ZooKeeper controller")],
            tell=self.log.info,
            known_within=KNOWN_WITHIN,
            departed=departed,
        )
        assert departure is not None, "a rehearsal ends before"
        self.log.info("already done: broker %s is the controller, and every broker knows it", departure.controller)
        self.log.info("Elections by the ZooKeeper controller: %s", departure.election)
        departed(departure)
        return {"already_done": "a ZooKeeper broker is the controller"}

    def _leave(self, context: Any, run: Run, seen: ClusterObservation) -> dict[str, Any]:
        reading = detect_phase(seen)
        step = Step.DEPROVISION_CONTROLLERS if reading.phase is Phase.PRE_MIGRATION else Step.LEAVE_KRAFT
        edge = TABLE.require(step, reading)
        run.signatures.require(MIGRATION, edge.gate, seen)
        gone = run.cluster.gone
        seen = examine_the_hosts_of_those_down(run.cluster, seen)
        self._guard(run, seen, gone)
        run.signatures.begins(Gate.ROLLBACK)
        if step is Step.LEAVE_KRAFT:
            seen = run.cluster.wait_for(conditions.READY_TO_LEAVE, deadline=run.spec.deadlines.metadata_copy)
        proven_since = self._proven_since(context) if step is Step.LEAVE_KRAFT else None
        departure = self._depart(run, fence_plan(seen, gone=gone), proven_since, reading.phase)
        return self._report(run, reading.phase, departure)

    def _leave_what_was_never_copied(self, run: Run) -> dict[str, Any]:
        """Every controller died in the copy. A broker that is down waits for nothing here: while nobody leads, no other
        takes over what it led.
        """
        gone = run.cluster.gone
        seen = run.cluster.observe()
        self._guard(run, replace(seen, brokers={i: b for i, b in seen.brokers.items() if b.running is not False}), gone)
        plan = FencePlan(None, tuple(i for i in run.spec.controller_ids if i not in gone), tuple(sorted(gone)))
        run.signatures.begins(Gate.ROLLBACK)
        phase = detect_phase(seen).phase
        return self._report(run, phase, self._depart(run, plan, None, phase))

    def _depart(self, run: Run, plan: FencePlan, proven_since: int | None, phase: Phase) -> Departure:
        departure = run.cluster.do(
            leave_kraft,
            plan,
            would=[leaving(plan)],
            proven_since=proven_since,
            tell=self.log.info,
            known_within=KNOWN_WITHIN,
            still_mine=run.claim.renew,
            departed=lambda moments: _record(run, moments, phase),
        )
        assert departure is not None, "a rehearsal ends before"
        return departure

    def _guard(self, run: Run, seen: ClusterObservation, gone: Collection[int]) -> None:
        fence = why_no_fence(seen, run.spec, gone=gone)
        if fence:
            raise Refused(
                f"the quorum can't be fenced: {fence}",
                way_out="nothing was changed; docs/rollback.md says what you can do",
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
                f"broker {', '.join(map(str, absent))} is not in /brokers/ids: a ZooKeeper controller would treat it as"
                " dead",
                way_out="wait until it is there, then clear this task",
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

    def _report(self, run: Run, phase: Phase, departure: Departure) -> dict[str, Any]:
        told = departure.to_dict()
        if departure.raised:
            self.log.info(
                "%d state znodes were written again, since their version was lower than the partition's epoch: %s",
                len(departure.raised),
                ", ".join(told["raised"]),
            )
        self.log.info("%s", "; ".join(departure.figures()))
        self.log.info("Elections by the ZooKeeper controller: %s", departure.election)
        _record(run, departure, phase)
        return told


def _record(run: Run, moments: Departure, phase: Phase) -> None:
    """What is known of the departure by now. A later record of the same one takes its place on the page."""
    run.journal.record(LeftKraft(values=moments.to_dict(), phase=phase.value))
