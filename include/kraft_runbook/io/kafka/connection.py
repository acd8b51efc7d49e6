"""One connection to one broker or controller, for the requests that no Kafka client library offers as calls.

kafka-python's connection manager is used directly, and here only: its admin client can't bootstrap from a controller
listener (it asks for Metadata).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Any

from kafka import errors as kafka_errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.api_message import ApiMessage

from kraft_runbook.cluster.client_security import ClientSecurity
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.errors import TimedOut, Unreachable
from kraft_runbook.io.kafka.compiling import compile_one_at_a_time
from kraft_runbook.io.own_files import require_own_files
from kraft_runbook.io.secrets import Secrets

MAX_REPLY_BYTES = 128 * 1024 * 1024
"""kafka-python's own limit of 1 MB is less than one answer to FetchSnapshot."""

NODE = "bootstrap-0"
CLIENT_ID = "kraft-runbook"

# The library logs what it raises, and whole messages at DEBUG, which may hold credentials. Its errors are raised here,
# with their way out.
logging.getLogger("kafka.net").setLevel(logging.CRITICAL)
logging.getLogger("kafka.protocol").setLevel(logging.CRITICAL)
logging.getLogger("kafka.cluster").setLevel(logging.CRITICAL)

compile_one_at_a_time()


class _Broken(logging.Handler):
    """What broke inside the library while this thread waited, by the error's type. It is only logged there
    (``NetworkSelector._poll_once``), and the request then ends as one that nobody answered.
    """

    def __init__(self) -> None:
        super().__init__()
        self._here = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[0]:
            self._here.error = record.exc_info[0].__name__

    def taken(self) -> str | None:
        """The error since the last call."""
        error: str | None = self._here.__dict__.pop("error", None)
        return error


_broken = _Broken()
_selector = logging.getLogger("kafka.net.selector")
_selector.setLevel(logging.ERROR)
_selector.propagate = False
_selector.addHandler(_broken)


class FetchSnapshotRequest(ApiMessage, load_json="kraft_runbook.io.kafka.schemas"):  # type: ignore[misc, call-arg]
    """FetchSnapshot (api 59, KIP-630), version 0."""


class FetchSnapshotResponse(ApiMessage, load_json="kraft_runbook.io.kafka.schemas"):  # type: ignore[misc, call-arg]
    """The answer: a piece of the snapshot's bytes."""


class KafkaConnection:
    """A context manager. ``who`` names the node in errors ("controller 101 at 10.0.0.1:9093"); ``timeout``: seconds a
    request, connecting included; ``block``: what the cluster file calls ``security``.
    """

    def __init__(
        self,
        address: str,
        who: str,
        security: ClientSecurity,
        *,
        secrets: Secrets,
        timeout: float = 5.0,
        block: str = "broker_security",
    ) -> None:
        self.address = address
        self.who = f"{who} at {address}"
        self._timeout = timeout
        self._own_files = partial(require_own_files, security, block)
        milliseconds = int(timeout * 1000)
        self._net = NetworkSelector(slow_task_threshold_secs=0)
        self._manager = KafkaConnectionManager(
            self._net,
            bootstrap_servers=[address],
            client_id=CLIENT_ID,
            request_timeout_ms=milliseconds,
            socket_connection_setup_timeout_ms=milliseconds,
            receive_message_max_bytes=MAX_REPLY_BYTES,
            **_security(security, secrets),
        )

    def __enter__(self) -> KafkaConnection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._manager.close()
        self._net.close()

    def connect(self) -> None:
        """Connect now, and wait until that is done or has failed. Raises Unreachable, which names the node, or this
        tool's own file that can't be read.
        """
        self._await(self._connection(self._timeout).init_future, self._timeout)

    def _connection(self, seconds: float) -> Any:
        self._own_files()
        began = time.monotonic()
        try:
            # No refresh of metadata on errors: a controller has none to give, and the library would try for ever.
            return self._manager.get_connection(NODE, timeout_ms=int(seconds * 1000), refresh_metadata_on_err=False)
        except kafka_errors.KafkaError as error:
            late = time.monotonic() - began >= 0.9 * seconds
            raise (self.timed_out if late else self.unreachable)(_reason(error)) from None

    def send(self, request: Any, *, timeout: float | None = None) -> Any:
        """The answer to one request. Raises Unreachable, which names the node, when there is none in time."""
        seconds = timeout or self._timeout
        connection = self._connection(seconds)
        return self._await(connection.send_request(request, request_timeout_ms=int(seconds * 1000)), seconds)

    def _await(self, future: Any, seconds: float) -> Any:
        _broken.taken()
        self._net.poll(timeout_ms=int(seconds * 1000), future=future)
        broken = _broken.taken()
        if broken and not (future.is_done and future.succeeded()):
            what = f"what {self.who} answered could not be read: {broken} inside kafka-python"
            raise Unreachable(what, way_out=_UNREAD)
        if not future.is_done:
            raise self.timed_out(f"no answer in {seconds:g} s")
        if future.failed():
            late = isinstance(future.exception, (kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError))
            raise (self.timed_out if late else self.unreachable)(_reason(future.exception)) from None
        return future.value

    def unreachable(self, why: str) -> Unreachable:
        return Unreachable(f"{self.who} did not answer: {why}", way_out=_WAY_OUT)

    def timed_out(self, why: str) -> TimedOut:
        return TimedOut(f"{self.who} did not answer: {why}", way_out=_WAY_OUT)


def connect_to(
    spec: ClusterSpec, node: Broker | Controller, *, secrets: Secrets, timeout: float = 5.0
) -> KafkaConnection:
    """To the node's listener of the cluster file. ``timeout``: seconds a request, connecting included."""
    if isinstance(node, Broker):
        address, security = spec.broker_address(node), spec.broker_security
        return KafkaConnection(address, f"broker {node.id}", security, secrets=secrets, timeout=timeout)
    security = spec.controller_security
    return KafkaConnection(
        node.address,
        f"controller {node.id}",
        security,
        secrets=secrets,
        timeout=timeout,
        block="controller_security",
    )


Connect = Callable[..., AbstractContextManager[KafkaConnection]]
"""As ``connect_to`` is called: who asks Kafka's nodes takes how they are reached."""

_WAY_OUT = (
    "check that it runs, that its address and listener in the cluster file are right, and that this tool's identity may"
    " use it"
)


_UNREAD = "check that a node of Kafka listens there, with this protocol; look again, and report it if it stays"


def _reason(error: BaseException) -> str:
    if isinstance(error, kafka_errors.NodeNotReadyError):
        return "the connection was refused or lost"
    name = type(error).__name__
    return f"{name}: {str(error).removeprefix(f'{name}: ')}"


def _security(security: ClientSecurity, secrets: Secrets) -> dict[str, Any]:
    options: dict[str, Any] = {"security_protocol": security.protocol.value}
    if security.protocol.is_tls:
        options |= {
            "ssl_cafile": security.ca_file,
            "ssl_certfile": security.certificate_file,
            "ssl_keyfile": security.key_file,
        }
        if security.key_password:
            options["ssl_password"] = secrets(security.key_password)
    if security.sasl_mechanism and security.password:
        options |= {
            "sasl_mechanism": security.sasl_mechanism.value,
            "sasl_plain_username": security.username,
            "sasl_plain_password": secrets(security.password),
        }
    return options
