"""What the benchmark of a whole rehearsal says of its aims: only a size that has some is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.rehearsal import TRIED, Memory, Told, report, report_of_poison
from benchmarks.scale.cluster import Plan
from benchmarks.scale.poison import POISONS
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


def ended(verdict: str, *reasons: str, **measured: object) -> Canary:
    return Canary(
        verdict=verdict,
        whole=True,
        reasons=reasons,
        rungs=(),
        measured={**MEASURED, "controller_rss": 485, **measured},
        cluster_file="",
        kafka="3.9.2",
        tool="1",
        source="id",
        left_out=(),
        kept={},
    )


def reported(partitions: int, *, seconds: float, mib: int, verdict: str = "PASSED") -> tuple[str, bool]:
    canary = ended(verdict)
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


KAFKA_SAYS = "FAILED: Kafka's own copy ended its controllers: Aborting the ZK migration: requirement failed"
HALVED = (
    "FAILED: which znode ends Kafka's copy: 5 more copies of parts of the tree, 10 suspects; the copy ends of"
    " {} alone, with java.lang.IllegalArgumentException: requirement failed; without it the copy is done"
)


@pytest.mark.parametrize(
    ("poison", "verdict", "reasons", "partitions", "seconds", "reached"),
    [
        ("token", "FAILED", (KAFKA_SAYS, HALVED.format("/delegation_token/tokens/poison")), 20_000, 180, True),
        ("token", "FAILED", (KAFKA_SAYS, HALVED.format("/delegation_token/tokens/poison")), 20_000, 181, False),
        ("token", "FAILED", (KAFKA_SAYS, HALVED.format("/delegation_token/tokens/poison")), 970, 999, True),
        ("token", "FAILED", (KAFKA_SAYS, HALVED.format("/delegation_token/tokens/planted-1")), 20_000, 9, False),
        ("token", "FAILED", (KAFKA_SAYS,), 20_000, 9, False),
        ("token", "INCONCLUSIVE", (HALVED.format("/delegation_token/tokens/poison"),), 20_000, 9, False),
        ("producer-ids", "FAILED", (f"{KAFKA_SAYS} (/latest_producer_id_block)",), 20_000, 9, True),
        ("producer-ids", "FAILED", (KAFKA_SAYS, HALVED.format("/latest_producer_id_block")), 20_000, 9, False),
    ],
)
def test_a_verdict_on_poison_must_be_failed_name_the_very_znode_and_come_in_time(
    poison: str, verdict: str, reasons: tuple[str, ...], partitions: int, seconds: float, reached: bool
) -> None:
    told = Told(rungs={"forward to dual write": 10.0}, ended=seconds)
    told.tell(f"{TRIED}5 of 10 suspects is done (9 s)")
    plan = Plan(Path(), partitions, brokers=40)
    shown, good = report_of_poison(ended(verdict, *reasons, seconds=seconds), told, POISONS[poison], plan)
    assert good is reached and POISONS[poison].znode in shown and "tries of the halving: 1" in shown
