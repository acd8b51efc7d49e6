"""Feature levels asked of the nodes, and changed at the quorum's leader (KIP-584, KIP-778).

The client library's own calls do not do: its description asks one node alone, and a refusal of Kafka 3.9 comes back as
text in a result, not as an error (kafka-python 3.0.12). So both requests are sent as they are, and both levels of error
are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from kafka.protocol.admin import UpdateFeaturesRequest
from kafka.protocol.metadata import ApiVersionsRequest

from kraft_runbook.cluster.feature_levels import Answer, LevelsInLog, NodeFeatures, NodeOnDisk, Range, WrittenLevel
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.io.kafka.connection import connect_to
from kraft_runbook.io.kafka.metadata_log_reader import MetadataLogReader, Position
from kraft_runbook.io.kafka.metadata_quorum import describe_elected
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.metadata.log.feature_records import FeatureRecords, levels_in

API_VERSIONS = 4
"""Version 3 leaves out every feature whose lowest level is 0, or shows another lowest level (KAFKA-17011)."""
UPDATE_FEATURES = 1
"""The highest of 3.9. 4.x answers it too: every feature with the one error that it has for all."""


class UpgradeType(IntEnum):
    """``UpgradeType`` of UpdateFeatures. There is a third, UNSAFE_DOWNGRADE. It is not here, because every server from
    3.9 to 4.4 refuses it wherever SAFE_DOWNGRADE is refused, and it is never better (measured).
    """

    UPGRADE = 1
    SAFE_DOWNGRADE = 2


def node_features(
    spec: ClusterSpec, node: Broker | Controller, *, secrets: Secrets, timeout: float = 5.0
) -> NodeFeatures:
    """What one running node supports and shows as finalized. Raises Unreachable."""
    with connect_to(spec, node, secrets=secrets, timeout=timeout) as connection:
        answer = connection.send(
            ApiVersionsRequest(version=API_VERSIONS, client_software_name="kraft-runbook", client_software_version="1")
        )
        if answer.error_code:
            raise connection.unreachable(f"ApiVersions failed with error {answer.error_code}")
        return NodeFeatures(
            node.id,
            {each.name: Range(each.min_version, each.max_version) for each in answer.supported_features},
            {each.name: each.max_version_level for each in answer.finalized_features if each.max_version_level > 0},
            int(answer.finalized_features_epoch),
            Unread("its metrics were not read"),
        )


def update_feature(
    spec: ClusterSpec,
    leader_id: int,
    feature: str,
    level: int,
    kind: UpgradeType,
    *,
    validate_only: bool,
    secrets: Secrets,
    timeout: float = 30.0,
) -> Answer:
    """Ask the quorum's leader for one feature's level. ``validate_only``: it answers as if it would, and changes
    nothing. One feature a request, because 3.9 would apply the good ones of several and refuse the others.

    Raises Unreachable where no answer came. Whether it was applied is then unknown: observe, do not repeat blindly.
    """
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=int(kind))
    request = UpdateFeaturesRequest(
        version=UPDATE_FEATURES,
        timeout_ms=int(timeout * 1000),
        feature_updates=[update],
        validate_only=validate_only,
    )
    with connect_to(spec, spec.controller(leader_id), secrets=secrets, timeout=timeout) as connection:
        answer = connection.send(request)
    results = {each.feature: (int(each.error_code), each.error_message or "") for each in answer.results}
    return Answer(int(answer.error_code), answer.error_message or "", results)


def read_levels(spec: ClusterSpec, *, secrets: Secrets, timeout: float = 10.0) -> tuple[int, LevelsInLog]:
    """The leader's id, and what the committed metadata log says of features. Raises Unreachable."""
    quorum = describe_elected(spec, secrets=secrets)
    state = FeatureRecords()
    end = quorum.high_watermark - 1
    with MetadataLogReader(spec, quorum.leader_id, quorum.leader_epoch, secrets=secrets, timeout=timeout) as reader:
        for chunk in reader.chunks(end=end):
            state.apply(chunk)
    return quorum.leader_id, state.seen(end)


def levels_to_come(
    spec: ClusterSpec, disks: Iterable[NodeOnDisk], *, secrets: Secrets, timeout: float = 10.0
) -> dict[int, tuple[WrittenLevel, ...]]:
    """By node, the feature records that the quorum's leader sends it after what its own disk holds. Raises Unreachable,
    LogTruncated.
    """
    quorum = describe_elected(spec, secrets=secrets)
    found: dict[int, tuple[WrittenLevel, ...]] = {}
    with MetadataLogReader(spec, quorum.leader_id, quorum.leader_epoch, secrets=secrets, timeout=timeout) as reader:
        for disk in disks:
            chunks = reader.sent_to(Position(disk.end, disk.epoch), end=quorum.high_watermark - 1)
            found[disk.node_id] = tuple(level for chunk in chunks for level in levels_in(chunk))
    return found
