"""When is the lab up? When every declared broker is known to the cluster and has started, and every partition is in sync."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kraft_runbook.cluster import ClusterSpec
from kraft_runbook.errors import StepFailed
from lab import supervision
from lab.broker_state import last_words, said, still_starting
from lab.layout import layout

QUIET = logging.getLogger("lab.librdkafka")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


def admin(spec: ClusterSpec, *, answers_within: float = 10) -> AdminClient:
    """A client of the brokers' plain listener. Its own log is silent: a broker that is not up yet is what we wait for.

    ``answers_within``: seconds that any request may take. A connection with a request that takes longer is closed, and every other request on it
    fails with it: while a broker makes topics, it reads nothing else from that connection, also not the client's own metadata request.
    """
    timeout = int(answers_within * 1000)
    return AdminClient({"bootstrap.servers": ",".join(spec.bootstrap_servers), "socket.timeout.ms": timeout, "reconnect.backoff.max.ms": 500}, logger=QUIET)


def wait_until_healthy(spec: ClusterSpec, *, say: Callable[[str], None]) -> None:
    """Wait at most ``deadlines.registration`` + ``deadlines.in_sync`` seconds, until nothing is missing any more.

    Raises StepFailed saying who is missing, or at once when a broker's process has ended.
    """
    began = time.monotonic()
    within = spec.deadlines.registration + spec.deadlines.in_sync
    client, told = admin(spec), ""
    while missing := what_is_missing(spec, client):
        _require_brokers_alive(spec)
        elapsed = time.monotonic() - began
        if elapsed > within:
            raise StepFailed(f"the lab is not healthy after {elapsed:.0f} s: {missing}", way_out=f"read the logs in {layout(spec).logs}")
        if missing != told:
            say(f"waiting: {missing}, {elapsed:.0f} s")
            told = missing
        time.sleep(0.2)


def what_is_missing(spec: ClusterSpec, client: AdminClient) -> str:
    """In words, what keeps the cluster from being healthy; empty when nothing does."""
    try:
        seen = client.list_topics(timeout=2)
    except KafkaException as error:
        return f"no broker answers yet ({error.args[0].name()})"
    absent = sorted(set(spec.broker_ids) - set(seen.brokers))
    if absent:
        return f"broker {', '.join(map(str, absent))} to register: {len(seen.brokers)} of {len(spec.broker_ids)} seen"
    partitions = [(topic.topic, p) for topic in seen.topics.values() for p in topic.partitions.values()]
    behind = [f"{name}-{p.id}" for name, p in partitions if set(p.isrs) != set(p.replicas) or p.leader < 0]
    if behind:
        return f"{len(behind)} of {len(partitions)} partitions to be in sync, such as {behind[0]}"
    starting = still_starting(spec)
    return f"broker {', '.join(str(broker.id) for broker in starting)} to have started" if starting else ""


def _require_brokers_alive(spec: ClusterSpec) -> None:
    here = layout(spec)
    for service, process in supervision.processes(here).items():
        if process.state in ("EXITED", "FATAL", "BACKOFF", "UNKNOWN"):
            words = last_words(said(here, service))
            raise StepFailed(
                f"{service} ended by itself ({process.state}){f' after: {words}' if words else ''}; its log ends:\n{supervision.log_tail(here, service)}",
                way_out=f"read {here.logs / f'{service}.log'}, correct the cause, then bring the lab up again",
            )
