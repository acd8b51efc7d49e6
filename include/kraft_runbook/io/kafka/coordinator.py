"""The coordinator of a consumer group: looked for, asked, and looked for again where it moves."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from kafka.protocol.metadata import FindCoordinatorRequest

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import Refused, RunbookError, Unreachable
from kraft_runbook.io.kafka.connection import Connect, connect_to
from kraft_runbook.io.secrets import Secrets

VERSION = 3
"""FindCoordinator: the last that asks for one group."""
AGAIN_SECONDS = 0.2
NOT_AVAILABLE, NOT_AUTHORIZED = 15, 30
NOT_READY = frozenset({14, NOT_AVAILABLE, 16})
"""Error codes of one that still loads its groups, of none, and of a broker that is it no more."""


class Coordinator:
    """The coordinator of ``group``, for ``timeout`` seconds; ``apart``: seconds between two tries."""

    def __init__(
        self,
        spec: ClusterSpec,
        group: str,
        *,
        secrets: Secrets,
        timeout: float,
        apart: float = AGAIN_SECONDS,
        connect: Connect = connect_to,
    ) -> None:
        self._spec, self._group, self._apart = spec, group, apart
        self._connect = partial(connect, spec, secrets=secrets, timeout=max(1.0, min(10.0, timeout)))
        self._ends = time.monotonic() + timeout
        self._turn = 0

    def ask(self, request: Any) -> Any:
        """Its answer; None where there is no coordinator now. Raises as ``broker``."""
        broker = self.broker()
        if broker is None:
            return None
        with self._connect(broker) as connection:
            return connection.send(request)

    def broker(self) -> Broker | None:
        """Which one it is; None where there is none now. Raises Refused where this tool's identity may not look for it,
        or the cluster file does not name it; Unreachable.
        """
        node = self._find()
        if node is None:
            return None
        found = next((each for each in self._spec.brokers if each.id == node), None)
        if found is None:
            raise Refused(
                f"the coordinator of group {self._group} is broker {node}, which the cluster file does not name",
                way_out="add it to the cluster file",
            )
        return found

    def again(self) -> bool:
        """Whether there is time for another try; if so, it has waited, and the next ``ask`` begins at another broker:
        what one knows may be old.
        """
        if time.monotonic() > self._ends:
            return False
        time.sleep(self._apart)
        self._turn += 1
        return True

    def _find(self) -> int | None:
        """Of the first broker that answers."""
        brokers, question = self._spec.brokers, FindCoordinatorRequest(version=VERSION, key=self._group, key_type=0)
        start = self._turn % max(1, len(brokers))
        why: RunbookError = Refused("the cluster file names no broker", way_out="name the brokers in it")
        for broker in (*brokers[start:], *brokers[:start]):
            try:
                with self._connect(broker) as connection:
                    answer = connection.send(question)
            except Unreachable as error:
                why = error
                continue
            if answer.error_code == NOT_AUTHORIZED:
                raise Refused(
                    f"this tool's identity may not ask for the coordinator of group {self._group}",
                    way_out="grant it DESCRIBE on the group, then do this step again",
                )
            return None if answer.error_code else int(answer.node_id)
        raise why
