"""What a member asks of ZooKeeper: how often it waits for an answer, and whose znodes it takes and deletes."""

from __future__ import annotations

import socket
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.protocol.states import KazooState
from migrating_servers import ME, OTHER, Embedded, Result, member, session, topic, turn

from kraft_runbook_consumer.errors import Unreachable
from kraft_runbook_consumer.lease import sent_now
from kraft_runbook_consumer.session import UNANSWERED
from kraft_runbook_consumer.znodes import Partition, Registration
from kraft_runbook_consumer.zookeeper import GroupSeen

EVERY: list[Partition] = [("t", number) for number in range(12)]
Tree = dict[str, tuple[bytes | None, int]]


class Rounds:
    """A client whose answers take the time of a round: those that were asked for before one of them is waited for come
    with it. ``fails``: the numbers of requests, from 1 on, that are never answered.
    """

    def __init__(self, client: Any) -> None:
        self.client, self.asked, self.arrived, self.count = client, 0, 0, 0
        self.fails: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.client, name)
        return self._asking(found) if name.endswith("_async") else found

    def transaction(self) -> Any:
        made = self.client.transaction()
        made.commit_async = self._asking(made.commit_async)
        return made

    def _asking(self, call: Any) -> Any:
        def ask(*arguments: Any, **named: Any) -> Result:
            answer: Result = call(*arguments, **named)
            self.asked += 1
            number, get = self.asked, answer.get

            def wait(timeout: float = 0.0) -> Any:
                if number > self.arrived:
                    self.count, self.arrived = self.count + 1, self.asked
                if number in self.fails:
                    raise Unreachable("no answer", way_out="wait")
                return get(timeout)

            answer.get = wait  # type: ignore[method-assign]
            return answer

        return ask


def group(patch: pytest.MonkeyPatch) -> tuple[Tree, Any, Rounds]:
    """A topic of 12 partitions, two members and a mode; nobody owns anything."""
    tree: Tree = {"/consumers/g/migration/mode": (b"kafka", 0), "/consumers/g/owners/t": (b"", 0)}
    topic(tree, "t", 12)
    for number, one in enumerate((ME, "g_other"), 1):
        tree[f"/consumers/g/ids/{one}"] = (Registration({"t": 1}).encode(0), number)
        tree[f"/consumers/g/migration/ids/{one}"] = (b"", number)
    made = session(patch, tree)
    rounds = Rounds(made._client)
    made._client = rounds  # type: ignore[assignment]
    return tree, made, rounds


def test_what_moves_at_a_toggle_waits_for_few_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the longest silence of a partition two thirds went into answers that were waited for one after the other:
    0.7 to 1.2 s for three locks, on a busy machine.
    """
    tree, one, rounds = group(monkeypatch)
    assert one.lock(dict.fromkeys(EVERY, 0), ME) == set(EVERY)
    assert rounds.count == 1
    seen = one.look(lambda members, every: ["t"])
    assert (rounds.count, len(seen.members), seen.mode) == (5, 2, "kafka")
    assert seen.partitions == {"t": tuple(range(12))} and seen.owners == dict.fromkeys(EVERY, 1)
    assert list(one.unlock(EVERY)) == EVERY
    assert rounds.count == 7
    assert not any(path.startswith("/consumers/g/owners/t/") for path in tree)


def test_a_look_asks_again_only_for_owner_znodes_that_may_be_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40 members with 1,500 partitions each asked for all 1,500 at every look: at once after each change."""
    tree, one, rounds = group(monkeypatch)
    tree.update({f"/consumers/g/owners/t/{n}": (b"g_other-0", 2) for n in range(3, 12)})
    one.lock(dict.fromkeys(EVERY[:2], 0), ME)

    def look() -> tuple[dict[Partition, int], int]:
        before = rounds.asked
        return dict(one.look(lambda members, every: ["t"]).owners), rounds.asked - before

    owners = dict.fromkeys(EVERY[:2], 1) | dict.fromkeys(EVERY[3:], 2)
    first, again = look(), look()
    assert first[0] == again[0] == owners and first[1] - again[1] == 9
    del tree["/consumers/g/owners/t/3"]
    tree["/consumers/g/owners/t/1"] = (b"g_old-0", 3)  # an old member has deleted the znode, and created its own
    tree["/consumers/g/owners/t/2"] = (b"g_me-0", 1)  # the answer to the lock has not come
    assert look()[0] == {EVERY[0]: 1, EVERY[1]: 3, EVERY[2]: 1} | dict.fromkeys(EVERY[4:], 2)
    tree["/consumers/g/owners/t/3"] = (b"g_me-0", 1)
    assert look()[0][EVERY[3]] == 1, "its name had gone: it is asked for anew"
    one.begin_session()
    assert look()[1] == first[1] + 1


HAPPENS = st.sampled_from(["comes", "goes", "takes away", "locks", "unlocks", "looks"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(HAPPENS, st.integers(0, 3))))
def test_what_is_not_asked_again_is_as_a_whole_look_would_show_it(
    monkeypatch: pytest.MonkeyPatch, events: list[tuple[str, int]]
) -> None:
    """Whatever others do, as long as this member locks only what it has seen free."""
    tree, one, _ = group(monkeypatch)
    taken: set[Partition] = set()
    for other, (event, number) in enumerate(events, 2):
        path = f"/consumers/g/owners/t/{number}"
        if event == "locks" and EVERY[number] not in taken:
            one.lock({EVERY[number]: 0}, ME)
        elif event == "unlocks":
            list(one.unlock([EVERY[number]]))
        elif event == "goes" and tree.get(path, (b"", 1))[1] != 1:
            del tree[path]
        elif event == "takes away" or (event == "comes" and path not in tree):
            tree[path] = (b"g_other-0", other)
        elif event == "looks":
            seen = one.look(lambda members, every: ["t"]).owners
            there = {("t", n): tree[p][1] for n in range(4) if (p := f"/consumers/g/owners/t/{n}") in tree}
            taken = {each for each, owner in seen.items() if owner != 1}
            assert seen.keys() == there.keys() and taken == {each for each, owner in there.items() if owner != 1}


def test_locks_that_somebody_has_are_left_and_ones_own_are_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tree, one, _ = group(monkeypatch)
    del tree["/consumers/g/owners/t"]
    tree["/consumers/g/owners/t/0"], tree["/consumers/g/owners/t/1"] = (b"g_other-0", 2), (b"g_me-7", 1)
    assert one.lock({EVERY[0]: 0, EVERY[1]: 3, EVERY[2]: 0}, ME) == {EVERY[1], EVERY[2]}
    assert tree["/consumers/g/owners/t/1"] == (b"g_me-3", 1)
    assert list(one.unlock(EVERY[:3])) == EVERY[:3]
    assert [path for path in tree if path.startswith("/consumers/g/owners/t/")] == ["/consumers/g/owners/t/0"]


def test_a_lock_that_an_old_member_takes_while_it_is_given_up_stays_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """1.1.1 deletes whosever owner znode there is, and makes its own, which is of version 0 as any that is new."""
    tree, one, _ = group(monkeypatch)
    kazoo = one._client.client
    one.lock(dict.fromkeys(EVERY[:2], 0), ME)
    ask, path = kazoo.exists_async, "/consumers/g/owners/t/0"

    def then_the_old_one_comes(asked: str, watch: object = None) -> Result:
        answer: Result = ask(asked, watch)
        if asked == path:
            del tree[path]
            tree[path] = (b"g_old-0", 3)
        return answer

    kazoo.exists_async = then_the_old_one_comes
    assert list(one.unlock(EVERY[:2])) == EVERY[:2], "neither is this member's any more"
    assert tree[path] == (b"g_old-0", 3) and "/consumers/g/owners/t/1" not in tree


@pytest.mark.parametrize("somebody_comes", [False, True])
def test_a_lock_that_is_deleted_in_place_of_another_one_is_missed_at_the_next_look(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, somebody_comes: bool
) -> None:
    """An old member deletes the first one's znode while that is given up, and a migrating one locks the partition: its
    znode is of the same version. It takes the lock anew, or lets the partition go where somebody else has it by then.
    """
    tree, path = Tree(), "/consumers/g/owners/t/0"
    topic(tree, "t", 1)
    late, first = member(monkeypatch, tree, Registration({"t": 1})), session(monkeypatch, tree, 2)
    kazoo = first._client
    kazoo._written = late.zookeeper._client._written  # versions are the server's
    first._ensure("/consumers/g/owners/t")
    assert first.lock({EVERY[0]: 0}, OTHER) == {EVERY[0]}
    ask = kazoo.exists_async

    def meanwhile(asked: str, watch: object = None) -> Result:
        answer: Result = ask(asked, watch)
        del tree[path]
        turn(late)
        assert set(late.state.held) == {EVERY[0]} and tree[path] == (b"g_me-0", 1)
        return answer

    kazoo.exists_async = meanwhile
    assert list(first.unlock(EVERY[:1])) == EVERY[:1] and path not in tree
    if somebody_comes:
        tree[path] = (b"g_old-0", 3)
    turn(late)
    assert "somebody has deleted the owner znode of this session" in caplog.text
    assert set(late.state.held) == (set() if somebody_comes else {EVERY[0]})


@pytest.mark.parametrize("taken_again", [False, True])
def test_a_lock_is_never_of_the_version_of_a_new_znode(monkeypatch: pytest.MonkeyPatch, taken_again: bool) -> None:
    tree, one, _ = group(monkeypatch)
    if taken_again:
        tree["/consumers/g/owners/t/0"] = (b"g_me-7", 1)
    one.lock({EVERY[0]: 0}, ME)
    assert one._client.client._stat("/consumers/g/owners/t/0").version == 1
    assert list(one.unlock(EVERY[:1])) == EVERY[:1] and "/consumers/g/owners/t/0" not in tree


def test_what_zookeeper_refuses_is_no_lock_of_somebody_else_s(monkeypatch: pytest.MonkeyPatch) -> None:
    _, one, _ = group(monkeypatch)
    one._client.client.create_async = lambda *_: Result(NoAuthError())
    with pytest.raises(Unreachable, match="NoAuthError"):
        one.lock({EVERY[0]: 0}, ME)


def test_a_topic_nobody_has_owned_yet_gets_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    tree, one, _ = group(monkeypatch)
    asked: list[str] = []
    create = one._client.client.create_async

    def homeless_at_first(path: str, data: bytes, ephemeral: bool) -> Result:
        asked.append(path)
        return create(path, data, ephemeral) if "/consumers/g/owners/t" in tree else Result(NoNodeError())

    del tree["/consumers/g/owners/t"]
    one._client.client.create_async = homeless_at_first
    assert one.lock(dict.fromkeys(EVERY[:2], 0), ME) == set(EVERY[:2])
    assert len(asked) == 4


def test_what_is_known_to_be_unlocked_is_told_before_an_answer_stays_out(monkeypatch: pytest.MonkeyPatch) -> None:
    _, one, rounds = group(monkeypatch)
    one.lock(dict.fromkeys(EVERY[:3], 0), ME)
    rounds.fails = {rounds.asked + 3 + 2}  # of three looks and three deletions
    told = one.unlock(EVERY[:3])
    assert next(told) == EVERY[0]
    with pytest.raises(Unreachable):
        next(told)


def test_a_network_that_falls_silent_is_noticed_though_kazoo_is_kept_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    _, one, _ = group(monkeypatch)
    kazoo = one._client.client
    cut: list[int] = []
    kazoo._connection._socket = SimpleNamespace(shutdown=cut.append)
    one._client = kazoo
    answers = kazoo.sync_async
    kazoo.sync_async = lambda path: SimpleNamespace(rawlink=lambda told: None)
    for _ in range(UNANSWERED):
        one._give_sign()
    assert cut == [], "two thirds of the session are not over"
    one._give_sign()
    assert cut == [socket.SHUT_RDWR]
    kazoo.sync_async = answers
    for _ in range(9):
        one._give_sign()
    kazoo.sync_async = lambda path: SimpleNamespace(rawlink=lambda told: None)
    for _ in range(9):
        one._give_sign()
        one._state_changed(KazooState.CONNECTED)
    assert len(cut) == 1, "an answer, and a new connection, begin anew"


def test_a_call_waits_no_longer_than_records_are_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    _, one, _ = group(monkeypatch)
    waited: list[float] = []
    answer: Any = SimpleNamespace(get=lambda timeout: waited.append(timeout))
    one.lease.begin(1)
    one._wait(answer)
    for age in (0.5, 2.5, 5.0):
        one.lease.begin(1)
        one.lease.renew(1, sent_now() - age)
        one._wait(answer)
    assert waited == [3.0, 3.0, pytest.approx(1.5, abs=0.2), 0.5], "before the first sign nothing is handed out"


def test_a_member_with_an_id_of_its_own_says_how_kafka_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """After its session too: so a scan tells it from a new member of that name."""
    tree: Tree = {}
    topic(tree, "t", 1)
    embedded = Embedded()
    one = member(monkeypatch, tree, Registration({"t": 1}), embedded=embedded)
    named = "/consumers/g/migration/embedded/g_me"
    for each in ("", "g_me-1", "g_me-2"):
        embedded.member_id = each
        turn(one)
        assert tree.get(named) == ((each.encode(), 0) if each else None)
    tree[named] = (b"g_me-3", 0)
    turn(one)
    assert tree[named] == (b"g_me-3", 0), "it is written once for each name that Kafka gives"
    one.state = replace(one.state, member="g_host-1699999999999-0a1b2c3d")
    embedded.member_id = "g_host-1699999999999-0a1b2c3d-4"
    one._name_embedded()
    assert [each for each in tree if each.startswith("/consumers/g/migration/embedded/")] == [named]


def test_a_connection_that_drops_after_a_look_takes_no_partition_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """kazoo has no id then; the records since the last commit were read twice, where the znodes were taken for lost."""
    tree: Tree = {}
    topic(tree, "t", 2)
    one = member(monkeypatch, tree, Registration({"t": 1}))
    turn(one)
    zookeeper: Any = one.zookeeper
    client, look = zookeeper._client, zookeeper.look

    def cut_off(*arguments: Any) -> GroupSeen:
        seen: GroupSeen = look(*arguments)
        client.client_id, client.connected = None, False
        return seen

    zookeeper.look = cut_off
    turn(one, 1)
    assert set(one.state.held) == {("t", 0), ("t", 1)}
    zookeeper.look = look
    client.client_id, client.connected = (1, b""), True
    turn(one, 1)
    assert set(one.state.held) == {("t", 0), ("t", 1)} and not one.sight.view.taken


class Changing:
    """A client whose session is another one at each question, the last for all that follow."""

    def __init__(self, client: Any, *ids: int) -> None:
        self.client, self.ids = client, list(ids)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    @property
    def client_id(self) -> tuple[int, bytes] | None:
        now = self.ids.pop(0) if len(self.ids) > 1 else self.ids[0]
        return (now, b"") if now else None


@pytest.mark.parametrize("ids", [(0,), (22, 0), (22, 33)])
def test_a_session_begins_once_kazoo_has_one(monkeypatch: pytest.MonkeyPatch, ids: tuple[int, ...]) -> None:
    """Without an id every call would be refused from then on, and the member silent for good."""
    _, one, _ = group(monkeypatch)
    kazoo = one._client.client
    one.lost.set()
    one._client = Changing(kazoo, *ids)
    with pytest.raises(Unreachable):
        one.begin_session()
    assert one.lost.is_set() and one.session == 1, "the coordinator begins again"
    one._client = Changing(kazoo, 22)
    one.begin_session()
    assert not one.lost.is_set() and one.session == 22 and one.lease.signed
    one._ensure("/x")
    one._client = Changing(kazoo, 33)
    with pytest.raises(Unreachable):
        one._ensure("/x")
