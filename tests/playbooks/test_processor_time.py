"""The processor time of services and listeners, and when a stopped process was told to end, by a host."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from played import restart_broker
from stand_in_node import Node

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.processor_time import used_between
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.io.hosts import playbooks
from kraft_runbook.io.hosts.processor_time import read_processor_time
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.runbook.plays import Play

LISTENS = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listens", flush=True)
for _ in sys.stdin:
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
    print("worked", flush=True)
"""


@contextmanager
def listening(port: int) -> Iterator[Callable[[], str]]:
    """A process of its own, whose descendants are not this test's: Ansible's would count as the listener's. What it
    gives makes it work for 0.3 s.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", LISTENS, str(port)], stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdin and server.stdout

        def works() -> str:
            assert server.stdin and server.stdout
            print(file=server.stdin, flush=True)
            return server.stdout.readline()

        assert server.stdout.readline() == "listens\n"
        yield works


@pytest.mark.long
def test_what_runs_from_one_look_to_the_next_is_counted_and_what_does_not_says_why(node: Node) -> None:
    secrets = environment_secrets()
    restart_broker(node.spec, 1, BrokerMode.ZOOKEEPER, secrets=secrets)
    address = f"127.0.0.1:{node.ports['zookeeper']}"
    with listening(node.ports["zookeeper"]) as works:
        first = read_processor_time(node.spec)
        works()
        then = read_processor_time(node.spec)
    used = used_between(first, then, 1.0)
    assert used.by_name[f"ZooKeeper {address}"] >= 0.25
    assert set(used.by_name) == {f"ZooKeeper {address}", "broker 1"}
    assert used.unread == {"controller 101": f"{node.spec.controller(101).service} does not run"}
    began = time.time()
    stopped = playbooks.play(
        node.spec, Play("stop_node", 1, {"ends_by": "stop"}, writes_secrets=False), secrets=secrets
    )
    assert stopped.ended_at is not None and began < stopped.ended_at < time.time()
    playbooks.play(node.spec, Play("start_node", 1, {}, writes_secrets=False), secrets=secrets)
    last = read_processor_time(node.spec)
    assert last[f"ZooKeeper {address}"] == Unread(f"{address}: nothing listens there")
    assert used_between(first, last, 1.0).unread["broker 1"] == "it was restarted"
