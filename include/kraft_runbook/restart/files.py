"""With which files a rolling restart restarts a node: as they are, or with where the quorum is written anew. Pure.

A controller that moved, or a quorum that became dynamic, changes one property of every node's file. The rest of each
file must be what the cluster file renders already: nothing else is changed by the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from kraft_runbook.cluster.modes import BrokerMode
from kraft_runbook.cluster.node_properties import kraft_properties
from kraft_runbook.cluster.observation import ClusterObservation, host_part
from kraft_runbook.cluster.owned_properties import WHERE_THE_QUORUM_IS
from kraft_runbook.cluster.phases import FOR_GOOD, Phase
from kraft_runbook.cluster.sensitive import HIDDEN, is_sensitive
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.runbook.broker_files import NodeFile
from kraft_runbook.runbook.differing_files import capped, differing_keys
from kraft_runbook.runbook.digests import sha256_of

NAMED = ("advertised.listeners", "config.providers")
"""Keys without which a file may mean the same to Kafka; to write them says where clients go, and where secrets lie."""


class Files(StrEnum):
    """AS_THEY_ARE: no file is written. ADDRESSES: each node's file is written with where the quorum is by the cluster
    file.
    """

    AS_THEY_ARE = "as they are"
    ADDRESSES = "with the quorum's addresses"

    @classmethod
    def asked(cls, params: Mapping[str, Any]) -> Files:
        return cls(params.get("files", cls.AS_THEY_ARE))


def require_for_good(phase: Phase) -> None:
    """Raises Refused while a migration is under way: its own steps write files then."""
    if phase not in FOR_GOOD:
        raise Refused(
            f"the cluster is in {phase}, and no node's file is written by a restart then",
            way_out="finish the migration or roll it back first, or restart with the files as they are",
        )


def differs_besides(file: NodeFile, seen: ClusterObservation, spec: ClusterSpec) -> str:
    """In what a node's file differs from its rendering in KRaft mode, but for where the quorum is; empty: in nothing.

    Beyond what the file means: a listener that it does not advertise by name, a config provider that it does not
    declare, and a secret that it has as a value where a reference is rendered, or as another reference.
    """
    if file.mode not in (None, BrokerMode.KRAFT):
        return f"it is in {file.mode} mode, and no such file is written by a restart"
    found = list(differing_keys(_without(file.held), _without(file.wanted)))
    raw, wanted = host_part(seen, file.node.id, "config"), kraft_properties(spec, file.node.id)
    found += [f"{key} (not in the file)" for key in NAMED if key in wanted and key not in raw]
    found += [
        f"{key} ({'a value in the file, a reference' if raw[key] == HIDDEN else 'another reference'} rendered)"
        for key in sorted(raw.keys() & wanted.keys())
        if is_sensitive(key) and wanted[key].startswith("${") and raw[key] != wanted[key]
    ]
    return capped(tuple(dict.fromkeys(found)))


def page(spec: ClusterSpec) -> str:
    """What the gate shows."""
    ((key, value),) = spec.quorum_properties.items()
    return (
        "### Files: where the quorum is\n\nBefore a node is restarted, its file gets the line\n\n"
        f"    {key}={value}\n\nand loses what else it has of {' and '.join(sorted(WHERE_THE_QUORUM_IS))}. All other"
        " properties are those that it has (KRB-ROLL-005; each file is looked at once more right before). A file is"
        " written whole: comments, their order, and properties that KRaft mode does not read go. The host's secrets"
        " file is written from the secrets that the cluster file names."
    )


def digest(spec: ClusterSpec) -> str:
    """Of what the gate's signature is for."""
    return sha256_of(spec.quorum_properties)


def _without(properties: Mapping[str, str], left_out: Iterable[str] = WHERE_THE_QUORUM_IS) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key not in left_out}
