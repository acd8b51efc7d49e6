"""Which brokers lost a thread to their controller, by the names that Linux keeps of their threads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from observations import SPEC, observation

from kraft_runbook.cluster.observation import Unread, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.controller_threads import cut_off, dead_threads


@pytest.mark.parametrize(
    ("broker_id", "threads", "missing"),
    [
        (3, ["zk-broker-3-lif", "zk-broker-3-to-", "zk-broker-3-to-", "zk-broker-3-to-"], 0),
        (3, ["zk-broker-3-lif", "zk-broker-3-to-", "zk-broker-3-to-"], 1),
        (12, ["zk-broker-12-li", "zk-broker-12-to"], 2),
        (1001, ["zk-broker-1001-"] * 4, 0),
        (1001, ["zk-broker-1001-"] * 3, 1),
        (123456, ["zk-broker-12345"] * 4, 0),
        (3, [], 4),
        (3, ["zk-brok..anager"] * 3 + ["zk-brok..andler"], 0),
        (3, ["zk-brok..anager"] * 2 + ["zk-brok..andler"], 1),
    ],
)
def test_missing_threads_are_counted_however_long_the_id(broker_id: int, threads: list[str], missing: int) -> None:
    assert dead_threads(broker_id, threads) == missing


def test_only_running_brokers_in_migration_mode_can_be_cut_off() -> None:
    hybrid = observation(Phase.HYBRID)
    assert cut_off(hybrid, hybrid.hosts) == {}
    assert cut_off(hybrid, {}) == {i: Unread(f"node {i}'s host was not examined") for i in SPEC.broker_ids}
    assert was_read(hybrid.hosts)
    nameless = {i: replace(host, controller_threads=()) for i, host in hybrid.hosts.items()}
    assert cut_off(hybrid, nameless)[1] == Unread("its host shows none of its threads by name")
    zookeeper = observation(Phase.ZOOKEEPER)
    assert cut_off(zookeeper, zookeeper.hosts) == {}
