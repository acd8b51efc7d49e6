"""Of what a known fault needs before it can show: what this cluster does not use, by its own file. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import QuorumKind

TIERED, CODEC, REAUTHENTICATION = (
    "remote.log.storage.system.enable",
    "offsets.topic.compression.codec",
    "connections.max.reauth.ms",
)


class Use(StrEnum):
    """What only some clusters use. No client brings it. The value is how it is said."""

    DYNAMIC_QUORUM = "a dynamic quorum"
    DIRECTORIES = "several log directories in a broker"
    TIERED_STORAGE = f"{TIERED}=true"
    COMPRESSED_OFFSETS = f"{CODEC} other than 0"
    REAUTHENTICATION = f"{REAUTHENTICATION} above 0"


def unused(seen: ClusterObservation, spec: ClusterSpec) -> frozenset[Use]:
    """Those that no broker's configuration has, as the cluster file renders it in KRaft mode; and a dynamic quorum,
    where the cluster file has none and none was seen.
    """
    files = [broker_properties(spec, each, BrokerMode.KRAFT) for each in spec.brokers]
    used = {
        Use.DYNAMIC_QUORUM: spec.quorum is QuorumKind.DYNAMIC or not was_read(seen.quorum) or seen.quorum.is_dynamic,
        Use.DIRECTORIES: any(len(each.log_dirs) > 1 for each in spec.brokers),
        Use.TIERED_STORAGE: any(file.get(TIERED, "false").strip().lower() == "true" for file in files),
        Use.COMPRESSED_OFFSETS: any(file.get(CODEC, "0").strip() != "0" for file in files),
        Use.REAUTHENTICATION: any(_reauthenticates(file) for file in files),
    }
    return frozenset(use for use, holds in used.items() if not holds)


def _reauthenticates(file: Mapping[str, str]) -> bool:
    """Also of one listener and one mechanism alone (``listener.name.…``)."""
    return any(name.endswith(REAUTHENTICATION) and value.strip() != "0" for name, value in file.items())
