"""What a migrating group costs: lost, twice, by two at once, and the longest silence of a partition, run by run.

    python -m benchmarks.group_bars toggles new-member --runs 5
    python -m benchmarks.group_bars --list

A bar is a test on a real cluster, which bars of one file share, and is run so many times: real members, 12 partitions,
150 records a second; one times this tool's own acts on twenty groups that nobody is in, one a scan of 2,000. It prints
the commit, each run with the machine's load, and each figure beside its bar; it fails where a run misses one. Silences
count from the first toggle or newcomer on. Of old members and Java's it is known what they had and, some moments late,
when: silences count them, overlaps are those of the others. Two bars need no cluster: they are tests that hold or not,
and are run once.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

from lab import ROOT
from lab.checkout import commit

CONSUMER, FAULTS = (f"tests/integration/test_migrating_{each}.py" for each in ("consumer", "faults"))
MOVES = "tests/integration/test_moved_groups.py"
SCAN = "tests/integration/test_scan_of_many_groups.py"
COLUMNS = ("load", "records", "lost", "twice", "by_two", "silent")
"""``load``: the machine's at the end of the run, of processes that want to run; ``silent``: seconds."""


@dataclass(frozen=True)
class Bar:
    """``most``: by column, what a run may have at most; a column that is not named may be anything. ``shown``: columns
    that are shown all the same.
    """

    test: str
    most: Mapping[str, float] = field(default_factory=dict)
    shown: tuple[str, ...] = COLUMNS

    @property
    def columns(self) -> tuple[str, ...]:
        """What is counted in a run. Empty: the test alone decides."""
        return (*self.shown, *(each for each in self.most if each not in self.shown)) if self.most else ()

    @property
    def chosen(self) -> tuple[str, str]:
        """The test's function, and the parameter that it is run with; empty: none."""
        function, _, parameter = self.test.partition("::")[2].rstrip("]").partition("[")
        return function, parameter

    def missed(self, found: Mapping[str, str]) -> list[str]:
        """The columns that are above, or not known."""
        return [name for name, most in self.most.items() if not found.get(name) or float(found[name]) > most]


NOTHING = {"lost": 0, "twice": 0, "by_two": 0}
EACH = {"slowest": 0.5, "slowest_back": 0.5}
OURS = ("load", "ours", "back", "by_kafkas_tool")
"""Seconds a group, to Kafka and back: the mean of twenty, ``EACH`` the slowest; and Kafka's own tool, which resets the
offsets of one.
"""
UNCOMMITTED = {"lost": 0, "twice": 75}
"""150 records a second, committed every half a second."""
MOVED_ALONE = {**NOTHING, "silent": 6, "let_go": 0, "stayed_silent": 1.5}
"""``let_go``: partitions that kept their owner, and were released all the same; ``stayed_silent``: the silence of those
that kept it, seconds.
"""
STOPPED, KILLED, LOST = (
    f"{FAULTS}::test_{each}"
    for each in (
        "a_stopped_member_hands_out_nothing_that_is_another_s",
        "a_killed_member_costs_what_it_has_not_committed",
        "a_lost_session_costs_what_was_not_committed",
    )
)
BARS = {
    "toggles": Bar(f"{CONSUMER}::test_toggles_under_load", {**NOTHING, "silent": 1.5}),
    "our-acts": Bar(f"{MOVES}::test_our_acts_on_twenty_groups_forth_and_back", EACH, OURS),
    "scan": Bar(f"{SCAN}::test_two_thousand_groups_are_scanned_whole", {"seconds": 20}, ("load", "groups")),
    "whole-example": Bar(f"{CONSUMER}::test_from_old_to_new_and_back", NOTHING),
    "new-member": Bar(f"{CONSUMER}::test_migrating_and_new_share_a_group[cooperative]", MOVED_ALONE),
    "java-3.9": Bar(f"{CONSUMER}::test_migrating_and_java_share_a_group[3.9]", MOVED_ALONE),
    "java-4.1": Bar(f"{CONSUMER}::test_migrating_and_java_share_a_group[4.1]", MOVED_ALONE),
    "old-member": Bar(f"{CONSUMER}::test_an_old_member_brings_zookeeper_back", NOTHING),
    "stopped-zookeeper": Bar(f"{STOPPED}[zookeeper]", {"lost": 0, "after_waking": 0}),
    "stopped-kafka": Bar(f"{STOPPED}[kafka]", {"lost": 0, "after_waking": 0}),
    "killed-zookeeper": Bar(f"{KILLED}[zookeeper]", UNCOMMITTED),
    "killed-kafka": Bar(f"{KILLED}[kafka]", UNCOMMITTED),
    "lost-session-zookeeper": Bar(f"{LOST}[zookeeper]", {**UNCOMMITTED, "both": 0}),
    "lost-session-kafka": Bar(f"{LOST}[kafka]", {**UNCOMMITTED, "both": 0}),
    "zookeeper-away": Bar(
        f"{FAULTS}::test_zookeeper_is_away_for_13_s_in_kafka_mode_and_nobody_notices[40000]",
        {**NOTHING, "silent": 1.5},
    ),
    "cut-off": Bar(f"{FAULTS}::test_an_old_member_comes_while_one_is_cut_off_from_zookeeper", {"lost": 0, "both": 3}),
    "histories": Bar(
        "tests/unit/test_no_partition_has_two.py::test_no_partition_is_handed_out_by_two_in_ten_thousand_histories"
    ),
    "assignor": Bar(
        "tests/unit/test_old_client_assignors.py::test_a_thousand_random_groups_are_assigned_as_by_the_jar"
    ),
}
"""What a test asserts besides holds too. ``after_waking``: records of others that the one that woke handed out;
``both``: for how long a partition came from the one that was cut off after it had come from another one, seconds.
"""


Run = tuple[str, Mapping[str, str]]
"""How it ended, with what was counted."""


def runs_of(bars: Collection[str], runs: int) -> dict[str, list[Run]]:
    """By bar. ``bars``: of one file, whose tests share a cluster."""
    found: dict[str, list[Run]] = {each: [] for each in bars}
    (path,) = {BARS[each].test.partition("::")[0] for each in bars}
    chosen = " or ".join(f"({' and '.join(filter(None, BARS[each].chosen))})" for each in bars)
    with tempfile.TemporaryDirectory() as where:
        told = Path(where) / "runs.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "long or not long", path, "-k", chosen]
        environment = {**os.environ, "KRB_RUNS": str(runs)}
        command.append(f"--junitxml={told}")
        subprocess.run(command, cwd=ROOT, env=environment, check=False, stdout=sys.stderr)
        for case in ElementTree.parse(told).iter("testcase"):  # noqa: S314 - pytest has just written it
            bad = [each for each in ("failure", "error", "skipped") if case.find(each) is not None]
            values = {each.get("name", ""): each.get("value", "") for each in case.iter("property")}
            function, _, parameters = (case.get("name") or "").rstrip("]").partition("[")
            for each in bars:
                wanted, parameter = BARS[each].chosen
                if function == wanted and parameter in ("", *parameters.split("-")):
                    found[each].append((bad[0] if bad else "passed", values))
    return found


def grouped(bars: Sequence[str]) -> Iterator[tuple[tuple[str, bool], list[str]]]:
    """By the file of the test, and whether something is counted."""

    def kind(name: str) -> tuple[str, bool]:
        return BARS[name].test.partition("::")[0], bool(BARS[name].most)

    return ((each, list(names)) for each, names in groupby(sorted(set(bars), key=kind), key=kind))


def shown(name: str, bar: Bar, found: Sequence[Run]) -> Iterator[str]:
    """Each run, then each figure with its bar."""
    yield from (f"{name}, {commit()}", "", f"| {' | '.join(('run', 'result', *bar.columns))} |")
    yield "|---|---|" + "---|" * len(bar.columns)
    for number, (result, values) in enumerate(found, 1):
        yield f"| {' | '.join((str(number), result, *(values.get(each) or 'not known' for each in bar.columns)))} |"
    yield ""
    for column, most in bar.most.items():
        figures = [values.get(column) or "not known" for _, values in found]
        above = sum(column in bar.missed(values) for _, values in found)
        yield f"{column}: {', '.join(figures)}; at most {most:g}: {f'not met in {above} runs' if above else 'met'}"
    if not bar.most:
        yield f"{sum(result == 'passed' for result, _ in found)} of {len(found)} runs hold"


def main() -> int:
    """Exit code 1: a run failed, or missed its bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bars", nargs="*", metavar="bar", choices=[[], *BARS])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--list", action="store_true", help="name the bars, and what each allows")
    asked = parser.parse_args()
    if asked.list or not asked.bars or asked.runs < 1:
        for name, bar in BARS.items():
            allowed = ", ".join(f"{k} {v:g}" for k, v in bar.most.items())
            print(f"{name}: {f'at most {allowed}' if allowed else 'holds or not'} ({bar.test})")
        return 0 if asked.list else 2
    fine = True
    for (_, counted), names in grouped(asked.bars):
        runs = asked.runs if counted else 1
        for name, found in runs_of(names, runs).items():
            print("\n".join(shown(name, BARS[name], found)), flush=True)
            held = all(result == "passed" and not BARS[name].missed(values) for result, values in found)
            fine = fine and held and len(found) == runs
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
