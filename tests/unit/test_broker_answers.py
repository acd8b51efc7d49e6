"""Asking a broker until it answers what is wanted. The connection is a fake: what breaks, and when, can't be provoked
in a real one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from observations import SPEC

from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.broker_answers import ask_until


def ask(*answers: str | None, within: float) -> tuple[str | None, int]:
    """Asks a broker that answers these, one after the other and the last for ever; "refused" breaks the connection.
    Gives the outcome, and how often it was connected.
    """

    left, connected = list(answers), []

    @contextmanager
    def connection(*where: object, **how: object) -> Iterator[None]:
        connected.append(where)
        yield None

    def question(_: object) -> str | None:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if answer == "refused":
            raise Unreachable("broker 1 does not answer", way_out="")
        return answer

    found = ask_until(
        SPEC,
        SPEC.brokers[0],
        question,
        secrets=None,
        deadline=time.monotonic() + within,
        apart=0.001,
        connect=connection,
    )
    return found, len(connected)


def test_it_asks_on_over_one_connection_and_over_a_new_one_where_that_breaks() -> None:
    assert ask("not yet", "not yet", None, within=60) == (None, 1)
    assert ask("not yet", "refused", "refused", None, within=60) == (None, 3)


def test_at_the_deadline_it_says_what_was_wrong_last() -> None:
    assert ask("not yet", within=0.05)[0] == "not yet"
    assert ask("not yet", "refused", within=0.05)[0] == "broker 1 does not answer"


def test_where_there_is_no_time_it_is_asked_once() -> None:
    assert ask("not yet", None, within=0) == ("not yet", 1)
    assert ask("refused", None, within=0) == ("broker 1 does not answer", 1)
    assert ask(None, within=0) == (None, 1)
