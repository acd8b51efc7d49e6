"""The list of checks, and how they are run. A check is a function of an observation; its docstring is its documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from inspect import cleandoc

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.phases import Phase
from kraft_runbook.runbook.check_results import CheckResult, ChecksReport, Finding, Severity, Verdict

CheckFunction = Callable[..., Finding]

ANY_PHASE = frozenset(Phase)
BEFORE_THE_COPY = frozenset({Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.UNKNOWN})
UNTIL_FINALIZED = frozenset(Phase) - {Phase.FINALIZED}
DURING_MIGRATION = frozenset({Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE})
DUAL_WRITING = frozenset({Phase.HYBRID, Phase.DUAL_WRITE})


SOAK = "soak"
"""The gate name under which the soak runs the checks every few seconds."""


ROLLBACK = "rollback"
"""The gate of the way back. Only the checks that name it run there: what keeps a cluster from going on must not keep it from going back."""


READ_IT = "make readable what is named, and look again"
"""The way out of an UNKNOWN whose check gives no better one."""


class Needs(Enum):
    """How much of an observation a check needs: any, one of scope FULL, or one made with hosts."""

    LIVE = "any observation"
    TREE = "an observation of scope FULL"
    HOSTS = "an observation made with hosts"


@dataclass(frozen=True, slots=True)
class Check:
    """One entry of the list. It applies in ``phases``; where ``gates`` names any, at those gates only; in the soak when it needs no deep read."""

    code: str
    title: str
    severity: Severity
    phases: frozenset[Phase]
    gates: frozenset[str]
    needs: Needs
    fix: str
    why: str
    function: CheckFunction
    not_at: frozenset[str] = frozenset()
    """The gates where it does not apply, of a check that names no gates."""
    twice: bool = False
    """Whether it judges by two looks: its function also takes the earlier one, None where there is none."""

    def applies(self, phase: Phase, gate: str | None) -> bool:
        if gate == SOAK and self.needs is not Needs.LIVE:
            return False
        if gate == ROLLBACK:
            return phase in self.phases and gate in self.gates
        return phase in self.phases and gate not in self.not_at and (not self.gates or gate in self.gates)

    def run(self, seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None = None) -> CheckResult:
        finding = self.function(seen, spec, earlier) if self.twice else self.function(seen, spec)
        usual = {Verdict.PASS: "", Verdict.FAIL: self.fix, Verdict.UNKNOWN: READ_IT}[finding.verdict]
        fix = usual if finding.fix is None else finding.fix
        return CheckResult(self.code, self.title, self.severity, finding.verdict, finding.evidence, fix)


CHECKS: dict[str, Check] = {}
"""Every check by its code, filled while the modules of this package are imported."""


def check(
    code: str,
    *,
    severity: Severity,
    fix: str,
    phases: Iterable[Phase] = ANY_PHASE,
    gates: Iterable[str] = (),
    not_at: Iterable[str] = (),
    needs: Needs = Needs.LIVE,
    twice: bool = False,
) -> Callable[[CheckFunction], CheckFunction]:
    """Add a check to the list. Its docstring's first line is its title, the rest says why. Codes are stable: never reuse one."""

    def register(function: CheckFunction) -> CheckFunction:
        if code in CHECKS:
            raise ValueError(f"{code} is already the code of {CHECKS[code].function.__name__}")
        title, _, why = cleandoc(function.__doc__ or "").partition("\n")
        if not title.endswith("."):
            raise ValueError(f"{code}: the docstring's first line is the check's title and ends with a full stop")
        CHECKS[code] = Check(
            code, title[:-1], severity, frozenset(phases), frozenset(gates), needs, fix, " ".join(why.split()), function, frozenset(not_at), twice
        )
        return function

    return register


def applicable(phase: Phase, gate: str | None) -> tuple[Check, ...]:
    """The checks that apply in the phase, and at the gate where one is named, in the order of their codes."""
    return tuple(each for _, each in sorted(CHECKS.items()) if each.applies(phase, gate))


def run_checks(
    seen: ClusterObservation, spec: ClusterSpec, phase: Phase, *, gate: str | None = None, earlier: ClusterObservation | None = None
) -> ChecksReport:
    """Run every check that applies in the phase, and at the gate (``start``, ``dual_write``, ``finalize``, ``soak``) where one is named.

    Checks of topics' znodes need an observation of scope FULL, checks of hosts one made with hosts; without them they are UNKNOWN
    (the soak leaves them out). ``earlier``: the look before, a second or more ago, for those that judge by two.
    """
    return ChecksReport(tuple(each.run(seen, spec, earlier) for each in applicable(phase, gate)))


def render_catalogue() -> str:
    """docs/checks.md, generated from the list."""
    lines = [
        "# What is checked?",
        "",
        "Generated by `kraft-runbook checks --markdown`; do not edit.",
        "",
        "Each check answers PASS, FAIL or UNKNOWN (what it needs could not be read). A BLOCKING check that does not answer PASS stops",
        "every step; a WARNING is shown and does not. A check with gates applies only there; the others apply in each of their phases.",
        "",
    ]
    for code, each in sorted(CHECKS.items()):
        phases = "every phase" if each.phases == ANY_PHASE else ", ".join(p.value for p in Phase if p in each.phases)
        gates = f" · gates: {', '.join(sorted(each.gates))}" if each.gates else ""
        gates += f" · not at gate: {', '.join(sorted(each.not_at))}" if each.not_at else ""
        lines += [f"## {code}: {each.title}", "", f"{each.severity} · {phases}{gates} · needs {each.needs.value}", ""]
        lines += [each.why, ""] if each.why else []
        lines += [f"**What to do:** {each.fix}", ""]
    return "\n".join(lines)
