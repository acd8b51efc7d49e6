"""Whether a broker's Metadata answer holds what the metadata log says."""

from __future__ import annotations

import pytest

from kraft_runbook.io.kafka.broker_backlog import LeaderEpochs, taken_in

TOLD = {"a": {0: 4, 1: 0}, "gone": {}}


@pytest.mark.parametrize(
    ("answer", "knows"),
    [
        ({"a": {0: 4, 1: 0}}, True),
        ({"a": {0: 5, 1: 0, 2: 0}}, True),
        ({"a": {0: 3, 1: 0}}, False),
        ({"a": {0: 4}}, False),
        ({}, False),
        ({"a": {0: 4, 1: 0}, "gone": {0: 0}}, False),
    ],
)
def test_a_broker_knows_it_when_each_leader_epoch_is_there_or_a_later_one_and_what_was_deleted_is_gone(
    answer: LeaderEpochs, knows: bool
) -> None:
    assert taken_in(TOLD, answer) is knows


def test_where_nothing_was_touched_every_broker_knows_it() -> None:
    assert taken_in({}, {})
