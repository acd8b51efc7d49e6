"""Every controller died in the copy, on a real cluster: the logs on the hosts prove that nothing was committed, and a
broker is elected again.
"""

from __future__ import annotations

import json

import by_hand
import pytest
from kazoo.client import KazooClient
from labs import Lab

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.migration.explain import explain
from kraft_runbook.migration.leaving import fence_plan
from kraft_runbook.migration.never_copied import may_have_died_in_the_copy, why_not_proven
from kraft_runbook.migration.way_back import DIED_IN_THE_COPY
from kraft_runbook.procedures.leave_kraft import leave_kraft
from kraft_runbook.procedures.observe import observe
from kraft_runbook.procedures.quorum_logs import read_logs


@pytest.mark.long
def test_the_office_is_given_back_and_a_broker_is_elected(own_lab: Lab, zookeeper: KazooClient) -> None:
    spec, secrets = own_lab.spec, own_lab.secrets
    by_hand.provision_controllers(spec, by_hand.cluster_id(spec, secrets=secrets), secrets=secrets)
    by_hand.roll_brokers(spec, BrokerMode.HYBRID, secrets=secrets, only=(1, 2))
    by_hand.die_in_the_copy(spec, zookeeper, last=(3,), secrets=secrets)

    seen = observe(spec, secrets=secrets)
    assert json.loads(zookeeper.get("/controller")[0])["kraftControllerEpoch"] >= 0
    assert json.loads(zookeeper.get("/migration")[0])["kraft_metadata_offset"] == -1
    assert may_have_died_in_the_copy(seen)
    assert explain(seen, spec).rollback.steps == DIED_IN_THE_COPY

    logs = read_logs(spec, stop=True, secrets=environment_secrets(), tell=print)
    assert [log.states for log in logs] == [frozenset({2})] * 3, logs
    assert any(log.open_since is not None for log in logs)
    assert why_not_proven(logs, spec.controller_ids) is None

    left = leave_kraft(spec, fence_plan(observe(spec, secrets=secrets)), proven_since=None, secrets=secrets, tell=print)
    assert set(left.deleted) == {"/controller", "/migration"}
    assert len(left.logs_read) == 3
    assert left.controller in spec.broker_ids
    assert detect_phase(observe(spec, secrets=secrets)).phase is Phase.ZOOKEEPER
