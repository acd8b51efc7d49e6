"""What the benchmark of the quorum says of its runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.quorum.__main__ import plans
from benchmarks.quorum.chart import draw
from benchmarks.quorum.kraft import Kraft
from benchmarks.quorum.measured import COLD, FAILOVER, KRAFT, SHUTDOWN, ZOOKEEPER, Run, as_json, from_json
from benchmarks.quorum.report import exponent, growth, table
from benchmarks.scale.processes import Processes
from kraft_runbook.errors import Refused, StepFailed


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


def elected(partitions: int, seconds: float, detected: float, behind: int) -> Run:
    return Run(KRAFT, COLD, partitions, seconds, seconds / 2, 1.0, detected=detected, behind=behind)


RUNS = [
    run(ZOOKEEPER, SHUTDOWN, 20_000, 3.3),
    run(KRAFT, SHUTDOWN, 20_000, 0.1),
    run(KRAFT, SHUTDOWN, 20_000, 0.2),
    run(KRAFT, FAILOVER, 20_000, 1.0),
    elected(20_000, 4.0, 3.0, 0),
]
LARGER = [run(ZOOKEEPER, SHUTDOWN, 200_000, 33.0), elected(200_000, 43.0, 3.0, 300_374)]


def test_the_table_has_a_row_a_side_and_kind_and_keeps_warm_and_cold_apart() -> None:
    text = table(RUNS + LARGER)
    assert f"| {SHUTDOWN} | KRaft | 20,000 | 0.1, 0.2 |  |  | 0.05, 0.1 | 1, 1 |" in text
    assert f"| {COLD} | KRaft | 200,000 | 43 | 3 | 300,374 | 21.5 | 1 |" in text
    assert text.index(SHUTDOWN) < text.index(FAILOVER) < text.index(COLD)


def test_growth_is_told_where_there_are_two_sizes_and_detection_is_apart() -> None:
    assert growth(RUNS) == ""
    text = growth(RUNS + LARGER)
    assert f"{SHUTDOWN}, ZooKeeper: seconds grow with partitions to the power of 1.00 (1.00 to 1.00)" in text
    assert f"{COLD}, KRaft: seconds after the election grow with partitions to the power of 1.60" in text
    assert "SIGTERM" not in text


def test_what_was_measured_before_is_read_again(tmp_path: Path) -> None:
    assert from_json(as_json(RUNS)) == RUNS
    older = {key: each for key, each in as_json(RUNS)[0].items() if key not in ("detected", "behind", "commit")}
    assert from_json([older]) == RUNS[:1]


def test_the_picture_has_a_dot_a_run_and_a_line_a_kind_in_each_panel() -> None:
    drawn = ElementTree.fromstring(draw(RUNS + LARGER))
    name = "{http://www.w3.org/2000/svg}"
    dots = [each for each in drawn.iter(f"{name}circle") if each.get("r") == "3"]
    lines = list(drawn.iter(f"{name}polyline"))
    assert len(dots) == 2 * len(RUNS + LARGER) and len(lines) == 2 * 4
    first = [tuple(map(float, point.split(","))) for point in (lines[1].get("points") or "").split()]
    (left, low), (right, high) = first  # ZooKeeper's shutdowns
    assert left < right and low > high, "more partitions are further right, and more seconds higher up"
    with pytest.raises(ValueError, match="no run"):
        draw([])


class Answering:
    """A leader that answers CreateTopics with these errors, one a request, and with the last one from then on."""

    def __init__(self, *codes: int) -> None:
        self.codes, self.asked, self.closed = list(codes), 0, 0

    def send(self, _: Any, **__: Any) -> Any:
        self.asked += 1
        code = self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]
        return SimpleNamespace(topics=[SimpleNamespace(error_code=code)])

    def close(self) -> None:
        self.closed += 1


def create(leader: Answering, **how: float) -> None:
    side = Kraft.__new__(Kraft)
    side._create(leader, {"probe-1": [[1, 2]]}, **how)  # type: ignore[arg-type]


def test_a_leader_that_does_not_lead_yet_is_asked_again_and_not_for_ever() -> None:
    soon = Answering(41, 41, 0)
    create(soon)
    assert (soon.asked, soon.closed) == (3, 2)
    with pytest.raises(StepFailed, match="nobody took CreateTopics"):
        create(Answering(41), within=0.05)
    with pytest.raises(StepFailed, match=r"refused with \[39\]"):
        create(Answering(39))


def test_what_a_killed_run_left_is_stopped_and_removed_and_nothing_else(tmp_path: Path) -> None:
    kraft_plan, _ = plans(tmp_path, 2_000, 30)
    left = Processes(kraft_plan.directory)
    left.start("left", ["sleep", "600"])
    plans(tmp_path, 2_000, 30)
    assert left.pid("left") is None and not left.log("left").exists()
    (kraft_plan.directory / "plan.json").unlink()
    (kraft_plan.directory / "somebody's").touch()
    with pytest.raises(Refused, match=r"holds no plan\.json of this harness"):
        plans(tmp_path, 2_000, 30)
    assert (kraft_plan.directory / "somebody's").exists()
