"""What KIP-125 promises of one member, over fakes: what one without the migration leaves, what the metrics say, and
that each member deals another one's partitions to threads as that one does.
"""

from __future__ import annotations

import random

import pytest
from migrating_servers import ME, OTHER, Embedded, member, topic, turn

from kraft_runbook_consumer.consumer import MigratingConsumer
from kraft_runbook_consumer.listener import group_of_kafka
from kraft_runbook_consumer.mode import Mode
from kraft_runbook_consumer.step import State, View, wanted
from kraft_runbook_consumer.znodes import Registration, thread_id


def test_disabled_member_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the group was toggled: it is an old member in all that others see of it."""
    tree: dict[str, tuple[bytes | None, int]] = {}
    topic(tree, "t", 2)
    before = set(tree)
    one = member(monkeypatch, tree, Registration({"t": 1}))
    turn(one)
    made = {f"/consumers/g/ids/{ME}", "/consumers/g/ids"} | {f"/consumers/g/owners/t/{n}" for n in (0, 1)}
    assert tree.keys() - before - {"/consumers/g/owners/t"} == made and one.embedded is None
    tree["/consumers/g/migration/mode"] = (b"kafka", 0)
    turn(one)
    assert one.state.mode is Mode.ZOOKEEPER and len(one.state.held) == 2
    assert [each for each in tree if "migration" in each] == ["/consumers/g/migration/mode"]


def test_metrics_follow_the_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """KafkaOwnedPartitionsCount does not: it is what Kafka has assigned, whether or not that counts."""
    tree: dict[str, tuple[bytes | None, int]] = {}
    topic(tree, "t", 2)
    embedded = Embedded()
    consumer = MigratingConsumer.__new__(MigratingConsumer)  # without the servers that its constructor connects to
    consumer._coordinator = one = member(monkeypatch, tree, Registration({"t": 1}), embedded=embedded)
    consumer._settings, consumer.member_id = one.settings, ME

    def told() -> tuple[float, float]:
        active, owned = consumer.metrics()
        return active.value, owned.value

    assert told() == (0.0, 0.0), "before it follows anybody"
    for mode, assigned in (("zookeeper", {0, 1}), ("kafka", {1}), ("zookeeper", {1})):
        tree["/consumers/g/migration/mode"] = (mode.encode(), 0)
        embedded.assigned, embedded.changed = frozenset(("t", n) for n in assigned), True
        turn(one)
        assert told() == (float(mode == "kafka"), float(len(assigned)))


def test_subdivision_is_the_same_on_every_member() -> None:
    """What another member tells its listener of this one is what this one does, in whatever order Kafka names them."""
    draw = random.Random(125)
    for _ in range(300):
        topics = {f"t{n}": draw.choice((1, 2, 3, 12)) for n in range(draw.randrange(1, 5))}
        every = [(topic, number) for topic in topics for number in range(12)]
        mine = draw.sample(every, draw.randrange(len(every)))
        view = View(
            members={ME: Registration(topics), OTHER: Registration(dict.fromkeys(topics, 1))},
            partitions=dict.fromkeys(topics, tuple(range(12))),
            assigned=frozenset(mine),
        )
        does = wanted(State(ME), view, Mode.KAFKA)
        assert does is not None and does.keys() == set(mine)
        seen = group_of_kafka({OTHER: set(every) - set(mine), ME: mine}, view, exclude_internal=True)
        assert {each: seen[each[0]][each[1]] for each in mine} == {each: thread_id(ME, n) for each, n in does.items()}
