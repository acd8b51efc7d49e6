"""An observed cluster in words, for any operation: its stage, what it waits for, and what an operator can do now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kraft_runbook.cluster.observation import ClusterObservation, unread_parts, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.check_results import CheckResult
from kraft_runbook.runbook.checklist import Check, Checklist, Needs
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.runbook.transitions import Edge, Reading, Transitions
from kraft_runbook.runbook.way_back import RollbackPlan, render_estimate


@dataclass(frozen=True, slots=True)
class Explanation:
    """An observation in words.

    ``problems``: blocking checks that fail on what was read; ``unread``: parts that could not be read;
    ``not_looked_at``: the checks whose parts were not asked for. ``claim``: which run may change the cluster, in words;
    empty where nothing tells. ``undone``: the
    question that ``rollback`` answers.
    """

    cluster: str
    phase: Phase
    because: tuple[str, ...]
    means: str
    waits_for: tuple[str, ...]
    forward: tuple[str, ...]
    back: tuple[str, ...]
    rollback: RollbackPlan
    problems: tuple[str, ...]
    unread: tuple[str, ...]
    not_looked_at: str = ""
    claim: str = ""
    undone: str = "Can it go back to ZooKeeper"
    groups: tuple[str, ...] = ()
    """The consumer groups below /consumers that somebody must look at, a line each; empty where none was looked for."""

    def render_text(self) -> str:
        lines = [f"{self.cluster} is in {self.phase}.", f"  {self.means}", "  Seen: " + "; ".join(self.because)]
        lines += [f"  Runs: {self.claim}."] if self.claim else []
        lines += _section("It waits for", self.waits_for, "nothing")
        lines += _section("Forward, now", self.forward, "nothing can be done")
        lines += ["", f"{self.undone}: {self.rollback.answer}, {self.rollback.why}."]
        lines += _section(
            f"Back, {'now' if self.rollback.known else 'if that turns out to be yes'}{render_estimate(self.rollback)}",
            self.back,
            _nothing_back(self.rollback),
        )
        lines += [f"    Risk: {risk}" for risk in self.rollback.risks]
        lines += _section("Problems", self.problems, "none seen in a quick look")
        lines += _section("Consumer groups in ZooKeeper", self.groups, "") if self.groups else []
        lines += _section("Could not be read", self.unread, "") if self.unread else []
        return "\n".join(lines + (["", self.not_looked_at] if self.not_looked_at else []))


def _nothing_back(rollback: RollbackPlan) -> str:
    if rollback.possible:
        return "there is nothing to undo"
    return "nothing can be done" if rollback.known else "not known"


def _section(title: str, items: tuple[str, ...], none: str) -> list[str]:
    return ["", f"{title}:", *(f"  - {item}" for item in items)] if items else ["", f"{title}: {none}."]


def explain_by_table(
    table: Transitions,
    checks: Checklist,
    reading: Reading,
    rollback: RollbackPlan,
    seen: ClusterObservation,
    spec: ClusterSpec,
    *,
    earlier: ClusterObservation | None = None,
) -> Explanation:
    """What the table of an operation says of the stage that was read: what every node must show there, the steps that
    may run, and the checks that block. ``earlier``: an observation some seconds before.
    """
    stage, phase = table.stage(reading.stage), detect_phase(seen).phase
    ahead = [each for each in table.edges if each.source == stage.name]
    looked_at = [each for each in checks.applicable(stage.name, None) if is_answerable(each, seen, earlier)]
    return Explanation(
        cluster=spec.name,
        phase=phase,
        because=tuple(reading.reasons),
        means=stage.means,
        waits_for=tuple(dict.fromkeys(_missing(ahead, seen, spec, earlier))) if ahead else (stage.refuses,),
        forward=tuple(f"{each.step}: {each.does}" for each in ahead),
        back=rollback.steps,
        rollback=rollback,
        problems=told([result for result in (each.run(seen, spec, earlier) for each in looked_at) if result.blocks]),
        unread=unread_parts(seen),
        not_looked_at=not_looked_at(checks, stage.name, seen),
        undone="Can it be undone",
    )


def _missing(
    ahead: Iterable[Edge], seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None
) -> Iterator[str]:
    """What a step's waits would wait for now, before any node is touched."""
    for condition in dict.fromkeys(each for edge in ahead for each in edge.waits):
        for node in _nodes(condition, seen, spec):
            progress = condition.progress(seen, spec, node_id=node, earlier=earlier)
            if not progress.done:
                yield progress.waiting_for.removeprefix("waiting for ")


def _nodes(condition: Condition, seen: ClusterObservation, spec: ClusterSpec) -> tuple[int | None, ...]:
    if not condition.of_a_node:
        return (None,)
    if condition.phrase.startswith("broker"):
        return spec.broker_ids
    return tuple(i for i in spec.controller_ids if was_read(seen.quorum) or seen.controllers[i].running is True)


def told(blocking: Iterable[CheckResult]) -> tuple[str, ...]:
    """What blocks, each with what to do."""
    return tuple(f"{c.code} {c.title}: {c.verdict}. {c.evidence}. What to do: {c.fix}" for c in blocking)


def is_answerable(check: Check, seen: ClusterObservation, earlier: ClusterObservation | None) -> bool:
    """Whether the observation asked for the parts that the check needs."""
    return check.needs in _asked_for(seen) and not (check.twice and earlier is None)


def _asked_for(seen: ClusterObservation) -> frozenset[Needs]:
    tree = was_read(seen.zookeeper) and was_read(seen.zookeeper.tree)
    return frozenset(
        {Needs.LIVE} | ({Needs.TREE} if tree else set()) | ({Needs.HOSTS} if was_read(seen.hosts) else set())
    )


def not_looked_at(checks: Checklist, stage: str, seen: ClusterObservation) -> str:
    """One line: which checks were left out, and the command that runs them."""
    left = [each.needs for each in checks.applicable(stage, None) if each.needs not in _asked_for(seen)]
    parts = [
        f"{what} ({left.count(needs)} checks)"
        for needs, what in ((Needs.TREE, "each topic's znodes"), (Needs.HOSTS, "the hosts"))
        if needs in left
    ]
    return f"Not looked at: {' and '.join(parts)}; kraft-runbook preflight does." if parts else ""
