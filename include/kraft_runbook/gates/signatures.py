"""Who signed which proof, read from a run's evidence, and why a step may not run on it. Pure.

The evidence is a chain that only tasks append to. A task's state and its XCom count for nothing here: whoever may edit
a DAG's runs in Airflow can set both by hand.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.body import moment, text
from kraft_runbook.evidence.kinds import (
    Approved,
    Asked,
    Begins,
    Compared,
    Confirmed,
    OfGate,
    Played,
    Proven,
    Reached,
    Rejected,
    of_kind,
)
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.gates.proof import Proof, digest_of_file
from kraft_runbook.parity.parity_report import Verdict
from kraft_runbook.runbook.canary import watches_a_canary
from kraft_runbook.runbook.changes import By, state_of
from kraft_runbook.runbook.digests import digest_of
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.runbook.transitions import GateTerms

APPROVE_TASKS = ("approve", "approve_second")
"""The tasks of a gate at which a person is asked."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A person's approval: of which digest, by whom, when, and which try of which task received it.

    ``task_instance``: Airflow's id, a different one for each try. ``sequence``: of the evidence's record.
    """

    proof_digest: str
    name: str
    user_id: str
    approved_at: datetime
    task: str
    task_instance: str
    sequence: int

    @property
    def who(self) -> str:
        return self.name if self.name == self.user_id else f"{self.name} (id {self.user_id})"


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a gate in a run.

    ``digest``: of its latest proof, empty where nothing was proven. ``provings``: how often it was proven. ``passed``:
    nothing was left to sign for. ``confirmed``: the digest that was confirmed after the last signature. ``read_back``:
    the task instances whose answers were then read again from Airflow. ``begun``: a step that the gate guards has begun
    to act since the last confirmation. Only the cluster shows whether it changed anything (``refusal``). ``acted_at``:
    when the last restart of such a step ended, or the watch over the canary broker behind it.
    """

    gate: str
    digest: str = ""
    provings: int = 0
    passed: bool = False
    signatures: tuple[Signature, ...] = ()
    rejected_by: str = ""
    confirmed: str = ""
    read_back: frozenset[str] = frozenset()
    begun: bool = False
    acted_at: datetime | None = None

    @property
    def on_this_proof(self) -> tuple[Signature, ...]:
        return tuple(s for s in self.signatures if s.proof_digest == self.digest)


def standing(records: Sequence[EvidenceRecord], gate: str) -> Standing:
    """The gate's state by its records. An approval counts if the same try of the same task had asked for it, and has
    not asked again since.
    """
    now = Standing(gate)
    asked: dict[str, tuple[str, str]] = {}
    began = 0
    for record, told in of_kind(records, OfGate):
        task, digest = text(record.body, "task"), told.digest
        if told.gate != gate or not digest:
            continue
        here = task.removeprefix(f"gate_{gate}.") if task.startswith(f"gate_{gate}.") else ""
        match told, here:
            case Proven(passed=passed), "prove":
                now = replace(
                    now,
                    digest=digest,
                    provings=now.provings + 1,
                    passed=passed,
                    rejected_by="",
                    confirmed="",
                    read_back=frozenset(),
                    begun=False,
                )
                asked.clear()
            case Asked(task_instance=instance), task_name if task_name in APPROVE_TASKS:
                asked[here] = (instance, digest)
                left = tuple(s for s in now.signatures if s.task != here)
                now = replace(now, signatures=left, rejected_by="", confirmed="", read_back=frozenset(), begun=False)
            case Approved(task_instance=instance), task_name if task_name in APPROVE_TASKS and asked.get(here) == (
                instance,
                digest,
            ):
                signed = _signature(record, told, here)
                if signed:
                    given = (*(s for s in now.signatures if s.task != here), signed)
                    now = replace(now, signatures=given, confirmed="", read_back=frozenset(), begun=False)
            case Rejected(by=by), task_name if task_name in APPROVE_TASKS and digest == now.digest:
                now = replace(now, rejected_by=by or "someone", confirmed="", begun=False)
            case Confirmed(signatures=repeated), "confirm":
                read_back = frozenset(text(each, "task_instance") for each in repeated)
                now = replace(now, confirmed=digest, read_back=read_back, begun=False)
            case Begins(), _ if digest == now.digest == now.confirmed:
                began = began if now.begun else record.sequence
                now = replace(now, begun=True)
    if not now.begun:
        return now
    acted = [told.ended_at for record, told in of_kind(records, Played) if told.was_restart and record.sequence > began]
    watched = [
        datetime.fromisoformat(record.at)
        for record, told in of_kind(records, Reached)
        if watches_a_canary(told.condition) and record.sequence > began
    ]
    return replace(now, acted_at=max((each for each in (*acted, *watched) if each), default=None))


def _signature(record: EvidenceRecord, told: Approved, task: str) -> Signature | None:
    when, name = moment(record.body, "answered_at"), told.by
    if when is None or not name:
        return None
    return Signature(told.digest, name, told.by_id or name, when, task, told.task_instance, record.sequence)


def proven_again(records: Sequence[EvidenceRecord], task: str, signatures: Sequence[Signature]) -> bool:
    """Whether this task's latest comparison is a MATCH that began after the last signature was given and recorded.

    Its age is not checked: it is younger than the signed proof, whose age counts (``refusal``).
    """
    compared = _comparisons(records, task)
    if not compared or not signatures:
        return False
    latest, told = compared[-1]
    began = moment(latest.body, "started_at")
    last = max(signatures, key=lambda s: s.sequence)
    return (
        told.verdict is Verdict.MATCH
        and latest.sequence > last.sequence
        and began is not None
        and began >= last.approved_at
    )


def concluded(records: Sequence[EvidenceRecord], task: str, digest: str) -> Compared | None:
    """The comparison that this task ended with. None where it has another digest, or the task made another one since,
    or the task has not ended.
    """
    compared = _comparisons(records, task)
    latest = compared[-1][1] if compared else None
    return latest if latest and latest.final and latest.digest == digest else None


def _comparisons(records: Sequence[EvidenceRecord], task: str) -> list[tuple[EvidenceRecord, Compared]]:
    return [(record, told) for record, told in of_kind(records, Compared) if record.body.get("task") == task]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the guarded step may not run, and which task to clear."""

    why: str
    way_out: str


def refusal(
    operation: Operation,
    proof: Proof,
    gate: Standing,
    seen: ClusterObservation,
    spec: ClusterSpec,
    *,
    now: datetime,
    asked: int = 1,
    confirming: bool = False,
    turn: Collection[int] = (),
) -> Refusal | None:
    """Why the guarded step may not run on this proof and these signatures; None when it may.

    ``asked``: how many signatures the trigger form asks for. ``confirming``: nothing may differ from the proof (before
    a rollback controllers may start and stop), and the age counts in full. Without it the guarded steps' own changes
    are allowed. If there is such a change, and the evidence shows that a step has begun to act, the age does not count:
    stopping half-way would be worse than going on. A restart may leave nothing that differs; so the age counts anew
    from the end of the last one, and a roll of many nodes goes on. ``turn``: the nodes in turn; a killed try may
    have left them down.
    """
    prove = f"clear gate_{proof.gate}.prove with its downstream tasks: the gate is proven again and asks again"
    terms = operation.table.gate(proof.gate)
    why = _why_not_signed(proof, terms, gate, spec, asked)
    if why:
        return Refusal(why, prove)
    if proof.cluster_file != digest_of_file(spec):
        why = f"the cluster file {spec.name}.yaml was edited after the proof, so its content is not what was signed"
        return Refusal(why, f"undo the edit and clear this task; or, if the edit is intended, {prove}")
    found = list(operation.changes(proof.gate, proof.state, state_of(seen), turn))
    flickers = confirming and terms.goes_back
    foreign = [
        each.what for each in found if each.by is By.OTHERS or (confirming and not (flickers and each.of_controller))
    ]
    if foreign:
        way_out = f"undo what is named and clear this task; or, if the change is intended, {prove}"
        return Refusal(f"the cluster changed since the proof: {'; '.join(foreign)}", way_out)
    valid_for = spec.approvals.valid_for
    half_way = not confirming and gate.begun and any(each.by is By.THE_STEPS for each in found)
    if half_way or (not confirming and gate.acted_at and (now - gate.acted_at).total_seconds() <= valid_for):
        return None
    return too_old(proof, valid_for, now)


def too_old(proof: Proof, valid_for: float, now: datetime) -> Refusal | None:
    """Why the proof, or its parity report, is too old: older than ``valid_for`` seconds. None where it is not."""
    made = datetime.fromisoformat(proof.parity.finished_at) if proof.parity else proof.made_at
    age = (now - min(made, proof.made_at)).total_seconds()
    if age <= valid_for:
        return None
    if proof.parity and made <= proof.made_at:
        way_out = (
            f"clear {proof.parity.task} with its downstream tasks: parity is measured again, then the gate is proven"
            " and asks again"
        )
        return Refusal(f"the parity report that was signed is {age:.0f} s old and holds for {valid_for:.0f} s", way_out)
    way_out = f"clear gate_{proof.gate}.prove with its downstream tasks: the gate is proven again and asks again"
    return Refusal(f"the proof is {age:.0f} s old and holds for {valid_for:.0f} s", way_out)


def _why_not_signed(proof: Proof, terms: GateTerms, gate: Standing, spec: ClusterSpec, asked: int) -> str | None:
    if digest_of(proof.to_dict()) != proof.digest:
        return "the stored proof does not have the digest it claims: it was altered after it was made"
    if proof.gate != gate.gate or proof.cluster != spec.name:
        return f"the proof is of gate {proof.gate} of {proof.cluster}"
    if objections := proof.objections(terms):
        return f"the proof does not hold: {'; '.join(objections)}"
    if gate.rejected_by:
        return f"{gate.rejected_by} rejected it"
    if gate.digest != proof.digest or (gate.signatures and not gate.on_this_proof):
        return "an approval is not for the latest proof (the gate was proven again after it was approved)"
    refused = [
        why for s in gate.on_this_proof if (why := spec.approvals.why_not(s.name, s.user_id, proof.triggered_by))
    ]
    if refused:
        return f"an approval does not count: {'; '.join(refused)}"
    if spec.approvals.exclude_trigger and not proof.triggered_by:
        return (
            "Airflow does not know who triggered this run, so approvals.exclude_trigger can't be applied: trigger a run"
            " in the UI or by the API"
        )
    people = {s.user_id for s in gate.on_this_proof}
    needed = spec.approvals.needed_for(proof.gate, asked)
    return f"{len(people)} of {needed} approvals by different people are on record" if len(people) < needed else None
