"""Gates: what is proven before a person decides, and what that person signs.

A proof is a record of the observation, with a digest over all of it. The signature is a person's approval *of that
digest*. Just before the step that the gate guards, both are checked again (``kraft_runbook.migration.signatures``).
``kraft_runbook.migration.gate_page`` renders what the person reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.transitions import TABLE, Gate
from kraft_runbook.parity.parity_report import Verdict as ParityVerdict
from kraft_runbook.runbook.check_results import CheckResult
from kraft_runbook.runbook.digests import digest_of, sha256_of
from kraft_runbook.runbook.way_back import RollbackPlan


def is_behind(gate: Gate, seen: ClusterObservation) -> bool:
    """Whether nothing that this gate guards is left to do, so that nobody is asked.

    After the metadata copy, a controller that is down still counts as left to do: provisioning it again needs the start
    gate's signature, also in a run that began after the copy.
    """
    phase = detect_phase(seen).phase
    if (
        gate is Gate.START
        and phase in (Phase.HYBRID, Phase.DUAL_WRITE)
        and any(c.running is False for c in seen.controllers.values())
    ):
        return False
    if gate is Gate.START and phase is Phase.HYBRID:
        return not seen.brokers_in(BrokerMode.ZOOKEEPER) and not seen.brokers_of_unknown_mode()
    return TABLE.is_past_gate(gate, phase)


UNREAD = "unread"
"""In a proof's state: this part of a node could not be read."""


@dataclass(frozen=True, slots=True)
class ParitySummary:
    """What a gate keeps of a parity report: verdict, digest, metadata offset, one line a record kind, and the task that
    made it. ``finished_at``: ISO 8601.
    """

    verdict: ParityVerdict
    digest: str
    offset: int
    finished_at: str
    rendered: str
    task: str = ""


@dataclass(frozen=True, slots=True)
class Proof:
    """What was true when the gate was reached. ``digest`` covers every other field.

    ``state``: the nodes, as ``state_of`` gives them. ``cluster_file``: the digest of the cluster file's content.
    ``needed``: how many different people must sign. ``triggered_by``: who triggered the run, by Airflow's name; None
    where Airflow does not know. ``ahead``: the steps that approving allows, in order. ``people``: who may sign, in
    words. ``valid_for``: seconds that the proof holds.
    """

    gate: Gate
    cluster: str
    phase: Phase
    made_at: datetime
    state: Mapping[str, Any]
    cluster_file: str
    checks: tuple[CheckResult, ...]
    parity: ParitySummary | None
    rollback: RollbackPlan
    needed: int = 1
    triggered_by: str | None = None
    ahead: tuple[str, ...] = ()
    people: str = ""
    valid_for: float = 0
    digest: str = ""

    @property
    def objections(self) -> tuple[str, ...]:
        """Why this proof can't be shown to a person for approval. Empty: it can."""
        found = [f"{c.code} {c.title}: {c.verdict}. {c.evidence}" for c in self.checks if c.blocks]
        terms = TABLE.gate(self.gate)
        if terms.checked and not self.checks:
            found.append("nothing was checked")
        if not terms.checked and not self.rollback.possible and not self.rollback.steps:
            found.append(f"no rollback is possible: {self.rollback.why}")
        if terms.needs_parity:
            if self.parity is None:
                found.append("parity was not measured")
            elif self.parity.verdict is not ParityVerdict.MATCH:
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
            state=data["state"],
            cluster_file=data["cluster_file"],
            checks=tuple(CheckResult.from_dict(c) for c in data["checks"]),
            parity=ParitySummary(**{**parity, "verdict": ParityVerdict(parity["verdict"])}) if parity else None,
            rollback=RollbackPlan(**{**rollback, "steps": tuple(rollback["steps"]), "risks": tuple(rollback["risks"])}),
            needed=data["needed"],
            triggered_by=data["triggered_by"],
            ahead=tuple(data["ahead"]),
            people=data["people"],
            valid_for=data["valid_for"],
            digest=data["digest"],
        )


def make_proof(
    gate: Gate,
    seen: ClusterObservation,
    spec: ClusterSpec,
    *,
    checks: Sequence[CheckResult],
    parity: ParitySummary | None,
    rollback: RollbackPlan,
    made_at: datetime,
    ahead: Sequence[str] = (),
    needed: int = 1,
    triggered_by: str | None = None,
) -> Proof:
    """Make a proof and seal it with its digest. ``ahead``, ``needed`` and ``triggered_by``: as in ``Proof``."""
    proof = Proof(
        gate=gate,
        cluster=spec.name,
        phase=detect_phase(seen).phase,
        made_at=made_at.astimezone(UTC),
        state=state_of(seen),
        cluster_file=digest_of_file(spec),
        checks=tuple(checks),
        parity=parity,
        rollback=rollback,
        needed=needed,
        triggered_by=triggered_by,
        ahead=tuple(ahead),
        people=spec.approvals.describe(needed, triggered_by),
        valid_for=spec.approvals.valid_for,
    )
    return replace(proof, digest=digest_of(proof.to_dict()))


def digest_of_file(spec: ClusterSpec) -> str:
    """SHA-256 over a cluster file's content, its variables filled in. It covers no secret: the file only names them.

    Comments and the order of keys don't count. Everything else does: a person decides which edit is harmless, by
    signing again.
    """
    return sha256_of(spec.model_dump(mode="json"))


def state_of(seen: ClusterObservation) -> dict[str, Any]:
    """What must not change between a proof and its step: phase, cluster id, which nodes run and in which mode. A leader
    may change.

    Plain JSON; a node is ``[running, mode]`` under its id as text; a part that was not read is ``"unread"``.
    """
    return {
        "phase": detect_phase(seen).phase.value,
        "cluster_id": seen.zookeeper.cluster_id if was_read(seen.zookeeper) else None,
        "brokers": {str(b.id): [_plain(b.running), _plain(b.mode)] for b in seen.brokers.values()},
        "controllers": {str(c.id): [_plain(c.running), _plain(c.mode)] for c in seen.controllers.values()},
        "undeclared": [sorted(seen.undeclared_brokers), sorted(seen.undeclared_controllers)],
    }


def _plain(part: Any) -> bool | str:
    if not was_read(part):
        return UNREAD
    return part if isinstance(part, bool) else str(part.value)
