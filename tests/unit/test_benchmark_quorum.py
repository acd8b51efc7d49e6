"""What the benchmark of the quorum says of its runs."""

from __future__ import annotations

import pytest

from benchmarks.quorum.measured import COLD, FAILOVER, KRAFT, SHUTDOWN, ZOOKEEPER, Run, exponent, table


def run(side: str, kind: str, partitions: int, seconds: float) -> Run:
    return Run(side, kind, partitions, seconds, seconds / 2, 1.0)


def test_growth_is_a_power_with_its_range() -> None:
    points = [(20_000, 2.0), (20_000, 4.0), (20_000, 8.0), (200_000, 20.0), (200_000, 40.0), (200_000, 80.0)]
    found = exponent(points)
    assert found is not None
    assert found[0] == pytest.approx(1.0)
    assert found[1] == pytest.approx(0.398, abs=0.001) and found[2] == pytest.approx(1.602, abs=0.001)
    assert exponent([(20_000, 3.0)]) is None, "one size tells nothing of growth"
    assert exponent([(20_000, 3.0), (200_000, 3.0)]) == (0.0, 0.0, 0.0)


def test_the_table_has_a_row_a_side_and_kind_and_keeps_warm_and_cold_apart() -> None:
    runs = [
        run(ZOOKEEPER, SHUTDOWN, 20_000, 3.3),
        run(KRAFT, SHUTDOWN, 20_000, 0.1),
        run(KRAFT, SHUTDOWN, 20_000, 0.2),
        run(KRAFT, FAILOVER, 20_000, 1.0),
        run(KRAFT, COLD, 20_000, 3.9),
    ]
    text = table(runs)
    assert f"| {SHUTDOWN} | KRaft | 20,000 | 0.1, 0.2 | 0.05, 0.1 | 1, 1 |" in text
    assert text.index(SHUTDOWN) < text.index(FAILOVER) < text.index(COLD)
    assert "to the power of" not in text
    more = table([*runs, run(ZOOKEEPER, SHUTDOWN, 200_000, 33.0)])
    assert "controlled shutdown, ZooKeeper: seconds grow with partitions to the power of 1.00 (1.00 to 1.00)" in more
