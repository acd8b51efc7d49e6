"""Removing static members: what Kafka answers, and what a person is told of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from connected import nodes_that
from kafka.protocol.metadata import FindCoordinatorRequest
from observations import SPEC

from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.kafka.group_members import remove_static_members


def removed(*answers: tuple[int, int], **how: Any) -> list[str]:
    """Who was asked; ``answers``: of each turn the error code of all, and the one of the member."""
    left, asked = list(answers), list[str]()

    def answer(who: str, request: Any) -> Any:
        if isinstance(request, FindCoordinatorRequest):
            return SimpleNamespace(error_code=0, node_id=2)
        assert [(each.member_id, each.group_instance_id) for each in request.members] == [("", "one")]
        asked.append(who)
        of_all, of_member = left.pop(0)
        return SimpleNamespace(error_code=of_all, members=[SimpleNamespace(error_code=of_member)])

    remove_static_members(SPEC, "g", ["one"], secrets=lambda _: "", apart=0.0, connect=nodes_that(answer), **how)
    return asked


def test_a_member_that_is_gone_is_no_error_and_a_coordinator_that_moves_is_asked_again() -> None:
    assert removed((0, 0)) == removed((0, 25)) == ["broker 2"]
    assert removed((16, 0), (14, 0), (0, 0)) == ["broker 2"] * 3


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        ((30, 0), Refused, "may not remove members of group g"),
        ((0, 79), StepFailed, "were not removed: error 79"),
        ((16, 0), StepFailed, "were not removed: error 16"),
    ],
)
def test_what_is_not_removed_is_said(answer: tuple[int, int], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        removed(answer, timeout=-1)
