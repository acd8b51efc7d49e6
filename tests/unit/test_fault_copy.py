"""What the fault matrix says of Kafka's copy is in the log's bytes, and its proxy is slow for those alone that it is to
be slow for.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from fault_copy_log import CopyLog, copy_log
from fault_proxy import Proxy
from metadata_encoding import log, record, topic

from kraft_runbook.metadata.log.frames import records
from kraft_runbook.metadata.log.record_schemas import RecordType

BEGIN, BOOTSTRAP = (record(RecordType.BEGIN_TRANSACTION, name=name) for name in ("ZK Migration", "Bootstrap records"))
END, ABORT = (record(kind) for kind in (RecordType.END_TRANSACTION, RecordType.ABORT_TRANSACTION))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), CopyLog((), 0, -1)),
        ((topic(),), CopyLog((), 0, 0)),
        ((topic(), BEGIN, topic(), topic()), CopyLog(("begin",), 2, 3)),
        ((BOOTSTRAP, topic(), topic()), CopyLog((), 0, 2)),
        ((BOOTSTRAP, topic(), END, BEGIN, topic()), CopyLog(("begin",), 1, 4)),
        ((BEGIN, topic(), END, topic()), CopyLog(("begin", "end"), 0, 3)),
        ((BEGIN, topic(), ABORT, BEGIN, topic(), topic(), END), CopyLog(("begin", "abort", "begin", "end"), 0, 6)),
    ],
)
def test_a_copy_that_was_redone_or_is_not_over_is_told_from_one_that_went_through(
    values: tuple[bytes, ...], expected: CopyLog
) -> None:
    assert copy_log(records(log(*values))) == expected


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    """A server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    while data := client.recv(1024):
                        client.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()


def test_the_proxy_is_slow_for_the_processes_named_until_it_is_mended(echo: tuple[str, int]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
    proxy = Proxy({address: echo})

    def answer_takes() -> float:
        began = time.monotonic()
        with socket.create_connection(address, timeout=10) as client:
            client.sendall(b"ping")
            assert client.recv(1024) == b"ping"
        return time.monotonic() - began

    try:
        proxy.slow([os.getpid()], 1.0)
        assert answer_takes() >= 1.0
        proxy.slow([1], 30.0)
        answer_takes()  # in time, or the socket's own time-out raises
        proxy.slow([os.getpid()], 30.0)
        proxy.mend()
        answer_takes()
    finally:
        proxy.close()


def test_one_proxy_stands_before_several_servers_and_each_connection_reaches_its_own() -> None:
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    free = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    addresses = [each.getsockname() for each in free]
    for each in free:
        each.close()
    proxy = Proxy(dict(zip(addresses, (each.getsockname() for each in servers), strict=True)))
    try:
        for number, (address, behind) in enumerate(zip(addresses, servers, strict=True)):
            behind.settimeout(10)
            with socket.create_connection(address, timeout=10) as client:
                reached, _ = behind.accept()
                with reached:
                    reached.sendall(b"%d" % number)
                    assert client.recv(1024) == b"%d" % number
    finally:
        proxy.close()
        for each in servers:
            each.close()
