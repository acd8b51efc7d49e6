"""What counts as a node that hangs: it accepts, and what it was asked took all its time. A refusal or an error is an
answer.
"""

from __future__ import annotations

import socket
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest
from observations import SPEC

from kraft_runbook.cluster.observation import Unread
from kraft_runbook.errors import TimedOut, Unreachable
from kraft_runbook.io.kafka.connection import KafkaConnection
from kraft_runbook.io.metrics import MetricsClient
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.look_at_nodes import is_silent

LATE, REFUSED = Unread("late", timed_out=True), Unread("refused")


@pytest.mark.parametrize(
    ("running", "mode", "gauges", "silent"),
    [
        (True, LATE, LATE, True),
        (True, REFUSED, LATE, False),
        (True, LATE, REFUSED, False),
        (True, LATE, {}, False),
        (False, LATE, LATE, False),
        (LATE, LATE, LATE, False),
    ],
)
def test_both_must_have_taken_all_their_time(running: object, mode: object, gauges: object, silent: bool) -> None:
    assert is_silent(running, mode, gauges) is silent  # type: ignore[arg-type]


def test_who_accepts_and_says_nothing_is_told_from_who_refuses() -> None:
    secrets = environment_secrets({})
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        with (
            pytest.raises(TimedOut),
            KafkaConnection(
                f"127.0.0.1:{port}", "broker 1", SPEC.broker_security, secrets=secrets, timeout=0.6
            ) as connection,
        ):
            connection.send(_any_request())
        with MetricsClient(SPEC.metrics, secrets=secrets, timeout=0.3) as metrics, pytest.raises(TimedOut):
            metrics.read("127.0.0.1", port)
    with (
        pytest.raises(Unreachable) as refused,
        KafkaConnection(
            f"127.0.0.1:{port}", "broker 1", SPEC.broker_security, secrets=secrets, timeout=5
        ) as connection,
    ):
        connection.send(_any_request())
    assert not isinstance(refused.value, TimedOut)
    with MetricsClient(SPEC.metrics, secrets=secrets, timeout=5) as metrics, pytest.raises(Unreachable) as unread:
        metrics.read("127.0.0.1", port)
    assert not isinstance(unread.value, TimedOut)


def test_to_connect_is_to_know_whether_the_node_answers() -> None:
    """Whoever goes from one broker to the next until one answers asks this: a dead one must not be taken for it."""
    secrets = environment_secrets({})

    def connect(port: int) -> None:
        with KafkaConnection(
            f"127.0.0.1:{port}", "broker 1", SPEC.broker_security, secrets=secrets, timeout=0.6
        ) as connection:
            connection.connect()

    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        with pytest.raises(TimedOut):
            connect(port)
    with pytest.raises(Unreachable) as refused:
        connect(port)
    assert not isinstance(refused.value, TimedOut)


def test_an_answer_that_breaks_the_library_is_not_told_as_silence() -> None:
    """What answers is no Kafka: its ApiVersions end after the error code."""
    secrets = environment_secrets({})

    def answer(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            asked = connection.recv(4096)
            connection.sendall(struct.pack("!i", 6) + asked[8:12] + b"\0\0")
            connection.recv(4096)

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(answer, server)
        with (
            pytest.raises(Unreachable, match="answered could not be read: IndexError inside kafka-python") as unread,
            KafkaConnection(
                f"127.0.0.1:{server.getsockname()[1]}", "broker 1", SPEC.broker_security, secrets=secrets, timeout=1
            ) as connection,
        ):
            connection.send(_any_request())
    assert not isinstance(unread.value, TimedOut)


def _any_request() -> object:
    from kraft_runbook.io.kafka.metadata_quorum import _api_versions

    return _api_versions()
