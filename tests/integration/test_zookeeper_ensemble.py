"""A lab whose ZooKeeper is an ensemble: three servers begin with one kept state, and two outlive their leader."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import by_hand
import kept_states
import pytest
from kazoo.client import KazooClient
from labs import Lab, zookeeper_leader

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.io.local import supervision
from kraft_runbook.io.zookeeper.servers import server_mode
from lab import lifecycle
from lab.layout import ZOOKEEPER, ZookeeperServer, layout, starts, zookeeper_servers

SERVERS = (f"{ZOOKEEPER}-1", f"{ZOOKEEPER}-2", f"{ZOOKEEPER}-3")


@pytest.fixture(scope="module")
def own_lab() -> Iterator[Lab]:
    with kept_states.lab_in(Phase.ZOOKEEPER, only=SERVERS, ensemble=True) as lab:
        yield lab


@contextmanager
def client_of(server: ZookeeperServer) -> Iterator[KazooClient]:
    """A session with this very server, which has caught up with the leader."""
    client = KazooClient(server.address)
    client.start(30)
    try:
        client.sync("/")
        yield client
    finally:
        client.stop()
        client.close()


def topics(server: ZookeeperServer) -> dict[str, bytes]:
    """Each topic's assignment, as this server has it."""
    with client_of(server) as client:
        return {name: client.get(f"/brokers/topics/{name}")[0] for name in client.get_children("/brokers/topics")}


def test_each_server_has_what_was_kept_and_two_serve_on_when_their_leader_is_killed(own_lab: Lab) -> None:
    spec, here = own_lab.spec, layout(own_lab.spec)
    servers = zookeeper_servers(spec)
    assert {name for name, process in supervision.processes(here).items() if process.runs} == set(SERVERS)
    assert sorted(str(server_mode(server.address)) for server in servers) == ["follower", "follower", "leader"]
    kept = topics(servers[0])
    assert {"orders", "replica-order", "customers"} <= set(kept)
    assert [topics(server) == kept for server in servers] == [True] * 3

    led = zookeeper_leader(spec)
    assert led is not None
    os.kill(supervision.processes(here)[led.service].pid, signal.SIGKILL)
    others = [server for server in servers if server != led]
    by_hand.wait_until("another server leads", lambda: zookeeper_leader(spec) in others, within=60)
    by_hand.wait_until("both serve", lambda: all(server_mode(server.address) for server in others), within=60)
    assert [topics(server) == kept for server in others] == [True] * 2
    with client_of(others[0]) as client:
        client.create("/brokers/topics/while-it-was-down", b"{}")

    lifecycle.up(spec, only=[led.service])
    assert server_mode(led.address) == "follower"
    assert topics(led) == {**kept, "while-it-was-down": b"{}"}
    assert starts(spec) == {**dict.fromkeys(starts(spec), 0), **dict.fromkeys(SERVERS, 1), led.service: 2}
