"""A group's fence and its offsets in ZooKeeper: what is so is left alone, and what a session holds is not touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pytest

from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.groups.look import Mode
from kraft_runbook.io.zookeeper import group_znodes
from kraft_runbook.io.zookeeper.group_znodes import FENCE, MARKED
from kraft_runbook.io.zookeeper.znode import Znode

T0, T1 = ("t", 0), ("t", 1)
OWNERS, OFFSETS = "/consumers/g/owners/t", "/consumers/g/offsets/t"


class Tree:
    """ZooKeeper, and a writer to it. ``others``: what somebody else does before each transaction."""

    def __init__(self, *znodes: tuple[str, bytes, int]) -> None:
        self.znodes = {path: Znode(path, data, 3, 1, 1, 1, owner) for path, data, owner in znodes}
        self.others: Iterator[object] = iter(())

    def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        return [self.znodes.get(path) for path in paths]

    def set(self, path: str, data: bytes) -> None:
        self.znodes[path] = replace(self.znodes[path], data=data, version=self.znodes[path].version + 1)

    def write_together(
        self,
        *,
        make: Sequence[tuple[str, bytes]] = (),
        replace: Sequence[tuple[Znode, bytes]] = (),
        delete: Sequence[Znode] = (),
    ) -> bool:
        next(self.others, None)
        made: set[str] = set()
        for path, _ in make:
            parent = path.rsplit("/", 1)[0]
            assert parent in ("/consumers", *self.znodes, *made), f"{path} has no parent"
            made.add(path)
        if made & self.znodes.keys() or any(self.znodes.get(z.path) != z for z in [*delete, *(z for z, _ in replace)]):
            return False
        self.znodes |= {path: Znode(path, data, 0, 1, 1, 1, 0) for path, data in make}
        for znode, data in replace:
            self.set(znode.path, data)
        for znode in delete:
            del self.znodes[znode.path]
        return True

    def held(self, root: str) -> dict[str, bytes]:
        return {path: each.data for path, each in self.znodes.items() if path.startswith(f"{root}/")}


fence, lift_fence, mark_committed, write_offsets = (
    partial(each, writer=lambda tree: tree)  # type: ignore[arg-type, return-value]
    for each in (group_znodes.fence, group_znodes.lift_fence, group_znodes.mark_committed, group_znodes.write_offsets)
)


def test_a_fence_is_made_with_what_is_missing_above_it_and_once() -> None:
    tree = Tree(("/consumers/g", b"", 0))
    assert fence(tree, "g", [T1, T0]) == 2  # type: ignore[arg-type]
    assert tree.held(OWNERS) == {f"{OWNERS}/0": FENCE, f"{OWNERS}/1": FENCE}
    assert fence(tree, "g", [T0, T1]) == 0  # type: ignore[arg-type]


def test_a_partition_that_a_session_holds_is_not_fenced_nor_is_any_other() -> None:
    tree = Tree((f"{OWNERS}/1", b"g_host-0", 7))
    with pytest.raises(Refused, match="owners/t/1 is held by a session, of g_host-0"):
        fence(tree, "g", [T0, T1])  # type: ignore[arg-type]
    assert list(tree.znodes) == [f"{OWNERS}/1"]


def test_who_takes_a_partition_meanwhile_is_seen() -> None:
    tree = Tree(("/consumers/g", b"", 0), ("/consumers/g/owners", b"", 0), (OWNERS, b"", 0))
    taken = Znode(f"{OWNERS}/0", b"g_host-0", 0, 1, 1, 1, 7)
    tree.others = iter(tree.znodes.update({taken.path: taken}) for _ in range(1))
    with pytest.raises(Refused, match="of g_host-0"):
        fence(tree, "g", [T0])  # type: ignore[arg-type]


def test_a_lifted_fence_leaves_owners_with_a_session() -> None:
    tree = Tree((f"{OWNERS}/0", FENCE, 0), (f"{OWNERS}/1", b"g_host-0", 7))
    assert lift_fence(tree, "g", [T0, T1, ("t", 2)]) == 1  # type: ignore[arg-type]
    assert tree.held(OWNERS) == {f"{OWNERS}/1": b"g_host-0"}
    assert lift_fence(tree, "g", [T0, T1]) == 0  # type: ignore[arg-type]


def test_a_mark_is_written_to_fences_alone_and_once() -> None:
    tree = Tree((f"{OWNERS}/0", FENCE, 0), (f"{OWNERS}/1", b"g_host-0", 7))
    assert mark_committed(tree, "g", [T0, T1, ("t", 2)]) == 1  # type: ignore[arg-type]
    assert tree.held(OWNERS) == {f"{OWNERS}/0": FENCE + b"; committed", f"{OWNERS}/1": b"g_host-0"}
    assert mark_committed(tree, "g", [T0, T1]) == 0  # type: ignore[arg-type]
    assert MARKED == FENCE + b"; committed"
    assert lift_fence(tree, "g", [T0]) == 1  # type: ignore[arg-type]


def test_offsets_are_replaced_made_or_left_alone() -> None:
    tree = Tree(*((p, b"", 0) for p in ("/consumers/g", "/consumers/g/offsets", OFFSETS)), (f"{OFFSETS}/0", b"5", 0))
    assert write_offsets(tree, "g", {T0: 50, T1: 60}) == 2  # type: ignore[arg-type]
    assert tree.held(OFFSETS) == {f"{OFFSETS}/0": b"50", f"{OFFSETS}/1": b"60"}
    assert write_offsets(tree, "g", {T0: 50, T1: 60}) == 0  # type: ignore[arg-type]
    assert tree.znodes[f"{OFFSETS}/0"].version == 4


def test_an_offset_that_somebody_else_goes_on_writing_is_given_up() -> None:
    tree = Tree((f"{OFFSETS}/0", b"5", 0))
    tree.others = iter(tree.set(f"{OFFSETS}/0", str(n).encode()) for n in range(99))
    with pytest.raises(StepFailed, match="changed 3 times while they were written"):
        write_offsets(tree, "g", {T0: 50})  # type: ignore[arg-type]
    assert tree.znodes[f"{OFFSETS}/0"].data == b"2"


def test_many_partitions_go_in_several_transactions() -> None:
    tree = Tree(("/consumers/g", b"", 0))
    assert fence(tree, "g", [("t", n) for n in range(5)], at_once=2) == 5  # type: ignore[arg-type]
    assert lift_fence(tree, "g", [("t", n) for n in range(5)], at_once=2) == 5  # type: ignore[arg-type]


def test_the_mode_is_written_only_where_it_is_as_it_was_read() -> None:
    tree = Tree(("/consumers/g/migration", b"", 0))
    path = group_znodes.mode_path("g")
    write_mode = partial(group_znodes.write_mode, writer=lambda made: made)  # type: ignore[arg-type, return-value]
    read = partial(group_znodes.read_mode, tree)  # type: ignore[arg-type]
    assert read("g") is None
    assert write_mode(tree, "g", Mode.KAFKA, None) and tree.held("/consumers/g/migration") == {path: b"kafka"}
    assert not write_mode(tree, "g", Mode.ZOOKEEPER, None), "it is there by now"
    seen = read("g")
    tree.others = iter(lambda: tree.set(path, b"nonsense"), 0)  # somebody else, just before
    assert not write_mode(tree, "g", Mode.ZOOKEEPER, seen)
    tree.others = iter(())
    assert write_mode(tree, "g", Mode.ZOOKEEPER, read("g"))
    assert tree.held("/consumers/g/migration") == {path: b"zookeeper"}
