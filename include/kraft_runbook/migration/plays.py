"""What the migration and its way back play on one node: each function gives the play, and every variable follows from
the cluster file. Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kraft_runbook.cluster.mode_settings import ZOOKEEPER_KEYS
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import QuorumKind
from kraft_runbook.migration.controller_files import controller_log4j
from kraft_runbook.migration.copy_tuning import SMALL, Size
from kraft_runbook.runbook.plays import Guard, Play


def provision_controller(
    spec: ClusterSpec, node_id: int, cluster_id: str, *, size: Size = SMALL, anew: bool = False
) -> Play:
    """Render a migration controller's files, format its directory with the cluster's id, start it. A formatted
    directory is left alone.

    ``size``: what the metadata's copy is tuned for (``procedures.copy_size``). Refused, before anything is touched,
    where another controller is not proven to be in migration mode. ``anew``: ZooKeeper leads and no quorum does; then
    refused too where a controller's log, this one's or another's, holds the end of a metadata copy: it is of a
    migration that was left.
    """
    given = {**_controller_files(spec, node_id, ControllerMode.MIGRATION, size), "cluster_id": cluster_id}
    given |= {"refuses_former_copy": True} if anew else {}
    return Play("provision_controller", node_id, given, Guard.ANEW if anew else Guard.PROVISIONING)


def restart_broker(
    spec: ClusterSpec,
    node_id: int,
    mode: BrokerMode,
    *,
    finalized: bool = False,
    way_back: bool = False,
    gone: Collection[int] = (),
) -> Play:
    """Bring a broker to run in a mode: render its files; restart it where its process is older than them; wait for its
    port.

    Refused, before anything is touched, where a controller is not proven to be in migration mode. That is not asked for
    ZooKeeper mode, and not where the migration is ``finalized``: then KRaft mode is the only way left for a broker.
    ``way_back``: a controller that does not run and has lost its file or its data is let be, as at the fence: it can't
    start, so it can't lead. ``gone``: controllers whose hosts are gone for good, on the operator's word, so that
    nothing can be proven of them.
    """
    given = {
        "properties": broker_properties(spec, spec.broker(node_id), mode),
        "mode": mode.value,
        **_unread_secrets(mode),
    }
    unguarded = mode is BrokerMode.ZOOKEEPER or (finalized and mode is BrokerMode.KRAFT)
    guard = Guard.NONE if unguarded else Guard.PROVISIONING if way_back else Guard.PROVISIONED
    return Play("restart_broker", node_id, given, guard, gone)


def finalize_controller(spec: ClusterSpec, node_id: int) -> Play:
    """Take a controller out of migration mode: render it without the flag, ZooKeeper and the copy's tuning, restart it
    where needed.
    """
    return Play("finalize_controller", node_id, _controller_files(spec, node_id, ControllerMode.KRAFT))


def bring_back_controller(spec: ClusterSpec, node_id: int, cluster_id: str, level: str) -> Play:
    """Render the files of a controller in KRaft mode, format its empty directory with the cluster's id, start it. A
    formatted directory is left alone. It is formatted by the Kafka that its service starts: a roll to another one leads
    ``home_link`` there, and leaves ``kafka.home`` as it is. In a dynamic quorum it starts as an observer.

    ``level``: metadata.version as it is in force, by name. Kafka would write its own newest level into the directory,
    which keeps older software away that all other nodes can still go back to.
    """
    files = _controller_files(spec, node_id, ControllerMode.KRAFT)
    given = {**files, "cluster_id": cluster_id, "release_version": level}
    if spec.quorum is QuorumKind.DYNAMIC:
        given["joins_a_quorum"] = True
    if link := spec.controller(node_id).home_link:
        given["kafka_home"] = link
    return Play("provision_controller", node_id, given)


def set_controller_aside(node_id: int) -> Play:
    """Stop a controller where it runs, and rename its data and its configuration; nothing is deleted."""
    return Play("set_controller_aside", node_id, {}, writes_secrets=False)


def _controller_files(spec: ClusterSpec, node_id: int, mode: ControllerMode, size: Size = SMALL) -> dict[str, Any]:
    """What a controller's files are to hold: its configuration, and its loggers where the cluster file names their
    file.
    """
    controller = spec.controller(node_id)
    log4j = {"log4j_properties": controller_log4j(spec, mode, size)} if controller.log4j_file else {}
    return {
        "properties": controller_properties(spec, controller, mode, also=size.properties),
        **log4j,
        **_unread_secrets(mode),
    }


def _unread_secrets(mode: BrokerMode | ControllerMode) -> dict[str, Any]:
    """What a process in this mode does not read of the host's secrets file: it is left there until finalization, and
    not brought back after it.
    """
    return {"unread_secrets": list(ZOOKEEPER_KEYS)} if mode in (BrokerMode.KRAFT, ControllerMode.KRAFT) else {}
