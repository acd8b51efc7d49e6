"""What a broker's log and its threads tell: the rules alone. The lines are a broker's of Kafka 3.9.2."""

from __future__ import annotations

import pytest
from observations import SPEC

from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.migration.listener_threads import ACLS, CONFIGS, EXTENDED_ACLS, TOKENS, missing_threads
from lab.broker_state import _starting, last_words, listeners, since_start

DEAF = (
    "[2026-11-23 05:32:11,103] ERROR [/config/changes-event-process-thread]: Error due to"
    " (kafka.common.ZkNodeChangeNotificationListener$ChangeEventProcessThread)\n"
)
EVERY = (CONFIGS, ACLS, EXTENDED_ACLS, TOKENS)
BY_FIFTEEN = ["main", "/config/changes", "/kafka-acl-chan", "/kafka-acl-exte", "/delegation_tok"]
BY_BOTH_ENDS = ["main", "/config..thread", "/kafka-..thread", "/kafka-..thread", "/delega..thread"]


@pytest.mark.parametrize("names", [BY_FIFTEEN, BY_BOTH_ENDS])
def test_a_listener_whose_thread_is_gone_is_missing(names: list[str]) -> None:
    assert missing_threads(EVERY, names) == []
    assert missing_threads(EVERY, [name for name in names if not name.startswith("/config")]) == [CONFIGS]
    assert missing_threads(EVERY, []) == [*EVERY]


def test_of_two_listeners_with_one_short_name_one_is_missing() -> None:
    assert missing_threads(EVERY, ["main", "/config..thread", "/kafka-..thread", "/delega..thread"]) == [ACLS]


def test_what_a_broker_listens_for_follows_from_its_configuration() -> None:
    assert listeners({"broker.id": "1"}) == (CONFIGS,)
    assert (
        listeners(
            {
                "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
                "delegation.token.secret.key": "${env:A}",
            }
        )
        == EVERY
    )
    assert CONFIGS in listeners(broker_properties(SPEC, SPEC.brokers[0], BrokerMode.HYBRID))
    assert listeners(broker_properties(SPEC, SPEC.brokers[0], BrokerMode.KRAFT)) == ()


def test_the_first_last_words_are_quoted_with_their_exception() -> None:
    log = [
        "[…] INFO all is well\n",
        "[…] ERROR a client was refused\n",
        DEAF,
        "java.lang.OutOfMemoryError: Java heap space\n",
        "\tat java.nio…\n",
        "[…] ERROR later\n",
    ]
    assert last_words(log) == f"{DEAF.strip()} java.lang.OutOfMemoryError: Java heap space"
    assert last_words(["[…] INFO x\n", "Terminating due to java.lang.OutOfMemoryError: Java heap space\n"]).startswith(
        "Terminating due to"
    )
    assert last_words(log[:2]) == ""


def test_a_broker_has_started_when_it_says_so_after_its_last_start() -> None:
    start, started = (
        "run-service.sh: broker-2 starts as pid 42\n",
        "[…] INFO [KafkaServer id=2] started (kafka.server.KafkaServer)\n",
    )
    assert _starting(since_start([start, started, start, "[…] INFO starting\n"], "broker-2"), "broker-2")
    assert not _starting(since_start([start, started], "broker-2"), "broker-2")
    assert not _starting([start, "[…] INFO Kafka Server started (kafka.server.KafkaRaftServer)\n"], "broker-2")
    assert not _starting(["[…] INFO the log's beginning was rotated away\n"], "broker-2")


def test_only_the_log_of_the_last_process_counts() -> None:
    log = [DEAF, "run-service.sh: broker-2 starts as pid 42\n", "[…] INFO all is well\n"]
    assert since_start(log, "broker-2") == log[1:]
    assert since_start(log[:1], "broker-2") == log[:1]
