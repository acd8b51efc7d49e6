"""The order in which a run moves its groups."""

from __future__ import annotations

import pytest

from kraft_runbook.errors import Refused
from kraft_runbook.groups.stayed import Act, Stayed, going_on
from kraft_runbook.groups.waves import waves

FIFTY = [f"g{n:02}" for n in range(50)]


def test_the_first_moves_alone_and_then_so_many_at_a_time() -> None:
    found = waves(FIFTY, size=5, canary=True)
    assert found[0] == ("g00",) and [len(each) for each in found[1:]] == [5] * 9 + [4]
    assert [group for wave in found for group in wave] == FIFTY
    assert waves(FIFTY[:7], size=5, canary=False) == (tuple(FIFTY[:5]), tuple(FIFTY[5:7]))
    assert waves(["a"], size=5, canary=True) == (("a",),)
    assert waves(FIFTY, size=1000, canary=True) == (("g00",), tuple(FIFTY[1:]))


def test_more_waves_than_a_run_has_are_refused_with_the_size_that_fits() -> None:
    with pytest.raises(Refused, match="50 groups in waves of 2 are 26 waves, and a run has 12") as refused:
        waves(FIFTY, size=2, canary=True)
    assert refused.value.way_out.startswith("move 5 groups at once")
    assert len(waves(FIFTY, size=5, canary=True)) <= 12


def test_a_group_that_an_earlier_act_refused_stays_out_and_is_tried_again_where_it_was_refused() -> None:
    stayed = {"b": Stayed(Act.FENCE, "x", "y")}
    assert going_on(["a", "b"], stayed, Act.COMMIT) == ("a",)
    assert going_on(["a", "b"], stayed, Act.FENCE) == going_on(["a", "b"], stayed, Act.STOP) == ("a", "b")
    assert Stayed.from_dict(stayed["b"].to_dict()) == stayed["b"]
