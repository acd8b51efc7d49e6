"""A run's evidence for a terminal."""

from __future__ import annotations

from datetime import datetime

from kraft_runbook.evidence.proofs import Answer, GateProof, ParityRun, describe
from kraft_runbook.evidence.run_report import RunReport


def render_text(report: RunReport) -> str:
    """The timeline, then gates, parity, nodes, windows, problems, and last whether the chain is unbroken."""
    lines = [
        f"run       {report.run}",
        f"cluster   {report.cluster or 'not said'}",
        f"time      {_span(report)}",
        f"outcome   {report.outcome}",
        "",
    ]
    for e in report.entries:
        took = f"{e.seconds:8.1f} s" if e.seconds is not None else f"{'':10}"
        mark = "?" if not e.trusted else "!" if e.bad else " "
        lines.append(f"{e.at:%H:%M:%S}{took} {mark} {e.task:<48} {e.outcome:<13}{_first_line(e.summary)}")
    if report.phases:
        lines += [
            "",
            "phases    "
            + ", then ".join(f"{p.phase} ({(p.ended - p.began).total_seconds():.1f} s)" for p in report.phases),
        ]
    for gate in report.gates:
        lines += ["", *_gate(gate)]
    for parity in report.parity:
        lines += ["", *_parity(parity)]
    for node in report.nodes:
        steps = ", ".join(f"{s.step} {s.seconds:.1f} s{' (restart)' if s.restarted else ''}" for s in node.steps)
        lines += ["", f"node {node.node_id}: {node.restarts} restarts, {node.seconds:.1f} s: {steps}"]
    for window in report.windows:
        moments = ", ".join(f"{m.name} {m.seconds:+.3f} s" for m in window.moments)
        lasted = (
            f"for {window.bounds or 'a time that was not measured'}"
            if window.window_seconds is None
            else f"for {window.window_seconds} s"
        )
        what = "a broker was elected controller anew" if window.settled else f"no controller {lasted}"
        lines += ["", f"{what}: {moments}" if moments else what, *(f"    {note}" for note in window.notes)]
    for workload in report.workloads:
        lines += ["", "workload: " + ", ".join(f"{f.name} {f.value}" for f in workload.figures)]
    for problem in report.problems:
        past = f"overcome at {problem.overcome_at:%H:%M:%S}" if problem.overcome_at else "not overcome in this run"
        lines += [
            "",
            f"! {problem.at:%H:%M:%S} {problem.task} {problem.outcome}; {past}",
            *(f"    {line}" for line in problem.reason.splitlines()),
        ]
    return "\n".join([*lines, "", *_chain(report)])


def _span(report: RunReport) -> str:
    if report.began is None or report.ended is None:
        return "no record can be trusted"
    return f"{report.began:%Y-%m-%d %H:%M:%S} to {_day(report.began, report.ended)}{report.ended:%H:%M:%S} UTC"


def _day(began: datetime, ended: datetime) -> str:
    return "" if began.date() == ended.date() else f"{ended:%Y-%m-%d} "


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _gate(gate: GateProof) -> list[str]:
    passed = sum(c.passed for c in gate.checks)
    lines = [f"gate {gate.gate}: proof {gate.digest} ({describe(gate.genuine)})"]
    lines += ["  THIS RUN HAS NO RECORD OF THAT PROOF"] if gate.proven_at is None else []
    lines += (
        [f"  {passed} of {len(gate.checks)} checks pass" + (f"; parity {gate.parity}" if gate.parity else "")]
        if gate.checks
        else []
    )
    lines += [
        f"  {'approved' if a.approved else 'REJECTED'} by {a.who} at {a.at:%Y-%m-%d %H:%M:%S} UTC{_read_back(a)}"
        for a in gate.answers
    ]
    lines += ["  nobody answered"] if not gate.answers else []
    return lines + ([f"  confirmed at {gate.confirmed_at:%Y-%m-%d %H:%M:%S} UTC"] if gate.confirmed_at else [])


def _read_back(answer: Answer) -> str:
    return ", as Airflow repeated it" if answer.read_back else ""


def _parity(parity: ParityRun) -> list[str]:
    verdict = parity.verdict or "an unknown verdict"
    report = f"report {parity.digest} ({describe(parity.genuine)})"
    lines = [f"parity {parity.task}: {verdict}, {_offsets(parity)}, {report}"]
    lines += [
        f"  {c.kind:<20}{c.both:>9} same, {c.only_zookeeper + c.only_kraft + c.differ} not, {c.undecoded} unread"
        for c in parity.counts
    ]
    return lines + [f"  {each}" for each in (*parity.obstacles, *parity.differences)]


def _offsets(parity: ParityRun) -> str:
    if parity.offset is None:
        return "the metadata offset is not in the record"
    until = "" if parity.end_offset is None else f" to {parity.end_offset}"
    return f"metadata offset{'s' if until else ''} {parity.offset}{until}"


def _chain(report: RunReport) -> list[str]:
    chain = report.chain
    if chain.problem:
        return [f"THE EVIDENCE CAN'T BE TRUSTED: {chain.problem}"]
    held = (
        f"; {chain.anchor[:12]}, noted elsewhere, is one of them"
        if chain.anchor
        else "; whether a tail was cut off, only a digest noted elsewhere shows (--anchor)"
    )
    return [f"chain verified: {chain.records} records, last digest {chain.last_digest}{held}"]
