"""The table of rights on a secured cluster: with exactly these this tool does its work, and where one is taken away it
says which, or UNKNOWN; never that all is well, and never a traceback.

This tool is a user that is no super user of the brokers. Before the copy it must be one of the controllers, which know
no ACL then; afterwards it is none there either. The tests build on each other, in this order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import by_hand
import pytest
from kazoo.client import KazooClient
from labs import Lab
from rights_asked import (
    OF_BROKERS,
    OF_CONTROLLERS,
    OLD_GROUP,
    ORDERS,
    PAYMENTS,
    Asks,
    Grants,
    Limited,
    asked_as,
    lines,
    names,
    remove_what_everybody_may,
    said,
)

from kraft_runbook.cluster.assignment import Move, TopicPartition
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.groups.operation import CHECKS as GROUP_MOVES
from kraft_runbook.io.kafka.group_commits import commit_offsets
from kraft_runbook.io.zookeeper.session import ZookeeperSession
from kraft_runbook.migration.checks import CHECKS
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.procedures.move_replicas import prefer_first_replicas, start_next_batch
from kraft_runbook.procedures.observe import Scope, observe
from kraft_runbook.procedures.see_groups import look_at_groups, scan_groups
from kraft_runbook.procedures.see_reassignment import see_reassignment
from kraft_runbook.procedures.throttle_replication import list_moves, read_throttles, remove_throttles, set_rate
from kraft_runbook.reassignment.batches import ZOOKEEPER_LIMITS
from kraft_runbook.reassignment.checks import CHECKS as MOVE_CHECKS
from kraft_runbook.reassignment.goals import Explicit, Topics
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.rights import KAFKA, Acl, acls

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400)]


def cases(questions: Mapping[str, Asks]) -> list[Any]:
    """A case for each right of each line that these questions are of."""
    return [pytest.param(name, acl, id=f"{name}: {acl}") for name, acl in lines(questions)]


ALL = [*acls(changes=True), *(each for right in KAFKA if right.seldom for each in right.needs)]


@pytest.fixture(scope="module")
def limited(secured: Lab) -> Limited:
    remove_what_everybody_may(secured)
    return Limited(secured)


@pytest.fixture(scope="module")
def grants(secured: Lab, limited: Limited) -> Grants:
    return Grants(secured)


@pytest.fixture(scope="module")
def zookeeper(secured: Lab) -> Iterator[KazooClient]:
    """As the brokers."""
    session = ZookeeperSession(secured.spec.ensemble, secrets=secured.secrets)
    session.connect()
    yield session.client
    session.close()


@pytest.fixture(scope="module")
def old_group(secured: Lab, zookeeper: KazooClient) -> str:
    """A group below /consumers that has offsets in Kafka, of one topic that ZooKeeper knows of it and of one that it
    does not.
    """
    zookeeper.create(f"/consumers/{OLD_GROUP}/offsets/{ORDERS}/0", b"1", makepath=True)
    offsets = {(ORDERS, 0): 1, (PAYMENTS, 0): 1}
    commit_offsets(secured.spec, OLD_GROUP, offsets, secrets=secured.secrets)
    return OLD_GROUP


def told(results: object) -> list[str]:
    return [f"{r.code} {r.verdict}: {r.evidence}" for r in results if r.verdict is not Verdict.PASS]  # type: ignore[attr-defined]


def test_without_any_right_nothing_is_called_well(limited: Limited, grants: Grants) -> None:
    grants.only([])
    for name, asks in OF_BROKERS.items():
        if name != "ApiVersionsRequest":
            assert said(asks, limited), name


def test_with_the_rights_that_read_every_check_of_the_start_passes(limited: Limited, grants: Grants) -> None:
    grants.only(acls(changes=False))
    for _ in range(3):  # on a busy machine a host may not answer in time, which is UNKNOWN
        seen = observe(limited.spec, secrets=limited.secrets, scope=Scope.FULL, with_hosts=True)
        results = CHECKS.run(seen, limited.spec, Phase.ZOOKEEPER, gate="start", earlier=seen).results
        if [r.code for r in results if r.verdict is Verdict.UNKNOWN] == ["KRB-PRE-130"]:
            break
    left = told(results)
    assert [each.partition(":")[0] for each in left] == ["KRB-PRE-130 UNKNOWN"], left
    assert "supervisor does not say the login" in left[0]
    seen_of_moves = see_reassignment(limited.spec, secrets=limited.secrets, tell=print)
    assert told(MOVE_CHECKS.run(seen_of_moves, limited.spec, "").results) == []


@pytest.mark.parametrize(("name", "acl"), cases(OF_BROKERS))
def test_a_right_that_a_broker_asks_for_is_missed(limited: Limited, grants: Grants, name: str, acl: Acl) -> None:
    grants.only(ALL)
    assert said(OF_BROKERS[name], limited) == ""
    grants.without(acl)
    text = said(OF_BROKERS[name], limited)
    print(f"{name} without {acl}: {text}")
    assert names(acl, text), text


def test_no_group_is_moved_while_offsets_of_a_topic_are_not_shown(
    limited: Limited, grants: Grants, old_group: str
) -> None:
    """OffsetFetch leaves such offsets out, without an error: they would be lost on a group's way back."""
    grants.only(acls(changes=False))
    (look,) = look_at_groups(limited.spec, secrets=limited.secrets, names=[old_group])
    assert dict(look.kafka.offsets) == {(ORDERS, 0): 1, (PAYMENTS, 0): 1}  # type: ignore[union-attr]
    scan = scan_groups(limited.spec, secrets=limited.secrets)
    assert [each.judged for each in scan.groups if each.name == old_group] == [True], scan
    others = [each for each in grants.held if str(each) != "Describe Topic *"]
    grants.only([*others, Acl("Describe", "Topic", ORDERS)])
    (look,) = look_at_groups(limited.spec, secrets=limited.secrets, names=[old_group])
    assert dict(look.kafka.offsets) == {(ORDERS, 0): 1}  # type: ignore[union-attr]
    found = GROUP_MOVES["KRB-PRE-100"].run(observe(limited.spec, secrets=limited.secrets), limited.spec)
    assert found.verdict is Verdict.FAIL and "not shown to this tool" in found.evidence, found


def test_with_the_rights_of_the_table_replicas_are_moved_with_a_throttle(limited: Limited, grants: Grants) -> None:
    grants.only(ALL)
    move_and_give_back(limited)


def move_and_give_back(tool: Limited) -> None:
    """The replicas of a partition are turned round, its first one leads, and all is as it was before."""
    spec, given = tool.spec, {"secrets": tool.secrets}
    partition = TopicPartition("two-replicas", 0)
    for _ in range(2):
        look = look_at_replicas(spec, **given)
        present = look.placement.present[partition]
        move = Move(partition, present, tuple(reversed(present)))
        former = read_throttles(spec, [partition.topic], **given)
        set_rate(spec, 1_000_000, **given)
        list_moves(spec, [move], **given)
        plan = make_plan(Explicit({partition: move.target}), look.placement, topics=Topics((".*",)))
        assert start_next_batch(spec, plan, look, ZOOKEEPER_LIMITS, **given)

        def moved(target: tuple[int, ...] = move.target) -> bool:
            now = look_at_replicas(spec, **given, settings=False)
            return now.placement.present[partition] == target and not now.placement.ongoing

        by_hand.wait_until("it is moved", moved)
        assert prefer_first_replicas(spec, look_at_replicas(spec, **given), [partition], **given) == {}
        assert remove_throttles(spec, RunThrottles.of([move], 1_000_000), former, **given) == ()


def test_it_gets_into_kraft_mode_and_to_the_end(limited: Limited, grants: Grants) -> None:
    """As a super user of the controllers alone."""
    grants.only(acls(changes=False))
    spec, given = limited.spec, {"secrets": limited.secrets}
    by_hand.to_dual_write(spec, **given)
    by_hand.roll_brokers(spec, BrokerMode.KRAFT, **given)
    by_hand.await_dual_write(spec, **given)
    by_hand.finalize(spec, **given)


def test_without_zookeeper_the_rights_that_read_are_enough(secured: Lab, grants: Grants) -> None:
    tool = Limited(secured, at_controllers=True)
    seen = observe(tool.spec, secrets=tool.secrets, scope=Scope.FULL, with_hosts=True)
    report = CHECKS.run(seen, tool.spec, Phase.FINALIZED)
    assert [r for r in told(report.results) if "not allowed" in r or "may not" in r] == []
    assert said(OF_BROKERS["MetadataRequest"], tool) == ""


@pytest.mark.parametrize(("name", "acl"), cases(OF_CONTROLLERS))
def test_a_right_that_a_controller_asks_for_is_missed(secured: Lab, grants: Grants, name: str, acl: Acl) -> None:
    tool = Limited(secured, at_controllers=True)
    grants.only(ALL)
    assert said(OF_CONTROLLERS[name], tool) == ""
    grants.without(acl)
    text = said(OF_CONTROLLERS[name], tool)
    print(f"{name} without {acl}: {text}")
    assert names(acl, text), text


@pytest.mark.parametrize(("name", "acl"), cases(OF_BROKERS))
def test_a_right_that_a_broker_in_kraft_mode_asks_for_is_missed(
    limited: Limited, grants: Grants, name: str, acl: Acl
) -> None:
    test_a_right_that_a_broker_asks_for_is_missed(limited, grants, name, acl)


def test_with_the_rights_of_the_table_replicas_are_moved_in_kraft_mode(secured: Lab, grants: Grants) -> None:
    grants.only(ALL)
    move_and_give_back(Limited(secured, at_controllers=True))


def test_every_line_is_asked_for() -> None:
    """But for those of a dynamic quorum, of the consumer protocol and of a rehearsal's throwaway."""
    asked = {*OF_BROKERS, *OF_CONTROLLERS, "OffsetFetchRequest", "ConsumerGroupDescribeRequest"}
    others = {"AddRaftVoterRequest", "RemoveRaftVoterRequest", "BrokerRegistrationRequest", "BrokerHeartbeatRequest"}
    assert {asked_as(each) for each in KAFKA} == asked | others
