"""What a listener is told of the whole group: by whose word, and when again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import count

import pytest
from migrating_servers import ME, OTHER, Embedded, member, topic, turn

from kraft_runbook_consumer.coordinator import Coordinator
from kraft_runbook_consumer.listener import WholeGroup
from kraft_runbook_consumer.znodes import Partition, Registration

Told = tuple[bool, dict[str, frozenset[Partition]]]
MINE, REST = frozenset({("t", 0), ("t", 1)}), frozenset({("t", 2), ("t", 3)})


class Heard:
    def __init__(self) -> None:
        self.groups: list[WholeGroup] = []
        self.released: list[Mapping[str, Collection[int]]] = []

    def before_releasing_partitions(self, released: Mapping[str, Collection[int]]) -> None:
        self.released.append(released)

    def before_starting_fetchers(self, member: str, group: WholeGroup) -> None:
        assert member == ME
        self.groups.append(group)


@pytest.fixture
def tree() -> dict[str, tuple[bytes | None, int]]:
    found: dict[str, tuple[bytes | None, int]] = {}
    topic(found, "t", 4)
    return found


def owned_by(mine: str, rest: str | None = None) -> WholeGroup:
    return {"t": {0: mine, 1: mine} | ({2: rest, 3: rest} if rest is not None else {})}


def in_kafka_mode(
    patch: pytest.MonkeyPatch, tree: dict[str, tuple[bytes | None, int]], told: Told | None
) -> tuple[Coordinator, Embedded, Heard]:
    """A member that Kafka has just assigned two of four partitions. ``told``: what Kafka says of the group then."""
    tree["/consumers/g/migration/mode"] = (b"kafka", 0)
    embedded, heard = Embedded(), Heard()
    one = member(patch, tree, Registration({"t": 1}), embedded=embedded, listener=heard)
    turn(one)
    one.sight.clock = map(float, count(1_000_000, 1)).__next__  # nothing is waited for
    embedded.told, embedded.assigned, embedded.changed = told, MINE, True
    turn(one)
    assert one.state.held.keys() == MINE
    return one, embedded, heard


@pytest.mark.parametrize(
    ("told", "first"),
    [
        ((True, {ME: MINE, "kc": REST}), owned_by(f"{ME}-0", "kc")),
        ((False, {"gone": MINE | REST, ME: frozenset()}), owned_by(f"{ME}-0", "gone")),
        ((False, {"kc": MINE, ME: REST}), owned_by(f"{ME}-0")),
        (None, owned_by(f"{ME}-0")),
    ],
    ids=["stable", "not stable", "not stable, and its own are others", "no answer"],
)
def test_listener_sees_the_whole_group(
    monkeypatch: pytest.MonkeyPatch, tree: dict[str, tuple[bytes | None, int]], told: Told | None, first: WholeGroup
) -> None:
    """Its own partitions are its own, whatever Kafka told before it assigned anew; all, once the group is stable."""
    one, embedded, heard = in_kafka_mode(monkeypatch, tree, told)
    assert heard.groups == [first]
    embedded.told = (True, {ME: MINE, "kc": REST})
    turn(one)
    whole = owned_by(f"{ME}-0", "kc")
    assert heard.groups == ([first] if first == whole else [first, whole]), "and once"


def test_listener_hears_of_the_others_where_its_own_member_keeps_what_it_has(
    monkeypatch: pytest.MonkeyPatch, tree: dict[str, tuple[bytes | None, int]]
) -> None:
    one, embedded, heard = in_kafka_mode(monkeypatch, tree, (True, {ME: MINE, "kc": REST}))
    embedded.told, embedded.changed = (False, {ME: MINE, "kc": REST, "kc2": frozenset()}), True
    turn(one)
    assert len(heard.groups) == 1, "Kafka still assigns"
    embedded.told = (True, {ME: MINE, "kc2": REST})
    turn(one)
    assert heard.groups[1:] == [owned_by(f"{ME}-0", "kc2")] and heard.released == []


def test_listener_hears_of_the_others_in_zookeeper_mode(
    monkeypatch: pytest.MonkeyPatch, tree: dict[str, tuple[bytes | None, int]]
) -> None:
    """One that gets another one's place, and one that Kafka has let in before the mode was set."""
    heard, embedded = Heard(), Embedded()
    both, third = Registration({"t": 1}), "g_third"
    tree[f"/consumers/g/ids/{OTHER}"] = (both.encode(0), 2)
    one = member(monkeypatch, tree, both, embedded=embedded, listener=heard)
    turn(one)
    assert heard.groups == [owned_by(f"{ME}-0", f"{OTHER}-0")]
    tree[f"/consumers/g/ids/{third}"] = tree.pop(f"/consumers/g/ids/{OTHER}")
    turn(one)
    assert heard.groups[1:] == [owned_by(f"{ME}-0", f"{third}-0")] and heard.released == []
    embedded.told, embedded.changed = (True, {"kc": REST}), True
    turn(one)
    assert heard.groups[2:] == [owned_by(f"{ME}-0", "kc")]


def test_listener_is_told_of_no_partition_that_its_member_still_waits_for(
    monkeypatch: pytest.MonkeyPatch, tree: dict[str, tuple[bytes | None, int]]
) -> None:
    heard, both = Heard(), Registration({"t": 1})
    tree[f"/consumers/g/ids/{OTHER}"] = (both.encode(0), 2)
    tree |= {f"/consumers/g/owners/t/{n}": (b"", 2) for n in (2, 3)}
    one = member(monkeypatch, tree, both, listener=heard)
    turn(one)
    del tree[f"/consumers/g/ids/{OTHER}"]
    turn(one)
    assert len(heard.groups) == 1 and one.state.held.keys() == MINE
    for n in (2, 3):
        del tree[f"/consumers/g/owners/t/{n}"]
    turn(one)
    assert heard.groups[1:] == [owned_by(f"{ME}-0", f"{ME}-0")]
