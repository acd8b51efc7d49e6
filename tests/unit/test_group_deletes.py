"""Deleting a group without members: what Kafka answers, and what a person is told of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from connected import nodes_that
from kafka.protocol.metadata import FindCoordinatorRequest
from observations import SPEC

from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.kafka.group_deletes import delete_group


def deleted(*codes: int, **how: Any) -> list[str]:
    """Who was asked to delete it; ``codes``: what each answers in turn."""
    left, asked = list(codes), list[str]()

    def answer(who: str, request: Any) -> Any:
        if isinstance(request, FindCoordinatorRequest):
            return SimpleNamespace(error_code=0, node_id=2)
        assert request.groups_names == ["g"]
        asked.append(who)
        return SimpleNamespace(results=[SimpleNamespace(group_id="g", error_code=left.pop(0))])

    delete_group(SPEC, "g", secrets=lambda _: "", apart=0.0, connect=nodes_that(answer), **how)
    return asked


def test_its_coordinator_deletes_it_and_one_that_is_gone_is_no_error() -> None:
    assert deleted(0) == deleted(69) == ["broker 2"]
    assert deleted(16, 14, 0) == ["broker 2"] * 3


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        (68, Refused, "has members in Kafka"),
        (30, Refused, "may not delete group g in Kafka, which had members there before"),
        (7, StepFailed, "was not deleted in Kafka: error 7"),
        (16, StepFailed, "was not deleted in Kafka: error 16"),
    ],
)
def test_what_is_not_deleted_is_said(code: int, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        deleted(code, timeout=-1)
