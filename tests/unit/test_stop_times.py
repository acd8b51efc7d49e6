"""Whether the service manager gives each node the time that a clean stop may take."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from xmlrpc.server import SimpleXMLRPCServer

import pytest
from feature_looks import host_module
from observations import SPEC, observation, on_host
from spoilt_clusters import spec_with

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import ServiceManager
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.host_checks import HOST_CHECKS as CHECKS

for needed in ("kafka_host", "properties_text", "environment_files"):
    host_module(needed)
manager = host_module("service_manager")
UNDER_SYSTEMD = spec_with(service_manager=ServiceManager(kind="systemd", stop_timeout=330))


@pytest.mark.parametrize(("spec", "kind"), [(UNDER_SYSTEMD, "systemd"), (SPEC, "supervisor")])
@pytest.mark.parametrize(
    ("seconds", "verdict", "says"),
    [
        (330.0, Verdict.PASS, "330 s or more on each"),
        (None, Verdict.PASS, ""),
        (10.0, Verdict.FAIL, "node 2: {} kills after 10 s, and a stop may take 330 s"),
    ],
)
def test_a_node_that_is_killed_too_early_is_named(
    spec: ClusterSpec, kind: str, seconds: float | None, verdict: Verdict, says: str
) -> None:
    found = CHECKS["KRB-PRE-126"].run(on_host(2, stop_seconds=seconds)(observation(Phase.ZOOKEEPER)), spec)
    assert found.verdict is verdict and says.format(kind) in found.evidence and not found.blocks


def program(name: str, group: str = "", **more: object) -> dict[str, object]:
    return {"name": name, "group": group or name, **more}


@contextmanager
def supervisor(name: str, *programs: dict[str, object], fails: Exception | None = None) -> Iterator[Any]:
    """A program under a supervisord that tells of these; of none: it has not the method."""

    def told() -> list[dict[str, object]]:
        if fails:
            raise fails
        return list(programs)

    with SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False) as server:
        if programs or fails:
            server.register_function(told, "supervisor.getAllConfigInfo")
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield manager.service_manager("supervisor", name, f"http://127.0.0.1:{server.server_address[1]}", 5)
        finally:
            server.shutdown()


KAFKA = program("kafka", stopwaitsecs=10, uid=65534)
ONE_OF_A_GROUP = program("kafka", "all", stopwaitsecs=330, uid="none")
AS_ROOT = program("root", stopwaitsecs=330, uid=0, command="gosu kafka kafka-server-start.sh")


@pytest.mark.parametrize(
    ("name", "seconds", "user"),
    [("kafka", 10, ("65534", "")), ("kafka:kafka", 10, ("65534", "")), ("all:kafka", 330, None), ("root", 330, None)],
)
def test_supervisor_tells_of_the_program_by_its_group_and_name(
    name: str, seconds: float, user: tuple[str, str] | None
) -> None:
    with supervisor(name, ONE_OF_A_GROUP, KAFKA, AS_ROOT) as service:
        assert (service.stop_seconds(), service.user()) == (seconds, user)


@pytest.mark.parametrize("programs", [(), (program("kafka"),), (program("other", stopwaitsecs=10, uid=0),)])
def test_what_a_supervisor_does_not_tell_is_not_known(programs: tuple[dict[str, object], ...]) -> None:
    with supervisor("kafka", *programs) as service:
        assert service.user() is None
        with pytest.raises(manager.HostError, match=r"does not tell stopwaitsecs of kafka"):
            service.stop_seconds()


@pytest.mark.parametrize("ask", [lambda service: service.user(), lambda service: service.stop_seconds()])
def test_a_supervisor_that_refuses_is_named(ask: Callable[[Any], object]) -> None:
    refusal = manager.xmlrpc.client.Fault(6, "SHUTDOWN_STATE")
    with supervisor("kafka", fails=refusal) as service, pytest.raises(manager.HostError, match="SHUTDOWN_STATE"):
        ask(service)
