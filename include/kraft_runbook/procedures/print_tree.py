"""The prints of every znode of a cluster's metadata, for comparing a tree with itself at another time."""

from __future__ import annotations

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.canonical_rows import Fingerprints
from kraft_runbook.metadata.znodes.znode_rows import Decoding, rows_of
from kraft_runbook.parity.decoding import encoder_secret
from kraft_runbook.rehearsal.tree_prints import TreePrint, belongs, print_of

AT_ONCE = 5_000
_SALT = b"one salt for both"
"""Prints of secret values are compared with prints of the same tree, and kept nowhere."""


def print_tree(spec: ClusterSpec, *, secrets: Secrets) -> dict[str, TreePrint]:
    """By path. Raises Unreachable."""
    decoding = Decoding(Fingerprints(_SALT), *encoder_secret(spec, secrets))
    found: dict[str, TreePrint] = {}
    with ZookeeperReader(spec.ensemble, secrets=secrets) as reader:
        level = ["/"]
        while level:
            below: list[str] = []
            for start in range(0, len(level), AT_ONCE):
                some = level[start : start + AT_ONCE]
                for path, names in zip(some, reader.children_many(some), strict=True):
                    parent = "" if path == "/" else path
                    below += [f"{parent}/{name}" for name in names or () if belongs(f"{parent}/{name}")]
                for path, znode in zip(some, reader.get_many(some), strict=True):
                    if znode is not None and not znode.ephemeral_owner and path != "/":
                        rows = rows_of(path, znode.data, decoding)
                        found[path] = print_of(path, znode.data, znode.version, rows)
            level = below
    return found
