"""A gate is a proof and a signature.

The proof holds what was checked at one moment, with a digest over all of it. The signature is a person's approval *of that
digest*. Just before the step that the gate guards, both are looked at again: ``refusal`` says why they no longer hold.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from kraft_runbook.checks.copy import EXPECTED_COPY
from kraft_runbook.checks.model import CheckResult, Verdict
from kraft_runbook.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.phases import Phase, RollbackPlan, Step, already_past, detect_phase
from kraft_runbook.way_back import render_estimate


class Gate(StrEnum):
    """The points where a person decides: three on the way forward, one before the way back."""

    START = "start"
    DUAL_WRITE = "dual_write"
    FINALIZE = "finalize"
    ROLLBACK = "rollback"


MEANING: Mapping[Gate, str] = {
    Gate.START: "Approving starts the migration: controllers are provisioned, then every broker is restarted once in migration mode.",
    Gate.DUAL_WRITE: "Approving restarts every broker once more, in KRaft mode. ZooKeeper is still written, so the way back stays open.",
    Gate.FINALIZE: "Approving finalizes: the controllers leave migration mode and ZooKeeper is no longer written. **This cannot be undone.**",
    Gate.ROLLBACK: "Approving takes the cluster back towards ZooKeeper by the steps below. Nothing that was acknowledged is lost: where that can't be proven, the run stops.",
}

GUARDED_STEP: Mapping[Gate, Step] = {
    Gate.START: Step.PROVISION_CONTROLLERS,
    Gate.DUAL_WRITE: Step.ROLL_BROKERS_TO_KRAFT,
    Gate.FINALIZE: Step.FINALIZE_CONTROLLERS,
    Gate.ROLLBACK: Step.LEAVE_KRAFT,
}
"""The step that each gate's phase is judged by: when the cluster is beyond it, nobody is asked."""

GATE_BEFORE: Mapping[Step, Gate] = {
    Step.PROVISION_CONTROLLERS: Gate.START,
    Step.ROLL_BROKERS_TO_HYBRID: Gate.START,
    Step.ROLL_BROKERS_TO_KRAFT: Gate.DUAL_WRITE,
    Step.FINALIZE_CONTROLLERS: Gate.FINALIZE,
    Step.DEPROVISION_CONTROLLERS: Gate.ROLLBACK,
    Step.ROLL_BROKERS_BACK_TO_HYBRID: Gate.ROLLBACK,
    Step.LEAVE_KRAFT: Gate.ROLLBACK,
    Step.ROLL_BROKERS_TO_ZOOKEEPER: Gate.ROLLBACK,
    Step.SET_CONTROLLERS_ASIDE: Gate.ROLLBACK,
}
"""Whose signature each step needs."""


def is_behind(gate: Gate, seen: ClusterObservation) -> bool:
    """Whether nothing that this gate guards is left to do, so that nobody need be asked."""
    phase = detect_phase(seen).phase
    if gate is Gate.START and phase is Phase.HYBRID:
        return not seen.brokers_in(BrokerMode.ZOOKEEPER) and not seen.brokers_of_unknown_mode()
    return already_past(GUARDED_STEP[gate], phase)


NEEDS_PARITY = frozenset({Gate.DUAL_WRITE, Gate.FINALIZE})


@dataclass(frozen=True, slots=True)
class ParitySummary:
    """What a gate keeps of a parity report: its verdict, digest, offset and one line a record kind."""

    verdict: str
    digest: str
    offset: int
    finished_at: str
    rendered: str


@dataclass(frozen=True, slots=True)
class Proof:
    """What was true when the gate was reached. ``digest`` covers every other field."""

    gate: Gate
    cluster: str
    phase: Phase
    made_at: datetime
    fingerprint: str
    checks: tuple[CheckResult, ...]
    parity: ParitySummary | None
    rollback: RollbackPlan
    digest: str = ""

    @property
    def objections(self) -> tuple[str, ...]:
        """Why this proof can't be put before a person at all. Empty: it can."""
        found = [f"{c.code} {c.title}: {c.verdict}. {c.evidence}" for c in self.checks if c.blocks]
        if self.gate is Gate.ROLLBACK and not self.rollback.possible and not self.rollback.steps:
            found.append(f"the way back is not open: {self.rollback.why}")
        if self.gate in NEEDS_PARITY:
            if self.parity is None:
                found.append("parity was not measured")
            elif self.parity.verdict != "MATCH":
                found.append(f"parity is {self.parity.verdict}, not MATCH")
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "made_at": self.made_at.isoformat()}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Proof:
        parity = data["parity"]
        rollback = data["rollback"]
        return Proof(
            gate=Gate(data["gate"]),
            cluster=data["cluster"],
            phase=Phase(data["phase"]),
            made_at=datetime.fromisoformat(data["made_at"]),
            fingerprint=data["fingerprint"],
            checks=tuple(CheckResult.from_dict(c) for c in data["checks"]),
            parity=ParitySummary(**parity) if parity else None,
            rollback=RollbackPlan(**{**rollback, "steps": tuple(rollback["steps"]), "risks": tuple(rollback["risks"])}),
            digest=data["digest"],
        )

    def render_markdown(self) -> str:
        """What the person sees in the approval: the decision, the proof in one line each, then all of it."""
        passed = sum(c.verdict is Verdict.PASS for c in self.checks)
        lines = [
            f"**{MEANING[self.gate]}**",
            "",
            f"Cluster `{self.cluster}` is in phase **{self.phase.value}**. Proof digest `{self.digest}`, made {self.made_at:%Y-%m-%d %H:%M:%S} UTC.",
            "",
            f"- Checks: **{passed} of {len(self.checks)} pass**",
            f"- Parity: **{self.parity.verdict}** at metadata offset {self.parity.offset}, digest `{self.parity.digest}`"
            if self.parity
            else "- Parity: nothing to compare yet",
            f"- Rollback now: **{'possible' if self.rollback.possible else 'not possible'}**: {self.rollback.why}{render_estimate(self.rollback)}",
        ]
        if self.gate is Gate.START:
            lines += [f"- The metadata's copy, while which no topic, leader or ISR changes: {c.evidence}" for c in self.checks if c.code == EXPECTED_COPY]
        if self.gate is Gate.FINALIZE:
            lines += ["- After this gate's step there is **no way back**"]
        lines += ["", "### The way back from here", "", *(f"{n}. {step}" for n, step in enumerate(self.rollback.steps, 1))]
        lines += [f"- Risk: {risk}" for risk in self.rollback.risks] if self.rollback.steps else ["Nothing has to be undone."]
        if self.gate is Gate.ROLLBACK:
            lines += ["", LOST_BY_A_ROLLBACK]
        if self.parity:
            lines += ["", "### ZooKeeper and KRaft compared", "", self.parity.rendered]
        lines += ["", "### Checks", "", "| check | verdict | evidence |", "|---|---|---|"]
        ranked = sorted(self.checks, key=lambda c: c.verdict is Verdict.PASS)
        lines += [f"| `{c.code}` {_cell(c.title)} | {_mark(c.verdict)} | {_cell(c.evidence)} |" for c in ranked]
        return "\n".join(lines)


LOST_BY_A_ROLLBACK = (
    "What is lost: nothing that ZooKeeper can hold. What only KRaft knows (configs of client metrics and of groups) stays behind in the controllers' "
    "data, which is set aside."
)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _mark(verdict: Verdict) -> str:
    return "pass" if verdict is Verdict.PASS else f"**{verdict.value}**"


def make_proof(
    gate: Gate, seen: ClusterObservation, *, checks: Sequence[CheckResult], parity: ParitySummary | None, rollback: RollbackPlan, made_at: datetime
) -> Proof:
    """Put a proof together and seal it with its digest."""
    proof = Proof(gate, seen.cluster, detect_phase(seen).phase, made_at.astimezone(UTC), fingerprint(seen), tuple(checks), parity, rollback)
    return replace(proof, digest=digest_of(proof.to_dict()))


def digest_of(proof: Mapping[str, Any]) -> str:
    """SHA-256 over the proof's canonical JSON, its own digest left out."""
    body = {k: v for k, v in proof.items() if k != "digest"}
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":"), default=str).encode()).hexdigest()


def fingerprint(seen: ClusterObservation) -> str:
    """What must not change between a proof and its step: phase, cluster id, which nodes run and in which mode. A leader change may happen."""
    identity = {
        "phase": detect_phase(seen).phase.value,
        "cluster_id": seen.zookeeper.cluster_id if was_read(seen.zookeeper) else None,
        "brokers": {str(b.id): [b.running if was_read(b.running) else "unread", b.mode if was_read(b.mode) else "unread"] for b in seen.brokers.values()},
        "controllers": {
            str(c.id): [c.running if was_read(c.running) else "unread", c.mode if was_read(c.mode) else "unread"] for c in seen.controllers.values()
        },
        "undeclared": [sorted(seen.undeclared_brokers), sorted(seen.undeclared_controllers)],
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Signature:
    """A person's approval: of which digest, by whom, when."""

    proof_digest: str
    approved_by: str
    approved_at: datetime


def refusal(
    proof: Proof,
    signatures: Sequence[Signature],
    seen: ClusterObservation,
    *,
    needed: int,
    valid_for: float,
    allowed: Sequence[str],
    now: datetime,
    resuming: bool = False,
) -> str | None:
    """Why the guarded step may not run on this proof and these signatures; None when it may.

    ``needed``: how many different people must have signed. ``valid_for``: seconds that the proof may be old.
    ``allowed``: user ids that may sign; empty means anyone whom Airflow let respond.
    ``resuming``: the guarded step has begun, so the cluster differs from the proof by what the step did, and stopping
    half-way for the proof's age would be worse than going on; the signatures are still required.
    """
    if digest_of(proof.to_dict()) != proof.digest:
        return "the stored proof does not have the digest it claims: it was altered after it was made"
    if proof.objections:
        return f"the proof does not hold: {'; '.join(proof.objections)}"
    people = {s.approved_by for s in signatures if s.proof_digest == proof.digest}
    if any(s.proof_digest != proof.digest for s in signatures):
        return "an approval was given for another proof than the one at hand (the gate was proven again after it was approved)"
    if len(people) < needed:
        return f"{len(people)} of {needed} approvals by different people are on record"
    strangers = people - set(allowed) if allowed else set()
    if strangers:
        return f"{', '.join(sorted(strangers))} may not sign for {proof.cluster}"
    if resuming:
        return None
    age = (now - proof.made_at).total_seconds()
    if age > valid_for:
        return f"the proof is {age:.0f} s old and holds for {valid_for:.0f} s"
    if fingerprint(seen) != proof.fingerprint:
        return f"the cluster changed since the proof: it was in {proof.phase.value}, now {detect_phase(seen).phase.value}, or a node started, stopped or changed its mode"
    return None
