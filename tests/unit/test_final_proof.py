"""What the last proof, in the fence, makes of a comparison: a version that lies behind is mended only where all else
agrees, and what can't be judged is not equal.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kraft_runbook.errors import StepFailed
from kraft_runbook.metadata.canonical_rows import Kind
from kraft_runbook.parity import final_proof
from kraft_runbook.parity.comparison import Comparison, Difference, Undecoded
from kraft_runbook.parity.final_proof import FinalProof

BEHIND = Difference(Kind.PARTITION_EPOCH, '["orders",1]', "7", "11", ("/brokers/topics/orders/partitions/1/state",))
DIFFERS = Difference(Kind.TOPIC, '["orders"]', '{"a":1}', '{"a":2}', ("/brokers/topics/orders",))
UNDECODED = Undecoded(Kind.BROKER_CONFIG, '["1","ssl.key.password"]', "its password could not be decoded")
FINE = Comparison(Counter())


class Proof:
    """``found``: what comparison after comparison shows; ``mended``: which versions were raised."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *found: Comparison) -> None:
        self.found, self.mended = list(found), list[Any]()
        monkeypatch.setattr(FinalProof, "_compared", lambda *_: self.found.pop(0))
        monkeypatch.setattr(final_proof, "touched_keys", lambda _: {(Kind.TOPIC, '["orders"]')})
        monkeypatch.setattr(final_proof, "raise_versions", self._mend)
        self.proof: Any = FinalProof.__new__(FinalProof)  # without a connection: this is about the verdict
        self.proof._replay, self.proof.raised = None, []

    def _mend(self, _: Any, behind: Any) -> tuple[Any, ...]:
        self.mended += behind
        return tuple(behind)

    def compare(self) -> int:
        zookeeper: Any = None
        return int(self.proof.compare(zookeeper))


def test_what_agrees_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Proof(monkeypatch, FINE).compare() == 1


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (Comparison(Counter(), (DIFFERS,)), "orders"),
        (Comparison(Counter(), (), (UNDECODED,)), "its password could not be decoded"),
        (Comparison(Counter(), (DIFFERS, BEHIND)), "differ in 2 of the 1 keys"),
    ],
    ids=["it differs", "it can't be judged", "it differs, and another lies behind"],
)
def test_what_does_not_agree_ends_it_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, found: Comparison, named: str
) -> None:
    proof = Proof(monkeypatch, found)
    with pytest.raises(StepFailed, match=named):
        proof.compare()
    assert proof.mended == []


def test_versions_that_alone_lie_behind_are_mended_and_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = Comparison(Counter(), (BEHIND,))
    proof = Proof(monkeypatch, behind, FINE)
    assert proof.compare() == 1
    assert (
        [str(each) for each in proof.mended]
        == ["orders-1 (version 7, epoch 11)"]
        == [str(each) for each in proof.proof.raised]
    )
    still = Proof(monkeypatch, behind, behind)
    with pytest.raises(StepFailed, match="ZooKeeper and the metadata log differ"):
        still.compare()
