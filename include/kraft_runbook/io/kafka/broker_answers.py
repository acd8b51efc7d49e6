"""Asking a broker until its response is right, over connections that may break."""

from __future__ import annotations

import time
from collections.abc import Callable

from kafka.protocol.metadata import MetadataRequest

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.connection import Connect, KafkaConnection, connect_to
from kraft_runbook.io.secrets import Secrets

POLL = 0.1

Question = Callable[[KafkaConnection], str | None]
"""Asks once. None if the response is right, else what is wrong with it. Raises Unreachable."""


def named_controller(connection: KafkaConnection) -> int:
    """The controller that a Metadata answer names. Raises Unreachable."""
    return int(connection.send(MetadataRequest(version=8, topics=[])).controller_id)


def ask_until(
    spec: ClusterSpec,
    broker: Broker,
    question: Question,
    *,
    secrets: Secrets,
    deadline: float,
    apart: float = POLL,
    connect: Connect = connect_to,
) -> str | None:
    """None once the response was right; else, after ``deadline`` (by ``time.monotonic``), what was wrong last. It asks
    at least once, every ``apart`` seconds.
    """
    while True:
        try:
            with connect(spec, broker, secrets=secrets) as connection:
                while problem := question(connection):
                    if time.monotonic() > deadline:
                        return problem
                    time.sleep(apart)
                return None
        except Unreachable as error:
            problem = error.problem
        if time.monotonic() > deadline:
            return problem
        time.sleep(POLL)
