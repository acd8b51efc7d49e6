"""One record of a run in one line: when, how long, by which task, with which result. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from kraft_runbook.evidence import kinds
from kraft_runbook.evidence.body import Body, clean, moment, number, parts, text, texts, whole
from kraft_runbook.evidence.kinds import kind_of
from kraft_runbook.evidence.outcomes import BAD_OUTCOMES, outcome_of
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.parity.parity_report import Verdict as ParityVerdict
from kraft_runbook.runbook.check_results import Verdict as CheckVerdict

AWAITED = "the controller role was given back; no broker was known as controller yet"
HIDDEN = frozenset({"cluster", "dag", "run", "task", "outcome", "phase"})
"""What the journal puts into every body: shown elsewhere."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One record in one line. ``seconds``: how long the event took; None if it took no time. ``trusted``: the record is
    before any break of the chain.
    """

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


def make_entry(record: EvidenceRecord, *, trusted: bool) -> Entry:
    """The record in one line. ``trusted``: it is before any break of the chain."""
    body, at = record.body, datetime.fromisoformat(record.at)
    began = moment(body, "began_at") or moment(body, "started_at")
    ended = moment(body, "ended_at") or moment(body, "finished_at") or at
    # Of a way back the seconds are what it would take.
    seconds = None if isinstance(kind_of(body), kinds.WayBack) else number(body, "seconds")
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
        bad=reason_of(body) is not None,
        summary=_summary(body),
        digest=record.digest,
        trusted=trusted,
    )


def reason_of(body: Body) -> str | None:
    """What went wrong, if this record reports a failure; else None."""
    if text(body, "error"):
        return text(body, "error")
    match kind_of(body):
        case kinds.Rejected(by=by):
            return f"rejected by {by or ''}"
        case kinds.Compared(verdict=verdict) if verdict is not ParityVerdict.MATCH:
            return "; ".join(
                [f"parity is {text(body, 'verdict')}", *(text(o, "problem") for o in parts(body, "obstacles"))]
            )
        case kinds.WayBack() as way_back if not way_back.possible or way_back.threats:
            closed = "about to be closed" if way_back.possible else f"closed: {way_back.why}"
            return f"the way back is {closed}; {', '.join(way_back.threats)}".removesuffix("; ")
    return "the record does not say why" if outcome_of(body) in BAD_OUTCOMES else None


def _summary(body: Body) -> str:
    match kind_of(body):
        case kinds.Began() as began:
            return f"{'dry run' if began.dry_run else 'the run'}, on {began.host}"
        case kinds.Checked() as checked:
            results = parts(checked.checks, "results")
            missed = [text(r, "code") for r in results if text(r, "verdict") != CheckVerdict.PASS]
            by = f"; controlled by {checked.controlled_by}" if checked.controlled_by else ""
            return f"{len(results) - len(missed)} of {len(results)} checks pass{by}" + (
                f"; not: {', '.join(missed)}" if missed else ""
            )
        case kinds.Asked() as asked:
            which = (
                "" if asked.number is None or asked.needed is None else f", signature {asked.number} of {asked.needed}"
            )
            return _proof(asked) + which
        case kinds.TurnedAway() as answer:
            return f"gate {answer.gate}, the answer by {answer.by or ''} does not count: {answer.why}"
        case kinds.Approved() | kinds.Rejected() as answer:
            return f"{_proof(answer)}, by {answer.by or ''}"
        case kinds.OfGate() as at:
            return _proof(at)
        case kinds.Played() as played:
            node = "" if played.node_id is None else f"node {played.node_id}: "
            return node + (", ".join(played.changed) or "nothing to change")
        case kinds.AlreadyDone(why=why):
            return why
        case kinds.Reached() as reached:
            copied = number(reached.copy, "seconds")
            about = (
                f", node {reached.node_id}"
                if reached.node_id is not None
                else ""
                if copied is None
                else f", the copy itself {copied:.1f} s"
            )
            untold = "".join(f"; {each}: not compared" for each in reached.not_compared)
            return reached.condition + about + untold
        case kinds.Compared() as compared:
            same = sum(whole(each, "both") or 0 for each in parts(body, "counts"))
            at_offset = "" if compared.offset is None else f" at metadata offset {compared.offset}"
            return text(body, "verdict") + at_offset + (f", {same} facts the same" if same else "")
        case kinds.Closed() as closed:
            return f"in {closed.phase}" + (f"; failed: {', '.join(closed.failed)}" if closed.failed else "")
        case kinds.Planned() as planned:
            return f"to {planned.goal}, {len(planned.steps)} steps"
        case kinds.WayBack(why=why):
            return reason_of(body) or f"open: {why}"
        case kinds.LeavesKraft(values=left):
            return f"about to delete {', '.join(texts(left, 'deleted')) or 'nothing'}"
        case kinds.LeftKraft(settled=True, values=left):
            return _settled(left)
        case kinds.LeftKraft(values=left) as told:
            gone, logs = ", ".join(texts(left, "gone")), "; ".join(texts(left, "logs_read"))
            on_trust = f"; controller {gone} counted as stopped on the operator's word" if gone else ""
            window = text(left, "window_seconds")
            bounds = window_bounds(number(left, "window_at_least"), number(left, "window_at_most"))
            unknown = AWAITED if told.awaited else "how long there was no controller is not in the record"
            lasted = window and f"{window} s"
            return (
                (f"no controller for {lasted or bounds}" if lasted or bounds else unknown)
                + on_trust
                + (f"; the copy was never committed: {logs}" if logs else "")
            )
        case kinds.Moves() as moves:
            many = "" if moves.partitions is None else f" {moves.partitions} partitions"
            return f"{moves.what}{many}" + (f": {moves.told.splitlines()[0]}" if moves.told else "")
        case kinds.Drilled() as drilled:
            of_node = "" if drilled.node_id is None else f", node {drilled.node_id}"
            return f"{drilled.what}: {drilled.fault}{of_node}"
        case kinds.Canary() as canary:
            return "; ".join([canary.verdict, *canary.reasons])[:300]
        case kinds.Workload(values=account):
            return ", ".join(
                f"{name} {text(account, name)}" for name in ("acknowledged", "lost", "duplicated") if name in account
            )
    return reason_of(body) or "; ".join(f"{clean(k)} {text(body, k)}" for k in body if k not in HIDDEN)[:300]


def window_bounds(at_least: float | None, at_most: float | None) -> str:
    """How long there was no controller, where that was not measured but lies between moments that are known; empty
    where it does not.
    """
    if at_most is None:
        return ""
    return f"at most {at_most} s" + ("" if at_least is None else f", and at least {at_least} s")


def _settled(left: Body) -> str:
    """A cluster that had left KRaft before: what gave it a controller that can elect leaders."""
    number, elected = whole(left, "epoch_set"), whole(left, "controller")
    done = [] if number is None else [f"/controller_epoch was set to {number}"]
    done += ["/controller was deleted", *([] if elected is None else [f"broker {elected} was elected"])]
    return ", ".join(done)


def _proof(at: kinds.OfGate) -> str:
    return f"gate {at.gate}, proof {at.digest[:12]}" if at.digest else f"gate {at.gate}, no signature was asked for"
