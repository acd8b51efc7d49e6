"""When the partitions that a broker led have another leader, as the other brokers answer Metadata.

One thread asks for all topics again and again, and rests after each answer as long as it took, so that a cluster of
many partitions is not kept busy by the question.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.kafka.topics_seen import client_security
from kraft_runbook.io.secrets import Secrets

REST = 0.1
"""Seconds between two looks, at least."""
ANSWER_SECONDS = 30.0

_quiet = logging.getLogger("kraft_runbook.io.kafka.leaders_moved.librdkafka")
_quiet.setLevel(logging.CRITICAL)


class LeadersMoved:
    """A context manager: it looks once at its begin, and then in a thread until none is left or its end.

    ``led``: how many partitions the broker led at the begin; None where no other broker answered. ``looks``: of each
    look since, when its answer came (``time.monotonic``) and how many of them had no other leader yet: the broker
    itself, or nobody. ``client``: makes the one that asks. ``rest``: seconds between two looks, at least.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        node: int,
        *,
        secrets: Secrets,
        client: Callable[..., Any] = AdminClient,
        rest: float = REST,
    ) -> None:
        self.led: int | None = None
        self.looks: list[tuple[float, int]] = []
        self._node, self._those = node, frozenset[tuple[str, int]]()
        others = [spec.broker_address(each) for each in spec.brokers if each.id != node]
        options: dict[str, Any] = {
            **client_security(spec.broker_security, secrets),
            "bootstrap.servers": ",".join(others),
            "client.id": "kraft-runbook-drill",
            "log_level": 0,
        }
        self._client = client(options, logger=_quiet) if others else None
        self._rest = rest
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="drill-leaders", daemon=True)

    def __enter__(self) -> LeadersMoved:
        leaders = self._leaders()
        if leaders is not None:
            self._those = frozenset(each for each, leader in leaders.items() if leader == self._node)
            self.led = len(self._those)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self.led is not None:
            self._thread.join(2 * ANSWER_SECONDS)

    def _leaders(self) -> dict[tuple[str, int], int] | None:
        """The leader of each partition, -1 for none; None where nobody answers."""
        try:
            # not "if self._client": a client without queued messages has the length 0
            topics = {} if self._client is None else self._client.list_topics(timeout=ANSWER_SECONDS).topics
        except KafkaException:
            return None
        found = {(name, n): each.leader for name, topic in topics.items() for n, each in topic.partitions.items()}
        return found or None

    def _look_on(self) -> None:
        """Until each has moved once the broker began to hand over; before that, each look shows all of them."""
        while not self._over.is_set():
            began = time.monotonic()
            leaders = self._leaders()
            now = time.monotonic()
            if leaders is not None:
                left = sum(leaders.get(each) in (self._node, -1) for each in self._those)
                self.looks.append((now, left))
                if not left:
                    return
            self._over.wait(max(self._rest, now - began))
