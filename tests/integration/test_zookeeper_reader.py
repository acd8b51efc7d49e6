"""Reading many znodes at once from a real ZooKeeper."""

from __future__ import annotations

import time

import pytest
from kazoo.client import KazooClient
from labs import Lab

from kraft_runbook.clients.multi_read import MultiRead
from kraft_runbook.clients.secrets import environment_secrets
from kraft_runbook.clients.zookeeper import ZookeeperReader
from kraft_runbook.cluster import ZooKeeper
from kraft_runbook.errors import Unreachable

SIZES = [*range(0, 3000, 3), 900_000, 900_000, 900_000]


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


def test_a_server_without_multi_read_is_read_one_by_one(tree: ZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MultiRead, "type", 99)  # no server knows this one
    with ZookeeperReader(tree, secrets=environment_secrets({})) as reader:
        assert [z and len(z.data) for z in reader.get_many(["/n/2", "/n/none", "/n/3"])] == [6, None, 9]
        assert reader.children_many(["/n/none"]) == [None]


def test_an_ensemble_that_does_not_answer_is_named_in_time() -> None:
    started = time.monotonic()
    with (
        pytest.raises(Unreachable, match=r"127\.0\.0\.1:1 could not be read"),
        ZookeeperReader(ZooKeeper(servers=("127.0.0.1:1",)), secrets=environment_secrets({}), timeout=1),
    ):
        pass
    assert time.monotonic() - started < 5
