"""Delegation tokens that were left behind, on real servers: what nodes without a key make of them (KRB-PRE-141)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import by_hand
import pytest
from kazoo.client import KazooClient
from labs import Lab

from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.token_key import SECRET_KEY
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.migration.checks import CHECKS, CheckResult, Verdict
from kraft_runbook.migration.checks.liveness import dual_write_liveness
from kraft_runbook.migration.checks.tokens import TOKENS
from kraft_runbook.procedures.observe import Scope, observe
from lab.seed.security import create_delegation_tokens

pytestmark = pytest.mark.long
EXPIRED = f"{TOKENS}/expired"
TOKEN = {
    "version": 3,
    "owner": "User%3Aalice",
    "tokenRequester": "User%3Aalice",
    "renewers": [],
    "issueTimestamp": 1,
    "maxTimestamp": 2,
    "expiryTimestamp": 2,
    "tokenId": "expired",
}
OFTEN = {"delegation.token.expiry.check.interval.ms": "3000"}


@pytest.fixture(scope="module")
def without(own_lab: Lab) -> ClusterSpec:
    """The lab's file without a key for tokens."""
    secrets = {key: ref for key, ref in own_lab.spec.secrets.items() if key != SECRET_KEY}
    return own_lab.spec.model_copy(update={"secrets": secrets})


@pytest.fixture(scope="module")
def zookeeper(own_lab: Lab) -> Iterator[KazooClient]:
    with by_hand.zookeeper_of(own_lab.spec) as client:
        yield client


def look(lab: Lab, spec: ClusterSpec) -> ClusterObservation:
    return observe(spec, secrets=lab.secrets, scope=Scope.FULL, with_hosts=True)


def answer(code: str, lab: Lab, spec: ClusterSpec) -> CheckResult:
    return CHECKS[code].run(look(lab, spec), spec)


def errors_of_brokers(lab: Lab) -> dict[int, int]:
    seen = observe(lab.spec, secrets=lab.secrets)
    return {b.id: b.metrics.metadata_errors or 0 for b in seen.brokers.values() if was_read(b.metrics)}


def test_nodes_without_a_key_count_errors_and_go_on_until_they_have_one(
    own_lab: Lab, without: ClusterSpec, zookeeper: KazooClient
) -> None:
    spec, secrets = own_lab.spec, own_lab.secrets
    for broker in without.brokers:
        by_hand.write(broker, broker_properties(without, broker, BrokerMode.ZOOKEEPER))
        by_hand.restart(broker, without)
    zookeeper.create(EXPIRED, json.dumps(TOKEN).encode())
    before = answer("KRB-PRE-141", own_lab, without)
    assert before.blocks and before.evidence.startswith("ZooKeeper holds 4 delegation tokens"), before

    by_hand.to_dual_write(without, secrets=secrets)
    seen = observe(without, secrets=secrets)
    assert all(each.running for each in seen.controllers.values()), "none of them ends"
    by_hand.wait_until("each counts it", lambda: counted(own_lab, without) == {101: 1, 102: 1, 103: 1}, within=30)
    assert CHECKS["KRB-GATE-010"].run(observe(without, secrets=secrets), without).verdict is Verdict.FAIL

    by_hand.roll_brokers(without, BrokerMode.KRAFT, secrets=secrets, only=(1,))
    by_hand.wait_until("the broker counts one at each change", lambda: errors_of_brokers(own_lab)[1] > 9, within=60)
    told = answer("KRB-PRE-141", own_lab, without).evidence
    of_today = "none in the file of today"
    assert told.endswith(f"; controllers 101, 102, 103 have {of_today}; broker 1 has {of_today}"), told

    for controller in spec.controllers:
        by_hand.write(controller, controller_properties(spec, controller, ControllerMode.MIGRATION) | OFTEN)
        by_hand.restart(controller, spec)
    by_hand.write(spec.broker(1), broker_properties(spec, spec.broker(1), BrokerMode.KRAFT))
    by_hand.restart(spec.broker(1), spec)
    by_hand.wait_until("the expired one is removed", lambda: not zookeeper.exists(EXPIRED), within=60)
    assert len(zookeeper.get_children(TOKENS)) == 3
    by_hand.wait_until("no errors are left", lambda: not any(counted(own_lab, spec).values()), within=60)
    by_hand.wait_until("broker 1 answers", lambda: errors_of_brokers(own_lab).get(1) == 0, within=60)
    assert answer("KRB-PRE-141", own_lab, spec).evidence == "it holds 3 delegation tokens, and all have one"


def counted(lab: Lab, spec: ClusterSpec) -> dict[int, int | None]:
    """The metadata errors that the controllers count."""
    seen = observe(spec, secrets=lab.secrets)
    return {c.id: c.metrics.metadata_error_count if was_read(c.metrics) else -1 for c in seen.controllers.values()}


def test_without_the_znode_above_them_no_further_controller_takes_up_dual_write(
    own_lab: Lab, zookeeper: KazooClient
) -> None:
    spec, secrets = own_lab.spec, own_lab.secrets
    by_hand.roll_brokers(spec, BrokerMode.KRAFT, secrets=secrets, only=(2, 3))
    zookeeper.delete(TOKENS, recursive=True)
    told = answer("KRB-PRE-141", own_lab, spec)
    assert told.blocks and told.evidence.startswith(f"controllers have a key for tokens, and {TOKENS} is not there")

    (own_lab.directory / "delegation-tokens-made").unlink()
    create_delegation_tokens(spec)
    led = describe_quorum(spec, secrets=secrets).leader_id
    by_hand.restart(spec.controller(led), spec)
    by_hand.wait_until("another leads", lambda: describe_quorum(spec, secrets=secrets).leader_id != led, within=60)
    time.sleep(15)  # it claims the role, and begins its sync
    earlier = observe(spec, secrets=secrets)
    time.sleep(6)
    stopped = dual_write_liveness(earlier, observe(spec, secrets=secrets))
    assert stopped.verdict is Verdict.FAIL, stopped

    zookeeper.create(TOKENS)  # as the check says
    by_hand.wait_until("they are written", lambda: len(zookeeper.get_children(TOKENS)) >= 3, within=120)
    assert answer("KRB-PRE-141", own_lab, spec).passed
