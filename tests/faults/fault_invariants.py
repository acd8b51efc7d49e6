"""What must hold after every case, whatever was broken. Pure: what is left of a case in, what is wrong out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from fault_parity import behind_left_kraft, behind_the_gate
from fault_processes import Mutator

from kraft_runbook.evidence.outcomes import Outcome
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.migration.transitions import TABLE, Step
from kraft_runbook.runbook.check_results import Severity, Verdict
from kraft_runbook.runbook.digests import digest_of

FORWARD_GATES: Mapping[str, str] = {
    Step.PROVISION_CONTROLLERS: "start",
    Step.ROLL_BROKERS_TO_HYBRID: "start",
    Step.ROLL_BROKERS_TO_KRAFT: "dual_write",
    Step.FINALIZE_CONTROLLERS: "finalize",
}
BACK_GATE = "rollback"
GATE_OF: Mapping[str, str] = {str(edge.step): FORWARD_GATES.get(edge.step, BACK_GATE) for edge in TABLE.edges}
"""The gate whose signature a step needs."""
WHOLE_CLUSTER = (Outcome.LEFT_KRAFT, Outcome.RESTORED)
"""What is recorded of steps of the way back that are not on one node."""


STEP_TASKS = re.compile(
    r"(provision_controllers|roll_brokers|finalize_controllers)\w*\..+\.(provision|restart)|leave_kraft"
)
"""The tasks that change hosts behind a gate: each leaves a record, whatever it finds."""
LASTING = 10.0
"""Seconds from which on a fault must leave producers and readers at work, where the case promises it: no stall that was
seen is as long by far.
"""
WATCHED = 2.0
"""Seconds of a playbook that a look three times a second can't miss."""


@dataclass(frozen=True)
class Span:
    """A fault of a case, from the begin of its injection until it was undone, or was done where nothing undoes it.
    Seconds since the epoch.
    """

    kind: str
    began: float
    ended: float


@dataclass(frozen=True)
class Sample:
    """How far the workload was at a moment (seconds since the epoch): records acknowledged to its producers, and read
    by its group.
    """

    at: float
    acknowledged: int
    consumed: int


@dataclass(frozen=True)
class Aftermath:
    """What a case left.

    ``evidence``: the records of each run of the case. ``proofs``: the gates' proofs by digest, as stored. ``account``:
    the workload's (None: it left none); ``samples``: how far it was, about once a second; ``serves``: whether it goes
    on while a fault lasts; ``may_fail``: how many records may fail to their producers. ``faults``: the case's own.
    ``starts``: process starts during the case, by service; ``expected_starts``: those that the case file grants, every
    other service 0. ``mutators``: each moment's playbooks that change hosts. ``left_behind``: what should be gone.
    ``outcome``: why the outcome is not the expected one; empty when it is. ``run``: the last run; ``states``: of its
    tasks; ``by_hand``: those of them that the case itself marked.
    """

    evidence: Mapping[str, Sequence[EvidenceRecord]]
    proofs: Mapping[str, Mapping[str, Any]]
    account: Mapping[str, Any] | None
    samples: Sequence[Sample]
    serves: bool
    may_fail: int
    faults: Sequence[Span]
    starts: Mapping[str, int]
    expected_starts: Mapping[str, int]
    mutators: Sequence[frozenset[Mutator]]
    left_behind: Sequence[str]
    outcome: str
    run: str
    states: Mapping[str, str | None]
    by_hand: frozenset[str]
    valid_for: float
    allowed: frozenset[str]

    def passed(self, task: str) -> bool:
        """Whether the task itself ended well, in the last run."""
        return self.states.get(task) == "success" and task not in self.by_hand


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
    """I1: every acknowledged record is there, once, in its order; producers and readers were at work before the faults,
    meanwhile and afterwards.
    """
    account = after.account
    if account is None:
        yield "the workload left no account"
        return
    for what in ("lost", "duplicated", "reordered"):
        if account[what] != 0:
            yield (
                f"{account[what]} records {what}"
                if account[what] is not None
                else f"{what}: the topics could not be read back"
            )
    if account["failed"] > after.may_fail:
        yield f"{account['failed']} records failed to their producers"
    yield from account["problems"]
    yield from _standstills(after, Sample(float("inf"), account["acknowledged"], account["consumed_by_group"]))


def _standstills(after: Aftermath, end: Sample) -> Iterator[str]:
    """Where nothing was acknowledged or read: before the first fault, while one lasted, after the last."""
    samples = [*after.samples, end]
    nothing = Sample(0.0, 0, 0)
    first = min((fault.began for fault in after.faults), default=float("inf"))
    last = max((fault.ended for fault in after.faults), default=0.0)
    yield from _none_between(nothing, _latest(samples, first), "before the first fault")
    for fault in after.faults:
        if after.serves and fault.ended - fault.began >= LASTING:
            began, ended = _latest(samples, fault.began), _latest(samples, fault.ended)
            yield from _none_between(began, ended, f"in the {fault.ended - fault.began:.0f} s of {fault.kind}")
    yield from _none_between(_latest(samples, last), end, "after the last fault")


def _latest(samples: Sequence[Sample], at: float) -> Sample:
    """The latest sample that was taken by then."""
    return max((each for each in samples if each.at <= at), key=lambda each: each.at, default=Sample(0.0, 0, 0))


def _none_between(earlier: Sample, later: Sample, when: str) -> Iterator[str]:
    for what in ("acknowledged", "consumed"):
        if getattr(later, what) <= getattr(earlier, what):
            yield f"no record was {what} {when}"


ANY_OF = {"any-controller": "controller-", "any-zookeeper": "zookeeper-"}
"""In ``expected_starts``: so many starts of controllers, or of ZooKeeper servers, whichever: they choose who leads."""


def no_needless_restart(after: Aftermath) -> Iterator[str]:
    """I2: each process was started exactly as often as the case grants."""
    left = {name: after.expected_starts.get(name, 0) for name in ANY_OF}
    for service in sorted({*after.starts, *after.expected_starts} - {*ANY_OF}):
        was, granted = after.starts.get(service, 0), after.expected_starts.get(service, 0)
        name = next((each for each, prefix in ANY_OF.items() if left[each] and service.startswith(prefix)), None)
        if name and was > granted:
            left[name] -= was - granted
        elif was != granted:
            yield f"{service} was started {was} times, not {granted}"
    for name, number in left.items():
        if number:
            granted = after.expected_starts[name]
            yield f"{ANY_OF[name]}… was started {granted - number} times, not {granted}"


def no_gate_on_a_divergence(after: Aftermath) -> Iterator[str]:
    """I3: no gate was confirmed on a proof with a divergence, an unread part or a failed check; its parity report is
    the latest, and that run's own.

    A gate that Airflow has as passed must have left its confirmation, or a proof that the cluster was beyond it.
    """
    for run, records in after.evidence.items():
        if not records:
            yield f"{run}: it left no evidence"
        for place, record in enumerate(records):
            body, before = record.body, [each.body for each in records[:place]]
            if body["outcome"] == Outcome.LEFT_KRAFT:
                yield from (f"{run}: KRaft was left {why}" for why in behind_left_kraft(body, before))
            if body["outcome"] in (Outcome.APPROVED, Outcome.CONFIRMED):
                yield from (
                    f"{run}: gate {body['gate']} {body['outcome']} {why}"
                    for why in _unsound(body, after.proofs, before)
                )
    for gate in sorted({task.split(".")[0].removeprefix("gate_") for task in after.states if task.startswith("gate_")}):
        told = [r.body for r in after.evidence.get(after.run, ()) if r.body.get("gate") == gate]
        answered = any(
            body["outcome"] == Outcome.CONFIRMED or (body["outcome"] == Outcome.PROVEN and body.get("passed"))
            for body in told
        )
        if after.passed(f"gate_{gate}.confirm") and not answered:
            yield f"{after.run}: gate {gate} was passed, and nothing in the evidence confirms it"


def _unsound(
    body: Mapping[str, Any], proofs: Mapping[str, Mapping[str, Any]], before: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    proof = proofs.get(body["digest"])
    if proof is None:
        yield "without a stored proof"
        return
    if digest_of(proof) != body["digest"]:
        yield "on a proof that was altered"
    if proof["gate"] != body["gate"]:
        yield f"on a proof of gate {proof['gate']}"
    if not proof["checks"] and proof["gate"] != BACK_GATE:
        yield "on a proof without a check"
    yield from (
        f"though {check['code']} was {check['verdict']}"
        for check in proof["checks"]
        if check["severity"] == Severity.BLOCKING and check["verdict"] != Verdict.PASS
    )
    yield from behind_the_gate(body, proof, before)


def no_step_without_approval(after: Aftermath) -> Iterator[str]:
    """I4: before each step that began or was played, its gate was proven, approved by someone who may, and confirmed:
    one proof, in this order, still fresh.

    A step that Airflow has as done must have left a record: what is not in the evidence can't be judged.
    """
    for run, records in after.evidence.items():
        for place, record in enumerate(records):
            outcome, step = record.body["outcome"], record.body.get("step", "")
            if outcome not in (Outcome.BEGINS, Outcome.PLAYED, *WHOLE_CLUSTER):
                continue
            gate = {Outcome.PLAYED: GATE_OF.get(step), Outcome.BEGINS: record.body.get("gate")}.get(outcome, BACK_GATE)
            if gate is None:
                yield f"{run}: {step} is no step of the table"
                continue
            what = {
                Outcome.PLAYED: f"{step} on node {record.body.get('node_id')}",
                Outcome.BEGINS: f"{record.body.get('task')}",
            }.get(outcome, outcome)
            yield from (f"{run}: {what} {why}" for why in _unauthorised(gate, records[:place], after))
    recorded = {record.body.get("task") for record in after.evidence.get(after.run, ())}
    silent = [
        task
        for task in sorted(after.states)
        if STEP_TASKS.fullmatch(task) and after.passed(task) and task not in recorded
    ]
    yield from (f"{after.run}: {task} ended well and left no record" for task in silent)


def _unauthorised(gate: str, before: Sequence[EvidenceRecord], after: Aftermath) -> Iterator[str]:
    of_gate = [r for r in before if r.body.get("gate") == gate]
    confirmed = next((r for r in reversed(of_gate) if r.body["outcome"] == Outcome.CONFIRMED), None)
    if confirmed is None:
        yield f"was played before gate {gate} was confirmed"
        return
    digest = confirmed.body["digest"]
    earlier = [r for r in of_gate if r.sequence < confirmed.sequence and r.body.get("digest") == digest]
    proven = next((r for r in earlier if r.body["outcome"] == Outcome.PROVEN), None)
    approved = [
        r for r in earlier if r.body["outcome"] == Outcome.APPROVED and (proven is None or r.sequence > proven.sequence)
    ]
    if proven is None:
        yield f"rests on a confirmation of gate {gate} that nothing was proven for"
    elif _at(confirmed) - _at(proven) > timedelta(seconds=after.valid_for):
        yield (
            f"rests on a proof of gate {gate} that was {(_at(confirmed) - _at(proven)).total_seconds():.0f} s old when"
            " it was confirmed"
        )
    if not approved:
        yield f"rests on a confirmation of gate {gate} that nobody approved"
    yield from (
        f"was approved by {r.body['by']}, who may not"
        for r in approved
        if after.allowed and r.body["by"] not in after.allowed
    )


def ended_as_it_should(after: Aftermath) -> Iterator[str]:
    """I5: the run reached its goal, or refused with the reason and the way out; and none of its tasks is still under
    way.
    """
    if after.outcome:
        yield after.outcome
    yield from (
        f"{task} is still {state}"
        for task, state in sorted(after.states.items())
        if state in ("running", "queued", "deferred", "awaiting_input")
    )


def one_mutator_at_a_time(after: Aftermath) -> Iterator[str]:
    """I6: never two tasks at once whose playbooks change hosts, neither seen as processes nor by the times on record.
    Each that was played must have been seen.
    """
    for together in after.mutators:
        if len({each.by for each in together}) > 1:
            yield f"at once: {', '.join(f'{each.name} (by process {each.by})' for each in sorted(together))}"
            break
    seen = frozenset[Mutator]().union(*after.mutators)
    played = [
        r.body
        for records in after.evidence.values()
        for r in records
        if r.body["outcome"] == Outcome.PLAYED and r.body["seconds"] >= WATCHED
    ]
    if len(seen) < len(played):
        yield f"{len(played)} playbooks were played, and {len(seen)} seen at work: the watch is blind"
    spans = sorted(
        (_at(r) - timedelta(seconds=r.body["seconds"]), _at(r), f"{run} {r.body['step']} on node {r.body['node_id']}")
        for run, records in after.evidence.items()
        for r in records
        if r.body["outcome"] == Outcome.PLAYED
    )
    for (_, ended, first), (began, _, second) in pairwise(spans):
        if began < ended - timedelta(seconds=0.1):  # the record keeps tenths of a second
            yield f"{second} began before {first} had ended"


def nothing_left_behind(after: Aftermath) -> Iterator[str]:
    """I7: no throttle, held lock, temporary file, half-written configuration or orphan process."""
    yield from after.left_behind


def _at(record: EvidenceRecord) -> datetime:
    return datetime.fromisoformat(record.at)
