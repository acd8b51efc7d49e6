"""A check's answer. It has three verdicts: a part that could not be read is UNKNOWN, and a blocking UNKNOWN blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from kraft_runbook.cluster.observation import Unread

SAMPLE = 5
"""How many examples the evidence names; the count beside them is exact."""


class Severity(StrEnum):
    """BLOCKING: no step may run until the check passes. WARNING: shown to a person."""

    BLOCKING = "BLOCKING"
    WARNING = "WARNING"


BLOCKING, WARNING = Severity.BLOCKING, Severity.WARNING


class Verdict(StrEnum):
    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check's answer. ``evidence``: what was observed; ``fix``: what to do about a FAIL or UNKNOWN."""

    code: str
    title: str
    severity: Severity
    verdict: Verdict
    evidence: str
    fix: str = ""

    @property
    def passed(self) -> bool:
        return self.verdict is Verdict.PASS

    @property
    def blocks(self) -> bool:
        return self.severity is Severity.BLOCKING and self.verdict is not Verdict.PASS

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> CheckResult:
        return CheckResult(
            data["code"],
            data["title"],
            Severity(data["severity"]),
            Verdict(data["verdict"]),
            data["evidence"],
            data.get("fix", ""),
        )


@dataclass(frozen=True, slots=True)
class ChecksReport:
    """Every check that applied, in the order of their codes."""

    results: tuple[CheckResult, ...]

    @property
    def blocking(self) -> tuple[CheckResult, ...]:
        """The results that forbid a step: FAIL and UNKNOWN of blocking checks."""
        return tuple(r for r in self.results if r.blocks)

    @property
    def warnings(self) -> tuple[CheckResult, ...]:
        return tuple(r for r in self.results if r.severity is Severity.WARNING and r.verdict is not Verdict.PASS)

    @property
    def verdict(self) -> Verdict:
        """FAIL when a blocking check failed, else UNKNOWN when one could not be answered, else PASS."""
        verdicts = {r.verdict for r in self.blocking}
        return Verdict.FAIL if Verdict.FAIL in verdicts else Verdict.UNKNOWN if verdicts else Verdict.PASS

    def to_dict(self) -> dict[str, Any]:
        return {"verdict": self.verdict.value, "results": [r.to_dict() for r in self.results]}

    def render_markdown(self) -> str:
        """A table, failures first, then the fixes of all checks that did not pass."""
        order = {Verdict.FAIL: 0, Verdict.UNKNOWN: 1, Verdict.PASS: 2}
        ranked = sorted(self.results, key=lambda r: (order[r.verdict], r.severity is Severity.WARNING, r.code))
        lines = ["| check | severity | verdict | evidence |", "|---|---|---|---|"]
        lines += [f"| `{r.code}` {_cell(r.title)} | {r.severity} | {r.verdict} | {_cell(r.evidence)} |" for r in ranked]
        fixes = [f"- `{r.code}`: {r.fix}" for r in ranked if r.verdict is not Verdict.PASS and r.fix]
        return "\n".join([*lines, "", "What to do:", "", *fixes] if fixes else lines)

    def render_text(self) -> str:
        """For a terminal: the checks that did not pass, in full, then one line of counts."""
        lines = []
        for result in self.results:
            if result.verdict is not Verdict.PASS:
                lines += [
                    f"{result.verdict:<8}{result.code}  {result.title} ({result.severity.lower()})",
                    f"        {result.evidence}",
                ]
                lines += [f"        What to do: {result.fix}"] if result.fix else []
        count = {v: sum(r.verdict is v for r in self.results) for v in Verdict}
        return "\n".join(
            [
                *lines,
                (
                    f"{count[Verdict.PASS]} passed, {count[Verdict.FAIL]} failed, {count[Verdict.UNKNOWN]} unknown:"
                    f" {self.verdict}"
                ),
            ]
        )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


@dataclass(frozen=True, slots=True)
class Finding:
    """A check function's result. The list adds code, title, severity and the default fix."""

    verdict: Verdict
    evidence: str
    fix: str | None = None


def passed(evidence: str) -> Finding:
    return Finding(Verdict.PASS, evidence)


def failed(evidence: str, fix: str | None = None) -> Finding:
    return Finding(Verdict.FAIL, evidence, fix)


def unknown(part: Unread | str, fix: str | None = None) -> Finding:
    return Finding(Verdict.UNKNOWN, part.reason if isinstance(part, Unread) else part, fix)


def settle(wrong: Iterable[str], unread: Iterable[str], fine: str) -> Finding:
    """FAIL with everything in ``wrong``, else UNKNOWN with everything in ``unread``, else PASS. A failure also names
    what was not read.
    """
    bad, unseen = tuple(wrong), tuple(unread)
    if bad:
        return failed("; ".join(bad) + (f" (not read: {'; '.join(unseen)})" if unseen else ""))
    return unknown("; ".join(unseen)) if unseen else passed(fine)


def sample(items: Iterable[object], count: int | None = None) -> str:
    """The number of items and the first few: ``3: a-0, b-1, c-2``."""
    listed = [str(i) for i in items]
    total = len(listed) if count is None else count
    shown = ", ".join(listed[:SAMPLE])
    return f"{total}: {shown}" + (", …" if total > min(len(listed), SAMPLE) else "")
