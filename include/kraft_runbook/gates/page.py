"""What a person reads at a gate: the facts for the decision, as markdown.

Airflow's page shows no HTML and can fold nothing, so the evidence of what passes is in a task's log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from kraft_runbook.cluster.naming import in_markdown
from kraft_runbook.gates.proof import Proof
from kraft_runbook.runbook.check_results import CheckResult, Severity, Verdict
from kraft_runbook.runbook.transitions import GateTerms
from kraft_runbook.runbook.way_back import render_estimate


def render_page(proof: Proof, terms: GateTerms, *, in_full: str = "the log of this gate's `prove` task") -> str:
    """The facts for the decision. Checks that pass are counted and named by code. ``in_full``: where the rest can be
    read, as markdown.
    """
    fine = [c.code for c in proof.checks if c.verdict is Verdict.PASS]
    lines = [
        *_decision(proof, terms),
        "",
        f"### What passes: {len(fine)} of {len(proof.checks)} checks" + (", and parity" if proof.parity else ""),
        "",
    ]
    if proof.parity:
        lines += [_first_line(proof.parity.rendered), ""]
    return "\n".join([*lines, f"The evidence of each is in {in_full}.", "", f"{in_short(fine)}."])


def in_short(codes: Iterable[str]) -> str:
    """Codes by what they have in common, in their order: KRB-PRE-001 to 003, 007; KRB-GATE-002."""
    spans: dict[str, list[list[str]]] = {}
    for code in dict.fromkeys(codes):
        kind, _, number = code.rpartition("-")
        known = spans.setdefault(kind, [])
        if known and number.isdecimal() and known[-1][-1].isdecimal() and int(number) == int(known[-1][-1]) + 1:
            known[-1] = [known[-1][0], number]
        else:
            known.append([number])
    return "; ".join(
        f"{kind}{'-' if kind else ''}{', '.join(' to '.join(span) for span in known)}" for kind, known in spans.items()
    )


def render_in_full(proof: Proof, terms: GateTerms) -> str:
    """The same, with the evidence of each check that passes and the counts of parity."""
    fine = [c for c in proof.checks if c.verdict is Verdict.PASS]
    lines = _decision(proof, terms)
    if proof.parity:
        lines += ["", "### ZooKeeper and KRaft compared", "", proof.parity.rendered]
    lines += ["", f"### What passes: {len(fine)} of {len(proof.checks)} checks", ""]
    lines += [f"- `{c.code}` {in_markdown(c.title)}: {in_markdown(c.evidence)}" for c in fine]
    return "\n".join(lines)


def _decision(proof: Proof, terms: GateTerms) -> list[str]:
    amiss = [c for c in proof.checks if c.verdict is not Verdict.PASS]
    objections = proof.objections(terms)
    lines = [
        terms.means,
        "",
        f"- Cluster **{proof.cluster}** is in phase **{proof.phase.value}**",
        f"- Objections: **{len(objections) or 'none'}**",
        f"- Warnings: **{_warnings(amiss)}**",
        f"- Checks that pass: **{len(proof.checks) - len(amiss)} of {len(proof.checks)}**",
        *_parity(proof, terms),
        f"- Rollback: {_way_back(proof, terms)}",
        f"- Signatures: {in_markdown(proof.people)}",
        (
            f"- The proof was made {proof.made_at:%Y-%m-%d %H:%M:%S} UTC and holds until {_until(proof)} UTC; its"
            f" digest is `{proof.digest}`"
        ),
    ]
    if amiss or objections:
        lines += ["", "### What does not pass", "", *_amiss(proof, objections, amiss)]
    for exhibit in proof.exhibits:
        lines += ["", exhibit.rendered]
    lines += ["", "### What happens next", "", *_numbered(map(in_markdown, proof.ahead))]
    return [
        *lines,
        "",
        "### What a rollback risks" if terms.goes_back else "### How to roll back from here",
        "",
        *_the_way_back(proof, terms),
    ]


def _first_line(markdown: str) -> str:
    return markdown.partition("\n")[0]


def _warnings(amiss: Iterable[CheckResult]) -> str:
    count = sum(c.severity is Severity.WARNING for c in amiss)
    return str(count) if count else "none"


def _parity(proof: Proof, terms: GateTerms) -> Iterator[str]:
    if proof.parity is not None:
        yield (
            f"- Parity: **{proof.parity.verdict}** at metadata offset {proof.parity.offset}, measured until"
            f" {proof.parity.finished_at[:19].replace('T', ' ')} UTC"
        )
    elif terms.without_parity:
        yield f"- Parity: {terms.without_parity}"


def _until(proof: Proof) -> str:
    """The parity report is older than the proof, and its age counts too."""
    from_when = proof.made_at
    if proof.parity:
        from_when = min(from_when, type(from_when).fromisoformat(proof.parity.finished_at))
    until = from_when + timedelta(seconds=proof.valid_for)
    return f"{until:%H:%M:%S}" if until.date() == proof.made_at.date() else f"{until:%Y-%m-%d %H:%M:%S}"


def _way_back(proof: Proof, terms: GateTerms) -> str:
    if terms.irreversible:
        return (
            f"**possible now, impossible once you approve**{render_estimate(proof.rollback)}"
            if proof.rollback.possible
            else _closed(proof)
        )
    return f"**possible**{render_estimate(proof.rollback)}" if proof.rollback.possible else _closed(proof)


def _closed(proof: Proof) -> str:
    return f"**{'not possible' if proof.rollback.known else 'not known'}**: {in_markdown(proof.rollback.why)}"


def _amiss(proof: Proof, objections: Iterable[str], amiss: Iterable[CheckResult]) -> Iterator[str]:
    for check in sorted(amiss, key=lambda c: not c.blocks):
        mark = "objection" if check.blocks else "warning"
        unread = " (could not be answered)" if check.verdict is Verdict.UNKNOWN else ""
        yield f"- **{mark}** `{check.code}` {in_markdown(check.title)}{unread}: {in_markdown(check.evidence)}" + (
            f". What to do: {in_markdown(check.fix)}" if check.fix else ""
        )
    for objection in objections:
        if not any(objection.startswith(check.code) for check in proof.checks):
            yield f"- **objection** {in_markdown(objection)}"


def _the_way_back(proof: Proof, terms: GateTerms) -> Iterator[str]:
    if terms.goes_back:  # its steps are what happens next
        yield from (f"- Risk: {in_markdown(risk)}" for risk in proof.rollback.risks)
        yield f"- {terms.loses}"
        return
    if terms.irreversible:
        yield "After this step **no rollback is possible**. Until then:"
        yield ""
    if not proof.rollback.steps:
        yield "Nothing has to be undone." if proof.rollback.possible else in_markdown(proof.rollback.why)
        return
    if not proof.rollback.known:
        yield "Whether it can be undone is not known. If it can:"
        yield ""
    yield from _numbered(map(in_markdown, proof.rollback.steps))
    yield ""
    yield from (f"- Risk: {in_markdown(risk)}" for risk in proof.rollback.risks)


def _numbered(steps: Iterable[str]) -> Iterator[str]:
    return (f"{n}. {step}" for n, step in enumerate(steps, 1))
