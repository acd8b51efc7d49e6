"""Gates: what is proven before a person decides, and what that person signs.

A proof is a record of the observation, with a digest over all of it. The signature is a person's approval *of that
digest*. Just before the step that the gate guards, both are checked again (``kraft_runbook.gates.signatures``).
``kraft_runbook.gates.page`` renders what the person reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.parity.parity_report import Verdict as ParityVerdict
from kraft_runbook.runbook.changes import state_of
from kraft_runbook.runbook.check_results import CheckResult
from kraft_runbook.runbook.digests import digest_of, sha256_of
from kraft_runbook.runbook.transitions import GateTerms
from kraft_runbook.runbook.way_back import RollbackPlan


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
class Exhibit:
    """What an earlier task of the run made and the person signs with the proof, such as a plan: its digest, and its
    text as markdown.
    """

    task: str
    digest: str
    rendered: str


@dataclass(frozen=True, slots=True)
class Proof:
    """What was true when the gate was reached. ``digest`` covers every other field.

    ``state``: the nodes, as ``state_of`` gives them. ``cluster_file``: the digest of the cluster file's content.
    ``exhibits``: what else is signed; a proof without any is stored without the field.
    ``needed``: how many different people must sign. ``triggered_by``: who triggered the run, by Airflow's name; None
    where Airflow does not know. ``ahead``: the steps that approving allows, in order. ``people``: who may sign, in
    words. ``valid_for``: seconds that the proof holds.
    """

    gate: str
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
    exhibits: tuple[Exhibit, ...] = ()
    digest: str = ""

    def objections(self, terms: GateTerms) -> tuple[str, ...]:
        """Why this proof can't be shown to a person for approval, by the terms of its gate. Empty: it can."""
        found = [f"{c.code} {c.title}: {c.verdict}. {c.evidence}" for c in self.checks if c.blocks]
        if terms.checked and not self.checks:
            found.append("nothing was checked")
        if terms.goes_back and not self.rollback.possible and not self.rollback.steps:
            closed = "no rollback is possible" if self.rollback.known else "whether a rollback is possible is not known"
            found.append(f"{closed}: {self.rollback.why}")
        if terms.needs_parity:
            if self.parity is None:
                found.append("parity was not measured")
            elif self.parity.verdict is not ParityVerdict.MATCH:
                found.append(f"parity is {self.parity.verdict}, not MATCH")
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        plain = {**asdict(self), "made_at": self.made_at.isoformat()}
        if not self.exhibits:
            del plain["exhibits"]
        if self.rollback.known:  # as proofs were sealed before there was a third answer
            del plain["rollback"]["known"]
        return plain

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Proof:
        parity = data["parity"]
        rollback = data["rollback"]
        return Proof(
            gate=data["gate"],
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
            exhibits=tuple(Exhibit(**each) for each in data.get("exhibits", ())),
            digest=data["digest"],
        )


def make_proof(
    gate: str,
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
    exhibits: Sequence[Exhibit] = (),
) -> Proof:
    """Make a proof and seal it with its digest. What has a default: as in ``Proof``."""
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
        exhibits=tuple(exhibits),
    )
    return replace(proof, digest=digest_of(proof.to_dict()))


def digest_of_file(spec: ClusterSpec) -> str:
    """SHA-256 over a cluster file's content, its variables filled in. It covers no secret: the file only names them.

    Comments and the order of keys don't count. Everything else does: a person decides which edit is harmless, by
    signing again.
    """
    return sha256_of(spec.model_dump(mode="json"))
