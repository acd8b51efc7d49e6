"""The rights that this tool needs in ZooKeeper, on a real one: as a user that has what the table says and nothing else
it does its work, and where one is taken away it says which znode it was; nothing is read as if it were not there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import ACL, Permissions, make_acl
from lone_zookeeper import KAFKA, LIMITED, SECRETS, ensemble, serving

from kraft_runbook.cluster.observation import ZookeeperTree
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.zookeeper.claim_znode import ClaimZnode, group_path
from kraft_runbook.io.zookeeper.clock import read_clock
from kraft_runbook.io.zookeeper.depose import depose
from kraft_runbook.io.zookeeper.group_znodes import fence, lift_fence, mark_committed, write_offsets
from kraft_runbook.io.zookeeper.handover import delete_controller_znodes, read_controller_znodes
from kraft_runbook.io.zookeeper.read_groups import read_groups
from kraft_runbook.io.zookeeper.read_state import read_zookeeper
from kraft_runbook.io.zookeeper.read_tree import read_tree
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.session import ZookeeperSession
from kraft_runbook.parity.decoding import decoding_of, password_secrets
from kraft_runbook.parity.state_versions import Behind
from kraft_runbook.procedures.raise_versions import raise_versions
from kraft_runbook.runbook.rights import ZOOKEEPER, ZnodeRight
from lab.layout import load
from lab.secured.certificates import Authority

CHROOT = "/kafka"
STATE = "/brokers/topics/orders/partitions/0/state"
TOKEN = {"version": 1, "tokenId": "t", "owner": "User:a", "renewers": [], "issueTimestamp": "1", "maxTimestamp": "2"}
TREE: Mapping[str, object] = {
    "/cluster/id": {"version": "1", "id": "ddaYNaX2RW-M4Tbe3DPT9A"},
    "/controller_epoch": 3,
    "/controller": {"version": 1, "brokerid": 1, "timestamp": "1"},
    "/migration": {
        "version": 0,
        "kraft_metadata_offset": -1,
        "kraft_controller_id": -1,
        "kraft_metadata_epoch": -1,
        "kraft_controller_epoch": -1,
    },
    "/brokers/ids/1": {"version": 5, "endpoints": ["PLAINTEXT://h:9092"], "rack": "a", "host": "h", "port": 9092},
    "/brokers/topics/orders": {
        "version": 3,
        "topic_id": "BQHmqfPtTlGeScgm5iii_A",
        "partitions": {"0": [1]},
        "adding_replicas": {},
        "removing_replicas": {},
    },
    STATE: {"version": 1, "leader": 1, "isr": [1], "leader_epoch": 0, "controller_epoch": 3},
    "/config/topics/orders": {"version": 1, "config": {"retention.ms": "1"}},
    "/config/clients/app": {"version": 1, "config": {"producer_byte_rate": "1"}},
    "/config/users/alice": {"version": 1, "config": {"producer_byte_rate": "1"}},
    "/config/users/alice/clients/app": {"version": 1, "config": {"producer_byte_rate": "1"}},
    "/config/brokers/1": {"version": 1, "config": {"log.cleaner.threads": "1"}},
    "/config/ips/192.0.2.1": {"version": 1, "config": {"connection_creation_rate": "1"}},
    "/config/changes": None,
    "/admin/delete_topics": None,
    "/admin/reassign_partitions": {"version": 1, "partitions": []},
    "/kafka-acl/Topic/orders": {
        "version": 1,
        "acls": [{"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}],
    },
    "/kafka-acl-extended/prefixed/Topic/o": {"version": 1, "acls": []},
    "/kafka-acl-changes": None,
    "/kafka-acl-extended-changes": None,
    "/delegation_token/tokens/t": TOKEN,
    "/delegation_token/token_changes": None,
    "/latest_producer_id_block": {"version": 1, "broker": 1, "block_start": "0", "block_end": "999"},
    "/feature": {"version": 1, "status": 0, "features": {}},
    "/consumers/old/ids": None,
    "/consumers/old/owners/orders/0": "old_host-1-1-0",
    "/consumers/old/offsets/orders/0": 7,
}
"""A cluster in ZooKeeper mode; None: no data."""


@dataclass
class Ground:
    """The tree, as the brokers' user and as the limited one see it."""

    admin: KazooClient
    spec: ClusterSpec

    def make(self) -> None:
        if self.admin.exists(CHROOT):
            self.admin.delete(CHROOT, recursive=True)
        for path, content in TREE.items():
            data = content if isinstance(content, str) else "" if content is None else json.dumps(content)
            self.admin.ensure_path(f"{CHROOT}{path}")
            self.admin.set(f"{CHROOT}{path}", data.encode())
        for path in self.paths():
            self.let(path, Permissions.READ)

    def paths(self, at: str = "/") -> Iterator[str]:
        yield at
        for name in self.admin.get_children(f"{CHROOT}{at}".rstrip("/")):
            yield from self.paths(f"{at.rstrip('/')}/{name}")

    def let(self, path: str, permissions: int) -> None:
        """What the limited user may do there; nobody else but the brokers' user may do anything."""
        own: list[ACL] = [make_acl("sasl", KAFKA, all=True)]
        if permissions:
            own.append(ACL(permissions, make_acl("sasl", LIMITED).id))
        self.admin.set_acls(f"{CHROOT}{path}".rstrip("/"), own)

    def reader(self) -> ZookeeperReader:
        return ZookeeperReader(self.spec.ensemble, secrets=SECRETS, timeout=10)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    with serving(authority) as port:
        session = ZookeeperSession(ensemble(authority, port), secrets=SECRETS)
        session.connect()
        try:
            spec = load().model_copy(
                update={
                    "zookeeper": ensemble(authority, port, user=LIMITED, chroot=CHROOT),
                    "secrets": {},
                }
            )
            yield Ground(session.client, spec)
        finally:
            session.close()


@pytest.fixture
def tree(ground: Ground) -> Ground:
    ground.make()
    return ground


# -- reading -----------------------------------------------------------------------------------------------------------


def look(ground: Ground) -> list[str]:
    """What a look at all of it could not read."""
    sides: list[object] = []
    decoding = decoding_of(ground.spec, secrets=SECRETS)

    def deep(reader: ZookeeperReader) -> ZookeeperTree:
        tree = read_tree(reader, decoding, password_secrets(ground.spec, SECRETS))
        sides.extend(side for some in read_groups(reader) for _, side in some)
        return tree

    try:
        state, topics = read_zookeeper(ground.spec.ensemble, secrets=SECRETS, deep=deep, timeout=10)
    except RunbookError as error:
        return [error.problem]
    assert topics == {"orders"}
    return [each.reason for each in (state.tree, *sides) if isinstance(each, Unread)]


def test_with_the_right_to_read_all_is_read(tree: Ground) -> None:
    assert look(tree) == []


ONLY_ABOVE_OTHERS = frozenset(
    {
        "/",
        "/admin",
        "/brokers",
        "/brokers/topics/orders/partitions",
        "/brokers/topics/orders/partitions/0",
        "/cluster",
        "/consumers/old",
        "/delegation_token",
        "/kafka-acl-extended",
    }
)
"""They have no data, and what is below them is asked for by name: ZooKeeper wants no right of theirs for it. A
rehearsal's copy asks for their children too.
"""


def test_no_znode_that_may_not_be_read_is_taken_for_one_that_is_not_there(tree: Ground) -> None:
    """Each in turn, by its name or that of one beside it: one request reads many."""
    silent = []
    for path in list(tree.paths()):
        tree.let(path, 0)
        told = look(tree)
        tree.let(path, Permissions.READ)
        if not told:
            silent.append(path)
        assert all("NoAuth" in each for each in told), (path, told)
    assert set(silent) <= ONLY_ABOVE_OTHERS, sorted(set(silent) - ONLY_ABOVE_OTHERS)


# -- writing -----------------------------------------------------------------------------------------------------------


def claim(tree: Ground) -> None:
    with tree.reader() as reader:
        for path in ("/kraft_runbook_claim", group_path("old")):
            place = ClaimZnode(reader, path)
            assert place.read() is None and place.write(b"{}")
            assert place.read() == b"{}" and place.delete()


def hand_over(tree: Ground) -> None:
    by_kraft = {"version": 2, "brokerid": 101, "timestamp": "1", "kraftControllerEpoch": 5}
    tree.admin.set(f"{CHROOT}/controller", json.dumps(by_kraft).encode())
    with tree.reader() as reader:
        deleted = delete_controller_znodes(reader, read_controller_znodes(reader), epoch=9)
    assert set(deleted) == {"/controller", "/migration", "/admin/reassign_partitions"}


def raise_one(tree: Ground) -> None:
    by_kraft = {"version": 2, "brokerid": 101, "timestamp": "1", "kraftControllerEpoch": 5}
    tree.admin.set(f"{CHROOT}/controller", json.dumps(by_kraft).encode())
    version = tree.admin.get(f"{CHROOT}{STATE}")[1].version
    with tree.reader() as reader:
        assert raise_versions(reader, [Behind("orders", 0, version, version + 2)])


def move(tree: Ground) -> None:
    """To Kafka and back, of a group that is there and of one that is not yet."""
    tree.admin.delete(f"{CHROOT}/consumers/old/owners/orders/0")
    some = [("orders", 0)]
    with tree.reader() as reader:
        for group in ("old", "new"):
            assert fence(reader, group, some) == 1
            assert mark_committed(reader, group, some) == 1
            assert write_offsets(reader, group, {("orders", 0): 9}) == 1
            assert lift_fence(reader, group, some) == 1


def tell_the_time(tree: Ground) -> None:
    with tree.reader() as reader:
        now = read_clock(reader)
    if isinstance(now, Unread):
        raise RunbookError(now.reason, way_out=now.way_out)


def take_the_role(tree: Ground) -> None:
    assert depose(tree.spec, secrets=SECRETS) == 1


WRITES: Mapping[str, Callable[[Ground], Any]] = {
    "io.zookeeper.handover": hand_over,
    "procedures.raise_versions": raise_one,
    "io.zookeeper.claim_znode": claim,
    "io.zookeeper.group_znodes": move,
    "io.zookeeper.depose": take_the_role,
    "io.zookeeper.clock": tell_the_time,
}
PERMISSIONS = {name: getattr(Permissions, name) for name in ("READ", "WRITE", "CREATE", "DELETE")}


def named(right: ZnodeRight) -> str:
    """The znode of this tree that the words stand for."""
    return right.path.replace("TOPIC", "orders").replace("NUMBER", "0").replace("GROUP", "old")


def grant(tree: Ground, rights: list[ZnodeRight]) -> None:
    """These, and to read all."""
    held: dict[str, int] = {}
    for right in rights:
        root = named(right)
        for path in tree.paths(root) if right.below else (root,):
            held[path] = held.get(path, 0) | PERMISSIONS[right.permission]
    for path, permissions in held.items():
        tree.let(path, permissions | Permissions.READ)


CASES = [pytest.param(right.asks, lost, id=f"{right.asks}: {lost}") for right in ZOOKEEPER for lost in right.needs]


@pytest.mark.parametrize("asks", WRITES)
def test_with_the_rights_of_the_table_it_writes(tree: Ground, asks: str) -> None:
    (right,) = (each for each in ZOOKEEPER if each.asks == asks)
    grant(tree, list(right.needs))
    WRITES[asks](tree)


@pytest.mark.parametrize(("asks", "lost"), [case for case in CASES if case.values[0] in WRITES])
def test_where_one_is_taken_away_that_is_said(tree: Ground, asks: str, lost: ZnodeRight) -> None:
    (right,) = (each for each in ZOOKEEPER if each.asks == asks)
    grant(tree, [each for each in right.needs if each != lost])
    with pytest.raises(RunbookError) as raised:
        WRITES[asks](tree)
    told = f"{raised.value.problem}; {raised.value.way_out}"
    assert "NoAuth" in told and f"no {lost.permission}" in told, told


def test_every_line_is_asked_for() -> None:
    assert {each.asks for each in ZOOKEEPER} == {*WRITES, "io.zookeeper.reader", "io.zookeeper.broker_znodes"}
