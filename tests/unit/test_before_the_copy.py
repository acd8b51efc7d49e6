"""What is asked again before the restart that lets the metadata copy begin."""

from __future__ import annotations

from typing import Any

import pytest
from feature_looks import all_registered
from observations import SPEC, WHY, Spoil, both, broker, observation, on_host, part, tree
from recording import RecordingCluster
from test_owners_of_znodes import WITH_ACLS, with_properties

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, Unread
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.replica_directories import IdsApart, ReplicasCompared, WithoutId
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.procedures.observe_features import observe_features
from kraft_runbook.steps.forward import TO_HYBRID
from kraft_runbook.steps.node_step import Look

APART = ReplicasCompared(132, apart=(IdsApart("orders", "new", {"old": (1, 2)}),), apart_count=1)
WITHOUT_ID = ReplicasCompared(132, without_id=(WithoutId(2, "/d/gone-0", assigned=False),), without_id_count=1)


def in_hybrid(*brokers: int, phase: Phase = Phase.PRE_MIGRATION) -> ClusterObservation:
    return both(*(broker(i, mode=BrokerMode.HYBRID) for i in brokers))(observation(phase))


def guard(
    seen: ClusterObservation, found: ReplicasCompared | Unread, node: int = 3, spec: ClusterSpec = SPEC
) -> list[dict[str, Any]]:
    """The deep looks that the step's guard took; each finds ``found`` on the disks."""
    cluster = RecordingCluster(part(replicas=found)(seen), spec=spec, answers={observe_features: all_registered()})
    TO_HYBRID.guard(Look(cluster, node, seen, detect_phase(seen)))
    return cluster.looks


@pytest.mark.parametrize(
    ("found", "code", "way_out"),
    [
        (APART, "KRB-PRE-084", "give each named topic in ZooKeeper the id"),
        (WITHOUT_ID, "KRB-PRE-085", "move it out of the log directory"),
        (Unread("no SSH"), "KRB-PRE-084", "make the named parts readable"),
    ],
)
def test_the_last_broker_is_not_restarted_where_a_topic_was_made_anew_since_the_gate(
    found: ReplicasCompared | Unread, code: str, way_out: str
) -> None:
    with pytest.raises(Refused, match=code) as refused:
        guard(in_hybrid(1, 2), found)
    assert way_out in refused.value.way_out
    assert refused.value.way_out.endswith("Broker 3 was not restarted: then clear this task")


def test_where_every_id_is_right_the_last_broker_goes_after_one_look_with_the_hosts() -> None:
    (how,) = guard(in_hybrid(1, 2), ReplicasCompared(132))
    assert how["with_hosts"] is True


@pytest.mark.parametrize(
    ("seen", "node"), [(in_hybrid(1), 2), (in_hybrid(1, 2, phase=Phase.HYBRID), 3)], ids=["not the last", "copied"]
)
def test_no_other_restart_waits_for_the_hosts(seen: ClusterObservation, node: int) -> None:
    assert guard(seen, APART, node) == []


# -- before the first broker -------------------------------------------------------------------------------------------

BY_LOGIN = ("org.apache.zookeeper.server.auth.DigestLoginModule",)
BROKERS_LOG_IN = both(tree(znode_acl_restricted=True), *(on_host(i, zookeeper_login=BY_LOGIN) for i in SPEC.broker_ids))


def controllers(login: Any) -> Spoil:
    return both(*(on_host(i, zookeeper_login=login) for i in SPEC.controller_ids))


@pytest.mark.parametrize(
    ("login", "said"),
    [
        ((), "FAIL. controllers 101, 102, 103 have no login for ZooKeeper"),
        (WHY, "UNKNOWN. controller 101: a test did not read it"),
        (None, "UNKNOWN. supervisor does not say the login of controllers 101, 102, 103"),
    ],
)
def test_no_broker_enters_migration_mode_before_controllers_that_are_nobody_at_zookeeper(login: Any, said: str) -> None:
    """Under supervisor too: a controller's process tells what its unit could not."""
    with pytest.raises(Refused, match=said) as refused:
        guard(controllers(login)(BROKERS_LOG_IN(in_hybrid())), ReplicasCompared(132), node=1)
    assert "KRB-PRE-130" in refused.value.problem
    assert refused.value.way_out.endswith("restart the controllers one after the other, and clear this task")


@pytest.mark.parametrize(
    ("spoil", "looks"),
    [
        (both(BROKERS_LOG_IN, controllers(BY_LOGIN)), 2),
        (both(BROKERS_LOG_IN, tree(znode_acl_restricted=False)), 2),
        (tree(znode_acl_restricted=True), 1),
    ],
    ids=["they log in", "znodes are open", "no broker logs in"],
)
def test_the_first_broker_goes_where_controllers_are_somebody_or_need_not_be(spoil: Spoil, looks: int) -> None:
    assert len(guard(spoil(in_hybrid()), ReplicasCompared(132), node=1)) == looks


def test_znodes_that_are_yet_to_get_acls_count_as_those_that_have_them() -> None:
    """Brokers with zookeeper.set.acl give what they make an ACL; the znodes that are looked at may be older."""
    spec = with_properties(WITH_ACLS)
    open_now = both(BROKERS_LOG_IN, tree(znode_acl_restricted=False))
    with pytest.raises(Refused, match="KRB-PRE-130"):
        guard(both(open_now, controllers(()))(in_hybrid()), ReplicasCompared(132), node=1, spec=spec)
    assert len(guard(both(open_now, controllers(BY_LOGIN))(in_hybrid()), ReplicasCompared(132), 1, spec)) == 2


def test_once_a_broker_is_in_migration_mode_nobody_asks_for_logins() -> None:
    assert guard(controllers(())(BROKERS_LOG_IN(in_hybrid(1))), ReplicasCompared(132), node=2) == []
