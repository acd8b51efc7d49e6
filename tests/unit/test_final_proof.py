"""What the last proof, in the fence, makes of a comparison: a version that lies behind is mended only where all else
agrees, and what can't be judged is not equal.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kraft_runbook.errors import StepFailed
from kraft_runbook.metadata.canonical_rows import Kind
from kraft_runbook.parity.comparison import Comparison, Difference, Undecoded
from kraft_runbook.parity.final_proof import LastLook
from kraft_runbook.parity.state_versions import Behind
from kraft_runbook.procedures.raise_versions import prove_and_raise

BEHIND = Difference(Kind.PARTITION_EPOCH, '["orders",1]', "7", "11", ("/brokers/topics/orders/partitions/1/state",))
DIFFERS = Difference(Kind.TOPIC, '["orders"]', '{"a":1}', '{"a":2}', ("/brokers/topics/orders",))
UNDECODED = Undecoded(Kind.BROKER_CONFIG, '["1","ssl.key.password"]', "its password could not be decoded")
FINE = Comparison(Counter())


class Proof:
    """``found``: what comparison after comparison shows; ``mended``: which versions were raised."""

    def __init__(self, *found: Comparison) -> None:
        self.found, self.mended, self.raised = list(found), list[Any](), list[Behind]()

    def _mend(self, _: Any, behind: Any) -> tuple[Any, ...]:
        self.mended += behind
        return tuple(behind)

    def compare(self, _: Any) -> LastLook:
        return LastLook(1, self.found.pop(0))

    def prove(self) -> int:
        zookeeper: Any = None
        proof: Any = self
        return prove_and_raise(proof, zookeeper, self.raised, mend=self._mend)


def test_what_agrees_is_counted() -> None:
    assert Proof(FINE).prove() == 1


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (Comparison(Counter(), (DIFFERS,)), "orders"),
        (Comparison(Counter(), (), (UNDECODED,)), "its password could not be decoded"),
        (Comparison(Counter(), (DIFFERS, BEHIND)), "differ in 2 of the 1 keys"),
    ],
    ids=["it differs", "it can't be judged", "it differs, and another lies behind"],
)
def test_what_does_not_agree_ends_it_and_nothing_is_written(found: Comparison, named: str) -> None:
    proof = Proof(found)
    with pytest.raises(StepFailed, match=named):
        proof.prove()
    assert proof.mended == []


def test_versions_that_alone_lie_behind_are_mended_and_looked_at_again() -> None:
    behind = Comparison(Counter(), (BEHIND,))
    proof = Proof(behind, FINE)
    assert proof.prove() == 1
    assert (
        [str(each) for each in proof.mended]
        == ["orders-1 (version 7, epoch 11)"]
        == [str(each) for each in proof.raised]
    )
    still = Proof(behind, behind)
    with pytest.raises(StepFailed, match="ZooKeeper and the metadata log differ"):
        still.prove()
