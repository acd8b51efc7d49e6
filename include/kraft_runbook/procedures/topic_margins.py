"""Read from the metadata log how many replicas of each topic may be down, and what is being moved."""

from __future__ import annotations

from kraft_runbook.cluster.observation import TopicMargins
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.kafka.metadata_log_reader import MetadataLogReader
from kraft_runbook.io.kafka.metadata_quorum import describe_elected
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.metadata.log.topic_margins import MarginRecords


def topic_margins(spec: ClusterSpec, *, secrets: Secrets) -> TopicMargins:
    """Every partition's record is decoded for it, so a quick look leaves it out. Raises Unreachable."""
    quorum = describe_elected(spec, secrets=secrets)
    held = MarginRecords()
    with MetadataLogReader(spec, quorum.leader_id, quorum.leader_epoch, secrets=secrets) as reader:
        for chunk in reader.chunks(end=quorum.high_watermark - 1):
            held.apply(chunk)
    return held.seen()
