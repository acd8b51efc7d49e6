"""The workload's transactional producer gives up a client that only ever repeats."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from lab.account import Tally
from lab.writers import _retrying


def test_a_commit_that_may_be_repeated_for_ever_is_given_up() -> None:
    asked: list[float] = []

    def commit(seconds: float) -> None:
        asked.append(seconds)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "still", retriable=True))

    with pytest.raises(KafkaException, match="still"):
        _retrying(commit, Tally("t"), None, within=0.25)
    assert len(asked) >= 2
