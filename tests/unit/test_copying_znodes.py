"""What copying a tree tells of it besides the copy: who is there, and which configs the copy lacks."""

from __future__ import annotations

from pathlib import Path

from bad_znodes import config, data_of
from znodes_in_memory import InMemory, Tree, read_snapshot

from kraft_runbook.io.zookeeper.snapshot_file import snapshot_file
from kraft_runbook.io.zookeeper.tree_walk import TreeWalk
from kraft_runbook.procedures.copy_tree import _Copying
from kraft_runbook.rehearsal.replacing import Replacements
from kraft_runbook.rehearsal.since import Keeping

ABOVE = ("/", "/brokers", "/brokers/ids", "/brokers/topics", "/config", "/config/brokers", "/config/topics")


def copied(tmp_path: Path, znodes: dict[str, InMemory]) -> tuple[_Copying, dict[str, InMemory]]:
    """What was seen, and the copy."""
    tree = Tree({path: InMemory() for path in ABOVE} | znodes)
    for path, znode in tree.znodes.items():
        znode.created = len(tree.children(path))
    with snapshot_file(tmp_path) as snapshot:
        copying = _Copying(snapshot, Replacements("aWQ", encoder_secret="s"), Keeping(0))
        copying.copy(TreeWalk(tree, enters=copying.enters, unreadable=copying.unread.add))
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
