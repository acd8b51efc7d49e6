"""The proofs in a run's records: what each gate showed, who signed it, and every comparison. Each digest is computed
again from the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kraft_runbook.evidence.body import Body, moment, number, part, parts, text, whole
from kraft_runbook.evidence.kinds import Approved, Compared, Confirmed, OfGate, Proven, Rejected, of_kind
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.parity.parity_report import KindCount
from kraft_runbook.parity.parity_report import Verdict as ParityVerdict
from kraft_runbook.runbook.check_results import Verdict as CheckVerdict
from kraft_runbook.runbook.digests import digest_of


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person answered, and to which digest. ``by``: the name that Airflow showed; ``by_id``: Airflow's id of
    that person, empty in older evidence.

    ``read_back``: the gate's confirmation read the same answer from Airflow.
    """

    by: str
    by_id: str
    approved: bool
    at: datetime
    digest: str
    read_back: bool = False

    @property
    def who(self) -> str:
        """The name, with the id if that differs."""
        return f"{self.by} (id {self.by_id})" if self.by_id and self.by_id != self.by else self.by or "nobody named"


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One check of a proof."""

    code: str
    title: str
    verdict: str
    evidence: str

    @property
    def passed(self) -> bool:
        return self.verdict == CheckVerdict.PASS


@dataclass(frozen=True, slots=True)
class GateProof:
    """One proof of one gate, and its answers.

    ``genuine``: whether the digest is that of the proof in the record; None if the record holds no proof. ``proven_at``
    None: somebody answered a proof that this run has no record of.
    """

    gate: str
    digest: str
    proven_at: datetime | None
    phase: str
    genuine: bool | None
    checks: tuple[CheckLine, ...]
    parity: str
    rollback: str
    answers: tuple[Answer, ...] = ()
    confirmed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ParityRun:
    """One comparison. ``verdict`` None: the record's verdict is unknown to parity. ``genuine`` as for a gate's proof.
    ``obstacles``: why it is INCONCLUSIVE. ``differences``: samples, with secrets as fingerprints.
    """

    task: str
    at: datetime
    verdict: ParityVerdict | None
    against: str
    offset: int | None
    end_offset: int | None
    seconds: float | None
    counts: tuple[KindCount, ...]
    differences: tuple[str, ...]
    obstacles: tuple[str, ...]
    digest: str
    genuine: bool | None

    @property
    def is_match(self) -> bool:
        return self.verdict is ParityVerdict.MATCH


def gate_proofs(records: Sequence[EvidenceRecord]) -> tuple[GateProof, ...]:
    """Every proof, in order, each with its answers."""
    found: dict[tuple[str, str], GateProof] = {}
    for record, told in of_kind(records, OfGate):
        at, key = datetime.fromisoformat(record.at), (told.gate, told.digest)
        if not all(key):
            continue
        proof = found.get(key) or GateProof(*key, None, "", None, (), "", "")
        match told:
            case Proven():
                found[key] = _proof(told, at)
            case Approved() | Rejected():
                answered_at = moment(record.body, "answered_at") or at
                answer = Answer(told.by or "", told.by_id or "", isinstance(told, Approved), answered_at, told.digest)
                found[key] = replace(proof, answers=(*proof.answers, answer))
            case Confirmed():
                repeated = {(text(s, "by"), text(s, "by_id"), moment(s, "answered_at")) for s in told.signatures}
                answers = tuple(
                    replace(a, read_back=a.approved and (a.by, a.by_id, a.at) in repeated) for a in proof.answers
                )
                found[key] = replace(proof, confirmed_at=at, answers=answers)
    return tuple(found.values())


def _proof(proven: Proven, at: datetime) -> GateProof:
    proof = proven.proof
    parity, rollback = part(proof, "parity"), part(proof, "rollback")
    return GateProof(
        gate=proven.gate,
        digest=proven.digest,
        proven_at=at,
        phase=proven.phase,
        genuine=digest_of(proof) == proven.digest == proof.get("digest") if proof else None,
        checks=tuple(
            CheckLine(text(c, "code"), text(c, "title"), text(c, "verdict"), text(c, "evidence"))
            for c in parts(proof, "checks")
        ),
        parity=(
            f"{text(parity, 'verdict')} at metadata offset {text(parity, 'offset')}, digest {text(parity, 'digest')}"
            if parity
            else proven.parity or ""
        ),
        rollback=(f"{_possible(rollback)}: {text(rollback, 'why')}" if rollback else ""),
    )


def _possible(rollback: Mapping[str, Any]) -> str:
    if rollback.get("possible"):
        return "possible"
    return "not possible" if rollback.get("known", True) else "not known"


def parity_runs(records: Sequence[EvidenceRecord]) -> tuple[ParityRun, ...]:
    """Every comparison, in order."""
    return tuple(_parity(record, compared) for record, compared in of_kind(records, Compared))


def _parity(record: EvidenceRecord, compared: Compared) -> ParityRun:
    body = compared.values
    started, finished = moment(body, "started_at"), moment(body, "finished_at")
    return ParityRun(
        task=text(body, "task"),
        at=datetime.fromisoformat(record.at),
        verdict=compared.verdict,
        against=text(body, "against"),
        offset=compared.offset,
        end_offset=whole(body, "end_offset"),
        seconds=round((finished - started).total_seconds(), 1) if started and finished else number(body, "seconds"),
        counts=tuple(_count(each) for each in parts(body, "counts")),
        differences=tuple(
            f"{text(s, 'kind')} {text(s, 'key')}: {text(s, 'side')}; ZooKeeper: {text(s, 'zookeeper')}; KRaft:"
            f" {text(s, 'kraft')}"
            for s in parts(body, "samples")
        ),
        obstacles=tuple(f"{text(o, 'problem')}. What to do: {text(o, 'way_out')}" for o in parts(body, "obstacles")),
        digest=compared.digest,
        genuine=_holds_its_report(compared) if "counts" in body else None,
    )


def _count(each: Body) -> KindCount:
    names = ("both", "only_zookeeper", "only_kraft", "differ", "undecoded")
    return KindCount(text(each, "kind"), *(whole(each, name) or 0 for name in names))


def _holds_its_report(compared: Compared) -> bool:
    """Whether the report in the record has the digest that it claims."""
    try:
        compared.parity_report()
    except (KeyError, TypeError, ValueError, AttributeError):
        return False
    return True


def describe(genuine: bool | None) -> str:
    """What ``genuine`` means, in words."""
    return {True: "computed anew: fits", False: "DOES NOT FIT ITS CONTENT", None: "content not in the record"}[genuine]
