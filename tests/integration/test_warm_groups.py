"""A group is kept warm by a member that holds nothing: its new members come in at once, and own every partition."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import by_hand
import pytest
from confluent_kafka import Consumer, KafkaError
from labs import Lab
from moving_groups import PARTITIONS, TOPIC, make_topic

from kraft_runbook.errors import Refused
from kraft_runbook.io.kafka.group_anchor import LOOK_SECONDS, SESSION_SECONDS, STAYS, Anchor
from kraft_runbook.io.kafka.group_commits import commit_offsets
from kraft_runbook.io.kafka.groups_seen import read_kafka_groups

EVERY = {(TOPIC, number): 0 for number in range(PARTITIONS)}


@pytest.fixture(scope="module", autouse=True)
def topic(own_lab: Lab) -> None:
    make_topic(own_lab)


def anchor(lab: Lab, group: str, *assignors: str) -> Anchor:
    return Anchor(lab.spec, group, assignors or ("range", "roundrobin"), lab.secrets)


def seen(lab: Lab, group: str) -> Any:
    return read_kafka_groups(lab.spec, [group], secrets=lab.secrets)[group]


@contextmanager
def member(lab: Lab, group: str, **settings: Any) -> Iterator[list[Any]]:
    """A KafkaConsumer of that group; yields what it was assigned each time, and errors that it was told."""
    found: list[Any] = []

    def consume(ended: Any) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": ",".join(lab.spec.bootstrap_servers),
                "group.id": group,
                "client.id": "new",
                "partition.assignment.strategy": "range,roundrobin",
                **settings,
            }
        )
        consumer.subscribe([TOPIC], on_assign=lambda _, partitions: found.append(len(partitions)))
        while not ended.is_set():
            message = consumer.poll(0.05)
            if message is not None and message.error():
                found.append(message.error().code())
        consumer.close()

    with by_hand.beside(consume):
        yield found


def test_it_holds_nothing_and_makes_room_for_the_first_member(own_lab: Lab) -> None:
    lab, group = own_lab, "warm"
    commit_offsets(lab.spec, group, EVERY, secrets=lab.secrets)
    with anchor(lab, group) as ours:
        by_hand.wait_until("it is in the group", lambda: ours.said == "it is in the group")
        (alone,) = seen(lab, group).members
        assert (alone.client_id, alone.partitions) == ("kraft-runbook", frozenset())
        assert dict(seen(lab, group).offsets) == EVERY
        with pytest.raises(Refused, match="UNKNOWN_MEMBER_ID"):
            commit_offsets(lab.spec, group, EVERY, secrets=lab.secrets)
        with member(lab, group) as assigned:
            by_hand.wait_until("the member has all", lambda: assigned == [PARTITIONS])
            assert ours.over.wait(5)
            assert ours.said == "it left when the first member came"
            assert {each.client_id for each in seen(lab, group).members} == {"new"}
            time.sleep(5 * LOOK_SECONDS)
            assert assigned == [PARTITIONS], "the anchor's leave cost no rebalance"


def test_it_does_not_disturb_members_that_are_there(own_lab: Lab) -> None:
    with member(own_lab, "live") as assigned:
        by_hand.wait_until("the member has all", lambda: assigned == [PARTITIONS])
        with anchor(own_lab, "live") as ours:
            assert ours.over.wait(10)
            assert ours.said == "members were there already"
        assert assigned == [PARTITIONS]


def test_it_leaves_where_nobody_comes_and_the_group_can_be_committed_to_again(own_lab: Lab) -> None:
    lab, group = own_lab, "nobody"
    with anchor(lab, group) as ours:
        by_hand.wait_until("it is in the group", lambda: ours.said == "it is in the group")
    assert ours.over.is_set() and STAYS not in ours.said
    assert seen(lab, group).state == "Empty"
    commit_offsets(lab.spec, group, EVERY, secrets=lab.secrets)


def test_that_of_a_killed_task_holds_members_up_for_its_session_alone(
    own_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, group = own_lab, "killed"
    with monkeypatch.context() as killed, anchor(lab, group) as ours:
        by_hand.wait_until("it is in the group", lambda: ours.said == "it is in the group")
        killed.setattr(Anchor, "_leave", lambda self, send: True)
        ours._ends.set()
        assert ours.over.wait(5)
    assert len(seen(lab, group).members) == 1
    with anchor(lab, group) as again, member(lab, group) as assigned:
        by_hand.wait_until("the member has all", lambda: PARTITIONS in assigned, within=2 * SESSION_SECONDS + 5)
        assert again.over.wait(5)
        assert again.said == "it left when the first member came"
        by_hand.wait_until(
            "the member is alone", lambda: {each.client_id for each in seen(lab, group).members} == {"new"}
        )


def test_a_member_with_another_assignor_is_turned_away_meanwhile(own_lab: Lab) -> None:
    turned_away = KafkaError.INCONSISTENT_GROUP_PROTOCOL
    with anchor(own_lab, "other", "sticky") as ours:
        by_hand.wait_until("it is in the group", lambda: ours.said == "it is in the group")
        with member(own_lab, "other") as told:
            by_hand.wait_until("it is turned away", lambda: turned_away in told)
        assert ours.said == "it is in the group"
    with anchor(own_lab, "other", "sticky", "roundrobin"), member(own_lab, "other") as told:
        by_hand.wait_until("it is let in", lambda: told == [PARTITIONS])
