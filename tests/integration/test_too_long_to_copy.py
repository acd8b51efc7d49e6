"""A list that grew in ZooKeeper mode past what a record takes: nobody can read it any more, every controller ends in
the copy, and what the check says to do cures it.
"""

from __future__ import annotations

import json

import by_hand
import pytest
from kazoo.client import KazooClient
from labs import Lab

from kraft_runbook.cluster.config_changes import LONGEST_TEXT, Append
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.io.kafka.dynamic_configs import Entity, EntityKind, NotDescribed, alter_configs, read_configs
from kraft_runbook.migration.checks import CHECKS
from kraft_runbook.migration.explain import explain
from kraft_runbook.procedures.observe import Scope, observe
from kraft_runbook.procedures.throttle_replication import read_throttles, remove_throttles
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.reassignment.throttles import LEADER_LIST, UNREADABLE, Former
from kraft_runbook.runbook.check_results import Verdict
from lab.layout import layout

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

ORDERS = Entity(EntityKind.TOPIC, "orders")
ZNODE = "/config/topics/orders"
ENTRIES = [f"{number}:1" for number in range(6_000)]
SAID = "too long to be serialized"


def grow(lab: Lab) -> None:
    """Append to the list in requests of which each is short enough."""
    for part in (ENTRIES[:3_000], ENTRIES[3_000:]):
        assert len(",".join(part)) < LONGEST_TEXT
        alter_configs(lab.spec, {ORDERS: {LEADER_LIST: Append(",".join(part))}}, secrets=lab.secrets)


def told(lab: Lab) -> str:
    """What the check finds in ZooKeeper; empty where it passes."""
    seen = observe(lab.spec, secrets=lab.secrets, scope=Scope.FULL)
    result = CHECKS["KRB-PRE-060"].run(seen, lab.spec)
    return "" if result.verdict is Verdict.PASS else result.evidence


def test_what_no_record_takes_is_told_ends_the_copy_and_is_cured_at_its_znode(
    own_lab: Lab, zookeeper: KazooClient
) -> None:
    spec, secrets = own_lab.spec, own_lab.secrets
    assert told(own_lab) == ""
    grow(own_lab)
    assert f"{ZNODE} ({LEADER_LIST} has more than 32,767 bytes" in told(own_lab)
    with pytest.raises(NotDescribed):
        read_configs(spec, [ORDERS], [LEADER_LIST], secrets=secrets)
    assert read_throttles(spec, ["orders"], secrets=secrets).lists == {"orders": {LEADER_LIST: UNREADABLE}}
    ours = RunThrottles(lists={"orders": {LEADER_LIST: frozenset(ENTRIES)}})
    assert remove_throttles(spec, ours, Former({}, {}, {}), secrets=secrets) == ()
    assert told(own_lab) == ""

    grow(own_lab)
    alter_configs(spec, {ORDERS: {LEADER_LIST: None}}, secrets=secrets)
    assert told(own_lab) == ""
    by_hand.wait_until(
        "it can be read", lambda: not read_configs(spec, [ORDERS], [LEADER_LIST], secrets=secrets)[ORDERS].own
    )

    grow(own_lab)
    by_hand.provision_controllers(spec, by_hand.cluster_id(spec, secrets=secrets), secrets=secrets)
    by_hand.roll_brokers(spec, BrokerMode.HYBRID, secrets=secrets, only=(1, 2))
    by_hand.let_the_copy_fail(spec, last=(3,), secrets=secrets)
    logs = layout(spec).logs
    dead = [each for each in spec.controllers if SAID in (logs / f"{each.service}.log").read_text()]
    assert len(dead) > len(spec.controllers) // 2
    said = explain(observe(spec, secrets=secrets), spec)
    assert SAID in str(said) and "KRB-PRE-060" in str(said)
    assert ZNODE in told(own_lab)

    held = json.loads(zookeeper.get(ZNODE)[0])
    del held["config"][LEADER_LIST]
    zookeeper.set(ZNODE, json.dumps(held).encode())
    assert told(own_lab) == ""
    for controller in dead:
        by_hand.restart(controller, spec)
    by_hand.await_dual_write(spec, secrets=secrets)
