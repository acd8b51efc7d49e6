"""Copying a cluster's tree into a ZooKeeper snapshot file, from which a throwaway ZooKeeper starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.rehearsal.copied_tree import CopiedTree
from kraft_runbook.rehearsal.since import Look


def copy_tree(
    spec: ClusterSpec,
    into: Path,
    *,
    secrets: Secrets,
    cluster_id: str,
    encoder_secret: str,
    tell: Callable[[str], object] = print,
    timeout: float = 10.0,
) -> CopiedTree:
    """Read the source's tree once, without a write but the session's own, and write it as a snapshot file below
    ``into``, a ZooKeeper's ``dataDir`` on which none has run: ``into/version-2/snapshot.<zxid>``, mode 0600, in
    directories of mode 0700. The file is there whole or not at all.

    ``zookeeper.read_rate`` is respected. ``cluster_id``: the copy's own. ``encoder_secret``: the throwaway's
    password.encoder.secret. ``timeout``: seconds that each reply may take. What ZooKeeper does not show (its ACL) is
    named in the answer.

    Raises Unreachable; Refused where ``cluster_id`` is the source's, or a ZooKeeper has run on ``into``; RunbookError
    where the source has no readable /cluster/id, or shows nothing at all; OSError.
    """
    raise NotImplementedError


def look_since(spec: ClusterSpec, *, secrets: Secrets, timeout: float = 10.0) -> Look:
    """The source's topics, configs, quotas, ACLs and tokens as they are now, for ``changes_since``. Reads two znodes a
    topic, no partition. Raises Unreachable, RunbookError.
    """
    raise NotImplementedError
