"""What must hold after every case, whatever was broken. Pure: what is left of a case in, what is wrong out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from kraft_runbook.checks.model import Severity, Verdict
from kraft_runbook.evidence import EvidenceRecord
from kraft_runbook.gates import NEEDS_PARITY, digest_of
from kraft_runbook.phases import TRANSITIONS, Phase, Step

FORWARD_GATES: Mapping[str, str] = {
    Step.PROVISION_CONTROLLERS: "start",
    Step.ROLL_BROKERS_TO_HYBRID: "start",
    Step.ROLL_BROKERS_TO_KRAFT: "dual_write",
    Step.FINALIZE_CONTROLLERS: "finalize",
}
BACK_GATE = "rollback"
GATE_OF: Mapping[str, str] = {edge.step.value: FORWARD_GATES.get(edge.step, BACK_GATE) for edge in TRANSITIONS}
"""The gate whose signature a step needs."""
WHOLE_CLUSTER = ("left_kraft", "restored")
"""What is recorded of steps of the way back that are not on one node."""


@dataclass(frozen=True)
class Aftermath:
    """What a case left.

    ``evidence``: the records of each run of the case. ``proofs``: the gates' proofs by digest, as stored. ``account``: the workload's
    (None: it left none). ``starts``: process starts during the case, by service; ``expected_starts``: those that the case file
    grants, every other service 0. ``mutators``: each moment's playbooks that change hosts. ``left_behind``: what should be gone.
    ``outcome``: why the outcome is not the expected one; empty when it is. ``states``: of the last run's tasks.
    """

    evidence: Mapping[str, Sequence[EvidenceRecord]]
    proofs: Mapping[str, Mapping[str, Any]]
    account: Mapping[str, Any] | None
    starts: Mapping[str, int]
    expected_starts: Mapping[str, int]
    mutators: Sequence[frozenset[str]]
    left_behind: Sequence[str]
    outcome: str
    states: Mapping[str, str | None]
    valid_for: float
    allowed: frozenset[str]


def violations(after: Aftermath) -> dict[str, list[str]]:
    """What each invariant has against this case, by its name. Nothing anywhere: all hold."""
    checks = {
        "I1": no_record_lost,
        "I2": no_needless_restart,
        "I3": no_gate_on_a_divergence,
        "I4": no_step_without_approval,
        "I5": ended_as_it_should,
        "I6": one_mutator_at_a_time,
        "I7": nothing_left_behind,
    }
    return {name: list(check(after)) for name, check in checks.items()}


def no_record_lost(after: Aftermath) -> Iterator[str]:
    """I1: every acknowledged record is there, once, in its order."""
    account = after.account
    if account is None:
        yield "the workload left no account"
        return
    if not account["acknowledged"]:
        yield "the workload had no record acknowledged"
    for what in ("lost", "duplicated", "reordered"):
        if account[what] != 0:
            yield f"{account[what]} records {what}" if account[what] is not None else f"{what}: the topics could not be read back"
    yield from account["problems"]


ANY_CONTROLLER = "any-controller"
"""In ``expected_starts``: so many starts of controllers, whichever they are (which one is active is Kafka's choice)."""


def no_needless_restart(after: Aftermath) -> Iterator[str]:
    """I2: each process was started exactly as often as the case grants."""
    any_controller = after.expected_starts.get(ANY_CONTROLLER, 0)
    for service in sorted({*after.starts, *after.expected_starts} - {ANY_CONTROLLER}):
        was, granted = after.starts.get(service, 0), after.expected_starts.get(service, 0)
        if any_controller and service.startswith("controller-") and was > granted:
            any_controller -= was - granted
        elif was != granted:
            yield f"{service} was started {was} times, not {granted}"
    if any_controller:
        yield f"controllers were started {after.expected_starts[ANY_CONTROLLER] - any_controller} times, not {after.expected_starts[ANY_CONTROLLER]}"


def no_gate_on_a_divergence(after: Aftermath) -> Iterator[str]:
    """I3: no gate was confirmed on a proof with a divergence, an unread part or a failed check; its parity report was made in that run."""
    for run, records in after.evidence.items():
        compared: dict[str, str] = {}
        for record in records:
            body = record.body
            if body["outcome"] == "compared":
                compared[body["digest"]] = body["verdict"]
            never_copied = body.get("phase") == Phase.PRE_MIGRATION or body.get("logs_read")
            if body["outcome"] == "left_kraft" and not never_copied and "MATCH" not in compared.values():
                yield f"{run}: KRaft was left without a full parity of that run"
            if body["outcome"] in ("approved", "confirmed"):
                yield from (f"{run}: gate {body['gate']} {body['outcome']} {why}" for why in _unsound(body, after.proofs, compared))


def _unsound(body: Mapping[str, Any], proofs: Mapping[str, Mapping[str, Any]], compared: Mapping[str, str]) -> Iterator[str]:
    proof = proofs.get(body["digest"])
    if proof is None:
        yield "without a stored proof"
        return
    if digest_of(proof) != body["digest"]:
        yield "on a proof that was altered"
    if proof["gate"] != body["gate"]:
        yield f"on a proof of gate {proof['gate']}"
    yield from (
        f"though {check['code']} was {check['verdict']}"
        for check in proof["checks"]
        if check["severity"] == Severity.BLOCKING and check["verdict"] != Verdict.PASS
    )
    if body["gate"] in NEEDS_PARITY:
        parity = proof["parity"]
        if not parity or parity["verdict"] != "MATCH":
            yield f"though parity was {parity['verdict'] if parity else 'not measured'}"
        elif compared.get(parity["digest"]) != "MATCH":
            yield "on a parity report that this run did not make"


def no_step_without_approval(after: Aftermath) -> Iterator[str]:
    """I4: before each step that was played, its gate was proven, approved by someone who may, and confirmed: one proof, in this order, still fresh."""
    for run, records in after.evidence.items():
        for place, record in enumerate(records):
            outcome, step = record.body["outcome"], record.body.get("step", "")
            if outcome not in ("played", *WHOLE_CLUSTER):
                continue
            gate = GATE_OF.get(step) if outcome == "played" else BACK_GATE
            if gate is None:
                yield f"{run}: {step} is no step of the table"
                continue
            what = f"{step} on node {record.body['node_id']}" if outcome == "played" else outcome
            yield from (f"{run}: {what} {why}" for why in _unauthorised(gate, records[:place], after))


def _unauthorised(gate: str, before: Sequence[EvidenceRecord], after: Aftermath) -> Iterator[str]:
    of_gate = [r for r in before if r.body.get("gate") == gate]
    confirmed = next((r for r in reversed(of_gate) if r.body["outcome"] == "confirmed"), None)
    if confirmed is None:
        yield f"was played before gate {gate} was confirmed"
        return
    digest = confirmed.body["digest"]
    earlier = [r for r in of_gate if r.sequence < confirmed.sequence and r.body.get("digest") == digest]
    proven = next((r for r in earlier if r.body["outcome"] == "proven"), None)
    approved = [r for r in earlier if r.body["outcome"] == "approved" and (proven is None or r.sequence > proven.sequence)]
    if proven is None:
        yield f"rests on a confirmation of gate {gate} that nothing was proven for"
    elif _at(confirmed) - _at(proven) > timedelta(seconds=after.valid_for):
        yield f"rests on a proof of gate {gate} that was {(_at(confirmed) - _at(proven)).total_seconds():.0f} s old when it was confirmed"
    if not approved:
        yield f"rests on a confirmation of gate {gate} that nobody approved"
    yield from (f"was approved by {r.body['by']}, who may not" for r in approved if after.allowed and r.body["by"] not in after.allowed)


def ended_as_it_should(after: Aftermath) -> Iterator[str]:
    """I5: the run reached its goal, or refused with the reason and the way out; and none of its tasks is still under way."""
    if after.outcome:
        yield after.outcome
    yield from (f"{task} is still {state}" for task, state in sorted(after.states.items()) if state in ("running", "queued", "deferred", "awaiting_input"))


def one_mutator_at_a_time(after: Aftermath) -> Iterator[str]:
    """I6: never two playbooks that change hosts at once, neither seen as processes nor by the times on record."""
    for together in after.mutators:
        if len(together) > 1:
            yield f"at once: {', '.join(sorted(together))}"
            break
    spans = sorted(
        (_at(r) - timedelta(seconds=r.body["seconds"]), _at(r), f"{run} {r.body['step']} on node {r.body['node_id']}")
        for run, records in after.evidence.items()
        for r in records
        if r.body["outcome"] == "played"
    )
    for (_, ended, first), (began, _, second) in pairwise(spans):
        if began < ended - timedelta(seconds=0.1):  # the record keeps tenths of a second
            yield f"{second} began before {first} had ended"


def nothing_left_behind(after: Aftermath) -> Iterator[str]:
    """I7: no throttle, held lock, temporary file, half-written configuration or orphan process."""
    yield from after.left_behind


def _at(record: EvidenceRecord) -> datetime:
    return datetime.fromisoformat(record.at)
