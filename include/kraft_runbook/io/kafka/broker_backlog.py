"""Whether the brokers have applied the quorum's metadata updates. A broker gets one request at a time, so the ZooKeeper
controller, once elected, waits for the updates still queued.

A migrating broker learns of a topic by two requests, LeaderAndIsr and then UpdateMetadata (3.9's
ControllerChannelManager), and creates the topic's logs in the first. So a broker whose Metadata response has the newest
leader epochs has no log left to create. Measured by hand: right after 300 new topics of 3 partitions, on two cores,
three brokers need about 9 s; only then do they learn of an election.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from kafka.protocol.metadata import MetadataRequest

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.kafka.broker_answers import ask_until
from kraft_runbook.io.kafka.connection import KafkaConnection
from kraft_runbook.io.secrets import Secrets

LeaderEpochs = Mapping[str, Mapping[int, int]]
"""Topic → partition → leader epoch, from the metadata log. A topic without partitions was deleted."""


def taken_in(told: LeaderEpochs, answer: LeaderEpochs) -> bool:
    """Whether a broker with this response knows these topics as in the log, or later."""
    for topic, epochs in told.items():
        known = answer.get(topic, {})
        if not epochs and known:
            return False
        if any(known.get(partition, -1) < epoch for partition, epoch in epochs.items()):
            return False
    return True


def await_taken_in(
    spec: ClusterSpec, told: Callable[[], LeaderEpochs], *, secrets: Secrets, within: float, prompt: float
) -> tuple[int, ...]:
    """Wait until every broker knows the topics of ``told`` within ``prompt`` seconds of the call. Returns the ids of
    the brokers that did not within ``within`` seconds.

    While the brokers take longer, ``told`` is called again: on a busy cluster there are always newer changes.
    """
    deadline = time.monotonic() + within
    with ThreadPoolExecutor(len(spec.brokers)) as pool:
        while True:
            since, now = time.monotonic(), told()
            if not now:
                return ()
            answers = pool.map(
                partial(ask_until, spec, question=partial(_lacks, now), secrets=secrets, deadline=deadline),
                spec.brokers,
            )
            behind = tuple(broker.id for broker, lack in zip(spec.brokers, answers, strict=True) if lack is not None)
            if behind or time.monotonic() - since < prompt:
                return behind


def _lacks(told: LeaderEpochs, connection: KafkaConnection) -> str | None:
    return None if taken_in(told, _known(connection, list(told))) else "it does not know the newest topics"


def _known(connection: KafkaConnection, names: list[str]) -> LeaderEpochs:
    topic = MetadataRequest.MetadataRequestTopic
    asked = MetadataRequest(version=8, topics=[topic(name=name) for name in names], allow_auto_topic_creation=False)
    return {
        t.name: {p.partition_index: p.leader_epoch for p in t.partitions}
        for t in connection.send(asked).topics
        if t.error_code == 0
    }
