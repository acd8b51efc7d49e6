"""The records of one run as a person reads them: what happened when, who approved what, what was proven, what went wrong. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kraft_runbook.evidence.body import Body, clean, moment, number, part, parts, text, texts, whole
from kraft_runbook.evidence.proofs import GateProof, ParityRun, gate_proofs, parity_runs
from kraft_runbook.evidence.record import FIRST, Break, EvidenceRecord, lacks

BAD_OUTCOMES = frozenset({"refused", "failed", "gave_up", "rejected"})
RESTART = "Stop the service if its process is older than its files"
"""The playbooks' task (playbooks/tasks/restart.yml) that a restart changes and a first start does not."""
OBSERVED_BEFORE = frozenset({"played", "left_kraft"})
"""Outcomes whose record carries the phase that was observed before the step, not after it."""
MOMENTS = ("began_at", "ready_at", "caught_up_at", "fenced_at", "drained_at", "proven_at", "stopped_at", "deleted_at", "elected_at", "known_at")
"""The moments of leaving KRaft, in their order."""
LEADING_FIGURES = ("acknowledged", "read_back", "lost", "duplicated")
HIDDEN = frozenset({"cluster", "dag", "run", "task", "outcome", "phase"})
"""What the journal puts into every body: shown elsewhere."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Whether the records can be trusted. ``problem``: None where they can. ``anchor``: the digest that somebody noted elsewhere, empty where none was given."""

    records: int
    last_digest: str
    problem: str | None
    broken_at: int | None
    anchor: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One record in one line. Seconds is how long the thing took; None where it took no time. ``trusted``: it lies before any break."""

    sequence: int
    began: datetime
    at: datetime
    seconds: float | None
    task: str
    outcome: str
    phase: str
    bad: bool
    summary: str
    digest: str
    trusted: bool


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
    """All that was done on one node, in order."""

    node_id: int
    restarts: int
    seconds: float
    steps: tuple[NodeStep, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """What was refused, failed or rejected, why, and when the same task got past it (None: it did not)."""

    sequence: int
    at: datetime
    task: str
    outcome: str
    reason: str
    overcome_at: datetime | None


@dataclass(frozen=True, slots=True)
class Moment:
    """``seconds``: after the fence, or after the first moment where no fence was needed."""

    name: str
    at: datetime
    seconds: float


@dataclass(frozen=True, slots=True)
class ControllerlessWindow:
    """The time in which no metadata change could be made, as the step that left KRaft measured it.

    ``raised``: the partitions whose state znode was written again before, since its version lay behind their epoch.
    """

    at: datetime
    window_seconds: float | None
    migration_offset: int | None
    high_watermark: int | None
    touched_keys: int | None
    moments: tuple[Moment, ...]
    raised: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a workload's account, named as there."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Workload:
    """What traffic saw of the run. ``good``: all that was acknowledged is there, once; None where that was not found out."""

    at: datetime
    good: bool | None
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class RunReport:
    """All of it. ``good``: True the run reached its goal, False it stopped or its evidence can't be trusted, None it goes on or did not say."""

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
    problems: tuple[Problem, ...]
    entries: tuple[Entry, ...]


def make_report(run: str, records: Sequence[EvidenceRecord], broken: Break | None, *, anchor: str = "") -> RunReport:
    """Read a run's records. What lies behind a break is listed, and taken for nothing else.

    ``anchor``: the digest of a record of this run that was noted elsewhere.
    """
    end = len(records) if broken is None else broken.place
    sound = records[:end]
    entries = tuple(_entry(record, trusted=place < end) for place, record in enumerate(records))
    trusted = entries[:end]
    cut_off = lacks(sound, anchor) if anchor else None
    problem = str(broken) if broken else cut_off
    outcome, good = ("the evidence can't be trusted", False) if problem else _outcome(sound)
    first: Body = sound[0].body if sound else {}
    return RunReport(
        run=run,
        cluster=text(first, "cluster"),
        dag=text(first, "dag"),
        run_id=text(first, "run"),
        began=min((e.began for e in trusted), default=None),
        ended=trusted[-1].at if trusted else None,
        outcome=outcome,
        good=good,
        chain=Chain(len(records), sound[-1].digest if sound else FIRST, problem, broken.place if broken else None, anchor),
        phases=_phases(trusted),
        gates=gate_proofs(sound),
        parity=parity_runs(sound),
        nodes=_nodes(sound),
        windows=tuple(_window(r) for r in sound if r.body.get("outcome") == "left_kraft"),
        workloads=tuple(_workload(r) for r in sound if r.body.get("outcome") == "workload"),
        problems=_problems(sound, trusted),
        entries=entries,
    )


def _outcome(records: Sequence[EvidenceRecord]) -> tuple[str, bool | None]:
    closings = [place for place, record in enumerate(records) if record.body.get("outcome") == "closed"]
    if not closings:
        return "under way, or ended without a closing report", None
    body = records[closings[-1]].body
    phase, failed = text(body, "phase"), texts(body, "failed")
    if any(record.body.get("outcome") != "workload" for record in records[closings[-1] + 1 :]):
        return f"closed in {phase}, then resumed: under way, or ended without a closing report", None
    if body.get("succeeded") is True:
        return f"succeeded in {phase}", True
    stopped = f"stopped in {phase}" + (f"; failed: {', '.join(failed)}" if failed else "")
    return (stopped, False) if failed or body.get("succeeded") is False else (f"closed in {phase}", None)


def _entry(record: EvidenceRecord, *, trusted: bool) -> Entry:
    body, at = record.body, datetime.fromisoformat(record.at)
    began = moment(body, "began_at") or moment(body, "started_at")
    ended = moment(body, "ended_at") or moment(body, "finished_at") or at
    seconds = number(body, "seconds")
    if seconds is None and began is not None:
        seconds = round((ended - began).total_seconds(), 1)
    if began is None:
        began = at - timedelta(seconds=min(seconds or 0.0, 1e9))
    return Entry(
        sequence=record.sequence,
        began=min(began, at),
        at=at,
        seconds=seconds,
        task=text(body, "task"),
        outcome=text(body, "outcome"),
        phase=text(body, "phase"),
        bad=_reason(body) is not None,
        summary=_summary(body),
        digest=record.digest,
        trusted=trusted,
    )


def _reason(body: Body) -> str | None:
    """Why this record tells of something that went wrong; None where it does not."""
    outcome = text(body, "outcome")
    if text(body, "error"):
        return text(body, "error")
    if outcome == "rejected":
        return f"rejected by {text(body, 'by')}"
    if outcome == "compared" and text(body, "verdict") != "MATCH":
        return "; ".join([f"parity is {text(body, 'verdict')}", *(text(o, "problem") for o in parts(body, "obstacles"))])
    if outcome == "way_back" and (body.get("possible") is not True or texts(body, "threats")):
        closed = "about to be closed" if body.get("possible") is True else f"closed: {text(body, 'why')}"
        return f"the way back is {closed}; {', '.join(texts(body, 'threats'))}".removesuffix("; ")
    if outcome in BAD_OUTCOMES:
        return "the record does not say why"
    return None


def _summary(body: Body) -> str:
    outcome, gate, digest = text(body, "outcome"), text(body, "gate"), text(body, "digest")
    match outcome:
        case "began":
            return f"{'dry run' if body.get('dry_run') is True else 'the run'}, on {text(body, 'host')}"
        case "checked":
            results = parts(part(body, "checks"), "results")
            missed = [text(r, "code") for r in results if text(r, "verdict") != "PASS"]
            return f"{len(results) - len(missed)} of {len(results)} checks pass" + (f"; not: {', '.join(missed)}" if missed else "")
        case "proven" | "confirmed" | "begins":
            return f"gate {gate}, proof {digest[:12]}"
        case "asked":
            return f"gate {gate}, proof {digest[:12]}, signature {text(body, 'number')} of {text(body, 'needed')}"
        case "turned_away":
            return f"gate {gate}, the answer by {text(body, 'by')} does not count: {text(body, 'why')}"
        case "approved" | "rejected":
            return f"gate {gate}, proof {digest[:12]}, by {text(body, 'by')}"
        case "played":
            return f"node {text(body, 'node_id')}: {', '.join(texts(body, 'changed')) or 'nothing to change'}"
        case "already_done":
            return text(body, "why")
        case "reached":
            copied = number(part(body, "copy"), "seconds")
            about = f", node {text(body, 'node_id')}" if text(body, "node_id") else "" if copied is None else f", the copy itself {copied:.1f} s"
            return text(body, "condition") + about
        case "compared":
            same = sum(whole(each, "both") or 0 for each in parts(body, "counts"))
            return f"{text(body, 'verdict')} at metadata offset {text(body, 'offset')}" + (f", {same} facts the same" if same else "")
        case "closed":
            failed = texts(body, "failed")
            return f"in {text(body, 'phase')}" + (f"; failed: {', '.join(failed)}" if failed else "")
        case "planned":
            return f"to {text(body, 'goal')}, {len(texts(body, 'steps'))} steps"
        case "way_back":
            return _reason(body) or f"open: {text(body, 'why')}"
        case "left_kraft":
            gone, logs = ", ".join(texts(body, "gone")), "; ".join(texts(body, "logs_read"))
            on_trust = f"; controller {gone} counted as stopped on the operator's word" if gone else ""
            return f"no controller for {text(body, 'window_seconds')} s" + on_trust + (f"; the copy was never committed: {logs}" if logs else "")
        case "workload":
            return ", ".join(f"{name} {text(body, name)}" for name in ("acknowledged", "lost", "duplicated") if name in body)
    return _reason(body) or "; ".join(f"{clean(k)} {text(body, k)}" for k in body if k not in HIDDEN)[:300]


def _phases(entries: Sequence[Entry]) -> tuple[PhaseSpan, ...]:
    seen = sorted((e.began if e.outcome in OBSERVED_BEFORE else e.at, e.phase) for e in entries if e.phase)
    if not seen:
        return ()
    starts = [each for place, each in enumerate(seen) if place == 0 or seen[place - 1][1] != each[1]]
    ends = [at for at, _ in starts[1:]] + [max(e.at for e in entries)]
    return tuple(PhaseSpan(phase, began, ended) for (began, phase), ended in zip(starts, ends, strict=True))


def _nodes(records: Sequence[EvidenceRecord]) -> tuple[NodeWork, ...]:
    steps: dict[int, list[NodeStep]] = {}
    for record in records:
        node = whole(record.body, "node_id")
        if record.body.get("outcome") == "played" and node is not None:
            entry, changed = _entry(record, trusted=True), texts(record.body, "changed")
            steps.setdefault(node, []).append(NodeStep(text(record.body, "step"), entry.began, entry.seconds or 0.0, changed, RESTART in changed))
    return tuple(NodeWork(node, sum(s.restarted for s in done), round(sum(s.seconds for s in done), 1), tuple(done)) for node, done in sorted(steps.items()))


def _problems(records: Sequence[EvidenceRecord], entries: Sequence[Entry]) -> tuple[Problem, ...]:
    found = []
    for place, (record, entry) in enumerate(zip(records, entries, strict=True)):
        reason = _reason(record.body)
        if reason is not None:
            later = next((e.at for e in entries[place + 1 :] if e.task == entry.task and not e.bad), None)
            found.append(Problem(entry.sequence, entry.at, entry.task, entry.outcome, reason, later))
    return tuple(found)


def _window(record: EvidenceRecord) -> ControllerlessWindow:
    body = record.body
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
    )


def _workload(record: EvidenceRecord) -> Workload:
    body = record.body
    account = part(body, "workload") or body
    names = [name for name in dict.fromkeys((*LEADING_FIGURES, *account)) if name in account and name not in HIDDEN and account[name] not in ([], None)]
    figures = tuple(Figure(clean(name).replace("_", " "), text(account, name)) for name in names)
    acknowledged, lost, duplicated = (whole(account, name) for name in ("acknowledged", "lost", "duplicated"))
    good = None if lost is None or duplicated is None or not acknowledged else lost == 0 and duplicated == 0
    return Workload(datetime.fromisoformat(record.at), good, figures)
