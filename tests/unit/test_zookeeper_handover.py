"""Giving the office back: whether nothing was deleted, or it is not known what was, decides whether the controllers may
run again.
"""

from __future__ import annotations

from typing import Any

import pytest
from kazoo.exceptions import BadVersionError, ConnectionLoss, NoAuthError, RolledBackError, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError

from kraft_runbook.errors import StepFailed
from kraft_runbook.io.zookeeper.handover import NothingDeleted, Office, leave_office
from kraft_runbook.io.zookeeper.session import Znode


def znode(path: str, data: bytes) -> Znode:
    return Znode(path, data, version=1, czxid=1, mzxid=1, pzxid=1, ephemeral_owner=0)


HELD = Office(znode("/controller", b'{"brokerid":101,"kraftControllerEpoch":4}'), znode("/migration", b"{}"), None)


class Reader:
    """A reader whose deletion is answered so; why nothing may be deleted is not its part."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def delete_all(self, znodes: list[Znode]) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def may_delete_beside(self, path: str) -> bool:
        return False

    def acl(self, path: str) -> str:
        return "nobody"

    def get_many(self, paths: list[str]) -> list[None]:
        return [None] * len(paths)


@pytest.mark.parametrize(
    "error",
    [ConnectionLoss(), SessionExpiredError(), KazooTimeoutError(), OSError()],
    ids=lambda error: type(error).__name__,
)
def test_where_the_connection_breaks_it_is_not_known_what_was_deleted(error: Exception) -> None:
    with pytest.raises(StepFailed, match="could not be deleted") as failed:
        leave_office(Reader(error), HELD)  # type: ignore[arg-type]
    assert not isinstance(failed.value, NothingDeleted)


@pytest.mark.parametrize(
    "answers",
    [[NoAuthError(), RolledBackError()], [RolledBackError(), BadVersionError()]],
    ids=["NoAuth", "BadVersion"],
)
def test_where_zookeeper_answers_no_nothing_was_deleted(answers: list[Exception]) -> None:
    with pytest.raises(NothingDeleted):
        leave_office(Reader(answers), HELD)  # type: ignore[arg-type]
