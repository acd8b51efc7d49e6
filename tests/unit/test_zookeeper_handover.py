"""Giving the office back: whether nothing was deleted, or it is not known what was, decides whether the controllers may
run again.
"""

from __future__ import annotations

from typing import Any

import pytest
from kazoo.exceptions import BadVersionError, ConnectionLoss, NoAuthError, RolledBackError, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError
from observations import SPEC

from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.zookeeper import handover
from kraft_runbook.io.zookeeper.handover import (
    ControllerZnodes,
    NothingDeleted,
    await_election,
    delete_controller_znodes,
    read_controller_znodes,
    require_deletable,
    require_epoch_settable,
)
from kraft_runbook.io.zookeeper.znode import Znode


@pytest.fixture(autouse=True)
def _the_reader_is_the_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "ZookeeperWriter", lambda reader: reader)


def znode(path: str, data: bytes) -> Znode:
    return Znode(path, data, version=1, czxid=1, mzxid=1, pzxid=1, ephemeral_owner=0)


HELD = ControllerZnodes(
    znode("/controller", b'{"brokerid":101,"kraftControllerEpoch":4}'), znode("/migration", b"{}"), None
)


class Reader:
    """A reader and its writer, whose deletion is answered so; why nothing may be deleted is not its part. ``now``:
    what /controller holds afterwards.
    """

    now: bytes | None = None

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def get(self, path: str) -> Znode | None:
        assert path == "/controller"
        return None if self.now is None else znode(path, self.now)

    def delete_all(self, znodes: list[Znode], **_: Any) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def may_delete_beside(self, path: str) -> bool:
        return False

    def may_write(self, path: str) -> bool:
        return True

    def acl(self, path: str) -> str:
        return "nobody"

    def get_many(self, paths: list[str]) -> list[None]:
        return [None] * len(paths)


@pytest.mark.parametrize(
    "error",
    [ConnectionLoss(), SessionExpiredError(), KazooTimeoutError(), OSError()],
    ids=lambda error: type(error).__name__,
)
def test_where_the_connection_breaks_it_is_not_known_what_was_deleted(error: Exception) -> None:
    with pytest.raises(StepFailed, match="could not be deleted") as failed:
        delete_controller_znodes(Reader(error), HELD)  # type: ignore[arg-type]
    assert not isinstance(failed.value, NothingDeleted)


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([NoAuthError(), RolledBackError()], r"could not be changed.*NoAuth"),
        ([RolledBackError(), BadVersionError()], "changed after it was read"),
    ],
    ids=["NoAuth", "BadVersion"],
)
def test_where_zookeeper_answers_no_nothing_was_deleted(answers: list[Exception], why: str) -> None:
    with pytest.raises(NothingDeleted, match=why):
        delete_controller_znodes(Reader(answers), HELD)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("now", "way_out"),
    [
        (b'{"brokerid":3,"kraftControllerEpoch":-1}', "begins again with broker 3, which is the controller now"),
        (b'{"brokerid":109,"kraftControllerEpoch":9}', "KRaft controller 109 is in /controller now. Find the running"),
        (None, "clear this task: it begins again with what ZooKeeper holds then"),
        (b"garbage", "clear this task: it begins again with what ZooKeeper holds then"),
    ],
)
def test_an_ordinary_election_of_a_broker_is_not_taken_for_a_controller_that_nobody_declared(
    now: bytes | None, way_out: str
) -> None:
    reader: Any = Reader([BadVersionError(), RolledBackError()])
    reader.now = now
    with pytest.raises(NothingDeleted) as failed:
        delete_controller_znodes(reader, HELD)
    assert way_out in failed.value.way_out
    assert ("does not name" in failed.value.way_out) == (now is not None and b"109" in now)


@pytest.mark.parametrize(
    ("holder", "elected_at", "set_at", "deleted"),
    [
        (b'{"brokerid":2}', 7, 7, {"/migration"}),
        (b'{"brokerid":2}', 7, 8, {"/migration", "/controller"}),
        (b'{"brokerid":101,"kraftControllerEpoch":4}', 7, 8, {"/migration", "/controller"}),
    ],
    ids=["one transaction", "set by hand later", "KRaft's is deleted anyhow"],
)
def test_a_broker_that_can_write_nothing_since_the_epoch_was_set_by_hand_loses_the_role(
    holder: bytes, elected_at: int, set_at: int, deleted: set[str]
) -> None:
    """An election creates /controller and writes /controller_epoch in one transaction (``KafkaZkClient``)."""
    asked: list[tuple[set[str], Any]] = []

    class Deletes(Reader):
        def delete_all(self, znodes: list[Znode], **more: Any) -> Any:
            asked.append(({each.path for each in znodes}, more))
            return [True] * (len(znodes) + 1)

    epoch = Znode("/controller_epoch", b"9", 3, czxid=1, mzxid=set_at, pzxid=1, ephemeral_owner=0)
    controller = Znode("/controller", holder, 0, elected_at, elected_at, elected_at, 5)
    znodes = ControllerZnodes(controller, znode("/migration", b"{}"), None, epoch)
    assert znodes.cut_off == (set_at > elected_at and b"kraft" not in holder)
    delete_controller_znodes(Deletes(None), znodes)  # type: ignore[arg-type]
    assert asked == [(deleted, {"unchanged": epoch})]


@pytest.mark.parametrize(
    ("controller", "deleted"),
    [
        (b'{"brokerid":101,"kraftControllerEpoch":4}', {"/controller", "/migration", "/admin/reassign_partitions"}),
        (b'{"brokerid":101,"kraftControllerEpoch":0}', {"/controller", "/migration", "/admin/reassign_partitions"}),
        (b'{"brokerid":2,"kraftControllerEpoch":-1}', {"/migration"}),
        (b'{"brokerid":2}', {"/migration"}),
    ],
)
def test_a_broker_that_was_elected_keeps_the_office_and_its_reassignment(controller: bytes, deleted: set[str]) -> None:
    asked: list[str] = []

    class Deletes(Reader):
        def delete_all(self, znodes: list[Znode], **_: Any) -> Any:
            asked.extend(each.path for each in znodes)
            return [True] * len(znodes)

    left = znode("/admin/reassign_partitions", b"{}")
    znodes = ControllerZnodes(znode("/controller", controller), znode("/migration", b"{}"), left)
    assert set(delete_controller_znodes(Deletes(None), znodes)) == deleted == set(asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("held_by", [101, 2])
@pytest.mark.parametrize("wanted", [None, 9])
def test_what_is_set_and_what_must_be_unchanged_goes_into_the_same_transaction(
    held_by: int, wanted: int | None
) -> None:
    """Whoever claims the role meanwhile changes /controller_epoch; it is never set without an election after it."""
    asked: list[tuple[set[str], Any]] = []

    class Deletes(Reader):
        def delete_all(self, znodes: list[Znode], **more: Any) -> Any:
            asked.append(({each.path for each in znodes}, more))
            return [True] * (len(znodes) + len(more))

    epoch, raft = znode("/controller_epoch", b"5"), 4 if held_by == 101 else -1
    controller = znode("/controller", b'{"brokerid":%d,"kraftControllerEpoch":%d}' % (held_by, raft))
    znodes = ControllerZnodes(controller, znode("/migration", b"{}"), None, epoch)
    delete_controller_znodes(Deletes(None), znodes, epoch=wanted)  # type: ignore[arg-type]
    ((deleted, more),) = asked
    assert deleted == ({"/migration"} if held_by == 2 and wanted is None else {"/controller", "/migration"})
    assert more == ({"unchanged": epoch} if wanted is None else {"first": (epoch, b"9")})


@pytest.mark.parametrize("migration", [b"{}", None], ids=["with a /migration", "nothing to delete"])
def test_a_kraft_controller_that_claims_the_role_of_a_broker_is_seen(migration: bytes | None) -> None:
    """As in the time before the copy, between the last look and the end of the controllers' processes."""

    class Claimed(Reader):
        def delete_all(self, znodes: list[Znode], *, unchanged: Znode, **_: Any) -> Any:
            assert unchanged.path == "/controller_epoch"
            return [BadVersionError(), *[RolledBackError()] * len(znodes)]

    left = None if migration is None else znode("/migration", migration)
    znodes = ControllerZnodes(znode("/controller", b'{"brokerid":2}'), left, None, znode("/controller_epoch", b"5"))
    with pytest.raises(NothingDeleted, match="changed after it was read"):
        delete_controller_znodes(Claimed(None), znodes)  # type: ignore[arg-type]


def test_where_nobody_has_the_role_no_epoch_is_set() -> None:
    """A /controller that is gone for a moment: whoever is about to be elected would fail at the other version."""
    znodes = ControllerZnodes(None, znode("/migration", b"{}"), None, znode("/controller_epoch", b"5"))
    with pytest.raises(NothingDeleted, match="must be set to 9, and nobody has the controller role"):
        delete_controller_znodes(Reader(AssertionError("it was asked")), znodes, epoch=9)  # type: ignore[arg-type]


@pytest.mark.parametrize("after", range(4))
def test_a_claim_between_two_single_reads_shows_in_the_version_that_guards(after: int) -> None:
    """A server before ZooKeeper 3.6 shows the znodes one by one. The guard is never newer than /controller."""

    class OneByOne(Reader):
        version = 1

        def get_many(self, paths: list[str]) -> list[Any]:
            found = []
            for at, path in enumerate(paths):
                self.version = 1 if at < after else 2
                found.append(Znode(path, b"{}", self.version, 1, 1, 1, 0))
            return found

    found = read_controller_znodes(OneByOne(None))  # type: ignore[arg-type]
    assert found.epoch is not None and found.controller is not None
    assert (found.epoch.path, found.controller.path) == ("/controller_epoch", "/controller")
    assert found.migration is not None and found.migration.path == "/migration"
    assert found.reassignment is not None and found.reassignment.path == "/admin/reassign_partitions"
    assert found.epoch.version <= found.controller.version


class Rights(Reader):
    """What this session may not: ``deleting``, ``writing``."""

    def __init__(self, *lacking: str) -> None:
        self.lacking = lacking

    def may_delete_beside(self, path: str) -> bool:
        return "deleting" not in self.lacking

    def may_write(self, path: str) -> bool:
        return "writing" not in self.lacking


def test_the_right_to_write_the_epoch_is_asked_for_only_where_it_must_be_set() -> None:
    znodes = ControllerZnodes(None, None, None, znode("/controller_epoch", b"5"))
    lacks: Any = Rights("writing")
    require_deletable(lacks)
    assert "may not write /controller_epoch" in str(require_epoch_settable(lacks, znodes, 5))
    with pytest.raises(Refused, match=r"may not write /controller_epoch .*must be set to 6; nothing was stopped"):
        require_epoch_settable(lacks, znodes, 6)
    may: Any = Rights("deleting")
    assert require_epoch_settable(may, znodes, 5) is require_epoch_settable(may, znodes, 6) is None
    with pytest.raises(Refused, match="may not delete /controller and /migration"):
        require_deletable(may)


@pytest.mark.parametrize(("greatest", "wanted"), [(4, None), (5, None), (6, 6)])
def test_an_epoch_is_set_only_where_it_is_too_low(greatest: int, wanted: int | None) -> None:
    znodes = ControllerZnodes(None, None, None, znode("/controller_epoch", b"5"))
    assert znodes.epoch_wanted(greatest) == wanted


def test_only_a_broker_of_this_cluster_is_taken_for_elected() -> None:
    """A KRaft controller that came back is not; nor is a broker that the cluster file does not name."""

    class Shows(Reader):
        def __init__(self, *controllers: bytes) -> None:
            self.left = list(controllers)

        def get(self, path: str) -> Znode:
            return znode(path, self.left.pop(0) if len(self.left) > 1 else self.left[0])

    kraft, stranger, ours = (
        b'{"brokerid":1,"kraftControllerEpoch":4}',
        b'{"brokerid":9,"kraftControllerEpoch":-1}',
        b'{"brokerid":2,"kraftControllerEpoch":-1}',
    )
    assert await_election(Shows(kraft, stranger, ours), SPEC, within=30) == 2  # type: ignore[arg-type]
    for never in (kraft, stranger):
        with pytest.raises(StepFailed, match="no broker was elected controller"):
            await_election(Shows(never), SPEC, within=0.05)  # type: ignore[arg-type]
