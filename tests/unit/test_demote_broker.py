"""A broker's leaders off and back, on a cluster that is a table: killed anywhere, and changed by others meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from observations import SPEC
from placements import tp

from kraft_runbook.cluster.assignment import Answer, Ongoing, PartitionResult, PartitionSeen, Replicas, TopicPartition
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.procedures.demote_broker import (
    Demoted,
    Demotes,
    GivenBack,
    demote_broker,
    give_orders_back,
    read_orders,
)
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.placement import Placement

A, B, C, D, E = (tp("t", number) for number in range(5))
BEFORE: dict[TopicPartition, Replicas] = {A: (1, 2, 3), B: (2, 1, 3), C: (3, 2, 1), D: (2, 3), E: (1, 3, 2)}


class Killed(BaseException):
    """As SIGKILL: nothing of the process goes on."""


class Cluster:
    """``killed_at``: of all calls, counted from 0, the one in which the process dies, and whether its effect stays."""

    def __init__(self, present: dict[TopicPartition, Replicas]) -> None:
        self.present = dict(present)
        self.leaders = {p: replicas[0] for p, replicas in present.items()}
        self.isr = {p: set(replicas) for p, replicas in present.items()}
        self.ids = {"t": "one"}
        self.ongoing: dict[TopicPartition, Ongoing] = {}
        self.live = {1, 2, 3, 4}
        self.calls: Iterator[int] = count()
        self.killed_at: tuple[int, bool] | None = None
        self.sent: list[dict[TopicPartition, Replicas]] = []

    def _may_die(self, effect: Any = None) -> None:
        now = next(self.calls)
        at, stays = self.killed_at or (None, False)
        if now == at and not stays:
            raise Killed
        if effect:
            effect()
        if now == at:
            raise Killed

    def look(self, *_: Any, **__: Any) -> ReplicasLook:
        self._may_die()
        placement = Placement(
            dict.fromkeys(self.live),
            dict(self.present),
            ongoing=dict(self.ongoing),
            in_sync={p: tuple(b for b in r if b in self.isr[p]) for p, r in self.present.items()},
            leaders=dict(self.leaders),
        )
        seen = {p: PartitionSeen(r, self.leaders[p], tuple(self.isr[p])) for p, r in self.present.items()}
        return ReplicasLook("id", placement, seen, {}, 0.0)

    def client(self, *_: Any, **__: Any) -> Cluster:
        return self

    def alter(self, moves: Any) -> dict[TopicPartition, PartitionResult]:
        orders = {each.partition: each.target for each in moves}
        assert all(set(self.present[p]) == set(order) for p, order in orders.items())
        self._may_die(lambda: (self.present.update(orders), self.sent.append(orders)))
        return {p: PartitionResult(p, Answer.ACCEPTED) for p in orders}

    def elect(self, _: Any, partitions: Collection[TopicPartition], **__: Any) -> dict[TopicPartition, str]:
        able = {p: self.present[p][0] for p in partitions if self.present[p][0] in self.isr[p] & self.live}
        self._may_die(lambda: self.leaders.update(able))
        return {p: "error 80" for p in partitions if p not in able}

    def ids_of(self, _: Any, topics: Collection[str], **__: Any) -> dict[str, str]:
        self._may_die()
        return {topic: self.ids[topic] for topic in topics if topic in self.ids}

    @property
    def by(self) -> Demotes:
        made: Any = (self.look, self.client, self.elect, self.ids_of)
        return Demotes(*made, apart=0.0, looks_at_leaders=3, looks_at_an_order=2)

    def demote(self, path: Path, broker: int = 1, **how: Any) -> Demoted:
        return demote_broker(SPEC, broker, path, secrets=lambda _: "", by=self.by, **how)

    def give_back(self, path: Path, **how: Any) -> GivenBack | None:
        return give_orders_back(SPEC, path, secrets=lambda _: "", by=self.by, **how)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(BEFORE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "broker-1.json"


def test_leaders_go_off_stay_off_and_come_back(cluster: Cluster, path: Path) -> None:
    assert cluster.demote(path).orders == 3
    demoted = dict(cluster.present)
    assert all(replicas[-1] == 1 for replicas in demoted.values() if 1 in replicas)
    assert 1 not in cluster.leaders.values()
    cluster.elect(None, list(BEFORE))  # what Kafka does by itself every five minutes
    assert 1 not in cluster.leaders.values()
    assert cluster.give_back(path) == GivenBack(3)
    assert cluster.present == BEFORE and cluster.leaders == {p: r[0] for p, r in BEFORE.items()}
    assert cluster.give_back(path) is None and not path.exists()


@pytest.mark.parametrize("stays", [False, True])
def test_killed_between_any_two_steps_it_goes_on_and_gives_all_back(cluster: Cluster, path: Path, stays: bool) -> None:
    """``stays``: Kafka took what was sent, and the process did not hear of it."""
    for did, must in ((cluster.demote, lambda: 1 not in cluster.leaders.values()), (cluster.give_back, lambda: True)):
        for at in count():
            cluster.calls, cluster.killed_at = count(), (at, stays)
            try:
                did(path)
            except Killed:
                continue
            break
        assert at > 3 and must()
    assert cluster.present == BEFORE and cluster.leaders == {p: r[0] for p, r in BEFORE.items()}


def test_each_try_that_was_killed_can_be_given_back_at_once(path: Path) -> None:
    for at in range(30):
        for stays in (False, True):
            cluster = Cluster(BEFORE)
            cluster.killed_at = (at, stays)
            with suppress(Killed):
                cluster.demote(path)
            cluster.killed_at = None
            cluster.give_back(path)
            assert cluster.present == BEFORE and not path.exists(), (at, stays)


def test_what_somebody_else_changed_meanwhile_is_theirs(cluster: Cluster, path: Path) -> None:
    cluster.demote(path)
    cluster.present[A] = (3, 2, 1) if cluster.present[A] != (3, 2, 1) else (2, 3, 1)
    cluster.present[E], cluster.isr[E] = (3, 4, 2), {2, 3, 4}
    theirs = {p: cluster.present[p] for p in (A, E)}
    assert cluster.give_back(path) == GivenBack(1, (A, E))
    assert cluster.present == BEFORE | theirs and not path.exists()


def test_a_reassignment_of_somebody_else_is_neither_replaced_nor_waited_for(cluster: Cluster, path: Path) -> None:
    cluster.ongoing[A] = Ongoing((2, 3, 4, 1), (4,), (1,))
    assert cluster.demote(path).left == (A,)
    assert A not in {p for sent in cluster.sent for p in sent} and cluster.leaders[A] == 1
    cluster.ongoing = {B: Ongoing((2, 3, 4, 1), (4,), (1,))}
    cluster.sent.clear()
    found = cluster.give_back(path)
    assert found is not None and found.left == (B,)
    assert all(B not in sent for sent in cluster.sent)


def test_a_topic_that_was_made_anew_or_deleted_is_not_touched(cluster: Cluster, path: Path) -> None:
    cluster.demote(path)
    del cluster.present[E]
    cluster.sent.clear()
    gone = replace(read_orders(path), topic_ids={"t": "one"})  # type: ignore[type-var]
    assert gone is not None and E in gone.before
    cluster.ids = {"t": "two"}
    assert cluster.give_back(path) == GivenBack(0) and not cluster.sent


def test_where_nobody_else_is_in_sync_it_is_refused_by_name_and_nothing_is_sent(cluster: Cluster, path: Path) -> None:
    cluster.isr[A] = {1}
    with pytest.raises(Refused, match=r"no replica in sync but on broker 1.*t-0"):
        cluster.demote(path)
    assert not cluster.sent and not path.exists()


def test_one_replica_is_left_and_named(path: Path, cluster: Cluster) -> None:
    cluster.present[D], cluster.leaders[D], cluster.isr[D] = (1,), 1, {1}
    assert cluster.demote(path).left == (D,)


def test_what_it_leads_all_the_same_fails_with_kafkas_words(cluster: Cluster, path: Path) -> None:
    cluster.present = {A: (2, 3, 1)}
    cluster.leaders[A] = 1
    cluster.elect = lambda *_, **__: {A: "error 80 not available"}  # type: ignore[method-assign]
    with pytest.raises(StepFailed, match=r"broker 1 still leads 1 partitions: t-0 \(t-0: error 80 not available\)"):
        cluster.demote(path)


def test_what_an_earlier_run_never_gave_back_is_given_back_by_the_next(cluster: Cluster, tmp_path: Path) -> None:
    dead, path = tmp_path / "dead" / "broker-1.json", tmp_path / "now" / "broker-1.json"
    cluster.demote(dead)
    assert cluster.demote(path, others=[dead]).orders == 0
    assert not dead.exists() and path.exists()
    cluster.give_back(path)
    assert cluster.present == BEFORE


def test_what_an_earlier_run_never_gave_back_is_given_back_though_nothing_was_taken_since(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The broker did not run, so the next run had nothing to take."""
    dead, others, path = (tmp_path / name / "broker-1.json" for name in ("dead", "others", "now"))
    cluster.demote(dead)
    kept = read_orders(dead)
    assert kept is not None
    others.parent.mkdir()
    others.write_text(replace(kept, cluster_id="other").to_json())
    assert cluster.give_back(path, others=[others]) is None and others.exists()
    assert cluster.give_back(path, others=[dead, others]) == GivenBack(3)
    assert cluster.present == BEFORE and not dead.exists() and not path.exists() and others.exists()
    cluster.demote(dead)
    path.write_text(replace(kept, cluster_id="other").to_json())
    with pytest.raises(Refused, match="of cluster other, and this is id"):
        cluster.give_back(path, others=[dead])
    assert dead.exists()


def test_what_was_kept_of_another_cluster_is_not_given_back_here(cluster: Cluster, path: Path) -> None:
    cluster.demote(path)
    kept = read_orders(path)
    assert kept is not None
    path.write_text(replace(kept, cluster_id="other").to_json())
    with pytest.raises(Refused, match="of cluster other, and this is id"):
        cluster.give_back(path)
    path.write_text(kept.to_json().replace("one", "two"))
    with pytest.raises(Refused, match="was changed since it was kept"):
        cluster.give_back(path)
    path.write_text("{}")
    with pytest.raises(Refused, match="holds no orders of a demotion"):
        cluster.give_back(path)
