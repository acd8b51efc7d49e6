"""Of what a known fault needs before it can show: what this cluster does not use, by its own file. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.spec import ClusterSpec

TIERED, CODEC, REAUTHENTICATION = (
    "remote.log.storage.system.enable",
    "offsets.topic.compression.codec",
    "connections.max.reauth.ms",
)


class Use(StrEnum):
    """What only some clusters use; each can be set in the files alone, and no client and no level brings it. The value
    is how it is said.
    """

    DYNAMIC_QUORUM = "a dynamic quorum"
    DIRECTORIES = "several log directories in a broker"
    TIERED_STORAGE = f"{TIERED}=true"
    COMPRESSED_OFFSETS = f"{CODEC} other than 0"
    REAUTHENTICATION = f"{REAUTHENTICATION} above 0"


def unused(spec: ClusterSpec) -> frozenset[Use]:
    """Those that no broker's configuration has, as the roll writes it."""
    files = [broker_properties(spec, each, BrokerMode.KRAFT) for each in spec.brokers]
    used = {
        Use.DYNAMIC_QUORUM: spec.quorum.value == "dynamic",
        Use.DIRECTORIES: any(len(each.log_dirs) > 1 for each in spec.brokers),
        Use.TIERED_STORAGE: any(file.get(TIERED, "false").strip().lower() == "true" for file in files),
        Use.COMPRESSED_OFFSETS: any(file.get(CODEC, "0").strip() != "0" for file in files),
        Use.REAUTHENTICATION: any(_reauthenticates(file) for file in files),
    }
    return frozenset(use for use, holds in used.items() if not holds)


def _reauthenticates(file: Mapping[str, str]) -> bool:
    """Also of one listener and one mechanism alone (``listener.name.…``)."""
    return any(name.endswith(REAUTHENTICATION) and value.strip() != "0" for name, value in file.items())
