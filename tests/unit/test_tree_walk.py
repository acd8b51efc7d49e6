"""The walk over a tree: every znode once, parents first, whatever the shapes of its topics, and through what may not be
read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from asked_java import ask_java
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_jars import kafka_jar
from znodes_in_memory import InMemory, Tree, read_snapshot

from kraft_runbook.errors import Refused
from kraft_runbook.io.zookeeper.raw_read import Raw, raw_of
from kraft_runbook.io.zookeeper.snapshot_file import COUNTED_BESIDE, ZOOKEEPERS_OWN, encoded, snapshot_file
from kraft_runbook.io.zookeeper.tree_walk import SETTLING_SECONDS, TOPICS, TreeWalk

SKELETON = ("/", "/brokers", "/brokers/ids", TOPICS, "/config", "/config/topics", "/admin")


def topic(name: str, replicas: Mapping[str, Sequence[int]]) -> dict[str, InMemory]:
    """A whole topic, as Kafka makes it."""
    above = f"{TOPICS}/{name}"
    made = {above: InMemory(json.dumps({"version": 3, "partitions": replicas}).encode(), created=1)}
    made[f"{above}/partitions"] = InMemory(created=len(replicas))
    for number in replicas:
        made[f"{above}/partitions/{number}"] = InMemory(created=1)
        made[f"{above}/partitions/{number}/state"] = InMemory(b"{}", version=int(number))
    return made


def tree(*parts: Mapping[str, InMemory], most: int = 3) -> Tree:
    znodes = {path: InMemory() for path in SKELETON}
    for each in parts:
        znodes |= each
    found = Tree(znodes, most=most)
    for path, znode in znodes.items():
        znode.created = max(znode.created, len(found.children(path)))
    return found


class Walk:
    """What a walk gave: in its order, and what else it told."""

    def __init__(self, tree: Tree, dropped: str = "/consumers", **how: Any) -> None:
        self.unread: list[str] = []
        self.slept: list[float] = []
        self.tree = tree

        def enters(path: str, ephemeral: bool) -> bool:
            return not ephemeral and path != dropped

        walk = TreeWalk(tree, enters=enters, unreadable=self.unread.append, sleep=self.sleep, **how)
        self.paths: list[str] = []
        self.raw: dict[str, Raw] = {}
        self.replicas: dict[str, Mapping[str, Sequence[int]]] = {}
        for path, *raw in walk.all_but_topics():
            self._see(path, *raw)
        for each in walk.topics():
            self.replicas[each.name] = each.replicas
            for path, *raw in each.znodes:
                self._see(path, *raw)
        for path, *raw in walk.topic_configs():
            self._see(path, *raw)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def _see(self, path: bytes, data: bytes, stat: bytes) -> None:
        name = path.decode() or "/"
        above = name.rpartition("/")[0] or "/"
        assert name not in self.raw
        assert name == "/" or above in self.raw, f"{name} comes before its parent"
        self.paths.append(name)
        self.raw[name] = (data, stat)


def test_whole_topics_are_read_without_a_listing_of_theirs() -> None:
    given_ = tree(topic("a", {"0": [1, 2], "1": [2, 3]}), topic("b", {str(number): [1] for number in range(12)}))
    listed: list[str] = []
    children_many = given_.children_many
    given_.children_many = lambda paths: (listed.extend(paths), children_many(paths))[1]  # type: ignore[method-assign]
    walk = Walk(given_)
    assert set(walk.paths) == set(given_.znodes)
    assert walk.replicas["a"] == {"0": [1, 2], "1": [2, 3]}
    assert len(walk.replicas["b"]) == 12
    assert not [path for path in listed if path.startswith(f"{TOPICS}/")]
    assert len(given_.asked) == len(set(given_.asked)) == len(given_.znodes)
    assert not walk.slept
    assert walk.raw[f"{TOPICS}/b/partitions/11/state"][0] == b"\0\0\0\2{}"


ODD = {
    "no partitions yet": {f"{TOPICS}/t": InMemory(b'{"partitions":{"0":[1]}}')},
    "a partition without a state": {
        path: each
        for path, each in topic("t", {"0": [1], "1": [4]}).items()
        if path != f"{TOPICS}/t/partitions/1/state"
    },
    "a stray partition": topic("t", {"0": [1]}) | {f"{TOPICS}/t/partitions/7": InMemory()},
    "a gap": topic("t", {"0": [1], "2": [4]}),
    "a child of a state": topic("t", {"0": [1]}) | {f"{TOPICS}/t/partitions/0/state/x": InMemory()},
    "a child of a partition": topic("t", {"0": [1]}) | {f"{TOPICS}/t/partitions/0/x": InMemory()},
    "another child of the topic": topic("t", {"0": [1]}) | {f"{TOPICS}/t/x": InMemory(b"?")},
    "no assignment": {**topic("t", {"0": [1]}), f"{TOPICS}/t": InMemory(b"not json")},
    "an empty assignment": {f"{TOPICS}/t": InMemory(b'{"partitions":{}}'), f"{TOPICS}/t/partitions": InMemory()},
    "another number": topic("t", {"0": [1], "01": [4]}),
}


@pytest.mark.parametrize("shape", ODD)
def test_a_topic_of_another_shape_is_read_again_and_then_walked_as_it_is(shape: str) -> None:
    odd = tree(topic("a", {"0": [1]}), ODD[shape], topic("z", {"0": [1]}))
    walk = Walk(odd)
    assert set(walk.paths) == set(odd.znodes)
    assert walk.slept == [SETTLING_SECONDS]
    assert set(walk.replicas) == {"a", "t", "z"}


def test_a_topic_that_is_being_created_is_given_whole() -> None:
    whole = topic("t", {"0": [1], "1": [4]})
    given_ = tree({path: each for path, each in whole.items() if not path.endswith("1/state")})
    for path, each in whole.items():
        each.created = max(each.created, sum(other.rpartition("/")[0] == path for other in whole))

    class Settling(Walk):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            self.tree.znodes |= whole

    walk = Settling(given_)
    assert f"{TOPICS}/t/partitions/1/state" in walk.raw
    assert set(walk.paths) == set(given_.znodes)


def test_a_topic_that_is_gone_by_then_is_left_out() -> None:
    given_ = tree({f"{TOPICS}/t": InMemory(b'{"partitions":{"0":[1]}}')})

    class Settling(Walk):
        def sleep(self, seconds: float) -> None:
            del self.tree.znodes[f"{TOPICS}/t"]

    assert set(Settling(given_).paths) == set(SKELETON)


def test_a_topic_with_more_partitions_than_are_held_at_once_is_walked() -> None:
    many = {str(number): [1] for number in range(5)}
    given_ = tree(*(topic(name, {"0": [1], "1": [1], "2": [1]}) for name in "abcd"), topic("many", many))
    walk = Walk(given_, at_once=4)
    assert set(walk.paths) == set(given_.znodes)
    assert walk.replicas["many"] == many


def test_ephemerals_and_what_is_not_wanted_are_not_given() -> None:
    given_ = tree(
        {
            "/consumers": InMemory(),
            "/consumers/g": InMemory(b"secret"),
            "/brokers/ids/1": InMemory(b"{}", owner=72),
            "/admin/x": InMemory(b"x"),
        }
    )
    walk = Walk(given_)
    assert set(walk.paths) == {*SKELETON, "/admin/x"}
    assert "/consumers" not in given_.asked


CONTAINER, TTL_OF_A_DAY = -(2**63), -(2**56) + 86_400_000


@pytest.mark.parametrize("owner", [CONTAINER, TTL_OF_A_DAY])
@pytest.mark.parametrize("above", ["/config", TOPICS, f"{TOPICS}/t", f"{TOPICS}/t/partitions/0"])
def test_a_container_or_a_znode_with_a_time_to_live_is_persistent(above: str, owner: int) -> None:
    given_ = tree(topic("t", {"0": [1]}), {"/config/topics/t": InMemory(b"{}")})
    given_.znodes[above].owner = owner
    walk = Walk(given_)
    assert set(walk.paths) == set(given_.znodes)
    assert walk.raw[above][1] == given_.stat(above)


@pytest.mark.parametrize("owner", [72, 2**63 - 1, -1, CONTAINER + 1, -(2**56) + 2**40, -(2**56) - 1])
def test_what_a_session_owns_is_ephemeral_whatever_its_id(owner: int) -> None:
    """The first byte of a session's id is the server's number, which may be above 127."""
    assert "/admin/x" not in Walk(tree({"/admin/x": InMemory(owner=owner)})).paths


@pytest.mark.parametrize(
    "path",
    ["/brokers", TOPICS, f"{TOPICS}/t", f"{TOPICS}/t/partitions", f"{TOPICS}/t/partitions/1/state", "/config/topics"],
)
def test_what_may_not_be_read_is_named_and_all_else_is_read(path: str) -> None:
    given_ = tree(topic("a", {"0": [1]}), topic("t", {"0": [1], "1": [1]}), {"/config/topics/a": InMemory(b"{}")})
    given_.znodes[path].readable = False
    walk = Walk(given_)
    assert walk.unread == [path]
    assert set(walk.paths) == {each for each in given_.znodes if each != path and not each.startswith(f"{path}/")}


names = st.text("ab1", min_size=1, max_size=2)
anywhere = st.lists(names, max_size=3).map(lambda parts: "/" + "/".join(parts))
below_topics = st.lists(st.sampled_from(["a", "partitions", "0", "1", "state"]), max_size=5).map(
    lambda parts: TOPICS + "".join(f"/{each}" for each in parts)
)
topics = st.dictionaries(names, st.integers(1, 12), max_size=5).map(
    lambda made: [topic(name, {str(n): [n] for n in range(count)}) for name, count in made.items()]
)


@settings(deadline=None)
@given(st.lists(st.one_of(anywhere, below_topics), max_size=8), topics, st.integers(1, 9), st.data())
def test_any_tree_is_walked_whole_and_written_as_it_is(
    paths: list[str], made: list[dict[str, InMemory]], most: int, data: st.DataObject
) -> None:
    stray: dict[str, InMemory] = {}
    for path in paths:
        while path != "/":
            stray[path] = InMemory(b"x", created=data.draw(st.integers(0, 3)))
            path = path.rpartition("/")[0] or "/"
    given_ = tree(stray, *made, most=most)
    for path in data.draw(st.lists(st.sampled_from(sorted(given_.znodes)), max_size=2)):
        given_.znodes[path].created += data.draw(st.integers(0, 5))
        given_.znodes[path].version = data.draw(st.integers(0, 2**31 - 1))
    walk = Walk(given_, dropped="")
    assert set(walk.paths) == set(given_.znodes)
    for path, (_, stat) in walk.raw.items():
        assert stat == given_.stat(path)


def test_the_file_holds_what_the_walk_gave_with_the_server_s_own_counts(tmp_path: Path) -> None:
    given_ = tree(
        topic("a", {"0": [1], "1": [1]}), {"/admin/x": InMemory(b"x", version=9, created=5, zxid=0x500000007)}
    )
    walk = Walk(given_)
    with snapshot_file(tmp_path / "data") as snapshot:
        for path in walk.paths:
            snapshot.write(encoded(path.encode() if path != "/" else b"", *walk.raw[path]))
        snapshot.zxid = 0x500000007
    assert snapshot.path == tmp_path / "data" / "version-2" / "snapshot.500000007"
    assert snapshot.size == snapshot.path.stat().st_size
    assert snapshot.path.stat().st_mode & 0o777 == 0o600
    assert snapshot.path.parent.stat().st_mode & 0o777 == snapshot.path.parent.parent.stat().st_mode & 0o777 == 0o700
    nodes = read_snapshot(snapshot.path.read_bytes())
    assert set(nodes) == {path.removesuffix("/") if path == "/" else path for path in given_.znodes}
    for path, znode in given_.znodes.items():
        node = nodes[path.removesuffix("/")]
        assert (node.data, node.version, node.cversion) == (znode.data, znode.version, znode.created)
        assert (node.czxid, node.mzxid, node.ctime, node.mtime, node.aversion, node.pzxid) == (
            1,
            znode.zxid,
            2,
            3,
            4,
            5,
        )
        assert (node.acl, node.owner) == (-1, 0)


def test_zookeeper_s_own_reader_reads_the_file(tmp_path: Path) -> None:
    given_ = tree(topic("a", {"0": [1]}), {"/admin/x": InMemory(b"x", version=9, created=5)})
    walk = Walk(given_)
    with snapshot_file(tmp_path) as snapshot:
        for path in walk.paths:
            snapshot.write(encoded(path.encode() if path != "/" else b"", *walk.raw[path]))
            snapshot.write([ZOOKEEPERS_OWN] if path == "/" else [])
        snapshot.zxid = 7
    formatter = Path("org.apache.zookeeper.server.SnapshotFormatter")
    told = ask_java(formatter, "-d", tmp_path / "version-2" / "snapshot.7", jars=kafka_jar("kafka_2.13").parent)
    znodes = {each.partition("\n")[0]: each for each in told.split("----\n") if each.startswith("/")}
    assert set(znodes) == {*given_.znodes, "/zookeeper", "/zookeeper/quota", "/zookeeper/config"}
    for path, znode in given_.znodes.items():
        assert f"cversion = {znode.created}\n" in znodes[path]
        assert f"dataVersion = {znode.version}\n" in znodes[path]
        assert f"mZxid = 0x{znode.zxid:014x}\n" in znodes[path]
    assert "data = eA==" in znodes["/admin/x"]
    assert f"(count={len(given_.znodes) + COUNTED_BESIDE})" in told, "as a server counts them"


def test_a_file_is_there_whole_or_not_at_all_and_one_of_a_server_that_ran_is_let_alone(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), snapshot_file(tmp_path) as snapshot:
        snapshot.write(encoded(b"", *raw_of(b"x", [0] * 11)))
        raise KeyboardInterrupt
    assert not list((tmp_path / "version-2").iterdir())
    for zxid in (5, 6):
        with snapshot_file(tmp_path) as snapshot:
            snapshot.zxid = zxid
    assert [each.name for each in (tmp_path / "version-2").iterdir()] == ["snapshot.6"]
    (tmp_path / "version-2" / "log.7").touch()
    with pytest.raises(Refused, match="a ZooKeeper has run on"), snapshot_file(tmp_path):
        pass
