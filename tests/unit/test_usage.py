"""What a span of time took: its own load and processor time, and not those of another one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kraft_runbook.io.local.cores import Processors, Quota
from kraft_runbook.io.local.usage import Look, Taken, Usage


def looked(*looks: tuple[float, float, float]) -> Usage:
    return Usage(looks=[Look(*each) for each in looks])


def test_a_span_has_the_highest_load_of_the_looks_in_it_and_of_the_first_after() -> None:
    usage = looked((0, 8.0, 0), (10, 1.0, 4), (12, 1.5, 6), (14, 2.0, 8), (16, 9.0, 20))
    assert usage.between(9, 13) == Taken(4, 2.0, pytest.approx(3.4, abs=0.05))
    assert usage.between(10.5, 11) == Taken(0.5, 1.5, 0.5), "a span between two looks"
    assert (usage.load, usage.between(0, 16).load) == (9.0, 9.0)


def test_where_nobody_looks_after_it_the_last_look_tells_and_one_of_another_time_does_not() -> None:
    usage = looked((0, 3.0, 1), (10, 2.0, 5))
    assert usage.between(11, 12) == Taken(1, 2.0, 0.0)
    assert usage.between(200, 201) == Taken(1, None, None)
    assert looked().between(0, 1) == Taken(1, None, None)
    assert looked((500, 3.0, 1)).between(0, 1).load is None


def test_a_block_is_a_span_also_where_an_error_ends_it() -> None:
    times = iter([5.0, 6.0, 8.0])
    usage = Usage(now=lambda: next(times), load_average=lambda: (0.5, 0.0, 0.0), processors=Processors(2, 2))
    with pytest.raises(KeyError), usage.span("forward"):
        usage.look([("self", os.getpid()), ("gone", 2**30)])
        raise KeyError
    taken = usage.of("forward")
    assert taken is not None and (taken.seconds, taken.load) == (3.0, 0.5)
    assert usage.of("back") is None
    assert usage.rss["self"] > 0 and usage.cpu_seconds > 0


def test_a_span_under_a_quota_tells_what_was_waited_for_as_a_part_of_what_the_quota_gives(tmp_path: Path) -> None:
    stat, times = tmp_path / "cpu.stat", iter([10.0, 20.0, 30.0])
    of_a_container = Processors(64, 64, (Quota(2.0, stat),))
    usage = Usage(now=lambda: next(times), load_average=lambda: (32.0, 0.0, 0.0), processors=of_a_container)
    for waited in (1_000_000, 1_000_000, 11_000_000):
        stat.write_text(f"throttled_usec {waited}\n")
        usage.look()
    assert usage.between(10, 20) == Taken(10.0, 1.0, 0.0, throttled=0.0)
    assert usage.between(22, 28) == Taken(6.0, 1.0, 0.0, throttled=0.5), "a second of each of two processors, of ten"
    stat.unlink()
    assert Usage(processors=of_a_container, looks=[Look(10, 1.0, 0)]).between(9, 11).throttled is None
