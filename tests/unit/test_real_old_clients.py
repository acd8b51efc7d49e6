"""Real clients of Kafka 1.1.1 before a listener that answers as 3.9 does, and before one that closes the connection
where Kafka 4 does: they speak what the table says that Kafka 4 does not answer, and tell what they say then. Before
brokers of both they stand in ``test_upgrade_run.py``.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import scala_clients
from asked_java import ask_java
from old_consumers import JARS as JARS_1

from kraft_runbook.cluster.old_requests import FIRST_ANSWERED

TOPIC, NODE = "relics", 2
FOR_ADMINISTRATORS = {
    "AlterReplicaLogDirs",
    "CreateAcls",
    "CreateDelegationToken",
    "DeleteAcls",
    "DescribeAcls",
    "DescribeDelegationToken",
    "DescribeLogDirs",
    "ExpireDelegationToken",
    "RenewDelegationToken",
}
NAMES = {0: "Produce", 1: "Fetch", 2: "ListOffsets", 3: "Metadata"}


@dataclass
class Listener:
    """A broker's listener. ``release``: 3 answers all, 4 what ``FIRST_ANSWERED`` leaves. ``asked``: client id, API and
    version, in order; ``held``: the messages that were produced last, as they came.
    """

    release: int
    server: socket.socket
    asked: list[tuple[str, str, int]] = field(default_factory=list)
    held: bytes = b""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.getsockname()[1]}"

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return  # closed: the test has ended
            threading.Thread(target=self.serve_until_it_ends, args=(connection,), daemon=True).start()

    def serve_until_it_ends(self, connection: socket.socket) -> None:
        with contextlib.suppress(ConnectionError):
            self.serve(connection)

    def serve(self, connection: socket.socket) -> None:
        with connection:
            while len(size := connection.recv(4, socket.MSG_WAITALL)) == 4:
                request = connection.recv(*struct.unpack(">i", size), socket.MSG_WAITALL)
                key, version, correlation, length = struct.unpack(">hhih", request[:10])
                name = NAMES[key]
                self.asked.append((request[10 : 10 + length].decode(), name, version))
                if self.release == 4 and version < FIRST_ANSWERED.get(name, 0):
                    return
                if name == "Produce":
                    self.held = request[10 + length + 14 + len(_text(TOPIC)) + 8 :]
                answer = struct.pack(">i", correlation) + self.answer(name)
                connection.sendall(struct.pack(">i", len(answer)) + answer)

    def answer(self, name: str) -> bytes:
        """To what these clients ask, in the versions in which they do: one topic of one partition, led by this node."""
        partition = struct.pack(">i", 1) + _text(TOPIC) + struct.pack(">i", 1)
        if name == "Metadata":
            host, port = self.address.split(":")
            brokers = struct.pack(">ii", 1, NODE) + _text(host) + struct.pack(">i", int(port))
            replicas = struct.pack(">ii", 1, NODE)
            led = struct.pack(">ihii", 1, 0, 0, NODE) + replicas + replicas
            return brokers + struct.pack(">ih", 1, 0) + _text(TOPIC) + led
        if name == "ListOffsets":
            return partition + struct.pack(">ihiq", 0, 0, 1, 0)
        if name == "Produce":
            return partition + struct.pack(">ihqq", 0, 0, 0, -1) + struct.pack(">i", 0)
        return struct.pack(">i", 0) + partition + struct.pack(">ihqi", 0, 0, 1, len(self.held)) + self.held


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


@contextmanager
def listening(release: int) -> Iterator[Listener]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = Listener(release, server)
        threading.Thread(target=found.accept, daemon=True).start()
        yield found


def test_3_9_answers_the_scala_clients_and_kafka_4_closes_the_connection() -> None:
    with listening(3) as old:
        sent = scala_clients.produce(old.address, TOPIC, ["one"])
        assert sent.returncode == 0 and "Exception" not in sent.stderr, sent.stderr
        read = scala_clients.consume(old.address, TOPIC, 1, client_id="billing")
        assert (read.returncode, read.stdout.split()) == (0, ["one"]), read.stderr
        spoken = {(name, version) for _, name, version in old.asked}
    assert spoken == {("Metadata", 0), ("Produce", 2), ("ListOffsets", 0), ("Fetch", 3)}
    assert {client for client, name, _ in old.asked if name != "Metadata"} == {"console-producer", "billing"}
    unanswered = {name for name, version in spoken if version < FIRST_ANSWERED.get(name, 0)}
    assert unanswered == {"Produce", "ListOffsets", "Fetch"}, "the client's metadata it still gets"

    with listening(4) as new:
        sent = scala_clients.produce(new.address, TOPIC, ["one"])
        read = scala_clients.consume(new.address, TOPIC, 1, client_id="billing")
    assert sent.returncode == 1 and "java.io.EOFException" in sent.stderr
    assert "Failed to send messages after 3 tries" in sent.stderr
    assert (read.returncode, read.stdout) == (1, "") and "java.io.EOFException" in read.stderr


def test_of_the_java_clients_of_that_release_kafka_4_answers_producers_and_consumers() -> None:
    if not any(JARS_1.glob("kafka-clients-*.jar")):
        pytest.fail(f"there are no jars in {JARS_1}: make jars-old")
    told = ask_java(Path(__file__).with_name("PrintLatestVersions.java"), jars=JARS_1).splitlines()
    latest = {name: int(version) for name, version in map(str.split, told)}
    below = {name for name, version in latest.items() if version < FIRST_ANSWERED.get(name, 0)}
    assert below - {"OffsetForLeaderEpoch"} == FOR_ADMINISTRATORS, "that one only brokers asked then"
    assert {"Produce", "Fetch", "ListOffsets", "OffsetCommit", "OffsetFetch", "JoinGroup"} <= latest.keys() - below
