"""Kafka's nodes in a test: what is sent to one is answered by a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import Any

from kraft_runbook.cluster.spec_nodes import Broker


def nodes_that(answer: Callable[[str, Any], Any]) -> Callable[..., AbstractContextManager[Any]]:
    """In the place of ``io.kafka.connection.connect_to``. ``answer``: given who is asked, as "broker 2", and what."""

    @contextmanager
    def connect(_: Any, node: Any, **__: Any) -> Iterator[Any]:
        who = f"{'broker' if isinstance(node, Broker) else 'controller'} {node.id}"
        yield SimpleNamespace(send=lambda request, **_: answer(who, request))

    return connect
