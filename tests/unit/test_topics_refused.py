"""Topics that no broker shows: which store's count, and how they are asked for by name."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from connected import nodes_that
from observations import SECRETS, SPEC, observation

from kraft_runbook.cluster.observation import NO_ZOOKEEPER, ControllerZnode, Unread, ZkMigrationState, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.io.kafka.topics_refused import topics_refused
from kraft_runbook.io.kafka.topics_seen import SAMPLES, BrokerView
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.topics_not_shown import stored_topics, with_topics_not_shown

SEEN = observation(Phase.DUAL_WRITE)
assert was_read(SEEN.zookeeper) and was_read(SEEN.quorum) and was_read(SEEN.topics)
TOPICS = SEEN.topics
THERE, HERE, BOTH = frozenset({"in-zookeeper"}), frozenset({"in-log"}), frozenset({"in-zookeeper", "in-log"})
BY_KRAFT = (SEEN.zookeeper, THERE)
BY_BROKER = (replace(SEEN.zookeeper, controller=ControllerZnode(2, -1)), THERE)
BY_NOBODY = (replace(SEEN.zookeeper, controller=None), THERE)


def log(state: ZkMigrationState | None) -> Any:
    return replace(SEEN.quorum, migration_state_record=state), HERE  # type: ignore[type-var]


DURING, FINAL, BEFORE = (log(ZkMigrationState[n]) for n in ("MIGRATION", "POST_MIGRATION", "PRE_MIGRATION"))
EMPTY = (replace(log(None)[0], registrations={}), HERE)
NOT_ZOOKEEPER, NOT_LOG = Unread("ZooKeeper did not answer"), Unread("no leader was found")


@pytest.mark.parametrize(
    ("zookeeper", "quorum", "counted"),
    [
        pytest.param(BY_BROKER, FINAL, HERE, id="final: ZooKeeper keeps what was deleted since"),
        pytest.param(NOT_ZOOKEEPER, FINAL, HERE, id="final, ZooKeeper is switched off"),
        pytest.param(NO_ZOOKEEPER, log(None), HERE, id="no ZooKeeper"),
        pytest.param(NO_ZOOKEEPER, NOT_LOG, NOT_LOG, id="no ZooKeeper, and no leader"),
        pytest.param(BY_KRAFT, DURING, BOTH, id="both while both are written"),
        pytest.param(NOT_ZOOKEEPER, DURING, NOT_ZOOKEEPER, id="one of two is not read"),
        pytest.param(BY_KRAFT, NOT_LOG, NOT_LOG, id="a KRaft controller holds /controller, its log is not read"),
        pytest.param(BY_NOBODY, NOT_LOG, NOT_LOG, id="nobody holds /controller"),
        pytest.param(BY_BROKER, BEFORE, THERE, id="before the copy"),
        pytest.param(BY_BROKER, log(None), THERE, id="a log without a state"),
        pytest.param(BY_KRAFT, log(None), HERE, id="Kafka 4, whose snapshots drop the state"),
        pytest.param(BY_NOBODY, log(None), HERE, id="Kafka 4, and nobody holds /controller"),
        pytest.param(NOT_ZOOKEEPER, log(None), HERE, id="Kafka 4, and ZooKeeper is switched off"),
        pytest.param(NOT_ZOOKEEPER, EMPTY, NOT_ZOOKEEPER, id="a quorum without the flag and without brokers"),
        pytest.param(BY_KRAFT, EMPTY, THERE, id="the same, ZooKeeper is read"),
        pytest.param(NOT_ZOOKEEPER, BEFORE, NOT_ZOOKEEPER, id="before the copy, ZooKeeper is not read"),
        pytest.param(BY_BROKER, NOT_LOG, THERE, id="no controller runs yet"),
        pytest.param(NOT_ZOOKEEPER, NOT_LOG, NOT_LOG, id="nothing is read"),
    ],
)
def test_the_stores_that_count_are_those_that_the_cluster_writes(zookeeper: Any, quorum: Any, counted: Any) -> None:
    assert stored_topics(zookeeper, quorum) == counted


def with_hidden(names: frozenset[str], **ask: Any) -> Any:
    view = BrokerView(1, TOPICS, frozenset({"seen"}))
    secrets = environment_secrets(SECRETS)
    return with_topics_not_shown(SPEC, secrets, TOPICS, [view], NO_ZOOKEEPER, (SEEN.quorum, names), **ask)  # type: ignore[arg-type]


def test_what_a_broker_shows_is_not_asked_for_and_too_much_is_unread() -> None:
    assert with_hidden(frozenset({"seen"})).refused_count == 0
    many = frozenset(f"t-{n}" for n in range(20_001))
    assert with_hidden(many).refused_count == Unread("20001 topics that no broker names; too many to ask for by name")


def test_twenty_thousand_are_asked_for_a_thousand_at_a_time() -> None:
    """All are refused but two, one of which is gone (3, UNKNOWN_TOPIC_OR_PARTITION)."""
    asked: list[int] = []

    def answer(_: str, request: Any) -> Any:
        asked.append(len(request.topics))
        assert not request.allow_auto_topic_creation
        codes = {"t-00000": 0, "t-19999": 3}
        return SimpleNamespace(
            topics=[SimpleNamespace(name=t.name, error_code=codes.get(t.name, 29)) for t in request.topics]
        )

    ask = partial(topics_refused, connect=nodes_that(answer))
    found = with_hidden(frozenset(f"t-{n:05}" for n in range(20_000)), ask=ask)
    assert asked == [1000] * 20
    assert found.refused_count == 19_998
    assert found.refused == tuple(f"t-{n:05}" for n in range(1, 1 + SAMPLES))
