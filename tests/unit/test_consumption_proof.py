"""What members' logs show: each planted fault is found, and nothing where there is none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from consumption import FAULTS, ORDERLY, PRODUCED, handed, lines
from jsonschema import validate
from pydantic import TypeAdapter
from typer.testing import CliRunner

from kraft_runbook.cli.app import app
from kraft_runbook.errors import Refused
from kraft_runbook.groups.proof import (
    KEPT,
    ConsumptionProof,
    HandedOut,
    Overlap,
    PartitionProof,
    prove,
    ranges,
    read_bounds,
    read_log,
)

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "groups-proof.json").read_text())


def test_an_orderly_move_is_clean() -> None:
    found = prove(ORDERLY, PRODUCED)
    assert found.holds and found.bounded
    assert found.render_text().splitlines() == [
        "20 records of 2 partitions: 0 lost, 0 twice, 0 by two at once",
        "the longest silence of a partition: 0.6 s",
        "orders, partitions at the end: a 1, b 1",
    ]


@pytest.mark.parametrize("fault", FAULTS)
def test_each_planted_fault_is_found_and_no_other(fault: str) -> None:
    records, told = FAULTS[fault]
    found = prove(records, PRODUCED)
    assert found.holds is (fault in ("silence", "uneven spread"))
    assert found.render_text().splitlines()[-len(told) :] == list(told)


def test_without_what_was_produced_only_gaps_are_missed_and_that_is_said() -> None:
    found = prove(handed("a", (3, 4, 7, 8), 0))
    assert [each.lost for each in found.partitions] == [((5, 6),)]
    assert "what was produced is not known" in found.render_text()


def test_a_partition_of_which_nothing_came_is_lost_whole_and_an_empty_one_is_not() -> None:
    found = prove([], {("orders", 0): (5, 9), ("orders", 1): (7, 7)})
    assert [each.lost for each in found.partitions] == [((5, 8),), ()]
    assert not found.holds and not prove([]).holds, "without a record nothing is proven"
    assert prove([], {("orders", 1): (7, 7)}).holds


def test_records_without_a_time_count_for_lost_and_twice_alone() -> None:
    timeless = [HandedOut("orders", 0, each, "old") for each in range(3)]
    found = prove([*timeless, *handed("b", (2, 3), 0)], {("orders", 0): (0, 4)})
    assert (found.count("lost"), found.count("twice"), found.partitions[0].overlaps) == (0, 1, ())


def test_overlaps_are_counted_all_and_kept_in_part() -> None:
    both = [*handed("a", range(KEPT + 5), 0), *handed("b", range(KEPT + 5), 1e6)]
    (found,) = prove(both).partitions
    assert (found.overlapping, len(found.overlaps)) == (KEPT + 5, KEPT)
    assert found.overlaps[0] == Overlap("b", 0, 1e6, "a", KEPT + 4)


def test_a_partition_comes_back_whole_from_json() -> None:
    for each in prove(FAULTS["by two at once"][0], PRODUCED).partitions:
        assert PartitionProof.from_dict(json.loads(json.dumps(each.to_dict()))) == each


def test_ranges() -> None:
    assert ranges([1, 2, 3, 7, 9, 10]) == ((1, 3), (7, 7), (9, 10)) and ranges([]) == ()


@pytest.mark.parametrize(
    "line", ["[]", "nonsense", '{"topic": "a"}', '{"topic":"a","partition":0,"offset":"x","member":"m"}']
)
def test_a_line_that_is_no_record_is_named(line: str) -> None:
    with pytest.raises(Refused, match=r"a\.log, line 3: no record") as refused:
        list(read_log(["", lines(ORDERLY)[0], line], source="a.log"))
    assert "write a line for each record" in refused.value.way_out


@pytest.mark.parametrize("text", ["", "[]", '{"a": {"0": [1]}}', '{"a": {"x": [1, 2]}}', '{"a": {"0": [2, 1]}}'])
def test_what_was_produced_is_refused_where_it_makes_no_sense(text: str) -> None:
    with pytest.raises(Refused, match=r"p\.json"):
        read_bounds(text, source="p.json")


def asked(*arguments: Any) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["groups", "proof", *map(str, arguments)])
    return result.exit_code, result.output


def logs_of(records: Sequence[HandedOut], where: Path) -> list[Path]:
    """One of each member."""
    found = []
    for member in sorted({each.member for each in records}):
        found.append(where / f"{member}.log")
        found[-1].write_text("\n".join(lines([each for each in records if each.member == member])) + "\n")
    return found


def test_the_command_reads_each_members_log(tmp_path: Path) -> None:
    produced = tmp_path / "produced.json"
    produced.write_text(json.dumps({"orders": {str(n): each for (_, n), each in PRODUCED.items()}}))
    code, told = asked(*logs_of(ORDERLY, tmp_path), "--produced", produced)
    assert (code, told.splitlines()) == (0, prove(ORDERLY, PRODUCED).render_text().splitlines())
    twice, _ = FAULTS["twice"]
    code, told = asked(*logs_of(twice, tmp_path), "--produced", produced, "--json")
    validate(json.loads(told), SCHEMA)
    assert code == 1
    body = {key: value for key, value in json.loads(told).items() if key in ConsumptionProof.__dataclass_fields__}
    assert TypeAdapter(ConsumptionProof).validate_python(body) == prove(twice, PRODUCED)


def test_the_command_names_a_file_that_is_not_there(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["groups", "proof", str(tmp_path / "none.log")])
    assert isinstance(result.exception, Refused) and "none.log can't be read: No such file" in str(result.exception)
