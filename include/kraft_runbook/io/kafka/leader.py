"""A connection to the controller that leads, wherever it is: for what only brokers ask of it (registrations,
heartbeats).
"""

from __future__ import annotations

import time
from typing import Any

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed, Unreachable
from kraft_runbook.io.kafka.connection import KafkaConnection
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.io.secrets import Secrets

NOT_CONTROLLER = 41
PASSING = {NOT_CONTROLLER: "it is not the controller", 7: "it had no time (REQUEST_TIMED_OUT)"}
"""Error codes that another try may not meet."""
PATIENCE = 300.0
"""Seconds: a controller with millions of partitions may be busy with one event, or with its heap, for long."""
A_REQUEST = 30.0


class Leader:
    """A connection to whichever controller leads; it is looked for again when it says that it does not, or says
    nothing, or had no time.
    """

    def __init__(self, spec: ClusterSpec, secrets: Secrets) -> None:
        self._spec, self._secrets = spec, secrets
        self._connection: KafkaConnection | None = None

    def send(self, request: Any, *, within: float = PATIENCE) -> Any:
        """The answer of the leader. Raises StepFailed when no controller led for so many seconds."""
        deadline = time.monotonic() + within
        while True:
            try:
                answer = self._connected().send(request)
                code = getattr(answer, "error_code", 0)
                if code not in PASSING:
                    return answer
                problem = PASSING[code]
            except Unreachable as error:
                problem = error.problem
            self.close()
            if time.monotonic() > deadline:
                raise StepFailed(
                    f"no controller took the request for {within:g} s: {problem}", way_out="read the controllers' logs"
                )
            time.sleep(0.2)

    def _connected(self) -> KafkaConnection:
        if self._connection is None:
            controller = self._spec.controller(describe_quorum(self._spec, secrets=self._secrets).leader_id)
            self._connection = KafkaConnection(
                controller.address,
                f"controller {controller.id}",
                self._spec.controller_security,
                secrets=self._secrets,
                timeout=A_REQUEST,
                block="controller_security",
            )
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.__exit__(None, None, None)
            self._connection = None
