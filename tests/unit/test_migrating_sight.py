"""What a migrating member sees in ZooKeeper and in Kafka's group, and what it does where that is odd."""

from __future__ import annotations

import gc
import secrets
import time
import traceback
import weakref
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException
from migrating_servers import ME, OTHER, Consumer, Embedded, Result, embedded_consumer, member, session, topic, turn

from kraft_runbook_consumer.embedded import EmbeddedConsumer, make_consumer
from kraft_runbook_consumer.errors import ConsumerError, SettingError, Unreachable
from kraft_runbook_consumer.lease import Lease
from kraft_runbook_consumer.mode import Mode
from kraft_runbook_consumer.znodes import Registration, decode_partitions, decode_registration, plain_endpoint


def test_znodes_without_data_and_patterns_that_python_does_not_read_end_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    huge = b'{"version":1,"subscription":{"a{99999999999999999999}":1},"pattern":"white_list"}'
    tree: dict[str, tuple[bytes | None, int]] = {
        "/consumers/g/migration/mode": (None, 0),
        "/consumers/g/ids/g_odd": (huge, 7),
        "/consumers/g/ids/g_null": (None, 8),
        "/brokers/topics/t": (None, 0),
    }
    seen = session(monkeypatch, tree).look(lambda _members, every: list(every))
    assert seen.mode == "" and seen.partitions == {}
    assert seen.members == {"g_odd": Registration(), "g_null": Registration()}
    assert decode_registration(None) == Registration() and plain_endpoint(None) is None
    with pytest.raises(ValueError, match="no partitions"):
        decode_partitions(b"[]")


def test_no_secret_is_in_the_traceback_of_a_refused_setting() -> None:
    secret = secrets.token_hex(8)
    with pytest.raises(SettingError) as raised:
        make_consumer({"group.id": "g", "security.protocol": secret}, "coordination.migration.")
    told = "".join(traceback.format_exception(raised.value))
    assert "coordination.migration.…" in told and secret not in told


def test_time_in_which_the_machine_sleeps_counts_for_both_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its monotonic clock stands still, its boot time goes on; the signs are those that are really sent."""
    boot = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    monkeypatch.setattr(time, "clock_gettime", lambda _clock: boot[0])
    zookeeper = session(monkeypatch, {})
    kafka = Lease(45.0)
    embedded = embedded_consumer(kafka)
    embedded.commit({("t", 0): 1})
    assert (zookeeper.lease.age, kafka.age) == (0.0, 0.0)
    boot[0] += 60
    assert (zookeeper.lease.age, kafka.age) == (60.0, 60.0)
    assert not zookeeper.lease.holds() and not kafka.holds()
    embedded.send_commit({("t", 0): 1})
    embedded._committed(None, None)
    assert kafka.age == 0.0


def test_an_owner_znode_of_ones_own_that_is_not_held_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to the lock was lost, and by now ZooKeeper assigns the partition to another member."""
    tree: dict[str, tuple[bytes | None, int]] = {"/consumers/g/owners/t/1": (b"g_me-0", 1)}
    topic(tree, "t", 2)
    both = Registration({"t": 1})
    tree[f"/consumers/g/ids/{OTHER}"] = (both.encode(0), 2)
    one = member(monkeypatch, tree, both)
    turn(one)
    assert set(one.state.held) == {("t", 0)}
    assert "/consumers/g/owners/t/1" not in tree and "/consumers/g/owners/t/0" in tree


def test_a_topic_that_is_deleted_is_unlocked_by_a_member_with_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    tree: dict[str, tuple[bytes | None, int]] = {}
    topic(tree, "t", 1)
    topic(tree, "u", 1)
    one = member(monkeypatch, tree, Registration({".*": 1}, "white_list"))
    turn(one)
    assert set(one.state.held) == {("t", 0), ("u", 0)}
    del tree["/brokers/topics/u"]
    turn(one)
    assert set(one.state.held) == {("t", 0)} and "/consumers/g/owners/u/0" not in tree
    topic(tree, "u", 1)
    turn(one)
    assert set(one.state.held) == {("t", 0), ("u", 0)}


def test_a_topic_that_goes_is_named_once_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tree: dict[str, tuple[bytes | None, int]] = {}
    topic(tree, "t", 1)
    topic(tree, "u", 1)
    one = member(monkeypatch, tree, Registration({"t": 1, "u": 1}))
    turn(one)
    kept = tree["/brokers/topics/u"]
    for _ in range(2):
        del tree["/brokers/topics/u"]
        turn(one)
        turn(one)
        assert set(one.state.held) == {("t", 0)}
        (told,) = [each.getMessage() for each in caplog.records if "no topic" in each.getMessage()]
        assert told.startswith("there is no topic u any more: nothing of it is handed out. What to do: start the")
        assert "once /consumers/g/offsets/u is deleted" in told
        caplog.clear()
        tree["/brokers/topics/u"] = kept
        turn(one)
        assert set(one.state.held) == {("t", 0), ("u", 0)}


def test_a_fence_ends_a_member_that_starts_and_is_named_by_one_that_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It would wait for these partitions without a word, and Kafka would give them to nobody else."""
    tree: dict[str, tuple[bytes | None, int]] = {"/consumers/g/migration/mode": (b"kafka", 0)}
    topic(tree, "t", 3)
    topic(tree, "u", 1)
    fence = {f"/consumers/g/owners/{each}": (b"fence; committed", 0) for each in ("t/1", "t/2", "u/0")}
    kafka = Embedded()
    kafka.assigned = frozenset({("t", 0), ("t", 1)})
    one = member(monkeypatch, tree | fence, Registration({"t": 1}), embedded=kafka)
    with pytest.raises(
        ConsumerError, match="2 partitions can be owned by no member here: /consumers/g/owners/t/1 be"
    ) as e:
        one._turn()
    assert "move_consumer_group" in e.value.way_out
    one = member(monkeypatch, tree, Registration({"t": 1}), embedded=kafka)
    turn(one)
    assert set(one.state.held) == {("t", 0), ("t", 1)}
    other = member(
        monkeypatch, {**tree, "/consumers/g/owners/u/0": (b"fence", 0)}, Registration({"t": 1}), embedded=kafka
    )
    turn(other)
    tree |= fence
    turn(one)
    (told,) = [each.getMessage() for each in caplog.records if "belongs to no session" in each.getMessage()]
    assert told.startswith("2 partitions can be owned by no member here") and set(one.state.held) == {("t", 0)}


def test_a_member_gets_no_share_before_kafka_has_told_who_is_in_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each of its sessions: it would take nothing, and nobody else would."""
    tree: dict[str, tuple[bytes | None, int]] = {}
    topic(tree, "t", 2)
    embedded = Embedded()
    embedded.told = None
    one = member(monkeypatch, tree, Registration({"t": 1}), embedded=embedded)
    turn(one)
    assert f"/consumers/g/migration/ids/{ME}" in tree and f"/consumers/g/ids/{ME}" not in tree
    embedded.told = (True, {})
    turn(one)
    assert f"/consumers/g/ids/{ME}" in tree and len(one.state.held) == 2
    one.zookeeper.lost.set()
    for each in [path for path, (_, of) in tree.items() if of]:
        del tree[each]
    embedded.told = None
    turn(one)
    assert (one.state.mode, one.state.held) == (None, {}) and f"/consumers/g/ids/{ME}" not in tree
    embedded.told = (True, {})
    turn(one)
    assert f"/consumers/g/ids/{ME}" in tree and len(one.state.held) == 2


def test_in_zookeeper_mode_nothing_waits_for_kafka_s_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's session is lost and Kafka does not answer: what ZooKeeper assigns to others is released."""
    tree: dict[str, tuple[bytes | None, int]] = {}
    topic(tree, "t", 2)
    embedded = Embedded()
    one = member(monkeypatch, tree, Registration({"t": 1}), embedded=embedded)
    turn(one)
    assert len(one.state.held) == 2
    embedded.told = None
    one._revoked(frozenset({("t", 0)}), True)
    tree[f"/consumers/g/ids/{OTHER}"] = (Registration({"t": 1}).encode(0), 2)
    tree[f"/consumers/g/migration/ids/{OTHER}"] = (b"", 2)
    turn(one)
    assert set(one.state.held) == {("t", 0)} and "/consumers/g/owners/t/1" not in tree


@pytest.mark.parametrize(
    ("code", "raised"), [("GROUP_AUTHORIZATION_FAILED", ConsumerError), ("_TRANSPORT", Unreachable)]
)
def test_what_kafka_refuses_ends_the_member_and_is_not_waited_for(code: str, raised: type[ConsumerError]) -> None:
    error = KafkaError(getattr(KafkaError, code))

    class Refused(Consumer):
        def committed(self, partitions: object, timeout: float) -> None:
            raise KafkaException(error)

        def poll(self, timeout: float) -> object:
            return SimpleNamespace(error=lambda: error)

        def describe_consumer_groups(self, groups: list[str], request_timeout: float) -> dict[str, Result]:
            return {"g": Result(KafkaException(error))}

    embedded = embedded_consumer(Lease(45.0), Refused())
    embedded._admin = Refused()
    with pytest.raises(ConsumerError) as told:
        embedded.committed([("t", 0)])
    assert type(told.value) is raised
    if raised is Unreachable:
        embedded.poll()
        assert embedded.members() is None
        return
    for ask in (embedded.poll, embedded.members):
        with pytest.raises(ConsumerError, match="READ on the group"):
            ask()


def test_a_client_that_asks_the_wrong_broker_is_replaced() -> None:
    """A client of librdkafka goes on asking the broker that it once found as the coordinator (measured)."""
    moved = KafkaException(KafkaError(KafkaError.NOT_COORDINATOR))
    stable = SimpleNamespace(state=ConsumerGroupState.STABLE, members=[])
    made: list[object] = []

    class Admin:
        def __init__(self, config: object) -> None:
            made.append(config)
            self.answer: object = moved if len(made) == 1 else stable

        def describe_consumer_groups(self, groups: list[str], request_timeout: float) -> dict[str, Result]:
            return {"g": Result(self.answer)}

    embedded = embedded_consumer(Lease(45.0), admin=Admin)
    assert [embedded.members(), embedded.members(), embedded.members()] == [None, (True, {}), (True, {})]
    assert len(made) == 2 and made[0] == made[1]


def test_a_request_that_is_not_answered_is_not_given_up_and_its_late_answer_is_dropped() -> None:
    """librdkafka ends the process where an answer comes after the request's own time."""
    stable = SimpleNamespace(state=ConsumerGroupState.STABLE, members=[])
    asked: list[tuple[float, Future[object]]] = []

    class Admin:
        def describe_consumer_groups(self, groups: list[str], request_timeout: float) -> dict[str, Future[object]]:
            asked.append((request_timeout, Future()))
            if len(asked) > 1:
                asked[-1][1].set_result(stable)
            return {"g": asked[-1][1]}

    embedded = embedded_consumer(Lease(45.0), admin=lambda config: Admin())
    assert embedded.members(0.01) is None
    assert embedded.members(0.01) is None, "it is still waited for"
    assert [seconds for seconds, _ in asked] == [600.0]
    asked[0][1].set_result("old")
    assert embedded.members(0.01) == (True, {}), "asked anew: the late answer may be from before"
    assert len(asked) == 2
    embedded._asked, embedded._asked_at = Future(), time.monotonic() - 11
    assert embedded.members(0.01) == (True, {}), "one that never comes goes with its client"
    assert len(asked) == 3


def test_a_closed_member_leaves_no_client_behind() -> None:
    """Of librdkafka's own, without a broker: each has threads, which reconnect for ever."""
    config = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "partition.assignment.strategy": "range"}
    gc.disable()
    try:
        made = EmbeddedConsumer(config, Lease(45.0), lambda _gone, _lost: None)
        assert made._admin is not None
        admin = weakref.ref(made._admin)
        made.close()
        assert admin() is None
        assert made.members() is None
    finally:
        gc.enable()


def test_kafka_mode_without_a_place_in_kafka_s_group_gives_the_locks_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After a session of Kafka's, and not before; told once."""
    tree: dict[str, tuple[bytes | None, int]] = {}
    topic(tree, "t", 2)
    embedded = Embedded()
    one = member(monkeypatch, tree, Registration({"t": 1}), embedded=embedded)
    turn(one)
    tree["/consumers/g/migration/mode"] = (b"kafka", 0)
    turn(one)
    assert one.state.mode is Mode.KAFKA and len(one.state.held) == 2 and not one.may_hand_out()
    now = [time.monotonic() + 44]
    one.sight.clock = lambda: now[0]
    turn(one)
    assert len(one.state.held) == 2
    now[0] += 2
    turn(one)
    assert not one.state.held and not any("/owners/t/" in path for path in tree)
    assert caplog.text.count("has not let this member in for 45 s") == 1
    embedded.assigned = frozenset({("t", 1)})
    turn(one)
    assert set(one.state.held) == {("t", 1)}


def test_an_offset_znode_that_is_no_offset_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tree: dict[str, tuple[bytes | None, int]] = {}
    topic(tree, "t", 3)
    tree["/consumers/g/offsets/t/1"] = (b"12 ", 0)
    tree["/consumers/g/offsets/t/2"] = (None, 0)
    found = session(monkeypatch, tree).offsets([("t", n) for n in range(4)])
    assert found == {("t", 0): 0}
    assert [each.getMessage() for each in caplog.records] == [
        "/consumers/g/offsets/t/1 is no offset and counts as none: b'12 '",
        "/consumers/g/offsets/t/2 is no offset and counts as none: b''",
    ]


def test_a_new_member_with_the_name_of_a_migrating_one_that_has_left_is_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree: dict[str, tuple[bytes | None, int]] = {f"/consumers/g/migration/ids/{OTHER}": (b"", 2)}
    topic(tree, "t", 1)
    embedded = Embedded()
    held = frozenset({("t", 0)})
    one = member(monkeypatch, tree, Registration({"t": 1}), embedded=embedded)
    embedded.told = (True, {OTHER: held})
    turn(one)
    assert one.sight.view.new == {}
    del tree[f"/consumers/g/migration/ids/{OTHER}"]
    turn(one)
    assert one.sight.view.new == {}, "it is cut off from ZooKeeper: it hands out nothing"
    embedded.told = (False, {})
    turn(one)
    embedded.told = (True, {OTHER: held})
    turn(one)
    assert one.sight.view.new == {}, "it was away for a rebalance"
    embedded.told = (True, {})
    turn(one)
    embedded.told = (True, {OTHER: held})
    turn(one)
    assert one.sight.view.new == {OTHER: held}


def test_a_member_whose_znode_in_migration_ids_is_deleted_registers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others would take it for an old member, and the group could not follow Kafka."""
    tree: dict[str, tuple[bytes | None, int]] = {}
    topic(tree, "t", 1)
    one = member(monkeypatch, tree, Registration({"t": 1}), embedded=Embedded())
    turn(one)
    del tree[f"/consumers/g/migration/ids/{ME}"]
    turn(one)
    assert f"/consumers/g/migration/ids/{ME}" in tree


def test_in_zookeeper_mode_a_silent_kafka_costs_two_seconds_of_five(monkeypatch: pytest.MonkeyPatch) -> None:
    """In kafka mode its answer is what is waited for."""
    tree: dict[str, tuple[bytes | None, int]] = {}
    topic(tree, "t", 1)
    embedded = Embedded()
    one = member(monkeypatch, tree, Registration({"t": 1}), embedded=embedded)
    turn(one)
    embedded.told, embedded.changed = None, True
    now = [1e6]
    one.sight.clock = lambda: now[0]
    for mode, asked in ((Mode.ZOOKEEPER, [2.0]), (Mode.KAFKA, [10.0] * 80)):
        tree["/consumers/g/migration/mode"] = (mode.encode(), 0)
        one._look()
        embedded.calls.clear()
        for _ in range(80):
            now[0] += 0.06
            one.sight.look_at_kafka(mode)
        assert embedded.calls == [("members", each) for each in asked]


def test_offsets_are_asked_for_by_a_client_that_joins_no_group() -> None:
    """Behind a join they would wait until that is answered."""
    made: list[Any] = []

    class Client(Consumer):
        def committed(self, partitions: list[Any], timeout: float) -> list[Any]:
            made.append(self)
            return []

    config = {"group.id": "g", "partition.assignment.strategy": "cooperative-sticky", "client.id": "g_me"}

    def make(given: Any, _prefix: str) -> Any:
        made.append(given)
        return Client()

    one: Any = {"consumer": make, "admin": lambda _config: None}
    embedded = EmbeddedConsumer(config, Lease(45.0), lambda _gone, _lost: None, **one)
    assert embedded.committed([("t", 0)]) == {} == embedded.committed([("t", 0)])
    joins, asks, first, second = made
    assert "client.id" in joins and asks["group.id"] == "g" and "client.id" not in asks
    assert first is second is not embedded._consumer
