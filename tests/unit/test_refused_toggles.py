"""How often a member was to leave kafka mode and stayed: each toggle once, and nothing else."""

from __future__ import annotations

import pytest
from migrating_servers import ME, Embedded, member, topic, turn

from kraft_runbook_consumer.coordinator import Coordinator
from kraft_runbook_consumer.mode import Mode
from kraft_runbook_consumer.znodes import Registration

MODE = "/consumers/g/migration/mode"
HELD = frozenset({("t", 0)})


@pytest.fixture
def tree() -> dict[str, tuple[bytes | None, int]]:
    found: dict[str, tuple[bytes | None, int]] = {}
    topic(found, "t", 2)
    return found


@pytest.fixture
def embedded() -> Embedded:
    return Embedded()


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch, tree: dict[str, tuple[bytes | None, int]], embedded: Embedded) -> Coordinator:
    """In kafka mode, alone in both groups."""
    tree[MODE] = (b"kafka", 0)
    embedded.assigned, embedded.told = HELD, (True, {ME: HELD})
    found = member(monkeypatch, tree, Registration({"t": 1}), embedded=embedded)
    turn(found)
    assert found.state.mode is Mode.KAFKA
    return found


def test_a_start_while_kafka_s_answer_is_late_is_no_refusal(
    monkeypatch: pytest.MonkeyPatch, tree: dict[str, tuple[bytes | None, int]], embedded: Embedded
) -> None:
    embedded.told = None
    one = member(monkeypatch, tree, Registration({"t": 1}), embedded=embedded)
    turn(one)
    assert (one.toggles.refused, one.state.mode) == (0, None)
    embedded.told = (True, {})
    turn(one)
    assert (one.toggles.refused, one.state.mode) == (0, Mode.ZOOKEEPER)


def test_a_toggle_that_waits_for_kafka_s_answer_is_no_refusal(
    one: Coordinator, tree: dict[str, tuple[bytes | None, int]], embedded: Embedded
) -> None:
    tree[MODE], embedded.told = (b"zookeeper", 0), None
    turn(one)
    assert (one.toggles.refused, one.state.mode) == (0, Mode.KAFKA)
    embedded.told = (True, {ME: HELD})
    turn(one)
    assert (one.toggles.refused, one.state.mode) == (0, Mode.ZOOKEEPER)


def test_a_toggle_that_is_refused_counts_once_whoever_comes_and_goes_meanwhile(
    one: Coordinator, tree: dict[str, tuple[bytes | None, int]], embedded: Embedded
) -> None:
    tree[MODE] = (b"zookeeper", 0)
    for names in (["kc"], ["kc", "kc2"], None, ["kc2"]):
        embedded.told = None if names is None else (True, {each: frozenset() for each in names})
        embedded.changed = True
        turn(one)
        assert (one.toggles.refused, one.state.mode) == (1, Mode.KAFKA)
    one._work(revoking=True)
    turn(one)
    assert one.toggles.refused == 1, "what Kafka takes away meanwhile is no toggle"
    tree[MODE] = (b"kafka", 0)
    turn(one)
    tree[MODE] = (b"zookeeper", 0)
    turn(one)
    assert one.toggles.refused == 2
    embedded.told = (True, {ME: HELD})
    turn(one)
    assert (one.toggles.refused, one.state.mode) == (2, Mode.ZOOKEEPER)
