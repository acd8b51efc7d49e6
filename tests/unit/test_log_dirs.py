"""How much room a broker has for replicas that come."""

from __future__ import annotations

import pytest

from kraft_runbook.cluster.log_dirs import BrokerLogs, LogDir

GB = 10**9


@pytest.mark.parametrize(
    ("directories", "usable"),
    [
        pytest.param([("/a", 100, 40, 9)], 40, id="one volume"),
        pytest.param([("/a", 100, 1, 3), ("/b", 100, 90, 50)], 1, id="the full one has the fewest logs and takes all"),
        pytest.param([("/a", 100, 1, 50), ("/b", 100, 90, 3)], 90, id="the empty one has the fewest logs"),
        pytest.param([("/a", 100, 10, 50), ("/b", 100, 90, 50)], 20, id="in turn, until the fuller is full"),
        pytest.param([("/a", 100, 40, 5), ("/b", 100, 40, 5)], 40, id="two directories of one volume"),
        pytest.param([("/a", 100, 40, 5), ("/b", None, None, 5)], None, id="one does not say"),
    ],
)
def test_the_directories_with_the_fewest_logs_are_the_room(
    directories: list[tuple[str, int | None, int | None, int]], usable: int | None
) -> None:
    dirs = tuple(LogDir(path, total, free, logs=logs) for path, total, free, logs in directories)
    assert BrokerLogs(1, dirs, {}).usable == usable


def test_a_directory_that_failed_takes_nothing() -> None:
    assert BrokerLogs(1, (LogDir("/a", 9, 9, "error 56"), LogDir("/b", 8, 5, logs=7)), {}).usable == 5
