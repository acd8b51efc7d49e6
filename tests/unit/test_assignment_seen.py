"""Metadata is asked of whoever is named for it, and again where that broker has just died."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from observations import SPEC

from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka import assignment_seen as asking
from kraft_runbook.io.kafka.assignment_seen import APART_SECONDS, PATIENCE_SECONDS, assignment_seen


def answers(monkeypatch: pytest.MonkeyPatch, *given: Any) -> list[float]:
    left, slept = list(given), list[float]()

    def one(*_: Any) -> Any:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(asking, "_seen_by_one", one)
    monkeypatch.setattr(asking, "time", SimpleNamespace(sleep=slept.append, monotonic=lambda: sum(slept)))
    return slept


def test_a_broker_that_is_named_though_it_has_just_died_is_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """In KRaft mode any live broker may be named, and a dead one until its session ends."""
    refused = Unreachable("broker 4 did not answer: ECONNREFUSED", way_out="look at it")
    slept = answers(monkeypatch, refused, refused, "seen")
    assert assignment_seen(SPEC, secrets=lambda _: "") == "seen"
    assert len(slept) == 2


def test_what_nobody_answers_is_unreachable_once_a_dead_brokers_session_must_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept = answers(monkeypatch, Unreachable("nobody answers", way_out="look"))
    with pytest.raises(Unreachable, match="nobody answers"):
        assignment_seen(SPEC, secrets=lambda _: "")
    assert PATIENCE_SECONDS < sum(slept) <= PATIENCE_SECONDS + APART_SECONDS
