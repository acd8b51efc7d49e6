"""Dual write can die while every metric looks healthy. It is found, named, and its cure works."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import by_hand
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from labs import Lab

from kraft_runbook.checks.liveness import dual_write_liveness
from kraft_runbook.checks.model import CheckResult, Verdict
from kraft_runbook.checks.registry import CHECKS
from kraft_runbook.clients.metadata_quorum import describe_quorum
from kraft_runbook.clients.observe import Scope, observe
from kraft_runbook.observation import BrokerMode, ZkMigrationState, was_read

TOPIC = "without-state"
PARTITIONS = 12
LOST = range(4)


def state_of(partition: int) -> str:
    return f"/brokers/topics/{TOPIC}/partitions/{partition}/state"


def liveness(lab: Lab) -> CheckResult:
    earlier = observe(lab.spec, secrets=lab.secrets)
    time.sleep(3)
    return dual_write_liveness(earlier, observe(lab.spec, secrets=lab.secrets))


def until(verdict: Verdict, look: Callable[[], CheckResult], *, within: float) -> CheckResult:
    ends = time.monotonic() + within
    while (found := look()).verdict is not verdict:
        assert time.monotonic() < ends, f"not {verdict} within {within:.0f} s but {found.verdict}: {found.evidence}"
    return found


def test_a_partition_without_its_state_znode_stops_dual_write_and_is_found_named_and_cured(own_lab: Lab, zookeeper: KazooClient) -> None:
    spec, secrets = own_lab.spec, own_lab.secrets
    admin = AdminClient({"bootstrap.servers": ",".join(spec.bootstrap_servers)})
    admin.create_topics([NewTopic(TOPIC, num_partitions=PARTITIONS, replica_assignment=[[1]] * PARTITIONS)])[TOPIC].result()
    by_hand.to_dual_write(spec, secrets=secrets)
    assert until(Verdict.PASS, lambda: liveness(own_lab), within=60)
    for partition in LOST:
        zookeeper.delete(state_of(partition))

    preflight = CHECKS["KRB-PRE-014"].run(observe(spec, secrets=secrets, scope=Scope.FULL), spec)
    assert preflight.verdict is Verdict.FAIL
    assert f"{TOPIC}-0" in preflight.evidence

    # The partitions' only leader goes and comes: their state has to be written.
    by_hand.roll_brokers(spec.model_copy(update={"brokers": spec.brokers[:1]}), BrokerMode.KRAFT, secrets=secrets)
    found = until(Verdict.FAIL, lambda: liveness(own_lab), within=60)
    assert "ZooKeeper is no longer written" in found.evidence
    assert "state" in found.fix
    seen = observe(spec, secrets=secrets)
    assert {c.metrics.zk_migration_state for c in seen.controllers.values() if was_read(c.metrics)} == {ZkMigrationState.MIGRATION}, "the metrics look healthy"

    for partition in LOST:
        zookeeper.create(state_of(partition), json.dumps({"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1]}).encode())
    by_hand.restart(spec.controller(describe_quorum(spec, secrets=secrets).leader_id), spec)
    assert until(Verdict.PASS, lambda: liveness(own_lab), within=120)
