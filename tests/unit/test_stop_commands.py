"""Whether a unit's stop under systemd ends other nodes of its host."""

from __future__ import annotations

import pytest
from observations import SPEC, WHY, observation, on_host
from spoilt_clusters import spec_with

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.cluster.spec_parts import Reach, ServiceManager
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.host_checks import HOST_CHECKS as CHECKS

STOP = "/opt/kafka/bin/kafka-server-stop.sh"


def placed(*hosts: str) -> ClusterSpec:
    """Brokers 1 to 3 and controllers 101 to 103 on these hosts, in this order; others keep theirs."""
    nodes: list[Broker | Controller] = [*SPEC.brokers, *SPEC.controllers]
    moved = [each.model_copy(update={"host": host}) for each, host in zip(nodes, hosts, strict=False)]
    return spec_with(
        service_manager=ServiceManager(kind="systemd"),
        reach=Reach(kind="ssh"),
        brokers=tuple(moved[:3]),
        controllers=tuple(moved[3:]),
    )


TOGETHER = placed("a", "a", "b", "a", "c", "d")
"""Broker 1, broker 2 and controller 101 are on one host."""


@pytest.mark.parametrize(
    ("node", "command", "says"),
    [
        (1, STOP, f"node 1: its unit's {STOP} stops nodes 2, 101 of its host too"),
        (101, f"/bin/sh -c '{STOP}'", "stops nodes 1, 2 of its host too"),
        (1, "/usr/bin/kafka-server-stop", "stops nodes 2, 101 of its host too"),
        (1, f"{STOP} --process-role=broker", "stops node 2 of its host too"),
        (1, f"{STOP} --process-role broker", "stops nodes 2, 101 of its host too"),
        (101, f"{STOP} --process-role=controller", ""),
        (101, f"/bin/sh -c '{STOP} --process-role=controller'", ""),
        (1, f"{STOP} --node-id=1 --process-role=broker", ""),
        (1, f"{STOP} --node-id=2", "stops node 2 of its host too"),
        (1, f"{STOP} --node-id=${{NODE_ID}}", ""),
        (1, "/bin/kill -s TERM $MAINPID", ""),
        (3, STOP, ""),
        (102, STOP, ""),
    ],
)
def test_a_stop_that_ends_other_nodes_of_the_host_is_named(node: int, command: str, says: str) -> None:
    seen = on_host(node, stop_commands=("/bin/true", command))(observation(Phase.ZOOKEEPER))
    found = CHECKS["KRB-PRE-132"].run(seen, TOGETHER)
    assert (found.verdict, found.blocks) == ((Verdict.FAIL, True) if says else (Verdict.PASS, False))
    assert says in found.evidence


@pytest.mark.parametrize(
    ("stops_as", "runs_as", "ends"),
    [
        (1001, (1002, 1003), ""),
        (1001, (1001, 1003), "stops node 2 of"),
        (1001, (1002, 1001), "stops node 101 of"),
        (0, (1002, 1003), "stops nodes 2, 101 of"),
        (1001, (WHY, None), "stops nodes 2, 101 of"),
        (WHY, (1002, 1003), "stops nodes 2, 101 of"),
        (None, (1002, 1003), "stops nodes 2, 101 of"),
    ],
)
def test_a_stop_reaches_no_process_of_another_user_unless_it_runs_as_root(
    stops_as: int | Unread | None, runs_as: tuple[int | Unread | None, ...], ends: str
) -> None:
    seen = on_host(1, stop_commands=(STOP,), stops_as=stops_as, runs_as=1001)(observation(Phase.ZOOKEEPER))
    for node, whose in zip((2, 101), runs_as, strict=True):
        seen = on_host(node, runs_as=whose)(seen)
    found = CHECKS["KRB-PRE-132"].run(seen, TOGETHER)
    assert found.verdict is (Verdict.FAIL if ends else Verdict.PASS) and ends in found.evidence


@pytest.mark.parametrize(
    ("spec", "commands", "verdict", "says"),
    [
        (TOGETHER, WHY, Verdict.UNKNOWN, "node 1"),
        (placed("a", "b", "c", "d", "e", "f"), WHY, Verdict.PASS, "no host has several nodes"),
        (SPEC, None, Verdict.PASS, "not checked"),
    ],
)
def test_it_is_asked_under_systemd_where_a_host_has_several_nodes(
    spec: ClusterSpec, commands: Unread | None, verdict: Verdict, says: str
) -> None:
    found = CHECKS["KRB-PRE-132"].run(on_host(1, stop_commands=commands)(observation(Phase.ZOOKEEPER)), spec)
    assert found.verdict is verdict and says in found.evidence


@pytest.mark.parametrize(
    ("told", "ends"),
    [
        ({1: "boot 1", 101: "boot 1"}, "node 1: its unit's {} stops node 101 of its host too"),
        ({1: "boot 1", 101: "boot 2"}, ""),
        ({1: "boot 1", 101: WHY}, ""),
        ({2: "boot 1", 101: "boot 1"}, "stops nodes 2, 101 of its host too"),
    ],
)
def test_a_host_with_two_names_is_one(told: dict[int, str | Unread], ends: str) -> None:
    """Broker 2 has broker 1's name where it is told, and each other node a name of its own."""
    spec = placed("a", "a" if 2 in told else "b", "c", "d", "e", "f")
    seen = on_host(1, stop_commands=(STOP,))(observation(Phase.ZOOKEEPER))
    for node, machine in told.items():
        seen = on_host(node, machine=machine)(seen)
    found = CHECKS["KRB-PRE-132"].run(seen, spec)
    assert found.verdict is (Verdict.FAIL if ends else Verdict.PASS) and ends.format(STOP) in found.evidence


@pytest.mark.parametrize(
    ("command", "stops_as", "others", "ends"),
    [
        (STOP, 0, {7: 1001, 9: 1002}, "Kafka that is not in the cluster file (processes 7, 9) of its host too"),
        (STOP, 1001, {7: 1001, 9: 1002}, "Kafka that is not in the cluster file (process 7) of its host too"),
        (f"{STOP} --process-role=broker", 0, {7: 1001}, ""),
        ("/bin/kill $MAINPID", 0, {7: 1001}, ""),
        (STOP, 0, WHY, ""),
    ],
)
def test_kafka_of_another_cluster_on_the_host_is_stopped_too(
    command: str, stops_as: int, others: dict[int, int] | Unread, ends: str
) -> None:
    host = on_host(1, stop_commands=(command,), stops_as=stops_as, other_kafkas=others)
    seen = host(observation(Phase.ZOOKEEPER))
    found = CHECKS["KRB-PRE-132"].run(seen, placed("a", "b", "c", "d", "e", "f"))
    assert found.verdict is (Verdict.FAIL if ends else Verdict.PASS) and ends in found.evidence


def test_what_is_another_process_to_one_node_and_itself_to_the_other_is_no_other_cluster_s() -> None:
    seen = on_host(1, stop_commands=(STOP,), stops_as=1001, runs_as=1001)(observation(Phase.ZOOKEEPER))
    for node, processes in {1: {20: 1001, 7: 1001}, 2: {10: 1001, 7: 1001}}.items():
        seen = on_host(node, other_kafkas=processes)(seen)
    found = CHECKS["KRB-PRE-132"].run(seen, placed("a", "a", "b", "c", "d", "e"))
    told = "stops node 2 and Kafka that is not in the cluster file (process 7) of its host too"
    assert told in found.evidence
    seen = on_host(2, other_kafkas=WHY)(seen)
    assert "stops node 2 of its host too" in CHECKS["KRB-PRE-132"].run(seen, placed("a", "a", "b")).evidence
