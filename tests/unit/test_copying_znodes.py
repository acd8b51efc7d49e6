"""What copying a tree tells of it besides the copy: who is there, and which configs the copy lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from bad_znodes import config, data_of
from test_tree_walk import topic
from znodes_in_memory import InMemory, Tree, read_snapshot

from kraft_runbook.cluster.observation import Found
from kraft_runbook.io.zookeeper.snapshot_file import snapshot_file
from kraft_runbook.io.zookeeper.tree_walk import TreeWalk
from kraft_runbook.procedures.copy_tree import _Copying
from kraft_runbook.rehearsal.copied_tree import CopiedTree
from kraft_runbook.rehearsal.replacing import Replacements
from kraft_runbook.rehearsal.since import Keeping

ABOVE = (
    *("/", "/admin", "/admin/delete_topics", "/brokers", "/brokers/ids", "/brokers/topics"),
    *("/config", "/config/brokers", "/config/topics"),
)
Meanwhile = Callable[[dict[str, InMemory]], object]
"""What becomes of the source's znodes."""


class Changing(Tree):
    """A tree to which something happens once, after the children of a znode were listed."""

    def __init__(self, znodes: dict[str, InMemory], after: str, happens: Meanwhile) -> None:
        super().__init__(znodes)
        self._after, self._happens = after, happens

    def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
        found = super().children_many(paths)
        if self._after in paths:
            self._after = ""
            self._happens(self.znodes)
        return found


def copied(
    tmp_path: Path, znodes: dict[str, InMemory], *, after: str = "", happens: Meanwhile = len
) -> tuple[_Copying, dict[str, InMemory]]:
    """What was seen, and the copy. ``happens``: after the children of the znode at ``after`` were listed."""
    tree = Changing({path: InMemory() for path in ABOVE} | znodes, after, happens)
    for path, znode in tree.znodes.items():
        znode.created = len(tree.children(path))
    with snapshot_file(tmp_path) as snapshot:
        copying = _Copying(snapshot, Replacements("aWQ", encoder_secret="s"), Keeping(0))
        copying.copy(TreeWalk(tree, enters=copying.enters, unreadable=copying.unread.add, sleep=lambda seconds: None))
    assert snapshot.path is not None
    return copying, read_snapshot(snapshot.path.read_bytes())


def of(**configs: str) -> InMemory:
    return InMemory(data_of(config(**configs)))


def test_whoever_has_a_config_is_told_whether_it_lives_or_not_and_what_the_copy_lacks_of_it(tmp_path: Path) -> None:
    listeners = of(advertised__listeners="PLAINTEXT://kafka-9.example.com:9092", log__retention__ms="1")
    copying, copy = copied(
        tmp_path,
        {
            "/brokers/ids/1": InMemory(b"{}", owner=7),
            "/config/brokers/<default>": of(metric__reporters="com.example.Reporter"),
            "/config/brokers/1": listeners,
            "/config/brokers/9001": listeners,
            "/config/brokers/9002": InMemory(b"{}", readable=False),
        },
    )
    assert copying.live == {1} and copying.configured == {1, 9001, 9002}
    assert {each.partition(": ")[0]: number for each, number in copying.left_out.items()} == {
        "/config/brokers/<default>, metric.reporters": 1,
        "/config/brokers/…, advertised.listeners": 2,
    }
    assert b"example.com" not in b"".join(each.data or b"" for each in copy.values())
    assert b"log.retention.ms" in (copy["/config/brokers/9001"].data or b"")


def with_config(name: str) -> dict[str, InMemory]:
    return topic(name, {"0": [1]}) | {f"/config/topics/{name}": of(retention__ms="1")}


def of_topics(found: Iterable[str]) -> list[str]:
    """Its topics and their configs."""
    return sorted(each for each in found if each.startswith(("/brokers/topics/", "/config/topics/")))


def deleted(name: str) -> Meanwhile:
    """As Kafka's controller deletes a topic: with its config, and what asked for it."""

    def delete(znodes: dict[str, InMemory]) -> None:
        gone = (f"/brokers/topics/{name}", f"/config/topics/{name}", f"/admin/delete_topics/{name}")
        for path in [each for each in znodes if each in gone or each.startswith(f"{gone[0]}/")]:
            del znodes[path]

    return delete


ASKED = {"/admin/delete_topics/tmp": InMemory(b"")}


@pytest.mark.parametrize(
    ("after", "asked"),
    [
        ("/admin", ASKED),
        ("/config", ASKED),
        ("/brokers", ASKED),
        ("/admin/delete_topics", ASKED),
        ("/brokers/topics", {}),
    ],
)
def test_a_topic_that_is_deleted_meanwhile_leaves_no_config_without_its_topic(
    tmp_path: Path, after: str, asked: dict[str, InMemory]
) -> None:
    """Kafka's own copy would delete it, and the tree would not be as it was."""
    source = with_config("kept") | with_config("tmp") | asked
    copying, copy = copied(tmp_path, source, after=after, happens=deleted("tmp"))
    assert of_topics(copy) == of_topics(with_config("kept")) and "/admin/delete_topics/tmp" not in copy
    assert not copying.in_deletion and not copying.orphaned


def test_a_config_that_is_left_over_or_of_a_topic_that_is_about_to_come_is_not_copied_and_is_named(
    tmp_path: Path,
) -> None:
    """Kafka makes a topic's config first."""
    late = with_config("late")
    source = with_config("kept") | {"/config/topics/old": of(retention__ms="1")}
    copying, copy = copied(tmp_path, source, after="/brokers/topics", happens=lambda znodes: znodes.update(late))
    assert of_topics(copy) == of_topics(with_config("kept"))
    assert copying.orphaned == ["/config/topics/late", "/config/topics/old"]
    assert len(copying.keeping.kept) == 4, "what changed since is told of all that was there"


def test_a_deletion_that_does_not_end_is_named_and_not_copied(tmp_path: Path) -> None:
    """It would never end in the throwaway: no stand-in deletes a replica."""
    source = with_config("kept") | with_config("stuck") | {"/admin/delete_topics/stuck": InMemory(b"")}
    copying, copy = copied(tmp_path, source)
    assert of_topics(copy) == of_topics(with_config("kept")) and "/admin/delete_topics/stuck" not in copy
    assert copying.in_deletion == {"stuck"} and copying.topics == 1


def test_one_that_is_made_again_meanwhile_is_a_topic_like_any_other(tmp_path: Path) -> None:
    copying, copy = copied(
        tmp_path, with_config("tmp") | ASKED, after="/admin/delete_topics", happens=lambda znodes: znodes.pop(*ASKED)
    )
    assert of_topics(copy) == of_topics(with_config("tmp")) and not copying.in_deletion


def tree_with(**what: Any) -> CopiedTree:
    nothing: dict[str, Any] = {each.name: 0 for each in fields(CopiedTree)}
    nothing |= {"left_out": {}, "orphaned": (), "in_deletion": (), "unread": Found()}
    return CopiedTree(**nothing | what)


def test_a_copy_without_a_topic_that_is_being_deleted_is_not_whole() -> None:
    (why,) = tree_with(in_deletion=("a", "b", "c", "d")).why_not_whole
    assert why.endswith("which the copy lacks: 4 (a, b, c …)") and tree_with().why_not_whole == ()


def test_the_record_names_a_thousand_configs_without_a_topic_and_counts_the_others() -> None:
    told = tree_with(orphaned=tuple(f"/config/topics/{number}" for number in range(1002))).left_out_told
    assert told[0] == "/config/topics/0: the copy has no such topic" and len(told) == 1001
    assert told[-1] == "2 more configs of topics that the copy lacks"
