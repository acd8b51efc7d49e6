"""What the quorum itself says, and what the cluster file declares, as canonical rows beside those of the two stores."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.kafka.metadata_quorum import QuorumDescription, quorum_cluster_id
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Row
from kraft_runbook.metadata.image.log_replay import Version


def quorum_versions(
    spec: ClusterSpec, quorum: QuorumDescription, *, offset: int, secrets: Secrets
) -> Iterator[Version]:
    """The facts that the quorum itself tells: the cluster id it was formatted with, and who leads it in which epoch."""
    for row in (
        canonical_rows.cluster_id(quorum_cluster_id(spec, quorum.leader_id, secrets=secrets)),
        canonical_rows.controller("/controller", quorum.leader_id, quorum.leader_epoch),
        canonical_rows.controller("/migration", quorum.leader_id, quorum.leader_epoch),
    ):
        yield Version(row.kind, row.key, row.value, offset, last=True)


def declared_rows(spec: ClusterSpec) -> Iterator[Row]:
    """The side of ZooKeeper that no znode holds: metadata.version must cover the declared
    inter.broker.protocol.version.
    """
    yield canonical_rows.metadata_version(spec.kafka.ibp, covered=True)
