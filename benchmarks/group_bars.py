"""What a migrating group costs: lost, twice, by two at once, and the longest silence of a partition, run by run.

    python -m benchmarks.group_bars toggles --runs 5
    python -m benchmarks.group_bars --list

A bar is a test on a real cluster, which is run so many times on one cluster of its own: real members, 6 partitions, 150
records a second. It prints a row for each run, and the commit; it fails where a run misses the bar. Of old members and
Java's nobody knows when they had a record: with them no silence is known, and overlaps are those of the others.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from lab import ROOT
from lab.checkout import commit

CONSUMER, FAULTS = (f"tests/integration/test_migrating_{each}.py" for each in ("consumer", "faults"))
COLUMNS = ("records", "lost", "twice", "by_two", "silent")


@dataclass(frozen=True)
class Bar:
    """``most``: by column, what a run may have at most; a column that is not named may be anything."""

    test: str
    most: Mapping[str, float]

    def missed(self, found: Mapping[str, str]) -> list[str]:
        """The columns that are above, or not known."""
        return [name for name, most in self.most.items() if not found.get(name) or float(found[name]) > most]


NOTHING = {"lost": 0, "twice": 0, "by_two": 0}
BARS = {
    "toggles": Bar(f"{CONSUMER}::test_toggles_under_load", {**NOTHING, "silent": 1.5}),
    "new-member": Bar(f"{CONSUMER}::test_migrating_and_new_share_a_group", {**NOTHING, "silent": 6}),
    "java-3.9": Bar(f"{CONSUMER}::test_migrating_and_java_share_a_group[3.9]", NOTHING),
    "java-4.1": Bar(f"{CONSUMER}::test_migrating_and_java_share_a_group[4.1]", NOTHING),
    "old-member": Bar(f"{CONSUMER}::test_an_old_member_brings_zookeeper_back", NOTHING),
    "stopped-zookeeper": Bar(
        f"{FAULTS}::test_a_stopped_member_hands_out_nothing_that_is_another_s[zookeeper]", {"lost": 0}
    ),
    "stopped-kafka": Bar(f"{FAULTS}::test_a_stopped_member_hands_out_nothing_that_is_another_s[kafka]", {"lost": 0}),
    "killed-zookeeper": Bar(f"{FAULTS}::test_a_killed_member_costs_what_it_has_not_committed[zookeeper]", {"lost": 0}),
    "killed-kafka": Bar(f"{FAULTS}::test_a_killed_member_costs_what_it_has_not_committed[kafka]", {"lost": 0}),
}
"""What a test asserts besides holds too: that the one that woke handed out nothing, what a kill may cost."""


def runs_of(bar: Bar, runs: int) -> Iterator[tuple[str, Mapping[str, str]]]:
    """How each run ended, with what was counted."""
    path, _, name = bar.test.partition("::")
    function, _, parameter = name.partition("[")
    with tempfile.TemporaryDirectory() as where:
        told = Path(where) / "runs.xml"
        chosen = f"{function} and {parameter.rstrip(']')}" if parameter else function
        command = [sys.executable, "-m", "pytest", "-q", "-m", "long", path, "-k", chosen, f"--junitxml={told}"]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "KRB_RUNS": str(runs)}, check=False, stdout=sys.stderr)
        for case in ElementTree.parse(told).iter("testcase"):  # noqa: S314 - pytest has just written it
            bad = [each for each in ("failure", "error", "skipped") if case.find(each) is not None]
            values = {each.get("name", ""): each.get("value", "") for each in case.iter("property")}
            yield bad[0] if bad else "passed", values


def main() -> int:
    """Exit code 1: a run failed, or missed the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bar", nargs="?", choices=sorted(BARS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--list", action="store_true", help="name the bars, and what each allows")
    asked = parser.parse_args()
    if asked.list or asked.bar is None or asked.runs < 1:
        for name, bar in BARS.items():
            print(f"{name}: at most {', '.join(f'{k} {v:g}' for k, v in bar.most.items())} ({bar.test})")
        return 0 if asked.list else 2
    bar, fine, found = BARS[asked.bar], True, list(runs_of(BARS[asked.bar], asked.runs))
    print(f"{asked.bar}, {commit()}\n\n| run | result | {' | '.join(COLUMNS)} |\n|---|---|{'---|' * len(COLUMNS)}")
    for number, (result, values) in enumerate(found, 1):
        missed = bar.missed(values)
        fine = fine and result == "passed" and not missed
        told = f"{result}{', above the bar: ' + ', '.join(missed) if missed else ''}"
        print(f"| {number} | {told} | {' | '.join(values.get(each) or 'not known' for each in COLUMNS)} |")
    return 0 if fine and len(found) == asked.runs else 1


if __name__ == "__main__":
    sys.exit(main())
