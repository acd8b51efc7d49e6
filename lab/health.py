"""When is the lab up? When every declared broker has started, and knows every broker and every partition as in sync.

Each broker is asked, not any one: in ZooKeeper mode a broker that starts is told first who is alive, and only then what
partitions there are (KafkaController.onControllerFailover sends UpdateMetadata without partitions before it elects
leaders). What it answers between the two looks whole: three brokers, and nothing out of sync.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.local import supervision
from lab.broker_state import last_words, said, still_starting
from lab.clients import client_settings
from lab.layout import layout

QUIET = logging.getLogger("lab.librdkafka")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


def admin(spec: ClusterSpec, *, of: Collection[Broker] = (), answers_within: float = 10) -> AdminClient:
    """A client of the brokers' plain listener (``of``: of these first, all by default). Its own log is silent: a broker
    that is not up yet is what we wait for.

    ``answers_within``: seconds that any request may take. A connection with a request that takes longer is closed, and
    every other request on it fails with it: while a broker makes topics, it reads nothing else from that connection,
    also not the client's own metadata request.
    """
    timeout = int(answers_within * 1000)
    settings = client_settings(spec, of=tuple(of))
    return AdminClient({**settings, "socket.timeout.ms": timeout, "reconnect.backoff.max.ms": 500}, logger=QUIET)


def wait_until_healthy(spec: ClusterSpec, *, say: Callable[[str], None]) -> None:
    """Wait at most ``deadlines.registration`` + ``deadlines.in_sync`` seconds, until nothing is missing any more.

    Raises StepFailed saying who is missing, or at once when a broker's process has ended.
    """
    began = time.monotonic()
    within = spec.deadlines.registration + spec.deadlines.in_sync
    told = ""
    while missing := what_is_missing(spec):
        _require_brokers_alive(spec)
        elapsed = time.monotonic() - began
        if elapsed > within:
            raise StepFailed(
                f"the lab is not healthy after {elapsed:.0f} s: {missing}",
                way_out=f"read the logs in {layout(spec).logs}",
            )
        if missing != told:
            say(f"waiting: {missing}, {elapsed:.0f} s")
            told = missing
        time.sleep(0.2)


def what_is_missing(spec: ClusterSpec) -> str:
    """In words, what keeps the cluster from being healthy; empty when nothing does."""
    for broker in spec.brokers:
        try:
            # A new client knows its bootstrap server alone, so that this broker answers, and no other.
            seen = admin(spec, of=[broker]).list_topics(timeout=2)
        except KafkaException as error:
            return f"broker {broker.id} does not answer yet ({error.args[0].name()})"
        if missing := missing_in(seen, spec.broker_ids, holds_partitions=_holds_partitions(broker)):
            return f"{missing}, as broker {broker.id} knows it"
    starting = still_starting(spec)
    return f"{nodes('broker', [broker.id for broker in starting])} to have started" if starting else ""


def missing_in(seen: Any, broker_ids: Collection[int], *, holds_partitions: bool) -> str:
    """What one broker's Metadata answer (confluent_kafka's ClusterMetadata) lacks, in words; empty where nothing does.

    ``holds_partitions``: the broker has some on disk, so that an answer without any is one of before it was told of
    them.
    """
    absent = sorted(set(broker_ids) - set(seen.brokers))
    if absent:
        return f"{nodes('broker', absent)} to register: {len(seen.brokers)} of {len(broker_ids)} seen"
    partitions = [(topic.topic, p) for topic in seen.topics.values() for p in topic.partitions.values()]
    if holds_partitions and not partitions:
        return "the partitions to be known"
    behind = [f"{name}-{p.id}" for name, p in partitions if set(p.isrs) != set(p.replicas) or p.leader < 0]
    return f"{len(behind)} of {len(partitions)} partitions to be in sync, such as {behind[0]}" if behind else ""


def _holds_partitions(broker: Broker) -> bool:
    """Whether a broker has a partition of a topic on disk: a directory <topic>-<number>.

    What waits to be deleted or is astray ends otherwise (LogManager), and the metadata log is no topic.
    """
    found = {path.name for directory in broker.log_dirs for path in Path(directory).glob("*/")} - {
        "__cluster_metadata-0"
    }
    return any(re.fullmatch(r".+-\d+", name) for name in found)


def _require_brokers_alive(spec: ClusterSpec) -> None:
    here = layout(spec)
    for service, process in supervision.processes(here).items():
        if process.state in ("EXITED", "FATAL", "BACKOFF", "UNKNOWN"):
            words = last_words(said(here, service))
            raise StepFailed(
                f"{service} ended by itself ({process.state}){f' after: {words}' if words else ''}; its log"
                f" ends:\n{supervision.log_tail(here, service)}",
                way_out=f"read {here.logs / f'{service}.log'}, correct the cause, then bring the lab up again",
            )
