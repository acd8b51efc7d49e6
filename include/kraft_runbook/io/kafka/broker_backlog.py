"""Have the brokers taken in what the quorum told them? What they have not, ZooKeeper's controller waits for: each
broker is sent one request at a time.

A migrating broker learns of a topic in two requests, LeaderAndIsr and then UpdateMetadata (3.9's
ControllerChannelManager); its logs are made in the first. So one whose Metadata answer holds the newest leader epochs
has no log left to make. Measured: right after 300 new topics of 3 partitions on two cores three brokers need about nine
seconds for it; an election in the meantime is known to them only afterwards.
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
"""Topic → partition → leader epoch, as the metadata log says; no partitions: the topic was deleted."""


def taken_in(told: LeaderEpochs, answer: LeaderEpochs) -> bool:
    """Whether a broker that answers this knows what the log says of these topics, or something later."""
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
    """Wait until every broker knows what ``told`` says within ``prompt`` seconds of its being asked. The ids of those
    that did not in ``within`` seconds.

    ``told`` is asked again as long as they take longer: on a busy cluster there is always something that they do not
    know yet.
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
