"""The table at the end of a session, the figures of each case's last run beside the build, and the table in
docs/reliability.md. Which rows are old, it shows.
"""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from fault_case import Case, Start

from kraft_runbook.cluster.naming import nodes
from lab.checkout import commit
from lab.layout import ROOT

FIGURES = ROOT / "build" / "faults.json"
TABLE = "KRB_FAULTS_TABLE"
"""Names the page whose table is to be written; ``make faults`` sets it. ``make test``, which plays one case, changes no
file.
"""
BEGINS, ENDS = "<!-- written by make faults -->", "<!-- until here -->"
HEAD = ("case", "fault", "start", "outcome", "s", "records acknowledged", "longest stall, s", "date", "commit")
NEVER = ("not played", "", "", "", "", "")
Played = tuple[str, ...]
"""The cells of a row that come of playing it: from the outcome on."""


@dataclass(frozen=True)
class Result:
    """One case as it was played. ``seconds``: from the workload's start to its account; ``setup_seconds``: to get the
    cluster there before.
    """

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

    def played(self, date: str, at_commit: str) -> Played:
        """Its cells in the page's table. ``at_commit``: of the code that was played."""
        outcome = self.verdict if self.verdict.startswith("BROKEN") else self.outcome
        return (outcome, f"{self.seconds:.0f}", f"{self.acknowledged:,}", f"{self.longest_stall:.1f}", date, at_commit)


def table(results: list[Result]) -> list[str]:
    """The lines of the table at the end of a session."""
    widest = max((len(r.case) for r in results), default=4)
    lines = [
        f"{'case':<{widest}}  {'outcome':<28} {'case, s':>8} {'setup, s':>9} {'records':>8} {'stall, s':>9}  invariants"
    ]
    lines += [
        f"{r.case:<{widest}}  {r.outcome[:28]:<28} {r.seconds:>8.0f} {r.setup_seconds:>9.0f} {r.acknowledged:>8}"
        f" {r.longest_stall:>9.1f}  {r.verdict}"
        for r in results
    ]
    total = sum(r.seconds + r.setup_seconds for r in results)
    return [
        *lines,
        (
            f"{len(results)} cases, {total:.0f} s, {sum(r.verdict.startswith('BROKEN') for r in results)} with a broken"
            " invariant"
        ),
    ]


def keep(result: Result, cases: Mapping[str, Case], figures: Path = FIGURES) -> None:
    """Remember this case's last run: its figures beside the build, and its row in the page where one is to
    be written.
    """
    known = json.loads(figures.read_text()) if figures.exists() else {}
    figures.parent.mkdir(exist_ok=True)
    figures.write_text(json.dumps({**known, result.case: asdict(result)}, indent=1))
    if os.environ.get(TABLE):
        page = ROOT / os.environ[TABLE]
        today = datetime.now(UTC).date().isoformat()
        page.write_text(with_rows(page.read_text(), cases, {result.case: result.played(today, commit(but=[page]))}))


# -- the page ----------------------------------------------------------------------------------------------------------


def with_rows(page: str, cases: Mapping[str, Case], played: Mapping[str, Played]) -> str:
    """The page with these rows new, the rows of all other cases as they were, and what its rows say in sum. A case that
    is gone loses its row.
    """
    before, _, rest = page.partition(f"{BEGINS}\n")
    old, _, after = rest.partition(f"{ENDS}\n")
    rows = {name: {**_rows(old), **played}.get(name, NEVER) for name in sorted(cases)}
    lines = [
        in_sum(rows),
        "",
        _line(HEAD),
        "|" + "---|" * len(HEAD),
        *(_line(_row(name, cases[name], rows[name])) for name in rows),
    ]
    return before + "\n".join([BEGINS, "", *lines, "", ENDS, ""]) + after


def in_sum(rows: Mapping[str, Played]) -> str:
    """At which commits how many cases were played, the newest first, and which were not played at all, or not well."""
    commits = Counter((cells[4], cells[5]) for cells in rows.values() if cells != NEVER)
    told = [
        f"{len(rows)} cases. Played at: "
        + (
            ", ".join(f"{commit} ({date}): {count}" for (date, commit), count in sorted(commits.items(), reverse=True))
            or "none"
        )
        + "."
    ]
    told += _named("Not played", (name for name, cells in rows.items() if cells == NEVER))
    told += _named("With a broken invariant", (name for name, cells in rows.items() if cells[0].startswith("BROKEN")))
    return textwrap.fill(" ".join(told), 120, break_long_words=False, break_on_hyphens=False)


def _named(what: str, names: Iterable[str]) -> list[str]:
    found = [f"`{name}`" for name in names]
    return [f"{what}: {', '.join(found)}."] if found else []


def _rows(text: str) -> dict[str, Played]:
    cells = [
        [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]
    return {re.findall(r"`(\w+)`", each[0])[0]: tuple(each[3:]) if each[3] != NEVER[0] else NEVER for each in cells}


def _row(name: str, case: Case, played: Played) -> Sequence[str]:
    return (f"`{name}`", case.title, where(case.start), *played)


def where(start: Start) -> str:
    """Where the cluster stands, in a cell."""
    return start.phase + (f" + {nodes('broker', start.rolled)}" if start.rolled else "")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
