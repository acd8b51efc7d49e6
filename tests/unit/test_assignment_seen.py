"""Metadata is asked of whoever is named for it, and again where that broker has just died."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.assignment_seen import APART_SECONDS, PATIENCE_SECONDS, patiently


def asked(slept: list[float], *given: Any) -> Any:
    """The answer of brokers that give these, one after the other and the last for ever. Time passes by ``slept``."""
    left = list(given)

    def one() -> Any:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return patiently(one, sleep=slept.append, monotonic=lambda: sum(slept))


def test_a_broker_that_is_named_though_it_has_just_died_is_not_the_end() -> None:
    """In KRaft mode any live broker may be named, and a dead one until its session ends."""
    refused = Unreachable("broker 4 did not answer: ECONNREFUSED", way_out="look at it")
    slept: list[float] = []
    assert asked(slept, refused, refused, "seen") == "seen"
    assert len(slept) == 2


def test_what_nobody_answers_is_unreachable_once_a_dead_brokers_session_must_have_ended() -> None:
    slept: list[float] = []
    with pytest.raises(Unreachable, match="nobody answers"):
        asked(slept, Unreachable("nobody answers", way_out="look"))
    assert PATIENCE_SECONDS < sum(slept) <= PATIENCE_SECONDS + APART_SECONDS
