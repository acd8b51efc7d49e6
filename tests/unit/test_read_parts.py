"""What was read of a node, and why the rest was not."""

from __future__ import annotations

from dataclasses import replace

from observations import SPEC, WHY, observation

from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.runbook.read_parts import host_parts, split_read, unread_reasons


def test_values_and_reasons_keep_the_order_of_the_nodes() -> None:
    parts = {3: Unread("refused"), 1: 0, 2: None, 4: Unread("too late")}
    assert split_read("broker {}'s mode", parts) == (
        {1: 0, 2: None},
        ["broker 3's mode: refused", "broker 4's mode: too late"],
    )
    assert unread_reasons("node {}", parts) == ["node 3: refused", "node 4: too late"]


def test_hosts_that_were_not_read_give_their_reason_for_each_node() -> None:
    unread = replace(observation(Phase.ZOOKEEPER), hosts=WHY)
    assert host_parts(unread, SPEC.node_ids, "config") == dict.fromkeys(SPEC.node_ids, WHY)
    assert SPEC.node_ids == (*SPEC.broker_ids, *SPEC.controller_ids)
