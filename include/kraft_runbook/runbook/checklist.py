"""The checks of one operation, and how they are run. A check is a function of an observation, and its docstring is its
documentation.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from inspect import cleandoc
from typing import Any

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.runbook.check_results import CheckResult, ChecksReport, Finding, Severity, Verdict, passed, unknown

CheckFunction = Callable[..., Finding]
Narrowed = Callable[[Any, ClusterSpec, str | None], Collection[int]]
"""The nodes that a check judges, by what the operation sees, the cluster file and the gate, if it is asked at one."""

READ_IT = "make the named parts readable, and look again"
"""The way out of an UNKNOWN whose check gives no better one."""


class Needs(Enum):
    """Which observation a check needs: any, one of scope FULL, one made with hosts, or two; or the evidence of runs."""

    LIVE = "any observation"
    TREE = "an observation of scope FULL"
    HOSTS = "an observation made with hosts"
    TWO_LOOKS = "two observations, more than two seconds apart"
    ON_RECORD = "what earlier runs put on record"


@dataclass(frozen=True, slots=True)
class Check:
    """One entry of a list. It applies in ``stages`` (None: in every stage) and, if ``gates`` names any, only at those
    gates.
    """

    code: str
    title: str
    severity: Severity
    stages: frozenset[str] | None
    gates: frozenset[str]
    needs: Needs
    fix: str
    why: str
    function: CheckFunction
    not_at: frozenset[str] = frozenset()
    """The gates at which it does not apply; for a check without ``gates``."""
    twice: bool = False
    """Whether it judges by two looks. Its function then also takes the earlier one, or None."""
    of: Narrowed | None = None
    """Which nodes it judges, where that depends on the cluster and the gate. Its function then also takes ``of``."""

    def run(self, seen: object, spec: ClusterSpec, earlier: object = None, *, gate: str | None = None) -> CheckResult:
        """The check's answer. UNKNOWN if it needs something that the cluster file does not name, and so is Refused.
        ``seen``, ``earlier``: what the operation sees (``Operation.sees``). ``gate``: where it is asked, if at one.
        """
        given = (seen, spec, earlier) if self.twice else (seen, spec)
        try:
            if self.of is None:
                finding = self.function(*given)
            elif of := self.of(seen, spec, gate):
                finding = self.function(*given, of=of)
            else:
                finding = passed("no node has to pass it here")
        except Refused as refused:
            finding = unknown(refused.problem, refused.way_out)
        usual = {Verdict.PASS: "", Verdict.FAIL: self.fix, Verdict.UNKNOWN: READ_IT}[finding.verdict]
        fix = usual if finding.fix is None else finding.fix
        return CheckResult(self.code, self.title, self.severity, finding.verdict, finding.evidence, fix)


class Checklist(Mapping[str, Check]):
    """Checks by their codes, in the order of the codes.

    ``light``: gates at which only checks for any observation are run, every few seconds. ``only_named``: gates at which
    only the checks that name them are run, so that an obstacle to the operation does not prevent going back.
    """

    def __init__(self, *, light: Collection[str] = (), only_named: Collection[str] = ()) -> None:
        self._checks: dict[str, Check] = {}
        self._light = frozenset(light)
        self._only_named = frozenset(only_named)

    def __getitem__(self, code: str) -> Check:
        return self._checks[code]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._checks))

    def __len__(self) -> int:
        return len(self._checks)

    def check(
        self,
        code: str,
        *,
        severity: Severity,
        fix: str,
        stages: Iterable[str] | None = None,
        gates: Iterable[str] = (),
        not_at: Iterable[str] = (),
        needs: Needs = Needs.LIVE,
        twice: bool = False,
        of: Narrowed | None = None,
    ) -> Callable[[CheckFunction], CheckFunction]:
        """Add a check. Its docstring's first line is its title, the rest says why. Codes are stable: never
        reuse one.
        """

        def register(function: CheckFunction) -> CheckFunction:
            title, _, why = cleandoc(function.__doc__ or "").partition("\n")
            if not title.endswith("."):
                raise ValueError(f"{code}: the docstring's first line is the check's title and ends with a full stop")
            where = None if stages is None else frozenset(stages)
            self._add(
                Check(
                    code,
                    title[:-1],
                    severity,
                    where,
                    frozenset(gates),
                    needs,
                    fix,
                    " ".join(why.split()),
                    function,
                    frozenset(not_at),
                    twice,
                    of,
                )
            )
            return function

        return register

    def take(
        self,
        *checks: Check,
        stages: Iterable[str] | None = None,
        needs: Needs | None = None,
        of: Narrowed | None = None,
    ) -> None:
        """Add checks of another list, by the same codes, to be run in ``stages`` of this operation. ``needs``: where
        another part of an observation tells it in these stages. ``of``: where they judge some of the nodes alone.
        """
        where = None if stages is None else frozenset(stages)
        for each in checks:
            self._add(replace(each, stages=where, needs=needs or each.needs, of=of or each.of))

    def of(self, *codes: str) -> tuple[Check, ...]:
        """Its checks with these codes."""
        return tuple(self._checks[code] for code in codes)

    def without(self, codes: Collection[str]) -> Checklist:
        """The same list without these checks."""
        left = Checklist(light=self._light, only_named=self._only_named)
        left._checks = {code: each for code, each in self._checks.items() if code not in codes}
        return left

    def _add(self, check: Check) -> None:
        if check.code in self._checks:
            raise ValueError(f"{check.code} is already the code of {self._checks[check.code].function.__name__}")
        self._checks[check.code] = check

    def applicable(self, stage: str, gate: str | None) -> tuple[Check, ...]:
        """The checks that apply in the stage, and at the gate where one is named, in the order of their codes."""
        return tuple(each for each in self.values() if self._applies(each, stage, gate))

    def _applies(self, check: Check, stage: str, gate: str | None) -> bool:
        if gate in self._light and check.needs is not Needs.LIVE:
            return False
        if check.stages is not None and stage not in check.stages:
            return False
        if gate in self._only_named:
            return gate in check.gates
        return gate not in check.not_at and (not check.gates or gate in check.gates)

    def run(
        self,
        seen: object,
        spec: ClusterSpec,
        stage: str,
        *,
        gate: str | None = None,
        earlier: object = None,
    ) -> ChecksReport:
        """Run every check that applies in the stage, and at the gate where one is named.

        Checks of topics' znodes need an observation of scope FULL, checks of hosts one made with hosts. Without it they
        are UNKNOWN; a light gate leaves them out. ``earlier``: the look before, at least a second ago, for checks that
        judge by two.
        """
        return ChecksReport(tuple(each.run(seen, spec, earlier, gate=gate) for each in self.applicable(stage, gate)))

    def render(self, stages: Iterable[str]) -> Iterator[str]:
        """A section of Markdown for each check, line by line. ``stages``: all stages, in the order to name them."""
        order = tuple(stages)
        for code, each in self.items():
            where = (
                "every phase" if each.stages is None else ", ".join(stage for stage in order if stage in each.stages)
            )
            gates = f" · gates: {', '.join(sorted(each.gates))}" if each.gates else ""
            gates += f" · not at gate: {', '.join(sorted(each.not_at))}" if each.not_at else ""
            yield from (
                f"## {code}: {each.title}",
                "",
                f"{each.severity} · {where}{gates} · needs {each.needs.value}",
                "",
            )
            yield from (_filled(each.why), "") if each.why else ()
            yield from (_filled(f"**What to do:** {each.fix}"), "")


def _filled(text: str) -> str:
    """The text in lines of at most 120 characters."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)
