"""The metadata log replayed from the active controller, and what the quorum says beside it, as canonical rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraft_runbook.clients.metadata_log_reader import MetadataLogReader
from kraft_runbook.clients.metadata_quorum import QuorumDescription, quorum_cluster_id
from kraft_runbook.clients.secrets import Secrets
from kraft_runbook.cluster import ClusterSpec
from kraft_runbook.metadata import entities
from kraft_runbook.metadata.entities import Fingerprints, Row
from kraft_runbook.metadata.metadata_log import LogReplay, Version


def replay_log(
    spec: ClusterSpec,
    leader_id: int,
    leader_epoch: int,
    *,
    start: int,
    end: int,
    fingerprints: Fingerprints,
    secrets: Secrets,
    timeout: float = 30.0,
    progress: Callable[[int, int], None] | None = None,
) -> LogReplay:
    """The log up to ``end``, with the history of every key from ``start``.

    ``progress`` hears of the offset and the number of records reached. Raises LogTruncated when the state at ``start`` can't be had any more, Unreachable
    when the controller does not answer, Garbled where the log is not what Kafka writes.
    """
    replay = LogReplay(start, fingerprints, spec.kafka.ibp)
    with MetadataLogReader(spec, leader_id, leader_epoch, secrets=secrets, timeout=timeout) as reader:
        for chunk in reader.chunks(end=end, reach=start):
            replay.apply(chunk)
            if progress is not None:
                progress(replay.end, replay.records)
    return replay


def quorum_versions(spec: ClusterSpec, quorum: QuorumDescription, *, offset: int, secrets: Secrets) -> Iterator[Version]:
    """The facts that the quorum itself tells: the cluster id it was formatted with, and who leads it in which epoch."""
    for row in (
        entities.cluster_id(quorum_cluster_id(spec, quorum.leader_id, secrets=secrets)),
        entities.controller("/controller", quorum.leader_id, quorum.leader_epoch),
        entities.controller("/migration", quorum.leader_id, quorum.leader_epoch),
    ):
        yield Version(row.kind, row.key, row.value, offset, last=True)


def declared_rows(spec: ClusterSpec) -> Iterator[Row]:
    """The side of ZooKeeper that no znode holds: metadata.version must cover the declared inter.broker.protocol.version."""
    yield entities.metadata_version(spec.kafka.ibp, covered=True)
