"""What a server of the ensemble says that it is, and which one a reader begins with."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.servers import ask_server, leads, server_mode, spread_over

SERVERS = ("a:1", "b:1", "c:1")


def test_readers_with_other_numbers_begin_with_other_servers_and_the_leader_comes_last() -> None:
    assert [spread_over(SERVERS, number, "b:1") for number in range(3)] == [
        ["a:1", "c:1", "b:1"],
        ["c:1", "a:1", "b:1"],
        ["a:1", "c:1", "b:1"],
    ]
    assert [spread_over(SERVERS, number, None)[0] for number in range(4)] == ["a:1", "b:1", "c:1", "a:1"]


@pytest.fixture
def server() -> Iterator[Callable[[bytes | None], str]]:
    """Starts a server that gives this answer to four letters; None: never any."""
    sockets: list[socket.socket] = []

    def start(answer: bytes | None, mntr: bytes = b"mntr is not executed because it is not in the whitelist.\n") -> str:
        listening = socket.create_server(("127.0.0.1", 0))
        sockets.append(listening)

        def serve() -> None:
            for word in (b"srvr", b"mntr"):
                connection, _ = listening.accept()
                sockets.append(connection)
                assert connection.recv(4) == word
                if answer is not None:
                    connection.sendall(answer if word == b"srvr" else mntr)
                    connection.close()

        threading.Thread(target=serve, daemon=True).start()
        return f"127.0.0.1:{listening.getsockname()[1]}"

    yield start
    for each in sockets:
        each.close()


MNTR = (
    b"zk_version\t3.8.4-93, built on x\nzk_server_state\tleader\n"
    b"zk_num_alive_connections\t4\nzk_outstanding_requests\t7\n"
)


def test_a_server_that_does_not_allow_srvr_is_asked_by_mntr(server: Callable[..., str]) -> None:
    for refused in (b"srvr is not executed because it is not in the whitelist.\n", b""):
        found = ask_server(server(refused, MNTR))
        assert (found.mode, found.version, found.connections, found.outstanding) == ("leader", "3.8.4", 3, 7)
    assert ask_server(server(b"This ZooKeeper instance is not currently serving requests\n", MNTR)).serves_nobody
    assert ask_server(server(b"")).says_nothing


def test_a_server_leads_only_if_it_says_so(
    server: Callable[[bytes | None], str],
) -> None:
    assert leads(server(b"Zookeeper version: 3.8.4\nMode: leader\nNode count: 5\n"))
    assert not leads(server(b"Zookeeper version: 3.8.4\nMode: follower\nNode count: 5\n"))
    assert not leads(server(b"srvr is not executed because it is not in the whitelist.\n"))
    assert not leads(server(None), timeout=0.2)
    assert not leads("127.0.0.1:1")


@pytest.mark.parametrize(
    ("answer", "mode"),
    [
        (b"Zookeeper version: 3.8.4\nMode: leader\nNode count: 5\n", "leader"),
        (b"Zookeeper version: 3.8.4\nMode: standalone\nNode count: 5\n", "standalone"),
        (b"This ZooKeeper instance is not currently serving requests\n", None),
        (b"srvr is not executed because it is not in the whitelist.\n", None),
        (b"", None),
    ],
)
def test_a_server_serves_only_if_it_says_what_it_is(
    server: Callable[[bytes | None], str],
    answer: bytes,
    mode: str | None,
) -> None:
    assert server_mode(server(answer)) == mode


def test_a_rate_that_reads_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="reads nothing"):
        ZookeeperReader(ZooKeeper(servers=("127.0.0.1:1",)), secrets=environment_secrets({}), rate=0)
