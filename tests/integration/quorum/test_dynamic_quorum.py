"""A migrated quorum on Kafka 4 becomes a dynamic one (KIP-853), and its controllers are replaced, removed and added,
under a workload.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import by_hand
import on_kafka4
import pytest
from kept_journal import Kept
from labs import Lab
from recording import run_on
from stage import no_acknowledged_record_is_lost
from test_drill import Changed, with_spec

from kraft_runbook.cluster.feature_levels import KRAFT_VERSION
from kraft_runbook.cluster.node_properties import kraft_properties
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.quorum_seen import QuorumState
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import QuorumKind
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Checked
from kraft_runbook.quorum.care import CHECKS, WARM
from kraft_runbook.quorum.care_rules import Care, CareForm, whom
from kraft_runbook.restart.checks import CHECKS as RESTART_CHECKS
from kraft_runbook.restart.plays import restart_node
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.plays import Play
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.quorum_care import take_care

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
EVERY_NODE = (101, 102, 103, 1, 2, 3)


@pytest.fixture(scope="module")
def lab() -> Iterator[Changed]:
    with on_kafka4.finalized_lab(on_new=EVERY_NODE) as found:
        yield with_spec(found, zookeeper=None, quorum=QuorumKind.DYNAMIC)


def cluster_of(lab: Lab, spec: ClusterSpec | None = None) -> Cluster:
    return Cluster(spec or lab.spec, lab.secrets, print)


def quorum(lab: Lab) -> QuorumState:
    found = cluster_of(lab).settled().quorum
    assert was_read(found), found.reason
    return found


def directories(lab: Lab) -> dict[int, UUID | None]:
    return {each.id: each.directory for each in quorum(lab).voters}


def warm(lab: Lab, spec: ClusterSpec | None = None) -> ClusterObservation:
    return cluster_of(lab, spec).wait_for(WARM, deadline=240)


def care_of(lab: Lab, care: Care, node: int, spec: ClusterSpec | None = None) -> Callable[[], bool]:
    """Take care of it, as a cleared task does; whether it was not refused."""
    form: dict[str, Any] = {"care": care.value, "controller": node}
    cluster = cluster_of(lab, spec)
    kept = Kept()
    kept.record(Checked(phase="KRAFT", checks={}))
    found = whom(CareForm.of(form), cluster.settled(), cluster.spec)
    run = run_on(cluster, kept, answers={"preflight.checks": {"node": found}}, **form)

    def taken() -> bool:
        try:
            print(take_care(run))
        except Refused as refused:
            print(refused)
            return False
        return True

    return taken


def play(lab: Lab, name: str, node: int, **given: Any) -> None:
    cluster_of(lab).play(Play(name, node, given, writes_secrets=False))


def test_controllers_are_replaced_removed_and_added_and_no_acknowledged_record_is_lost(
    lab: Changed, tmp_path: Path
) -> None:
    warm(lab)
    as_made = Lab(lab.as_made, lab.directory, lab.network, lab.clusters)
    with no_acknowledged_record_is_lost(as_made, tmp_path / "account.json"):
        assert _says_what_it_is(lab) is Verdict.FAIL, "the file is ahead of the quorum"
        on_kafka4.set_level(lab, 1, feature=KRAFT_VERSION)
        assert _says_what_it_is(lab) is Verdict.PASS
        names_addresses_alone(lab)
        lost, other = [each for each in lab.spec.controller_ids if each != quorum(lab).leader_id]
        a_lost_disk_becomes_another_voter(lab, lost)
        one_is_removed_and_added_again(lab, other)
        the_leader_is_followed_by_one_of_them(lab)


def _says_what_it_is(lab: Lab) -> Verdict:
    return CHECKS["KRB-PRE-120"].run(cluster_of(lab).settled(), lab.spec).verdict


def names_addresses_alone(lab: Lab) -> None:
    """Every node's file is written as the cluster file says, and each is restarted with it, the leader last."""
    led = quorum(lab).leader_id
    for node in sorted(lab.spec.node_ids, key=lambda each: (each in lab.spec.broker_ids, each == led)):
        play = restart_node(node, Phase.KRAFT, older_than=time.time(), properties=kraft_properties(lab.spec, node))
        by_hand.wait_until("its partitions are in sync", lambda: _in_sync(lab), within=240)
        cluster_of(lab).play(play)
        warm(lab)
    seen = cluster_of(lab).observe(with_hosts=True)
    assert CHECKS["KRB-PRE-115"].run(seen, lab.spec).verdict is Verdict.PASS
    assert RESTART_CHECKS["KRB-ROLL-005"].run(seen, lab.spec).verdict is Verdict.PASS
    assert {f"controller.quorum.{each}" for each in ("voters", "bootstrap.servers")} & {
        line.partition("=")[0]
        for node in (*lab.spec.brokers, *lab.spec.controllers)
        for line in Path(node.config_file).read_text().splitlines()
    } == {"controller.quorum.bootstrap.servers"}


def _in_sync(lab: Lab) -> bool:
    topics = cluster_of(lab).observe().topics
    return was_read(topics) and not topics.offline_count and not any(topics.out_of_sync_by_broker.values())


def a_lost_disk_becomes_another_voter(lab: Lab, lost: int) -> None:
    before = directories(lab)
    play(lab, "stop_node", lost, ends_by="stop")
    shutil.rmtree(Path(lab.spec.controller(lost).log_dir))
    taken = care_of(lab, Care.LOST_DISK, lost)
    by_hand.wait_until("it may be brought back", taken, within=120)
    warm(lab)
    after = directories(lab)
    assert {i for i in after if after[i] != before[i]} == {lost} and after.keys() == before.keys()
    assert taken() and directories(lab) == after, "cleared once more, nothing is left to do"


def one_is_removed_and_added_again(lab: Lab, node: int) -> None:
    before = directories(lab)
    left = tuple(each for each in lab.spec.controllers if each.id != node)
    smaller = lab.spec.model_copy(update={"controllers": left})
    removed = care_of(lab, Care.REMOVE, node, smaller)
    assert not removed(), "it runs"
    play(lab, "stop_node", node, ends_by="stop")
    by_hand.wait_until("it may be removed", removed, within=120)
    warm(lab, smaller)
    assert directories(lab).keys() == before.keys() - {node}
    added = care_of(lab, Care.ADD, node)
    by_hand.wait_until("it may be added", added, within=120)
    warm(lab)
    assert directories(lab) == before, "with the directory that it had"


def the_leader_is_followed_by_one_of_them(lab: Lab) -> None:
    was = quorum(lab)
    play(lab, "stop_node", was.leader_id, ends_by="stop")
    by_hand.wait_until("another one leads", lambda: quorum(lab).leader_id != was.leader_id, within=120)
    play(lab, "start_node", was.leader_id)
    warm(lab)
