"""What a person reads at a gate: the facts for the decision, as markdown.

Airflow's page shows no HTML and can fold nothing, so the evidence of what passes is in a task's log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, was_read
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.copy_forecast import COPY_AHEAD, copy_tuning
from kraft_runbook.migration.gates import Proof
from kraft_runbook.migration.transitions import TABLE, Gate
from kraft_runbook.migration.way_back import BROKER_SECONDS, CONTROLLER_SECONDS
from kraft_runbook.runbook.check_results import CheckResult, Severity, Verdict
from kraft_runbook.runbook.way_back import render_estimate

LOST_BY_A_ROLLBACK = (
    "What is lost: nothing that ZooKeeper can hold. What only KRaft knows (configs of client metrics and of groups)"
    " stays behind in the controllers' data, which is set aside."
)


def render_page(proof: Proof, *, in_full: str = "the log of this gate's `prove` task") -> str:
    """The facts for the decision. Checks that pass are counted and named by code. ``in_full``: where the rest can be
    read, as markdown.
    """
    fine = [c.code for c in proof.checks if c.verdict is Verdict.PASS]
    lines = [
        *_decision(proof),
        "",
        f"### What passes: {len(fine)} of {len(proof.checks)} checks" + (", and parity" if proof.parity else ""),
        "",
    ]
    if proof.parity:
        lines += [_first_line(proof.parity.rendered), ""]
    return "\n".join([*lines, f"{', '.join(fine)}.", "", f"The evidence of each is in {in_full}."])


def render_in_full(proof: Proof) -> str:
    """The same, with the evidence of each check that passes and the counts of parity."""
    fine = [c for c in proof.checks if c.verdict is Verdict.PASS]
    lines = _decision(proof)
    if proof.parity:
        lines += ["", "### ZooKeeper and KRaft compared", "", proof.parity.rendered]
    lines += ["", f"### What passes: {len(fine)} of {len(proof.checks)} checks", ""]
    lines += [f"- `{c.code}` {_text(c.title)}: {_text(c.evidence)}" for c in fine]
    return "\n".join(lines)


def _decision(proof: Proof) -> list[str]:
    amiss = [c for c in proof.checks if c.verdict is not Verdict.PASS]
    lines = [
        TABLE.gate(proof.gate).means,
        "",
        f"- Cluster **{proof.cluster}** is in phase **{proof.phase.value}**",
        f"- Objections: **{len(proof.objections) or 'none'}**",
        f"- Warnings: **{_warnings(amiss)}**",
        f"- Checks that pass: **{len(proof.checks) - len(amiss)} of {len(proof.checks)}**",
        _parity(proof),
        f"- Rollback: {_way_back(proof)}",
        f"- Signatures: {_text(proof.people)}",
        (
            f"- The proof was made {proof.made_at:%Y-%m-%d %H:%M:%S} UTC and holds until {_until(proof)} UTC; its"
            f" digest is `{proof.digest}`"
        ),
    ]
    if amiss or proof.objections:
        lines += ["", "### What does not pass", "", *_amiss(proof, amiss)]
    lines += ["", "### What happens next", "", *_numbered(map(_text, proof.ahead))]
    return [
        *lines,
        "",
        "### What a rollback risks" if proof.gate is Gate.ROLLBACK else "### How to roll back from here",
        "",
        *_the_way_back(proof),
    ]


def _first_line(markdown: str) -> str:
    return markdown.partition("\n")[0]


def _warnings(amiss: Iterable[CheckResult]) -> str:
    count = sum(c.severity is Severity.WARNING for c in amiss)
    return str(count) if count else "none"


def _parity(proof: Proof) -> str:
    if proof.parity is None:
        return "- Parity: nothing to compare yet"
    return (
        f"- Parity: **{proof.parity.verdict}** at metadata offset {proof.parity.offset}, measured until"
        f" {proof.parity.finished_at[:19].replace('T', ' ')} UTC"
    )


def _until(proof: Proof) -> str:
    """The parity report is older than the proof, and its age counts too."""
    from_when = proof.made_at
    if proof.parity:
        from_when = min(from_when, type(from_when).fromisoformat(proof.parity.finished_at))
    until = from_when + timedelta(seconds=proof.valid_for)
    return f"{until:%H:%M:%S}" if until.date() == proof.made_at.date() else f"{until:%Y-%m-%d %H:%M:%S}"


def _way_back(proof: Proof) -> str:
    if TABLE.gate(proof.gate).irreversible:
        return (
            f"**possible now, impossible once you approve**{render_estimate(proof.rollback)}"
            if proof.rollback.possible
            else _closed(proof)
        )
    return f"**possible**{render_estimate(proof.rollback)}" if proof.rollback.possible else _closed(proof)


def _closed(proof: Proof) -> str:
    return f"**not possible**: {_text(proof.rollback.why)}"


def _amiss(proof: Proof, amiss: Iterable[CheckResult]) -> Iterator[str]:
    for check in sorted(amiss, key=lambda c: not c.blocks):
        mark = "objection" if check.blocks else "warning"
        unread = " (could not be answered)" if check.verdict is Verdict.UNKNOWN else ""
        yield f"- **{mark}** `{check.code}` {_text(check.title)}{unread}: {_text(check.evidence)}" + (
            f". What to do: {_text(check.fix)}" if check.fix else ""
        )
    for objection in proof.objections:
        if not any(objection.startswith(check.code) for check in proof.checks):
            yield f"- **objection** {_text(objection)}"


def _the_way_back(proof: Proof) -> Iterator[str]:
    if proof.gate is Gate.ROLLBACK:  # its steps are what happens next
        yield from (f"- Risk: {_text(risk)}" for risk in proof.rollback.risks)
        yield f"- {LOST_BY_A_ROLLBACK}"
        return
    if TABLE.gate(proof.gate).irreversible:
        yield "After this step **no rollback is possible**. Until then:"
        yield ""
    if not proof.rollback.steps:
        yield "Nothing has to be undone." if proof.rollback.possible else _text(proof.rollback.why)
        return
    yield from _numbered(map(_text, proof.rollback.steps))
    yield ""
    yield from (f"- Risk: {_text(risk)}" for risk in proof.rollback.risks)


def _numbered(steps: Iterable[str]) -> Iterator[str]:
    return (f"{n}. {step}" for n, step in enumerate(steps, 1))


def _text(text: str) -> str:
    """``text`` with its markup escaped and its line breaks removed, since names come from the cluster. An underscore
    inside a word is no markup.
    """
    return _MARKUP.sub(r"\\\g<0>", text).replace("\n", " ")


_MARKUP = re.compile(r"[\\`*\[\]<>|#]|(?<![^\W_])_|_(?![^\W_])")


# -- what approving lets happen ----------------------------------------------------------------------------------------


def what_happens_next(
    gate: Gate, seen: ClusterObservation, spec: ClusterSpec, *, steps_back: Iterable[str] = ()
) -> tuple[str, ...]:
    """The steps that the gate allows and this cluster still needs: which nodes, and about how long. ``steps_back``:
    the steps of a rollback.
    """
    match gate:
        case Gate.START:
            return tuple(_start(seen, spec))
        case Gate.DUAL_WRITE:
            return tuple(_restarts(seen, BrokerMode.KRAFT, "KRaft mode"))
        case Gate.FINALIZE:
            return tuple(_finalization(seen))
        case Gate.ROLLBACK:
            return tuple(steps_back)


def _start(seen: ClusterObservation, spec: ClusterSpec) -> Iterator[str]:
    fresh = [c.id for c in seen.controllers.values() if not (c.running is True and c.mode == ControllerMode.MIGRATION)]
    if fresh:
        yield (
            f"Provision controller {_ids(fresh)}: about {_time(len(fresh) * CONTROLLER_SECONDS)}. No broker is touched."
        )
    yield from _restarts(seen, BrokerMode.HYBRID, "migration mode")
    tuning = copy_tuning(seen, spec) if detect_phase(seen).phase in COPY_AHEAD else None
    if tuning is None:
        return
    size = (
        f"{tuning.partitions:,} partitions, {tuning.expected} expected"
        if was_read(tuning)
        else f"its length is not known: {tuning.reason}"
    )
    yield (
        f"Metadata copy: {size}. While it runs, Kafka handles no topic, leader or ISR change. Producing and consuming"
        " go on."
    )


def _restarts(seen: ClusterObservation, mode: BrokerMode, named: str) -> Iterator[str]:
    ahead = [b.id for b in seen.brokers.values() if not (b.running is True and b.mode in (mode, BrokerMode.KRAFT))]
    if ahead:
        yield (
            f"Restart broker {_ids(ahead)} in {named}, one by one. Each waits until the one before is in every ISR. "
            f"About {_time(len(ahead) * BROKER_SECONDS)} on a small cluster, longer with more partitions."
        )


def _finalization(seen: ClusterObservation) -> Iterator[str]:
    ahead = [c.id for c in seen.controllers.values() if c.mode != ControllerMode.KRAFT]
    active = seen.active_controller
    last = f", the active one last (now {active.id})" if active else ", the active one last"
    yield "Parity is proven once more. If it is no MATCH, nothing is changed."
    if ahead:
        yield (
            f"Restart controller {_ids(ahead)} without the migration flag, one by one{last}: about"
            f" {_time(len(ahead) * CONTROLLER_SECONDS)}."
        )
    yield "ZooKeeper is no longer written. No broker is restarted."


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _ids(ids: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(ids)))
