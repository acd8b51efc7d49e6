"""Who signed which proof, read from a run's evidence, and why a step may not run on it. Pure.

The evidence is a chain that only tasks append to. A task's state and its XCom count for nothing here: whoever may edit
a DAG's runs in Airflow can set both by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.body import moment, text
from kraft_runbook.evidence.kinds import Approved, Asked, Begins, Compared, Confirmed, OfGate, Proven, Rejected, of_kind
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.migration.gates import UNREAD, Proof, digest_of_file, state_of
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.parity.parity_report import Verdict
from kraft_runbook.runbook.digests import digest_of

APPROVE_TASKS = ("approve", "approve_second")
"""The tasks of a gate at which a person is asked."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A person's approval: of which digest, by whom, when, and which try of which task received it.

    ``task_instance``: Airflow's id, a different one for each try. ``sequence``, ``recorded_at``: of the evidence's
    record.
    """

    proof_digest: str
    name: str
    user_id: str
    approved_at: datetime
    task: str
    task_instance: str
    sequence: int
    recorded_at: datetime

    @property
    def who(self) -> str:
        return self.name if self.name == self.user_id else f"{self.name} (id {self.user_id})"


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a gate in a run.

    ``digest``: of its latest proof, empty where nothing was proven. ``provings``: how often it was proven. ``passed``:
    nothing was left to sign for. ``confirmed``: the digest that was confirmed after the last signature. ``read_back``:
    the task instances whose answers were then read again from Airflow. ``begun``: a step that the gate guards has begun
    to act since the last confirmation. Only the cluster shows whether it changed anything (``refusal``).
    """

    gate: Gate
    digest: str = ""
    provings: int = 0
    passed: bool = False
    signatures: tuple[Signature, ...] = ()
    rejected_by: str = ""
    confirmed: str = ""
    read_back: frozenset[str] = frozenset()
    begun: bool = False

    @property
    def on_this_proof(self) -> tuple[Signature, ...]:
        return tuple(s for s in self.signatures if s.proof_digest == self.digest)


def standing(records: Sequence[EvidenceRecord], gate: Gate) -> Standing:
    """The gate's state by its records. An approval counts if the same try of the same task had asked for it, and has
    not asked again since.
    """
    now = Standing(gate)
    asked: dict[str, tuple[str, str]] = {}
    for record, told in of_kind(records, OfGate):
        task, digest = text(record.body, "task"), told.digest
        if told.gate != gate.value or not digest:
            continue
        here = task.removeprefix(f"gate_{gate.value}.") if task.startswith(f"gate_{gate.value}.") else ""
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
                now = replace(now, begun=True)
    return now


def _signature(record: EvidenceRecord, told: Approved, task: str) -> Signature | None:
    when, name = moment(record.body, "answered_at"), told.by
    if when is None or not name:
        return None
    at = datetime.fromisoformat(record.at)
    return Signature(told.digest, name, told.by_id or name, when, task, told.task_instance, record.sequence, at)


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
    proof: Proof,
    gate: Standing,
    seen: ClusterObservation,
    spec: ClusterSpec,
    *,
    now: datetime,
    asked: int = 1,
    confirming: bool = False,
    node: int | None = None,
) -> Refusal | None:
    """Why the guarded step may not run on this proof and these signatures; None when it may.

    ``asked``: how many signatures the trigger form asks for. ``confirming``: nothing may differ from the proof (before
    a rollback controllers may start and stop), and the age counts in full. Without it the guarded steps' own changes
    are allowed. If there is such a change, and the evidence shows that a step has begun to act, the age does not count:
    stopping half-way would be worse than going on. ``node``: the node in turn; a killed try may have left it down.
    """
    prove = f"clear gate_{proof.gate.value}.prove with its downstream tasks: the gate is proven again and asks again"
    why = _why_not_signed(proof, gate, spec, asked)
    if why:
        return Refusal(why, prove)
    if proof.cluster_file != digest_of_file(spec):
        why = f"the cluster file {spec.name}.yaml was edited after the proof, so its content is not what was signed"
        return Refusal(why, f"undo the edit and clear this task; or, if the edit is intended, {prove}")
    found = list(changes_since(proof, seen, node))
    flickers = confirming and proof.gate is Gate.ROLLBACK
    foreign = [
        each.what for each in found if each.by is By.OTHERS or (confirming and not (flickers and each.of_controller))
    ]
    if foreign:
        way_out = f"undo what is named and clear this task; or, if the change is intended, {prove}"
        return Refusal(f"the cluster changed since the proof: {'; '.join(foreign)}", way_out)
    half_way = not confirming and gate.begun and any(each.by is By.THE_STEPS for each in found)
    return None if half_way else too_old(proof, spec.approvals.valid_for, now)


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
    way_out = f"clear gate_{proof.gate.value}.prove with its downstream tasks: the gate is proven again and asks again"
    return Refusal(f"the proof is {age:.0f} s old and holds for {valid_for:.0f} s", way_out)


def _why_not_signed(proof: Proof, gate: Standing, spec: ClusterSpec, asked: int) -> str | None:
    if digest_of(proof.to_dict()) != proof.digest:
        return "the stored proof does not have the digest it claims: it was altered after it was made"
    if proof.gate is not gate.gate or proof.cluster != spec.name:
        return f"the proof is of gate {proof.gate.value} of {proof.cluster}"
    if proof.objections:
        return f"the proof does not hold: {'; '.join(proof.objections)}"
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
    needed = spec.approvals.needed_for(proof.gate.value, asked)
    return f"{len(people)} of {needed} approvals by different people are on record" if len(people) < needed else None


_BROKER_CHANGES: Mapping[Gate, frozenset[tuple[str, str]]] = {
    Gate.START: frozenset({(BrokerMode.ZOOKEEPER.value, BrokerMode.HYBRID.value)}),
    Gate.DUAL_WRITE: frozenset({(BrokerMode.HYBRID.value, BrokerMode.KRAFT.value)}),
    Gate.FINALIZE: frozenset(),
    Gate.ROLLBACK: frozenset(
        {
            (BrokerMode.KRAFT.value, BrokerMode.HYBRID.value),
            (BrokerMode.KRAFT.value, BrokerMode.ZOOKEEPER.value),
            (BrokerMode.HYBRID.value, BrokerMode.ZOOKEEPER.value),
        }
    ),
}
"""The mode changes (from, to) that the steps guarded by each gate make in a broker, all steps together."""

_BEHIND_THE_NEXT_GATE = frozenset(
    {(BrokerMode.ZOOKEEPER.value, BrokerMode.KRAFT.value), (BrokerMode.HYBRID.value, BrokerMode.KRAFT.value)}
)
"""Further allowed mode changes of a broker while a controller that lost its disk is provisioned again, which the start
gate guards.
"""


class By(StrEnum):
    """Who made a change: the steps that the gate guards, somebody else, or unknown, since a part was not read."""

    THE_STEPS = "the steps"
    OTHERS = "others"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between a proof and the cluster as it was seen later."""

    what: str
    by: By
    of_controller: bool = False


def changes_since(proof: Proof, seen: ClusterObservation, node: int | None = None) -> Iterator[Change]:
    """How the cluster differs from the proof, part by part. ``node``: the node in turn; its own step may have left it
    down or half-way.
    """
    was, now = proof.state, state_of(seen)
    if now["cluster_id"] != was["cluster_id"]:
        yield Change(
            f"the cluster's id was {was['cluster_id']}, now {now['cluster_id'] or UNREAD}",
            By.UNREAD if now["cluster_id"] is None else By.OTHERS,
        )
    for what, before, after in zip(("brokers", "controllers"), was["undeclared"], now["undeclared"], strict=True):
        if list(before) != list(after):
            yield Change(
                f"{what} that the cluster file does not name: were {_ids(before)}, now {_ids(after)}", By.OTHERS
            )
    later = _BEHIND_THE_NEXT_GATE if proof.gate is Gate.START and str(node) in was["controllers"] else frozenset()
    of_broker = partial(_whose_broker, made=_BROKER_CHANGES[proof.gate] | later)
    for kind, of_whom in (("brokers", of_broker), ("controllers", _whose_controller)):
        for node_id in sorted({*was[kind], *now[kind]}, key=int):
            before, after = was[kind].get(node_id), now[kind].get(node_id)
            if before == after:
                continue
            if before is None or after is None:
                whose = By.OTHERS
            elif int(node_id) == node:
                whose = _by_the_steps_if_read(before, after)
            else:
                whose = of_whom(proof.gate, before, after, now["phase"])
            yield Change(
                f"{kind.removesuffix('s')} {node_id} {_say(before)}, now {_say(after)}", whose, kind == "controllers"
            )
    if now["phase"] != was["phase"]:
        # Never OTHERS: the table of transitions refuses a phase in which a step may not run, and the parts above show
        # what changed the phase. Where every controller was down already when the rollback was proven, only the phase
        # shows that a ZooKeeper controller has the controller role again.
        left = proof.gate is Gate.ROLLBACK and now["phase"] == Phase.ZOOKEEPER.value
        yield Change(f"the phase was {was['phase']}, now {now['phase']}", By.THE_STEPS if left else By.UNREAD)


def _by_the_steps_if_read(before: Any, after: Any) -> By:
    """THE_STEPS, or UNREAD where one of the two looks did not read enough to show a change. A node that is down has no
    mode.
    """
    seen_then = before[0] is False or UNREAD not in before
    seen_now = after[0] is False or UNREAD not in after
    return By.THE_STEPS if seen_then and seen_now else By.UNREAD


def _whose_broker(gate: Gate, before: Any, after: Any, _phase: str, *, made: frozenset[tuple[str, str]]) -> By:
    (ran, mode), (runs, in_mode) = before, after
    if runs is not True:
        return By.OTHERS
    if UNREAD in (mode, in_mode):
        return By.UNREAD
    if ran is not True:  # a rollback may begin with brokers that are down, and goes on when a person has started them
        return By.UNREAD if gate is Gate.ROLLBACK else By.OTHERS
    return By.THE_STEPS if (mode, in_mode) in made else By.OTHERS


def _whose_controller(gate: Gate, before: Any, after: Any, phase: str) -> By:
    (ran, mode), (runs, in_mode) = before, after
    if gate is Gate.ROLLBACK:  # it starts those that are down, and stops and sets aside all
        return By.OTHERS if in_mode == ControllerMode.KRAFT.value else _by_the_steps_if_read(before, after)
    if runs is not True:
        return By.OTHERS
    if in_mode == UNREAD:
        return By.UNREAD
    if gate is Gate.START:
        return By.THE_STEPS if ran is not True and in_mode == ControllerMode.MIGRATION.value else By.OTHERS
    if gate is Gate.FINALIZE:
        return (
            By.THE_STEPS
            if (mode, in_mode) == (ControllerMode.MIGRATION.value, ControllerMode.KRAFT.value)
            else By.OTHERS
        )
    # A finalization by hand in the middle of the roll leaves brokers behind. KRaft mode is the only way left for them.
    return By.UNREAD if phase == Phase.FINALIZED.value else By.OTHERS


def _say(node: Any) -> str:
    if node is None:
        return "was not declared"
    running, mode = node
    state = "its port was not looked at" if running == UNREAD else "runs" if running else "is down"
    return f"{state} ({mode if mode != UNREAD else 'mode not read'})"


def _ids(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids)) or "none"
