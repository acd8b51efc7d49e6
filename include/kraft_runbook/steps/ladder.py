"""The rehearsal's ladder: the migration forward, back, forward again and finalized, by the very steps, procedures and
playbooks of a real one, on a throwaway cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.observation import BrokerMode, ControllerZnode, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.evidence.kinds import Compared
from kraft_runbook.io.zookeeper.read_state import read_zookeeper
from kraft_runbook.migration import conditions
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.parity.parity_report import ParityReport
from kraft_runbook.parity.parity_report import Verdict as Parity
from kraft_runbook.procedures.print_tree import print_tree
from kraft_runbook.procedures.throwaway_cluster import ThrowawayCluster
from kraft_runbook.rehearsal.tree_prints import PackedPrints, changes_between, elected
from kraft_runbook.rehearsal.verdict import MISMATCH, TREE_CHANGED, Finding, Measured, Rung, Verdict
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.steps import cut_off_brokers, leaving
from kraft_runbook.steps.back import BACK_TO_HYBRID, SET_ASIDE, TO_ZOOKEEPER
from kraft_runbook.steps.finalization import finalize_active_controller, forget_zookeeper_secrets
from kraft_runbook.steps.forward import FINALIZE, PROVISION, TO_HYBRID, TO_KRAFT
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.judged_gates import JudgedPorts, judge_gate, of_the_tree
from kraft_runbook.steps.node_step import NodeStep, take_step
from kraft_runbook.steps.rollback import plan_rollback
from kraft_runbook.steps.run import Run
from kraft_runbook.steps.waiting import Wait

READY = "Ready to serve as the new controller"
"""What a ZooKeeper-mode broker logs once it is the controller. Stopped before, with 200,000 partitions, its SIGTERM
hangs for more than 330 s (measured).
"""
READY_WITHIN = 900.0
NO_LAG_WITHIN = 300.0
TRIES = 5
"""Of leaving KRaft, and of a step that was refused before it changed anything: tried again, as a person would."""
AGAIN = 10.0
"""Seconds before a refused step is taken again: beside a load of 30 on two cores one look at the brokers in a rehearsal
got no answer, and the next one did (measured).
"""
LEAVE, PARITY_BEFORE_LEAVING = "leave_kraft", "parity_before_leaving"
COPY, WINDOW = "copy", "window"
"""Spans of their own, beside the rungs: Kafka's first copy, and the window of the way back."""

NEVER_MENDED = frozenset({"KRB-PRE-029"})
"""Checks of the start gate that nothing here mends, while Kafka's copy would be waited for: no stand-in comes back into
an ISR that it was not in when the tree was copied.
"""

Compare = Callable[..., ParityReport]


def holder_of(cluster: Cluster) -> ControllerZnode | None:
    """What /controller holds. Raises RunbookError."""
    state, _ = read_zookeeper(cluster.spec.ensemble, secrets=cluster.secrets, deep=None, timeout=10.0)
    return state.controller


class RungEnded(Exception):
    """A rung can't go on, for these reasons."""

    def __init__(self, *found: Finding) -> None:
        self.found = found
        super().__init__("; ".join(each.what for each in found))


@dataclass
class Ladder:
    """``done``: the rungs so far; ``found``: reasons not to pass that did not end it; ``measured``: by ladder alone.
    ``refused``: each try after which another one was made, or could have been, with its reason.
    ``judge``, ``leave`` and ``take``: how a gate is judged, KRaft is left, a step is taken. ``holder``: how /controller
    is read.
    """

    throwaway: ThrowawayCluster
    cluster: Cluster
    compare: Compare
    evidence: Path
    judge: Callable[..., tuple[Finding, ...]] = judge_gate
    leave: Callable[..., dict[str, Any]] = leaving.leave
    take: Callable[[Run, NodeStep, int], object] = take_step
    holder: Callable[[Cluster], ControllerZnode | None] = holder_of
    done: list[Rung] = field(default_factory=list)
    found: list[Finding] = field(default_factory=list)
    measured: Measured = field(default_factory=Measured)
    refused: list[str] = field(default_factory=list)
    before: PackedPrints = field(default_factory=PackedPrints)
    _ports: JudgedPorts | None = None

    @property
    def judged(self) -> bool:
        """Whether a gate was judged."""
        return self._ports is not None and bool(self._ports.judged)

    def climb(self, wanted: Iterable[Rung]) -> None:
        """Rung by rung. Raises RungEnded, RunbookError."""
        acts: dict[Rung, Callable[[], None]] = {
            Rung.FORWARD: self.forward,
            Rung.PARITY_IN_HYBRID: lambda: self.parity("parity_in_hybrid"),
            Rung.TO_KRAFT: self.to_kraft,
            Rung.PARITY_IN_KRAFT: lambda: self.parity("parity_in_dual_write"),
            Rung.BACK: self.back,
            Rung.SAME_TREE: self.same_tree,
            Rung.FORWARD_AGAIN: self.forward_again,
            Rung.PARITY_AGAIN: lambda: self.parity("parity_again"),
            Rung.FINALIZE: self.finalize,
            Rung.PARITY_FINALIZED: lambda: self.parity("parity_finalized", final=True),
        }
        for rung in wanted:
            if rung in acts:
                self.cluster.tell(f"-- {rung}")
                with self.throwaway.usage.span(rung):
                    acts[rung]()
                self.done.append(rung)

    def _begin(self, climb: str) -> tuple[Run, JudgedPorts]:
        self._ports = JudgedPorts(self.cluster, self.evidence, climb)
        return self._ports.run(), self._ports

    def _go_on(self, task: str) -> tuple[Run, JudgedPorts]:
        assert self._ports is not None, "a climb begins with forward"
        self._ports.task = task
        return self._ports.run(), self._ports

    # -- forward -------------------------------------------------------------------------------------------------------

    def forward(self) -> None:
        """To dual write, from the tree as the throwaway's own ZooKeeper controller has it once it serves: it elects
        leaders at its start, and makes znodes that the copy lacks. This tree is what ``same_tree`` compares with.
        """
        self.await_a_controller()
        self.before = PackedPrints.of(self.cluster.ask(print_tree))
        self._forward("forward and back")

    def _forward(self, climb: str) -> None:
        """Provision the controllers, stand-ins and seats into migration mode, until Kafka's copy is done and dual write
        runs. What blocks at the start gate is a finding; Kafka itself judges the metadata all the same.
        """
        run, ports = self._begin(climb)
        ports.task = "gate_start"
        found = self._judge_start(ports)
        if any(each.code in NEVER_MENDED for each in found):
            raise RungEnded()
        deadlines = self.cluster.spec.deadlines
        for controller in self.cluster.spec.controllers:
            self._take(PROVISION, controller.id)
        run.cluster.wait_for(conditions.QUORUM_READY, deadline=deadlines.quorum)
        self.throwaway.let_stand_ins_be(BrokerMode.HYBRID)
        for place, seat in enumerate(self._controller_last(), 1):
            self._take(TO_HYBRID, seat.id)
            if place < len(self.cluster.spec.brokers):
                self._await_broker(seat.id, conditions.BROKER_REGISTERED_AS_MIGRATING)
        seen = run.cluster.wait_for(conditions.METADATA_COPIED, deadline=deadlines.metadata_copy)
        span = seen.quorum.copy if was_read(seen.quorum) else None
        if span is not None and self.measured.copy is None:
            self.measured = replace(self.measured, copy=span.seconds, copied_records=span.records)
            self.throwaway.usage.spans[COPY] = (span.began_at.timestamp(), span.ended_at.timestamp())

    def _judge_start(self, ports: JudgedPorts) -> tuple[Finding, ...]:
        """The start gate. Of what it found, the tree's alone is kept where a seat has ended meanwhile, of a znode for
        one: its port may be open, and it may lead, before it has read all. Raises StepFailed then.
        """
        known = list(self.found)
        found = self._judge(Gate.START)
        try:
            self.await_a_controller()
        except StepFailed:
            if self.throwaway.ended(seat.service for seat in self.cluster.spec.brokers):
                self.found = [each for each in self.found if each in known or of_the_tree(each)]
                ports.judged.discard(Gate.START)
            raise
        return found

    def forward_again(self) -> None:
        """A second time, on the tree that the first one left. Nothing is compared with that afterwards."""
        self.await_a_controller()
        self._forward("forward to the end")
        self.to_kraft()

    def to_kraft(self) -> None:
        """Seats and stand-ins into KRaft mode, while ZooKeeper is still written."""
        self._go_on("gate_dual_write")
        self._require(self._judge(Gate.DUAL_WRITE))
        for seat in self.cluster.spec.brokers:
            self._take(TO_KRAFT, seat.id)
            self._await_broker(seat.id, conditions.BROKER_REGISTERED_IN_KRAFT)
        self.throwaway.let_stand_ins_be(BrokerMode.KRAFT, unfenced=True)

    # -- back ----------------------------------------------------------------------------------------------------------

    def back(self) -> None:
        """As a rollback, up to controllers that are set aside and seats in ZooKeeper mode."""
        run, ports = self._go_on("plan")
        plan_rollback(run)
        ports.task = "gate_rollback"
        self._require(self._judge(Gate.ROLLBACK))
        self.throwaway.let_stand_ins_be(BrokerMode.HYBRID, unfenced=True)
        for seat in self.cluster.spec.brokers:
            self._take(BACK_TO_HYBRID, seat.id)
            self._await_broker(seat.id, conditions.BROKER_BACK_IN_MIGRATION_MODE)
        self.parity(PARITY_BEFORE_LEAVING)
        self._leave()
        self.throwaway.let_stand_ins_be(BrokerMode.ZOOKEEPER)
        self.await_a_controller(may_have_ended=True)  # it may be cut off, and restarted first
        run, _ = self._go_on("restart_cut_off_brokers")
        cut_off_brokers.restart_cut_off_brokers(run, left_task=LEAVE)
        for seat in self._controller_last():
            self._take(TO_ZOOKEEPER, seat.id)
            self._await_broker(seat.id, conditions.BROKER_IN_ZOOKEEPER_MODE)
        self._take_at_once(SET_ASIDE, self.cluster.spec.controller_ids)
        reading = detect_phase(self.cluster.settled(topics=False))
        if reading.phase is not Phase.ZOOKEEPER:
            why = f"after the way back the cluster is in {reading.phase}: {'; '.join(reading.reasons)}"
            raise RungEnded(Finding(Verdict.FAILED, why))

    def _leave(self) -> None:
        """Leave KRaft once dual write lags by nothing; a fence that is lifted again is tried again. Raises RungEnded
        with the reason of each try where all were in vain.
        """
        reasons: list[str] = []
        for number in range(1, TRIES + 1):
            self.await_no_lag()
            self.measured = replace(self.measured, tries=number)
            run, ports = self._go_on(LEAVE)
            try:
                told = self.leave(run, parity_task=PARITY_BEFORE_LEAVING)
            except (StepFailed, Refused) as refused:
                self._note_refusal(number, "to leave KRaft", refused)
                reasons.append(f"{number}. {refused.problem}")
                if number == TRIES:
                    why = f"KRaft was left at none of {TRIES} tries: {'; '.join(reasons)}"
                    raise RungEnded(Finding(Verdict.INCONCLUSIVE, why)) from refused
                self.cluster.wait_for(conditions.QUORUM_WHOLE, deadline=self.cluster.spec.deadlines.quorum)
                continue
            ports.answers[LEAVE] = told
            window = told.get("window_seconds")
            if window is not None:
                self.measured = replace(self.measured, window=float(window))
                began, ended = (datetime.fromisoformat(told[each]).timestamp() for each in ("fenced_at", "known_at"))
                self.throwaway.usage.spans[WINDOW] = (began, ended)
            return

    def await_no_lag(self) -> None:
        """Wait until the active controller shows no write-behind lag. Raises StepFailed."""
        ends = self.cluster.now() + NO_LAG_WITHIN
        rows = 0
        while rows < self.cluster.spec.deadlines.healthy_in_a_row:
            active = self.cluster.observe(topics=False).active_controller
            lag = active.metrics.zk_write_behind_lag if active and was_read(active.metrics) else None
            rows = rows + 1 if lag == 0 else 0
            if self.cluster.now() > ends:
                raise StepFailed(
                    f"dual write still lags after {NO_LAG_WITHIN:.0f} s: ZkWriteBehindLag is {lag}",
                    way_out="begin the rehearsal again when this machine is less busy",
                )
            self.cluster.pause(self.cluster.spec.deadlines.poll)

    def same_tree(self) -> None:
        """All metadata in ZooKeeper (``tree_prints.belongs``) is as it was before the way forward, but for the one
        election that leaving KRaft holds as a proof. Raises RungEnded.
        """
        assert self._ports is not None, "a climb begins with forward"
        given = elected(str(self._ports.answers.get(LEAVE, {}).get("election", "")))
        changed = changes_between(self.before.by_path(), self.cluster.ask(print_tree), elected=given)
        compared, self.before = len(self.before), PackedPrints()
        self.measured = replace(self.measured, respelt=len(changed.respelt))
        self.cluster.tell(f"{compared} znodes compared, {len(changed.respelt)} of them respelt")
        if changed.wrong:
            why = f"the tree is not as it was: {'; '.join(changed.wrong)}"
            raise RungEnded(Finding(Verdict.FAILED, why, TREE_CHANGED))

    # -- the end -------------------------------------------------------------------------------------------------------

    def finalize(self) -> None:
        """Every controller out of migration mode, the active one last; then ZooKeeper's secrets off the hosts."""
        run, _ = self._go_on("gate_finalize")
        self._require(self._judge(Gate.FINALIZE))
        deadlines = self.cluster.spec.deadlines
        for controller in self.cluster.spec.controllers:
            self._take(FINALIZE, controller.id)
            run.cluster.wait_for(conditions.CONTROLLER_CAUGHT_UP, deadline=deadlines.quorum, node_id=controller.id)
        run, _ = self._go_on("active_controller_last")
        finalize_active_controller(run)
        run.cluster.wait_for(conditions.FINALIZED, deadline=deadlines.finalization)
        run, _ = self._go_on("zookeeper_secrets")
        forget_zookeeper_secrets(run)

    # -- at every rung -------------------------------------------------------------------------------------------------

    def parity(self, task: str, *, final: bool = False) -> None:
        """Compare everything. Raises RungEnded for anything but a MATCH."""
        self.throwaway.give_back()
        run, ports = self._go_on(task)
        proven = self.evidence / "proven"
        how: dict[str, Any] = {"baseline": proven} if final else {"save_proven": [proven]}
        report: ParityReport = run.cluster.ask(self.compare, **how)
        compared = Compared(
            values=report.to_dict(),
            verdict=report.verdict,
            digest=report.digest,
            offset=report.migration_offset,
            report="",
            final=True,
            phase=detect_phase(run.cluster.settled(topics=False)).phase.value,
        )
        run.journal.record(compared)
        ports.answers[task] = {"digest": report.digest}
        self.cluster.tell(f"{task}: {report.verdict}")
        if report.verdict is not Parity.MATCH:
            verdict = Verdict.FAILED if report.verdict is Parity.MISMATCH else Verdict.INCONCLUSIVE
            said = " ".join(report.render_text().split())[:600]
            raise RungEnded(Finding(verdict, f"{task} is {report.verdict}: {said}", MISMATCH))

    def _judge(self, gate: Gate) -> tuple[Finding, ...]:
        assert self._ports is not None, "a climb begins with forward"
        usage = self.throwaway.usage
        began = usage.now()
        found = self.judge(self._ports.run(), self._ports, gate, lambda: usage.between(began, usage.now()))
        self.found += [each for each in found if each not in self.found]
        return found

    def _require(self, found: tuple[Finding, ...]) -> None:
        if found:
            raise RungEnded()

    def _take(self, step: NodeStep, node: int) -> None:
        """What a guard refuses is taken again, as a person clears its task. Raises Refused at last, StepFailed."""
        assert self._ports is not None, "a climb begins with forward"
        run = replace(self._ports, task=f"{step.step}.{node}").run()
        for number in range(1, TRIES + 1):
            try:
                self.take(run, step, node)
                return
            except Refused as refused:
                self._note_refusal(number, f"of {step.step} on node {node}", refused)
                if number == TRIES:
                    raise
                self.cluster.pause(AGAIN)

    def _note_refusal(self, number: int, of_what: str, refused: StepFailed | Refused) -> None:
        told = f"try {number} of {TRIES} {of_what}: {refused.problem}"
        self.refused.append(told)
        self.cluster.tell(told)

    def _take_at_once(self, step: NodeStep, nodes: Sequence[int]) -> None:
        """A step on nodes none of which waits for another: all have ended when this returns. Raises as ``_take``."""
        with ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(partial(self._take, step), nodes))

    def _await_broker(self, node: int, registered: Condition) -> None:
        """As the sensor behind each restart: registered, and in every ISR."""
        deadlines = self.cluster.spec.deadlines
        wait = Wait(
            self.cluster,
            conditions.BROKER_IN_SYNC,
            deadlines.in_sync,
            node,
            first=(registered, deadlines.registration),
        )
        while not wait.look():
            self.cluster.pause(deadlines.poll)

    def _controller_last(self) -> Iterator[Broker]:
        """The seats, each while a controller serves, and the one that is it last: where it is stopped another one must
        read all partitions again (75 s with 200,000).
        """
        left = list(self.cluster.spec.brokers)
        while left:
            serves = self.await_a_controller()
            seat = next((each for each in left if each.id != serves), left[0])
            left.remove(seat)
            yield seat

    def await_a_controller(self, *, may_have_ended: bool = False) -> int | None:
        """Wait until the seat that /controller names has said that it is ready to serve as the controller; its id.
        Where a KRaft controller has it there is nothing to wait for: None. Raises StepFailed, at once where a seat has
        ended. ``may_have_ended``: what comes next starts such a one, so another is waited for; with all ended none.
        """
        seats = [seat.service for seat in self.cluster.spec.brokers]
        ends = self.cluster.now() + READY_WITHIN
        told = ""
        while True:
            if not may_have_ended:
                self.throwaway.require_running(seats)
            elif len(self.throwaway.ended(seats)) == len(seats):
                return None
            holder = self.holder(self.cluster)
            if holder is not None and holder.kraft_controller_epoch >= 0:
                return None
            seat = next((b for b in self.cluster.spec.brokers if holder and b.id == holder.broker_id), None)
            if seat is not None and any(READY in line for line in self.throwaway.log_of(seat.service)):
                return seat.id
            waits = "a seat to become the controller" if seat is None else f"{seat.service} to say '{READY}'"
            if self.cluster.now() > ends:
                raise StepFailed(
                    f"waiting for {waits}: not within {READY_WITHIN:.0f} s",
                    way_out="begin the rehearsal again when this machine is less busy",
                )
            if waits != told:
                self.cluster.tell(f"waiting for {waits}")
                told = waits
            self.cluster.pause(0.5)
