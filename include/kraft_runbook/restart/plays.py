"""What a rolling restart plays on a node. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kraft_runbook.cluster.mode_settings import ZOOKEEPER_KEYS
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.runbook.plays import Guard, Play

MIGRATING = frozenset({Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE})
"""Phases in which a controller's restart, or an election that a restart brings, could make the migration final."""


def restart_node(
    node_id: int, phase: Phase, *, older_than: float | None, properties: Mapping[str, str] | None = None
) -> Play:
    """Restart the node's process, with the files that it has, where it began before ``older_than`` (seconds since the
    epoch; None, in a rehearsal: whenever it began). A process that is younger is left alone, but where its file is
    written: ``properties``, its whole configuration in KRaft mode from now on, with the secrets that it refers to.

    While a migration is under way, every controller's file and process must show the migration flag first, the node's
    own too: one without it would make the migration final as soon as it leads. Nor may another hand have changed the
    node's files: its former file would take a broker out of its mode. At any other time a changed file is what an
    operator restarts a node for.
    """
    migrating = phase in MIGRATING
    guard = Guard.PROVISIONED if migrating else Guard.NONE
    given: dict[str, Any] = {} if older_than is None else {"older_than": older_than}
    given |= ({"only_own_files": True} if migrating else {}) | (
        {} if properties is None else {"properties": dict(properties), "unread_secrets": list(ZOOKEEPER_KEYS)}
    )
    return Play("restart_node", node_id, given, guard, guards_itself=True, writes_secrets=properties is not None)
