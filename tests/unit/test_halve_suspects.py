"""The suspects of a copied tree are halved: those that Kafka's trace names first, and all where it misleads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from observations import SPEC
from test_rehearsal_throwaway import made

from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.zookeeper.snapshot_file import made_up, snapshot_file
from kraft_runbook.procedures.halve_suspects import halve_suspects, in_the_copy
from kraft_runbook.rehearsal.halving import MOST, NotJudged
from kraft_runbook.rehearsal.kafka_said import KafkaSaid
from kraft_runbook.rehearsal.suspects import Halved

TOPICS = tuple(f"/brokers/topics/t{number}" for number in range(20))
TOKENS = tuple(f"/delegation_token/tokens/{number}" for number in range(4))
ABOVE = ("", "/brokers", "/brokers/topics", "/delegation_token", "/delegation_token/tokens")


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    with snapshot_file(tmp_path) as file:
        for path in (*ABOVE, *TOPICS, *TOKENS):
            file.write([made_up(path.encode(), b"", zxid=1, at_ms=1)])
    assert file.path is not None
    return file.path


def died(*kinds: str, znode: str = "") -> KafkaSaid:
    return KafkaSaid("Aborting the ZK migration", ("java.lang.Exception: why",), znode, kinds)


def halved(
    snapshot: Path, said: KafkaSaid, ends: Callable[[frozenset[str]], bool]
) -> tuple[Halved, list[frozenset[str]]]:
    """``ends``: whether a copy that lacks these suspects ends."""
    tried: list[frozenset[str]] = []

    def attempt(_: Any, __: Path, left_out: frozenset[str]) -> KafkaSaid | None:
        tried.append(left_out)
        return died() if ends(left_out) else None

    throwaway: Any = SimpleNamespace(spec=made().spec, tell=lambda line: None)
    found = halve_suspects(throwaway, snapshot, said, attempt=attempt)
    assert len(tried) <= MOST
    return found, tried


def test_the_kinds_that_kafkas_trace_names_are_suspected_first(snapshot: Path) -> None:
    found, tried = halved(snapshot, died("/delegation_token"), lambda left_out: TOKENS[2] not in left_out)
    assert found.suspects == 4 and found.search.found[0].suspects == (TOKENS[2],)
    assert tried[0] == frozenset(TOKENS) and not any(set(TOPICS) & each for each in tried), "topics stay"
    assert (
        "/delegation_token/tokens/2 alone, with java.lang.Exception: why; without it the copy is done" in found.told()
    )


@pytest.mark.parametrize("said", [died("/delegation_token"), died("/kafka-acl"), died(znode="/config"), died()])
def test_where_a_trace_misleads_or_names_nothing_all_are_suspected(snapshot: Path, said: KafkaSaid) -> None:
    found, _ = halved(snapshot, said, lambda left_out: TOPICS[5] not in left_out)
    assert found.suspects == 24 and TOPICS[5] in found.search.found[0].suspects and found.search.found[0].seen
    assert not set(TOKENS) & set(found.search.found[0].suspects)


def test_a_try_that_the_machine_ends_is_none(snapshot: Path) -> None:
    for error, why in ((StepFailed("no ZooKeeper", way_out="x"), "no ZooKeeper"), (MemoryError(), "MemoryError")):

        def fails(_: frozenset[str], error: Exception = error) -> bool:
            raise error

        found, tried = halved(snapshot, died(), fails)
        assert len(tried) == 1 and why in found.search.stopped and found.search.found == ()


def test_a_controller_of_a_try_that_its_quorum_ended_is_none() -> None:
    assert in_the_copy(died()) == died()
    raft = KafkaSaid("Unexpected error in raft IO thread", ("java.lang.IllegalStateException: x",))
    moved = KafkaSaid("Aborting the ZK migration", ("java.util.concurrent.TimeoutException",))
    for said in (raft, moved):
        with pytest.raises(NotJudged, match="does not blame the metadata"):
            in_the_copy(said)


def test_an_error_of_this_tool_is_no_answer(snapshot: Path) -> None:
    def fails(_: frozenset[str]) -> bool:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        halved(snapshot, died(), fails)


def test_a_real_cluster_is_refused(snapshot: Path) -> None:
    throwaway: Any = SimpleNamespace(spec=SPEC, tell=lambda line: None)
    with pytest.raises(Refused, match="is not a rehearsal's throwaway"):
        halve_suspects(throwaway, snapshot, died(), attempt=lambda *_: None)
