"""A broker's leaders are taken off by the order of replicas alone, and given back.

Kafka elects the first replica that is in sync, and gives leaders back to the first replica by itself where
``auto.leader.rebalance.enable`` is set (the default). So a demoted broker stands last in each order: it leads only
where nobody else can.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import chain

from kraft_runbook.cluster.assignment import Assignment, Replicas, TopicPartition
from kraft_runbook.cluster.naming import nodes, some
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.leader_flow import even_leaders, put_first
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import made_anew, plain
from kraft_runbook.runbook.digests import digest_of

SAMPLE = 5


@dataclass(frozen=True, slots=True)
class KeptOrders:
    """Each partition's order before a demotion and the one that it gave, as it is kept on disk before any is sent.
    ``topic_ids``: of their topics, where they have one.
    """

    cluster_id: str
    before: Assignment
    after: Assignment
    topic_ids: Mapping[str, str]

    def and_then(self, present: Assignment, target: Assignment, topic_ids: Mapping[str, str]) -> KeptOrders:
        """With what is demoted next, by the same run or a later one. What was before the first counts, unless somebody
        has given the partition another order in between, or the topic was made anew.
        """
        kept = self.of_topics_that_are(topic_ids)
        changed = {p: order for p, order in present.items() if order not in (kept.before.get(p), kept.after.get(p))}
        ids = {**self.topic_ids, **topic_ids}
        return KeptOrders(self.cluster_id, {**kept.before, **changed}, {**kept.after, **target}, ids)

    def of_topics_that_are(self, topic_ids: Mapping[str, str]) -> KeptOrders:
        """Without those of topics that were made anew since: they are nobody's that was demoted."""
        return self.without(made_anew(self.topic_ids, topic_ids).__contains__)

    def without(self, topics: Callable[[str], bool]) -> KeptOrders:
        """Without those of these topics."""
        before = {p: order for p, order in self.before.items() if not topics(p.topic)}
        after = {p: order for p, order in self.after.items() if not topics(p.topic)}
        return KeptOrders(self.cluster_id, before, after, self.topic_ids)

    def to_json(self) -> str:
        """With a digest over all of it, which ``orders_from_json`` asks for."""
        body: dict[str, object] = {
            "cluster_id": self.cluster_id,
            "before": plain(self.before),
            "after": plain(self.after),
            "topic_ids": dict(self.topic_ids),
        }
        return json.dumps(body | {"digest": digest_of(body)}, ensure_ascii=False)


def orders_from_json(text: str, *, source: str) -> KeptOrders:
    """``source`` names the file in errors. Raises Refused where it is none, or was changed."""
    try:
        body = json.loads(text)
        if body["digest"] != digest_of(body):
            raise Refused(f"{source} was changed since it was kept", way_out="take an untouched copy of the file")
        before, after = (
            {TopicPartition(topic, number): tuple(order) for topic, number, order in body[which]}
            for which in ("before", "after")
        )
        return KeptOrders(body["cluster_id"], before, after, body["topic_ids"])
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(
            f"{source} holds no orders of a demotion ({type(error).__name__}: {error})",
            way_out="name the run that demoted a broker",
        ) from None


def demoted_orders(brokers: Collection[int], placement: Placement, scope: Assignment) -> dict[TopicPartition, Replicas]:
    """The order of each partition of ``scope`` that lies on these brokers, with them last. Whom they leave without its
    first replica gets one that is in sync, so that leaders stay as even as can be; all others keep their order. Who is
    in ``lead_nothing`` is put first only where nobody else can be.

    Raises Refused, with their names, where partitions have no other replica in sync: nobody could lead them.
    """
    leaving = set(brokers)
    touched = {p: replicas for p, replicas in scope.items() if leaving & set(replicas)}
    able = {p: _able_to_lead(p, replicas, placement, leaving) for p, replicas in touched.items()}
    if alone := sorted(p for p, others in able.items() if not others):
        raise Refused(
            f"{len(alone)} partitions have no replica in sync but on {nodes('broker', sorted(leaving))}, so no other"
            f" broker can lead them: {some(alone, SAMPLE)}",
            way_out="wait until their other replicas are in sync; give those that have one replica another (goal"
            " 'replication factor'), or leave their topics out (exclude)",
        )
    spared = set(lead_nothing(brokers, placement))
    able = {p: tuple(b for b in others if b not in spared) or others for p, others in able.items()}
    staying = {p: replicas for p, replicas in touched.items() if replicas[0] in able[p]}
    wanted = {p: able[p] for p in touched if p not in staying}
    beside = {p: replicas for p, replicas in placement.present.items() if p not in wanted}
    led = even_leaders(wanted, beside, moved=frozenset(wanted), leaderless=frozenset(wanted))
    firsts = {p: order[0] for p, order in (staying | wanted | led).items()}
    return {p: put_first(_last(replicas, leaving), firsts[p]) for p, replicas in touched.items()}


def lead_nothing(brokers: Collection[int], placement: Placement) -> tuple[int, ...]:
    """Others than these that hold replicas and are the first of none that another broker could lead: each looks as one
    that was demoted before, and would be the emptiest of those that leaders are dealt out to.
    """
    holding = set(chain.from_iterable(placement.present.values()))
    leading = {
        replicas[0]
        for partition, replicas in placement.present.items()
        if replicas and _able_to_lead(partition, replicas, placement, replicas[:1])
    }
    return tuple(sorted(holding - leading - set(brokers)))


def orders_given_back(
    before: Assignment, demoted: Assignment, present: Assignment
) -> tuple[dict[TopicPartition, Replicas], tuple[TopicPartition, ...]]:
    """The order from before a demotion, of those partitions that still have the one that it gave them; and those of
    ``present`` that have another order or other replicas by now, which somebody else gave them.
    """
    there = [p for p in sorted(demoted) if p in present and p in before]
    given = {p: before[p] for p in there if present[p] == demoted[p]}
    return given, tuple(p for p in there if present[p] not in (demoted[p], before[p]))


def _able_to_lead(
    partition: TopicPartition, replicas: Replicas, placement: Placement, leaving: Collection[int]
) -> Replicas:
    """Its replicas on other brokers that live and are in sync. Where that is not known, those on brokers that live."""
    in_sync = placement.in_sync.get(partition, replicas)
    return tuple(b for b in replicas if b not in leaving and b in in_sync and b in placement.live)


def _last(replicas: Replicas, leaving: Collection[int]) -> Replicas:
    return (*(b for b in replicas if b not in leaving), *(b for b in replicas if b in leaving))
