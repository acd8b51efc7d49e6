"""Whether each running controller's registration in the metadata log (RegisterControllerRecord, KIP-919) is its own.

A controller registers once, when it has started. Where that one request finds no leader for five seconds it is never
sent again, and Kafka says so in that controller's log alone (KAFKA-18874, KAFKA-20247: "channel manager timed out
before sending the request"). The quorum then goes by the registration of the process before, or by none: it raises no
level, and it does not begin the copy of a migration (``QuorumFeatures``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kraft_runbook.cluster.feature_levels import (
    METADATA_VERSION,
    FeatureObservation,
    LevelsInLog,
    NodeFeatures,
    Registered,
)
from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.cluster.unread import Unread

CONTROLLERS_REGISTER = 15
"""From this metadata.version on, controllers register and are asked too."""
RESTART = "a controller registers once, when it has started, and Kafka may lose that (KAFKA-20247)"


def not_their_own(seen: FeatureObservation, log: LevelsInLog, *, migrating: bool = False) -> Mapping[int, str]:
    """By controller, what is wrong with the registration of one that runs; empty where all are right, and below the
    metadata.version from which controllers register.

    ``migrating``: they must also be registered with the migration flag, without which no copy begins. Kafka asks that
    of every voter, whether it runs or not, so one that does not answer is judged by the log alone.
    """
    if log.levels.get(METADATA_VERSION, 0) < CONTROLLERS_REGISTER:
        return {}
    found = {
        node_id: _wrong(node, log.controllers.get(node_id), migrating)
        for node_id, node in seen.controllers.items()
        if migrating or isinstance(node, NodeFeatures)
    }
    return {node_id: wrong for node_id, wrong in found.items() if wrong}


def of_an_older_process(node: NodeFeatures, registered: Registered) -> bool:
    """Whether the registration was made by other software than the one that runs."""
    return registered.supported.get(METADATA_VERSION) != node.supported.get(METADATA_VERSION)


def way_out(node_ids: Iterable[int]) -> str:
    """What ends it. Nothing short of a restart does."""
    these = sorted(node_ids)
    return f"restart {nodes('controller', these)}: {RESTART}; {by_number(these, 'it registers', 'they register')} anew"


def _wrong(node: NodeFeatures | Unread, registered: Registered | None, migrating: bool) -> str:
    if registered is None:
        return "has not registered"
    if isinstance(node, NodeFeatures) and of_an_older_process(node, registered):
        return (
            f"runs software with metadata.version {node.supported.get(METADATA_VERSION)} and is registered with"
            f" {registered.supported.get(METADATA_VERSION)}"
        )
    if migrating and not registered.migration_ready:
        return "is registered without zookeeper.metadata.migration.enable"
    return ""
