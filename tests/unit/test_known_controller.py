"""Whether a broker knows its ZooKeeper controller: one that does not hangs for five minutes when it is stopped. The
connection is a fake: which controller a migrating broker names in each answer is Kafka's chance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from connected import nodes_that
from observations import SPEC

from kraft_runbook.errors import StepFailed, Unreachable
from kraft_runbook.procedures.known_controller import IN_A_ROW, await_known, knows_controller

Names = Callable[[], int]


class Brokers:
    """``names``: what each broker's next Metadata answer names; raising Unreachable, it does not answer. ``ended``:
    whose port refuses. ``asked``: how many answers each gave.
    """

    def __init__(self) -> None:
        self.names: dict[int, Names] = dict.fromkeys(SPEC.broker_ids, lambda: 2)
        self.ended: set[int] = set()
        self.asked: dict[int, int] = dict.fromkeys(SPEC.broker_ids, 0)
        self._asking: Any = {"secrets": None, "apart": 0.0001, "connect": nodes_that(self._answer)}

    def knows(self, controller: int, *, within: float = 0) -> str | None:
        return knows_controller(SPEC, SPEC.broker(1), controller, within=within, **self._asking)

    def await_known(self, controller: int, *, within: float) -> tuple[int, ...]:
        knows, secrets = partial(knows_controller, **self._asking), self._asking["secrets"]
        return await_known(
            SPEC, controller, secrets=secrets, within=within, at_a_time=0.02, knows=knows, accepts=self._accepts
        )

    def _answer(self, who: str, _: Any) -> Any:
        broker = int(who.removeprefix("broker "))
        self.asked[broker] += 1
        return SimpleNamespace(controller_id=self.names[broker]())

    def _accepts(self, host: str, port: int, **_: Any) -> bool:
        found = next(b.id for b in SPEC.brokers if SPEC.broker_address(b) == f"{host}:{port}")
        return found not in self.ended


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


def gone() -> int:
    raise Unreachable("it does not answer", way_out="")


def test_only_a_row_of_equal_answers_tells(brokers: Brokers) -> None:
    assert brokers.knows(2) is None
    assert brokers.asked[1] == IN_A_ROW
    assert brokers.knows(3) == "broker 1 names 2 as controller in one of its responses, ZooKeeper names 3"


@pytest.mark.parametrize("at", [1, 7, IN_A_ROW])
def test_one_other_answer_in_the_row_is_enough_to_doubt(brokers: Brokers, at: int) -> None:
    """As long as KRaft leads, a migrating broker names a random live broker."""
    brokers.names[1] = lambda: 3 if brokers.asked[1] == at else 2
    assert "names 3 as controller" in (brokers.knows(2) or "")


def test_it_is_asked_until_it_knows(brokers: Brokers) -> None:
    brokers.names[1] = lambda: 2 if brokers.asked[1] > 50 else 3
    assert brokers.knows(2, within=30) is None


def test_every_broker_is_awaited_and_those_that_run_and_do_not_know_are_named(brokers: Brokers) -> None:
    assert brokers.await_known(2, within=30) == ()
    brokers.names[3] = lambda: 1
    with pytest.raises(StepFailed, match="broker 3 names 1 as controller") as failed:
        brokers.await_known(2, within=0.1)
    assert "broker 1" not in failed.value.problem and "stop no broker yet" in failed.value.way_out


def test_one_whose_process_has_ended_is_not_waited_for_and_one_that_hangs_is(brokers: Brokers) -> None:
    """Nothing of the one could hang; what of the other's comes back nobody knows."""
    brokers.names[3], brokers.ended = gone, {3}
    assert brokers.await_known(2, within=30) == (3,)
    brokers.ended = set()
    with pytest.raises(StepFailed, match="it does not answer"):
        brokers.await_known(2, within=0.1)
