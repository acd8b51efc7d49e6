"""Copying a cluster's tree into a ZooKeeper snapshot file, from which a throwaway ZooKeeper starts; and looking at the
source again later.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.slices import slices
from kraft_runbook.io.zookeeper.raw_read import UNREADABLE, Paths, buffer_of
from kraft_runbook.io.zookeeper.read_entities import children_of
from kraft_runbook.io.zookeeper.read_rows import TOKENS, acl_paths
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.snapshot_file import ZOOKEEPERS_OWN, Snapshot, encoded, snapshot_file
from kraft_runbook.io.zookeeper.tree_walk import TOPIC_CONFIGS, TOPICS, TreeWalk, Walked
from kraft_runbook.metadata.znodes.tally import Tally
from kraft_runbook.metadata.znodes.znode_json import parse_object
from kraft_runbook.metadata.znodes.znode_values import BadZnode
from kraft_runbook.parity.decoding import encoder_secret as source_encoder_secret
from kraft_runbook.rehearsal.copied_tree import CopiedTree
from kraft_runbook.rehearsal.replacing import LOOKED_INTO, Dropped, Replaced, Replacements, held, why_dropped
from kraft_runbook.rehearsal.since import Keeping, LookedAt, SourceLook

_LOOKED_INTO = tuple(f"/{each}/".encode() for each in LOOKED_INTO)
_MZXID, _PZXID = slice(8, 16), slice(60, 68)
"""Where a stat has them."""
_NAME = 3
"""Where the path of a topic's config has the topic's name."""
PATHS_AT_ONCE = 2000


def copy_tree(
    spec: ClusterSpec,
    into: Path,
    *,
    secrets: Secrets,
    cluster_id: str,
    encoder_secret: str,
    tell: Callable[[str], object] = print,
) -> CopiedTree:
    """Read the source's tree once, without a write but the session's own, and write it as a snapshot file below
    ``into``, a ZooKeeper's ``dataDir`` on which none has run: ``into/version-2/snapshot.<zxid>``, mode 0600, in
    directories of mode 0700. The file is there whole or not at all.

    ``zookeeper.read_rate`` is respected. ``cluster_id``: the copy's own. ``encoder_secret``: the throwaway's
    password.encoder.secret. What ZooKeeper does not show (its ACL) is named in the answer.

    Raises Unreachable; Refused where ``cluster_id`` is the source's, or a ZooKeeper has run on ``into``; RunbookError
    where the source has no readable /cluster/id, or does not show its root; OSError.
    """
    began, cpu = time.monotonic(), time.process_time()
    given = Replacements(cluster_id, encoder_secret, source_encoder_secret(spec, secrets)[0])
    with _reader(spec, secrets) as reader, snapshot_file(into) as snapshot:
        source = _cluster_id(reader)
        if source == cluster_id:
            raise Refused(
                f"{cluster_id} is the id of the cluster that is copied", way_out="give the copy another cluster id"
            )
        copying = _Copying(snapshot, given, Keeping(reader.newest_zxid))
        copying.copy(TreeWalk(reader, enters=copying.enters, unreadable=copying.unread.add))
        snapshot.zxid = int.from_bytes(copying.newest)
    assert snapshot.path is not None
    copied = CopiedTree(
        snapshot=snapshot.path,
        source_cluster_id=source,
        cluster_id=cluster_id,
        znodes=copying.znodes,
        size=snapshot.size,
        topics=copying.topics,
        partitions=copying.partitions,
        dropped=dict(copying.dropped),
        replaced=dict(copying.replaced),
        left_out=dict(copying.left_out),
        orphaned=tuple(copying.orphaned),
        in_deletion=tuple(sorted(copying.in_deletion)),
        unread=copying.unread.found,
        unjudged_passwords=copying.replaced[Replaced.ENCODED_PASSWORD] if given.source_encoder_secret is None else 0,
        newest_zxid=snapshot.zxid,
        live_brokers=frozenset(copying.live),
        assigned_brokers=frozenset(copying.assigned),
        configured_brokers=frozenset(copying.configured),
        kept=copying.keeping.kept,
        seconds=time.monotonic() - began,
        cpu_seconds=time.process_time() - cpu,
    )
    tell(
        f"the tree of {spec.name} is copied in {copied.seconds:.1f} s: znodes {copied.znodes:,}, topics"
        f" {copied.topics:,}, partitions {copied.partitions:,}"
    )
    for why in copied.why_not_whole:
        tell(why)
    return copied


def look_since(spec: ClusterSpec, *, secrets: Secrets) -> SourceLook:
    """The source's topics, configs, quotas, ACLs and tokens as they are now, for ``changes_since``. Reads two znodes a
    topic, no partition; ``zookeeper.read_rate`` is respected. Raises Unreachable, RunbookError.
    """
    found: list[LookedAt] = []
    unread: list[str] = []
    with _reader(spec, secrets) as reader:
        zxid = reader.newest_zxid
        users = children_of(reader, ["/config/users"])
        parents = [TOPICS, TOPIC_CONFIGS, "/config/brokers", "/config/clients", "/config/ips", TOKENS]
        some = chain(users, children_of(reader, [*parents, *(f"{user}/clients" for user in users)]), acl_paths(reader))
        for paths in slices(list(some), PATHS_AT_ONCE):
            for block in reader.get_raw(Paths(paths)):
                for path, znode in zip(paths[block.start :], block.znodes, strict=False):
                    if znode is UNREADABLE:
                        unread.append(path)
                    elif znode is not None:
                        found.append(LookedAt(path, int.from_bytes(znode[1][_MZXID])))
    return SourceLook(zxid, tuple(found), tuple(unread))


def _reader(spec: ClusterSpec, secrets: Secrets) -> ZookeeperReader:
    return ZookeeperReader(spec.ensemble, secrets=secrets, rate=spec.ensemble.read_rate)


def _cluster_id(reader: ZookeeperReader) -> str:
    znode = reader.get("/cluster/id")
    try:
        found = parse_object(znode.data)["id"] if znode is not None else None
    except (BadZnode, KeyError):
        found = None
    if not isinstance(found, str):
        raise RunbookError(
            "the source's /cluster/id holds no cluster id",
            way_out="check 'zookeeper.servers' and 'zookeeper.chroot' in the cluster file: no Kafka cluster is there",
        )
    return found


class _Copying:
    """Writes what a walk gives, and counts it."""

    def __init__(self, snapshot: Snapshot, given: Replacements, keeping: Keeping) -> None:
        self._snapshot, self._given, self.keeping = snapshot, given, keeping
        self.znodes = self.topics = self.partitions = 0
        self.newest = bytes(8)
        """The newest transaction in what was written."""
        self.dropped, self.replaced, self.left_out = Counter[Dropped](), Counter[Replaced](), Counter[str]()
        self.unread = Tally()
        self.orphaned: list[str] = []
        self.in_deletion = frozenset[str]()
        self.live, self.assigned, self.configured = set[int](), set[int](), set[int]()

    def enters(self, path: str, ephemeral: bool) -> bool:
        """Whether the copy has this znode; what it has not is counted."""
        above, _, name = path.rpartition("/")
        if above == "/config/brokers" and name.isdecimal():
            self.configured.add(int(name))
        why = why_dropped(path, ephemeral=ephemeral)
        if why is None:
            return True
        self.dropped[why] += 1
        if above == "/brokers/ids" and name.isdecimal():
            self.live.add(int(name))
        return False

    def copy(self, walk: TreeWalk) -> None:
        for path, data, stat in walk.all_but_topics():
            self._see(path, stat)
            self._copy(path, data, stat)
            if not path:
                self._snapshot.write([ZOOKEEPERS_OWN])
        if not self.znodes:
            raise RunbookError(
                "ZooKeeper does not show this tool the root of Kafka's tree",
                way_out="give it the brokers' ZooKeeper identity ('zookeeper.security' in the cluster file)",
            )
        self.in_deletion = walk.in_deletion()
        names = set[bytes]()
        for topic in walk.topics(but=self.in_deletion):
            names.add(topic.name.encode())
            self.topics += 1
            self.partitions += len(topic.replicas)
            self.assigned.update(chain.from_iterable(topic.replicas.values()))
            some = iter(topic.znodes)
            own = next(some)
            self._see(own[0], own[2])
            self._write(chain([own], some))
        for path, data, stat in walk.topic_configs():
            self._see(path, stat)
            if path.split(b"/")[_NAME] in names:
                self._copy(path, data, stat)
            else:
                self.orphaned.append(path.decode())

    def _see(self, path: bytes, stat: bytes) -> None:
        self.keeping.see(path.decode(), int.from_bytes(stat[_MZXID]))

    def _copy(self, path: bytes, data: bytes, stat: bytes) -> None:
        if path.startswith(_LOOKED_INTO):
            data = self._replaced(path.decode(), data)
        self._write([(path, data, stat)])

    def _replaced(self, path: str, data: bytes) -> bytes:
        found = held(path, data[4:], self._given)
        self.replaced.update(found.replaced)
        above, _, name = path.rpartition("/")
        where = path if name == "<default>" else f"{above}/…"
        self.left_out.update(f"{where}, {each}" for each in found.left_out)
        return buffer_of(found.data) if found.replaced or found.data != data[4:] else data

    def _write(self, znodes: Iterable[Walked]) -> None:
        pieces: list[bytes] = []
        newest = self.newest
        for path, data, stat in znodes:
            newest = max(newest, stat[_MZXID], stat[_PZXID])
            pieces += encoded(path, data, stat)
            self.znodes += 1
        self.newest = newest
        self._snapshot.write(pieces)
