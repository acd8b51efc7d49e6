"""What the benchmark of a whole rehearsal says of its aims: only a size that has some is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.rehearsal import Memory, Told, report
from benchmarks.scale.cluster import Plan
from kraft_runbook.evidence.kinds import Canary

MEASURED = {
    "tree_seconds": 0.5,
    "copy": 4.6,
    "copied_records": 26012,
    "window": 3.8,
    "tries": 1,
    "cpu": 190.0,
    "tree_cpu": 0.2,
}


def reported(partitions: int, *, seconds: float, mib: int, verdict: str = "PASSED") -> tuple[str, bool]:
    canary = Canary(
        verdict=verdict,
        whole=True,
        reasons=(),
        rungs=(),
        measured={**MEASURED, "controller_rss": 485},
        cluster_file="",
        kafka="3.9.2",
        tool="1",
        source="id",
        left_out=(),
        kept={},
    )
    told = Told(rungs={"forward to dual write": 10.0}, ended=seconds)
    return report(canary, told, Memory(Path(), both=mib), Plan(Path(), partitions, brokers=40))


@pytest.mark.parametrize(
    ("partitions", "seconds", "mib", "says", "reached"),
    [
        (20_000, 359, 3071, "'GiB': 3}; reached", True),
        (20_000, 361, 3071, "missed: minutes 6.02, aim 6", False),
        (200_000, 1199, 6143, "'minutes': 20, 'GiB': 6}; reached", True),
        (200_000, 1199, 6200, "missed: GiB 6.05, aim 6", False),
        (50_000, 9999, 9999, "aims: none at this size; not judged", True),
    ],
)
def test_a_size_is_judged_by_its_own_aims(partitions: int, seconds: float, mib: int, says: str, reached: bool) -> None:
    shown, good = reported(partitions, seconds=seconds, mib=mib)
    assert says in shown and good is reached


def test_one_that_did_not_pass_reaches_nothing() -> None:
    assert not reported(50_000, seconds=1, mib=1, verdict="FAILED")[1]
