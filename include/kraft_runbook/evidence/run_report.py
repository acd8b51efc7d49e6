"""The report of one run, from its records: what happened when, who approved what, what was proven, what failed.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kraft_runbook.evidence import kinds
from kraft_runbook.evidence.body import Body, clean, moment, number, part, text, texts, whole
from kraft_runbook.evidence.course import CoursePoint, course_of
from kraft_runbook.evidence.entries import HIDDEN, Entry, make_entry, reason_of, window_bounds
from kraft_runbook.evidence.kinds import of_kind
from kraft_runbook.evidence.outcomes import OBSERVED_BEFORE, Outcome, outcome_of
from kraft_runbook.evidence.proofs import GateProof, ParityRun, gate_proofs, parity_runs
from kraft_runbook.evidence.record import FIRST, Break, EvidenceRecord, lacks
from kraft_runbook.evidence.rehearsal_card import RehearsalCard, card_of
from kraft_runbook.evidence.watches import NOT_CLOSED, is_watch, outcome_of_watch

MOMENTS = (
    "began_at",
    "ready_at",
    "caught_up_at",
    "fenced_at",
    "drained_at",
    "proven_at",
    "stopped_at",
    "deleted_at",
    "elected_at",
    "known_at",
)
"""The moments of leaving KRaft, in their order."""
LEADING_FIGURES = ("acknowledged", "read_back", "lost", "duplicated")
ACKNOWLEDGEMENTS = "acknowledgements"
"""In a workload's account: when the slowest ones came. They are drawn, and are no figure."""
STRETCHES = 2000
"""Of acknowledgements that are read: a workload keeps fewer."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Whether the chain is unbroken. ``problem``: None if it is. ``anchor``: the digest that somebody noted elsewhere,
    empty if none was given.
    """

    records: int
    last_digest: str
    problem: str | None
    broken_at: int | None
    anchor: str


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """A phase, from the first record that observed it to the first that observed another, or to the last record."""

    phase: str
    began: datetime
    ended: datetime


@dataclass(frozen=True, slots=True)
class NodeStep:
    """One playbook on one node. ``restarted``: a process that ran was stopped for it."""

    step: str
    began: datetime
    seconds: float
    changed: tuple[str, ...]
    restarted: bool


@dataclass(frozen=True, slots=True)
class NodeWork:
    """The playbooks on one node, in order."""

    node_id: int
    restarts: int
    seconds: float
    steps: tuple[NodeStep, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """A refusal, failure or rejection, why, and when the same task succeeded later (None: it did not)."""

    sequence: int
    at: datetime
    task: str
    outcome: str
    reason: str
    overcome_at: datetime | None


@dataclass(frozen=True, slots=True)
class Moment:
    """``seconds``: since the fence or, if no fence was needed, since the first moment."""

    name: str
    at: datetime
    seconds: float


@dataclass(frozen=True, slots=True)
class ControllerlessWindow:
    """The time without metadata changes, as leave_kraft measured it.

    ``raised``: the partitions whose state znode was written again before, since its version was lower than their epoch.
    ``epoch_set``: what /controller_epoch was set to, where ``controller_epoch`` was too low; None: nothing.
    ``election``: what was proven of the ZooKeeper controller's elections. ``settled``: nothing was
    fenced, since the cluster had left KRaft before; a broker was only elected controller anew. ``bounds``: how long it
    can have been, in words, where it was not measured. ``notes``: why something was not, and by whose clock the rest
    is.
    """

    at: datetime
    window_seconds: float | None
    migration_offset: int | None
    high_watermark: int | None
    touched_keys: int | None
    moments: tuple[Moment, ...]
    raised: tuple[str, ...] = ()
    controller_epoch: int | None = None
    epoch_set: int | None = None
    election: str = ""
    settled: bool = False
    bounds: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Moved:
    """What was done with partitions that move. ``picture``: of the plan, as an SVG; None where the record has none.
    ``course``: what was left over time; empty where the record has none.
    """

    at: datetime
    task: str
    what: str
    partitions: int | None
    told: str
    picture: str | None
    course: tuple[CoursePoint, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a workload's account, named as there."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Slowest:
    """The slowest acknowledgement that came in a stretch of time from ``at`` on; None: none came."""

    at: datetime
    milliseconds: int | None


@dataclass(frozen=True, slots=True)
class Workload:
    """The workload's account of the run. ``good``: every acknowledged record is there, once; None if not known.
    ``slowest``: in each second, or longer stretch of a long run; empty where the account has none.
    """

    at: datetime
    good: bool | None
    figures: tuple[Figure, ...]
    slowest: tuple[Slowest, ...]


@dataclass(frozen=True, slots=True)
class RunReport:
    """The whole report. ``good``: True: the run reached its goal. False: it stopped, or its chain is broken. None: it
    goes on, or has no closing record.
    """

    run: str
    cluster: str
    dag: str
    run_id: str
    began: datetime | None
    ended: datetime | None
    outcome: str
    good: bool | None
    chain: Chain
    phases: tuple[PhaseSpan, ...]
    gates: tuple[GateProof, ...]
    parity: tuple[ParityRun, ...]
    nodes: tuple[NodeWork, ...]
    windows: tuple[ControllerlessWindow, ...]
    workloads: tuple[Workload, ...]
    moves: tuple[Moved, ...]
    rehearsal: RehearsalCard | None
    problems: tuple[Problem, ...]
    entries: tuple[Entry, ...]


def make_report(run: str, records: Sequence[EvidenceRecord], broken: Break | None, *, anchor: str = "") -> RunReport:
    """Read a run's records. Records after a break of the chain are listed only.

    ``anchor``: the digest of a record of this run that was noted elsewhere.
    """
    end = len(records) if broken is None else broken.place
    sound = records[:end]
    entries = tuple(make_entry(record, trusted=place < end) for place, record in enumerate(records))
    trusted = entries[:end]
    cut_off = lacks(sound, anchor) if anchor else None
    problem = str(broken) if broken else cut_off
    first: Body = sound[0].body if sound else {}
    dag = text(first, "dag")
    found = outcome_of_watch(dag, sound[-1].body) if sound and is_watch(dag) else outcome_of_run(sound)
    outcome, good = ("the evidence can't be trusted", False) if problem else found
    return RunReport(
        run=run,
        cluster=text(first, "cluster"),
        dag=dag,
        run_id=text(first, "run"),
        began=min((e.began for e in trusted), default=None),
        ended=trusted[-1].at if trusted else None,
        outcome=outcome,
        good=good,
        chain=Chain(
            len(records), sound[-1].digest if sound else FIRST, problem, broken.place if broken else None, anchor
        ),
        phases=_phases(trusted),
        gates=gate_proofs(sound),
        parity=parity_runs(sound),
        nodes=_nodes(sound),
        windows=_windows(sound),
        workloads=tuple(_workload(record, told) for record, told in of_kind(sound, kinds.Workload)),
        moves=tuple(
            Moved(
                at=datetime.fromisoformat(r.at),
                task=text(r.body, "task"),
                what=each.what,
                partitions=each.partitions,
                told=each.told,
                picture=each.picture,
                course=course_of(each.course or ()),
            )
            for r, each in of_kind(sound, kinds.Moves)
        ),
        rehearsal=_rehearsal(sound),
        problems=_problems(sound, trusted),
        entries=entries,
    )


def outcome_of_run(records: Sequence[EvidenceRecord]) -> tuple[str, bool | None]:
    """How a run that ends with a closing report stands, in words, and ``good`` as of ``RunReport``."""
    closings = tuple(of_kind(records, kinds.Closed))
    if not closings:
        return NOT_CLOSED, None
    record, closed = closings[-1]
    if any(outcome_of(later.body) is not Outcome.WORKLOAD for later in records[record.sequence + 1 :]):
        return f"closed in {closed.phase}, then resumed: {NOT_CLOSED}", None
    if closed.succeeded:
        return f"succeeded in {closed.phase}", True
    stopped = f"stopped in {closed.phase}" + (f"; failed: {', '.join(closed.failed)}" if closed.failed else "")
    return (stopped, False) if closed.failed or closed.succeeded is False else (f"closed in {closed.phase}", None)


def _phases(entries: Sequence[Entry]) -> tuple[PhaseSpan, ...]:
    seen = sorted((e.began if e.outcome in OBSERVED_BEFORE else e.at, e.phase) for e in entries if e.phase)
    if not seen:
        return ()
    starts = [each for place, each in enumerate(seen) if place == 0 or seen[place - 1][1] != each[1]]
    ends = [at for at, _ in starts[1:]] + [max(e.at for e in entries)]
    return tuple(PhaseSpan(phase, began, ended) for (began, phase), ended in zip(starts, ends, strict=True))


def _rehearsal(records: Sequence[EvidenceRecord]) -> RehearsalCard | None:
    """The run's last word on a rehearsal. A body that holds nothing of one has no verdict."""
    cards = [card_of(datetime.fromisoformat(record.at), told) for record, told in of_kind(records, kinds.Canary)]
    return next((each for each in reversed(cards) if each.verdict), None)


def _nodes(records: Sequence[EvidenceRecord]) -> tuple[NodeWork, ...]:
    steps: dict[int, list[NodeStep]] = {}
    for record, played in of_kind(records, kinds.Played):
        if played.node_id is not None:
            entry = make_entry(record, trusted=True)
            step = NodeStep(played.step, entry.began, entry.seconds or 0.0, played.changed, played.was_restart)
            steps.setdefault(played.node_id, []).append(step)
    return tuple(
        NodeWork(node, sum(s.restarted for s in done), round(sum(s.seconds for s in done), 1), tuple(done))
        for node, done in sorted(steps.items())
    )


def _problems(records: Sequence[EvidenceRecord], entries: Sequence[Entry]) -> tuple[Problem, ...]:
    found = []
    for place, (record, entry) in enumerate(zip(records, entries, strict=True)):
        reason = reason_of(record.body)
        if reason is not None:
            later = next((e.at for e in entries[place + 1 :] if e.task == entry.task and not e.bad), None)
            found.append(Problem(entry.sequence, entry.at, entry.task, entry.outcome, reason, later))
    return tuple(found)


def _windows(records: Sequence[EvidenceRecord]) -> tuple[ControllerlessWindow, ...]:
    """One for each departure: of several records of the same one, the last knows most."""
    latest: dict[tuple[str, str], ControllerlessWindow] = {}
    for record, left in of_kind(records, kinds.LeftKraft):
        began = text(left.values, "began_at")
        latest[text(record.body, "task"), began or record.digest] = _window(record, left)
    return tuple(latest.values())


def _window(record: EvidenceRecord, left: kinds.LeftKraft) -> ControllerlessWindow:
    body = left.values
    known = [(name.removesuffix("_at"), at) for name in MOMENTS if (at := moment(body, name)) is not None]
    zero = moment(body, "fenced_at") or (known[0][1] if known else datetime.fromisoformat(record.at))
    moments = tuple(Moment(name, at, round((at - zero).total_seconds(), 3)) for name, at in known)
    return ControllerlessWindow(
        at=datetime.fromisoformat(record.at),
        window_seconds=number(body, "window_seconds"),
        migration_offset=whole(body, "migration_offset"),
        high_watermark=whole(body, "high_watermark"),
        touched_keys=whole(body, "touched_keys"),
        moments=moments,
        raised=texts(body, "raised"),
        controller_epoch=whole(body, "controller_epoch"),
        epoch_set=whole(body, "epoch_set"),
        election=text(body, "election"),
        settled=left.settled,
        bounds=window_bounds(number(body, "window_at_least"), number(body, "window_at_most")),
        notes=_notes(body),
    )


def _notes(body: Body) -> tuple[str, ...]:
    """What a departure's record lacks, since its try was killed or lost its connection."""
    taken_over, told = moment(body, "resumed_at"), []
    if taken_over is not None:
        told.append(
            f"The try that left KRaft ended before all of this was on record; a later one took over at"
            f" {taken_over:%H:%M:%S}"
        )
        if moment(body, "deleted_at") is None:
            told.append("When the znodes were deleted is not known, since ZooKeeper keeps no time of that")
        if moment(body, "elected_at") is None:
            told.append("When a broker was elected is not known, since others were elected after it")
    by_zookeeper = [name.removesuffix("_at") for name in texts(body, "by_zookeepers_clock")]
    if by_zookeeper:
        told.append(f"By ZooKeeper's clock: {', '.join(by_zookeeper)}")
    return tuple(told)


def _workload(record: EvidenceRecord, told: kinds.Workload) -> Workload:
    account = part(told.values, "workload") or told.values
    names = [
        name
        for name in dict.fromkeys((*LEADING_FIGURES, *account))
        if name in account and name not in HIDDEN | {ACKNOWLEDGEMENTS} and account[name] not in ([], None)
    ]
    figures = tuple(Figure(clean(name).replace("_", " "), text(account, name)) for name in names)
    acknowledged, lost, duplicated = (whole(account, name) for name in ("acknowledged", "lost", "duplicated"))
    good = None if lost is None or duplicated is None or not acknowledged else lost == 0 and duplicated == 0
    return Workload(datetime.fromisoformat(record.at), good, figures, _slowest(part(account, ACKNOWLEDGEMENTS)))


def _slowest(told: Body) -> tuple[Slowest, ...]:
    began, every, values = moment(told, "began_at"), whole(told, "every"), told.get("slowest_ms")
    if began is None or not every or not 0 < every <= 86400 or not isinstance(values, list):
        return ()
    each = (whole({"ms": value}, "ms") for value in values[:STRETCHES])
    try:
        return tuple(
            Slowest(began + timedelta(seconds=n * every), None if ms is None or ms < 0 else ms)
            for n, ms in enumerate(each)
        )
    except OverflowError:  # it begins at the end of the calendar
        return ()
