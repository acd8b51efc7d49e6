"""Reading many znodes at once from a real ZooKeeper."""

from __future__ import annotations

import time

import pytest
from bad_znodes import BAD, TOPIC, data_of
from kazoo.client import KazooClient
from kazoo.security import ACL, Id, Permissions
from labs import Lab

from kraft_runbook.cluster.observation import Consequence, Found
from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.handover import (
    ControllerZnodes,
    NothingDeleted,
    delete_controller_znodes,
    read_controller_znodes,
    why_not_deletable,
)
from kraft_runbook.io.zookeeper.multi_read import MultiRead
from kraft_runbook.io.zookeeper.raw_read import Paths
from kraft_runbook.io.zookeeper.read_columns import PartitionStates
from kraft_runbook.io.zookeeper.read_tree import read_tree
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.canonical_rows import Fingerprints
from kraft_runbook.metadata.znodes.znode_findings import PasswordSecrets
from kraft_runbook.metadata.znodes.znode_rows import Decoding

SIZES = [*range(0, 3000, 3), 900_000, 900_000, 900_000]


@pytest.fixture(scope="module")
def own_lab(zookeeper_alone: Lab) -> Lab:
    return zookeeper_alone


@pytest.fixture(scope="module")
def tree(own_lab: Lab, zookeeper: KazooClient) -> ZooKeeper:
    """A chroot of its own, with znodes from nothing to almost a megabyte."""
    zookeeper.ensure_path("/reader-test/n")
    for number, size in enumerate(SIZES):
        zookeeper.create(f"/reader-test/n/{number}", b"x" * size)
    return ZooKeeper(servers=own_lab.spec.zookeeper.servers, chroot="/reader-test")


def test_znodes_of_any_size_come_in_order_and_a_missing_one_is_none(tree: ZooKeeper) -> None:
    paths = ["/n/none", *(f"/n/{n}" for n in range(len(SIZES))), *["/n/1001"] * 30, "/n/none"]
    with ZookeeperReader(tree, secrets=environment_secrets({})) as reader:
        found = reader.get_many(paths)
        assert [len(z.data) if z else None for z in found] == [None, *SIZES, *[900_000] * 30, None]
        assert found[5] is not None and (found[5].path, found[5].version) == ("/n/4", 0)
        assert reader.children_many(["/", "/n/0", "/n/none"]) == [("n",), (), None]
        assert reader.get_many([]) == []
        assert (reader.server_version() or "").startswith("3.")


def test_whatever_a_reader_is_asked_nothing_in_zookeeper_changes(tree: ZooKeeper, zookeeper: KazooClient) -> None:
    asked = {
        "acl": ["/n"],
        "children": ["/n"],
        "children_many": [["/n", "/none"]],
        "get": ["/n/1"],
        "get_bulk": [PartitionStates(["t"], [2])],
        "get_many": [["/n/1", "/none"]],
        "get_raw": [Paths(["/n/1", "/none", "/"])],
        "is_restricted": ["/n"],
        "server_version": [],
    }
    before = stats(zookeeper, "/reader-test")
    with ZookeeperReader(tree, secrets=environment_secrets({})) as reader:
        assert {name for name in dir(reader) if not name.startswith("_")} == {*asked, "newest_zxid"}
        for name, given in asked.items():
            found = getattr(reader, name)(*given)
            if name == "get_bulk":
                assert [bulk.data for bulk in found] == [[None, None]]
            if name == "get_raw":
                assert [[znode and znode[0][:5] for znode in block.znodes] for block in found] == [
                    [b"\0\0\0\x03x", None, b"\0\0\0\0"]
                ]
        assert reader.newest_zxid > 0
    assert stats(zookeeper, "/reader-test") == before and len(before) == 2 + len(SIZES)


def stats(zookeeper: KazooClient, path: str) -> dict[str, tuple[int, int, int]]:
    """Of this znode and all below it: the last changes of its data, of its ACL and of its children."""
    stat = zookeeper.get(path)[1]
    found = {path: (stat.mzxid, stat.aversion, stat.pzxid)}
    for name in zookeeper.get_children(path):
        found |= stats(zookeeper, f"{path}/{name}")
    return found


def test_a_server_without_multi_read_is_read_one_by_one(tree: ZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MultiRead, "type", 99)  # no server knows this one
    with ZookeeperReader(tree, secrets=environment_secrets({})) as reader:
        assert [z and len(z.data) for z in reader.get_many(["/n/2", "/n/none", "/n/3"])] == [6, None, 9]
        assert reader.children_many(["/n/none"]) == [None]


def test_the_right_to_delete_is_the_parents_and_needs_no_right_to_create(
    tree: ZooKeeper, zookeeper: KazooClient
) -> None:
    anyone, kafka = Id("world", "anyone"), Id("digest", "kafka:Zm9vYmFyYmF6")
    zookeeper.create("/reader-test/brokers/ids", makepath=True)
    try:
        with ZookeeperReader(tree, secrets=environment_secrets({})) as reader:
            assert why_not_deletable(reader) is None
            zookeeper.set_acls("/reader-test", [ACL(Permissions.READ | Permissions.DELETE | Permissions.ADMIN, anyone)])
            assert why_not_deletable(reader) is None
            zookeeper.set_acls(
                "/reader-test",
                [ACL(Permissions.ALL, kafka), ACL(Permissions.READ | Permissions.CREATE | Permissions.ADMIN, anyone)],
            )
            said = why_not_deletable(reader) or ""
            assert "NoAuth: no DELETE on their parent, whose ACL is digest:kafka=cdrwa, world:anyone=cra" in said
            with pytest.raises(NothingDeleted, match="NoAuth"):
                delete_controller_znodes(reader, ControllerZnodes(None, reader.get("/n"), None))
            assert reader.children_many(["/", "/brokers"]) == [("brokers", "n"), ("ids",)]
    finally:
        zookeeper.set_acls("/reader-test", [ACL(Permissions.ALL, anyone)])
        zookeeper.delete("/reader-test/brokers", recursive=True)


OFFICE = {
    "/controller": b'{"version":2,"brokerid":101,"timestamp":"1","kraftControllerEpoch":4}',
    "/migration": (
        b'{"version":0,"kraft_metadata_offset":7,"kraft_controller_id":101,"kraft_metadata_epoch":4,"kraft_controller_epoch":4}'
    ),
    "/admin/reassign_partitions": b'{"version":1,"partitions":[]}',
}


@pytest.mark.parametrize("changed", OFFICE)
def test_what_kraft_holds_is_deleted_only_at_the_versions_that_were_read_all_of_it_or_none(
    own_lab: Lab, zookeeper: KazooClient, changed: str
) -> None:
    for path, data in OFFICE.items():
        zookeeper.create(f"/office{path}", data, makepath=True)
    here = ZooKeeper(servers=own_lab.spec.zookeeper.servers, chroot="/office")
    try:
        with ZookeeperReader(here, secrets=environment_secrets({})) as reader:
            znodes = read_controller_znodes(reader)
            assert znodes.held_by_kraft and znodes.written_to is not None
            zookeeper.set(f"/office{changed}", OFFICE[changed])
            with pytest.raises(NothingDeleted, match="changed after it was read"):
                delete_controller_znodes(reader, znodes)
            assert [path for path in OFFICE if not zookeeper.exists(f"/office{path}")] == []
            assert set(delete_controller_znodes(reader, read_controller_znodes(reader))) == {*OFFICE}
            assert [path for path in OFFICE if zookeeper.exists(f"/office{path}")] == []
    finally:
        zookeeper.delete("/office", recursive=True)


def test_an_ensemble_that_does_not_answer_is_named_in_time() -> None:
    started = time.monotonic()
    with (
        pytest.raises(Unreachable, match=r"127\.0\.0\.1:1 could not be read"),
        ZookeeperReader(ZooKeeper(servers=("127.0.0.1:1",)), secrets=environment_secrets({}), timeout=1),
    ):
        pass
    assert time.monotonic() - started < 5


def test_znodes_of_every_kind_that_kafka_cannot_go_on_with_are_found_by_their_paths(
    own_lab: Lab, zookeeper: KazooClient
) -> None:
    """One planted znode of each path, in a tree of their own: the brokers of the lab do not see it."""
    planted = {
        path: (data_of(content), expected)
        for path, content, expected in BAD
        if path != "/feature" and not path.endswith("/a/b")
    }
    zookeeper.create("/planted/brokers/topics/s", data_of(TOPIC), makepath=True)
    for path, (data, _) in planted.items():
        zookeeper.create(f"/planted{path}", data, makepath=True)
    zookeeper.create("/planted/config/changes/config_change_next", b"", makepath=True)
    with ZookeeperReader(
        ZooKeeper(servers=own_lab.spec.zookeeper.servers, chroot="/planted"), secrets=environment_secrets({})
    ) as reader:
        tree = read_tree(reader, Decoding(Fingerprints(b"salt")), PasswordSecrets())
    for consequence in Consequence:
        expected = {path for path, (_, said) in planted.items() if consequence in {each for each, _ in said}}
        if consequence is Consequence.KRAFT_DIFFERS:
            expected.add("/config/changes/config_change_next")
        found = tree.faults.get(consequence, Found())
        assert {each.partition(" (")[0] for each in found.samples} == expected
        assert found.count == len(found.samples)
    assert "/latest_producer_id_block" in tree.unreadable and tree.unreadable_count == len(tree.unreadable)
