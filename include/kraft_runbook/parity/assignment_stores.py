"""The topics of the store that the controller works on, as columns: the metadata log of a cluster whose brokers run in
KRaft mode, else ZooKeeper. In dual write both hold the same, which parity proves.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.metadata_quorum import LOOKS_AT_AN_ELECTION, broker_mode, describe_elected
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.read_columns import read_topic_columns
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.canonical_rows import Fingerprints
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.metadata.topic_columns import TopicColumns
from kraft_runbook.parity.log_follower import LogFollower


def is_in_zookeeper(spec: ClusterSpec, *, secrets: Secrets) -> bool:
    """Whether ZooKeeper is to be read. Raises Unreachable where no broker tells its mode."""
    if spec.zookeeper is None:
        return False
    reasons = []
    for broker in spec.brokers:
        try:
            return broker_mode(spec, broker, secrets=secrets) is not BrokerMode.KRAFT
        except Unreachable as error:
            reasons.append(error.problem)
    raise Unreachable(
        f"no broker tells its mode: {'; '.join(reasons)}", way_out="start one broker at least, then do this again"
    )


def topics_in_log(
    spec: ClusterSpec, *, secrets: Secrets, salt: bytes, looks: int = LOOKS_AT_AN_ELECTION
) -> TopicColumns:
    """All topics as the metadata log holds them by now. ``looks``: as ``describe_elected``. Raises as
    ``LogFollower.read_to``.
    """
    end = describe_elected(spec, secrets=secrets, looks=looks).high_watermark - 1
    replay = LogReplay(end, Fingerprints(salt), spec.kafka.ibp)
    with LogFollower(spec, replay, secrets=secrets) as log:
        log.read_to(end)
    return replay.at_start.topics.columns()


def topics_in_zookeeper(
    spec: ClusterSpec, names: Sequence[str], *, secrets: Secrets
) -> tuple[TopicColumns, tuple[str, ...]]:
    """These topics, and the names of those that can't be read in bulk with certainty. Raises Unreachable."""
    with ZookeeperReader(spec.ensemble, secrets=secrets) as reader:
        return read_topic_columns(reader, names)
