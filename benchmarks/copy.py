"""How long does Kafka's own copy take, and which settings shorten it? While it runs, the controller handles no metadata
change: it is the migration's real outage.

    python -m benchmarks.copy --partitions 20000,200000 --runs 1

Each run: a fresh cluster of ``benchmarks.scale`` with one variant of the controllers' settings, brought to dual write,
and ended. The table shows each variant's medians and its ratio to Kafka's defaults at that size; every run is in the
JSON file, which is written anew after each. "load": the machine's load average; above its cores the row tells more of
the neighbours than of Kafka. A run that failed stands in both, with the reason.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.scale import measure
from benchmarks.scale.__main__ import add_up_options, plan_of
from benchmarks.scale.measure import CopyFigures
from kraft_runbook.errors import RunbookError
from lab.checkout import commit

BATCH = "zookeeper.metadata.migration.min.batch.size"
"""Records that a batch of the copy has at least; default 200."""
IN_FLIGHT = "zookeeper.max.in.flight.requests"
"""Reads that the controller sends to ZooKeeper ahead of their answers; default 10."""
LINGER = "controller.quorum.append.linger.ms"
"""How long the leader waits before it writes what was appended; default 25."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One set of settings. ``quiet``: the record-by-record loggers at WARN; ``heap``: of each controller, where it is
    not the size's own.
    """

    name: str
    properties: dict[str, str] = field(default_factory=dict)
    quiet: bool = False
    heap: str | None = None


DEFAULTS = "defaults"
VARIANTS = (
    Variant(DEFAULTS),
    Variant("batch 5000", {BATCH: "5000"}),
    Variant("in flight 200", {IN_FLIGHT: "200"}),
    Variant("loggers at WARN", quiet=True),
    Variant("all three", {BATCH: "5000", IN_FLIGHT: "200"}, quiet=True),
    Variant("batch 1000", {BATCH: "1000"}),
    Variant("batch 20000", {BATCH: "20000"}),
    Variant("linger 0", {LINGER: "0"}),
    Variant("all three, batch 20000", {BATCH: "20000", IN_FLIGHT: "200"}, quiet=True),
    Variant("all three, in flight 1000", {BATCH: "5000", IN_FLIGHT: "1000"}, quiet=True),
    Variant("all three, linger 0", {BATCH: "5000", IN_FLIGHT: "200", LINGER: "0"}, quiet=True),
    Variant("all three, heap 6g", {BATCH: "5000", IN_FLIGHT: "200"}, quiet=True, heap="6g"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: its figures, or why there are none."""

    variant: str
    partitions: int
    figures: CopyFigures | None
    problem: str = ""


def run(variant: Variant, partitions: int, asked: argparse.Namespace) -> Outcome:
    """Up with these settings, and down again. A cluster that can't be taken down is raised, not noted: the next one
    would need its place.
    """
    plan = plan_of(asked, partitions, dict(variant.properties), quiet=variant.quiet, heap=variant.heap)
    try:
        figures = measure.up(plan, patience=asked.patience, copy_only=asked.copy_only)
    except RunbookError as error:
        return Outcome(variant.name, partitions, None, error.problem)
    measure.down(plan, purge=True)
    return Outcome(variant.name, partitions, figures)


def table(outcomes: Sequence[Outcome]) -> str:
    """Medians of each variant at each size, and how many times shorter the copy is than with Kafka's defaults at that
    size.
    """
    lines = [
        (
            "| partitions | controllers' settings | runs | registration -> state 1, s | ratio | the copy itself, s |"
            " ratio | records/s | batches x wait, ms | controller cpu-s | heap after gc, MiB | ZooKeeper cpu-s | ->"
            " dual write, s | log, MB | load |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for partitions in dict.fromkeys(each.partitions for each in outcomes):
        base = _done(outcomes, DEFAULTS, partitions)
        for name in dict.fromkeys(each.variant for each in outcomes if each.partitions == partitions):
            lines.append(
                _line(partitions, name, _done(outcomes, name, partitions), base, _problems(outcomes, name, partitions))
            )
    return "\n".join(lines)


def _done(outcomes: Sequence[Outcome], name: str, partitions: int) -> list[CopyFigures]:
    return [
        each.figures
        for each in outcomes
        if each.variant == name and each.partitions == partitions and each.figures is not None
    ]


def _problems(outcomes: Sequence[Outcome], name: str, partitions: int) -> list[str]:
    return [
        each.problem
        for each in outcomes
        if each.variant == name and each.partitions == partitions and each.figures is None
    ]


def _line(
    partitions: int, name: str, done: Sequence[CopyFigures], base: Sequence[CopyFigures], problems: Sequence[str]
) -> str:
    if not done:
        return f"| {partitions} | {name} | 0 of {len(problems)}: {problems[0].splitlines()[0]} |" + " |" * 12

    def median(of: Sequence[CopyFigures], field_name: str) -> float:
        return statistics.median(float(getattr(each, field_name) or 0) for each in of)

    to_dual_write = (
        "-"
        if any(each.registration_to_dual_write is None for each in done)
        else f"{median(done, 'registration_to_dual_write'):.1f}"
    )

    def ratio(field_name: str) -> str:
        return f"{median(base, field_name) / median(done, field_name):.2f}" if base else "-"

    runs = f"{len(done)}" if not problems else f"{len(done)} of {len(done) + len(problems)}"
    return (
        f"| {partitions} | {name} | {runs} | {median(done, 'registration_to_state_1'):.1f} |"
        f" {ratio('registration_to_state_1')} | {median(done, 'copy'):.1f} | {ratio('copy')} |"
        f" {median(done, 'records_a_second'):.0f} | {median(done, 'batches'):.0f} x"
        f" {median(done, 'wait_a_batch') * 1000:.1f} | {median(done, 'active_cpu_at_state_1'):.1f} |"
        f" {median(done, 'active_heap_after_gc'):.0f} | {median(done, 'zookeeper_cpu_at_state_1'):.1f} |"
        f" {to_dual_write} | {median(done, 'log_bytes') / 1e6:.1f} | {median(done, 'load_average'):.1f} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_up_options(parser)
    parser.add_argument("--partitions", default="20000,200000", help="the sizes, comma-separated")
    parser.add_argument(
        "--runs",
        type=int,
        default=1,
        help="of each variant at each size; they take turns, so that a busy spell meets all",
    )
    parser.add_argument(
        "--variants",
        help=(
            f"comma-separated; default: all of {'; '.join(each.name for each in VARIANTS)}. 'all three, …' may be"
            " written 'all three+…'"
        ),
    )
    parser.add_argument(
        "--copy-only",
        action="store_true",
        help="end each cluster when its copy is done, without waiting for dual write",
    )
    parser.add_argument("--json", type=Path, default=Path("build/copy.json"), help="every run; default build/copy.json")
    asked = parser.parse_args()
    wanted = (
        [name.replace("+", ", ") for name in asked.variants.split(",")]
        if asked.variants
        else [each.name for each in VARIANTS]
    )
    unknown = set(wanted) - {each.name for each in VARIANTS}
    if unknown:
        parser.error(f"no such variant: {', '.join(sorted(unknown))}")
    outcomes: list[Outcome] = []
    try:
        for partitions in map(int, asked.partitions.split(",")):
            for number in range(asked.runs):
                for variant in (each for each in VARIANTS if each.name in wanted):
                    print(f"-- {partitions} partitions, {variant.name}, run {number + 1} of {asked.runs}", flush=True)
                    outcomes.append(run(variant, partitions, asked))
                    if outcomes[-1].problem:
                        print(f"FAILED: {outcomes[-1].problem}", flush=True)
                    asked.json.parent.mkdir(parents=True, exist_ok=True)
                    asked.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=1) + "\n")
    except RunbookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    finally:
        print(f"benchmarks.copy at {commit()}\n{table(outcomes)}")
    return 1 if any(each.figures is None for each in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
