"""The table at the end, and the figures of the last run of each case, kept beside the build."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

FIGURES = Path(__file__).resolve().parents[2] / "build" / "faults.json"


@dataclass(frozen=True)
class Result:
    """One case as it was played. ``seconds``: from the workload's start to its account; ``setup_seconds``: to get the cluster there before."""

    case: str
    outcome: str
    seconds: float
    setup_seconds: float
    setup: str
    broken: dict[str, list[str]]
    acknowledged: int
    longest_stall: float

    @property
    def verdict(self) -> str:
        wrong = [name for name, found in self.broken.items() if found]
        return "I1-I7 hold" if not wrong else f"BROKEN: {', '.join(wrong)}"


def table(results: list[Result]) -> list[str]:
    """The lines of the table."""
    widest = max((len(r.case) for r in results), default=4)
    lines = [f"{'case':<{widest}}  {'outcome':<28} {'case, s':>8} {'setup, s':>9} {'records':>8} {'stall, s':>9}  invariants"]
    lines += [
        f"{r.case:<{widest}}  {r.outcome[:28]:<28} {r.seconds:>8.0f} {r.setup_seconds:>9.0f} {r.acknowledged:>8} {r.longest_stall:>9.1f}  {r.verdict}"
        for r in results
    ]
    total = sum(r.seconds + r.setup_seconds for r in results)
    return [*lines, f"{len(results)} cases, {total:.0f} s, {sum(r.verdict.startswith('BROKEN') for r in results)} with a broken invariant"]


def keep(result: Result) -> None:
    """Remember the figures of this case's last run."""
    known = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    FIGURES.parent.mkdir(exist_ok=True)
    FIGURES.write_text(json.dumps({**known, result.case: asdict(result)}, indent=1))
