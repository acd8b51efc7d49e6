"""What the migration reads off a controller's files, and the log4j file that it renders. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kraft_runbook.cluster.node_properties import MIGRATION_FLAG, controller_properties
from kraft_runbook.cluster.observation import ClusterObservation, ControllerMode, Unread, host_part
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Controller
from kraft_runbook.migration.copy_tuning import SIZES, SMALL, TUNED_PROPERTIES, Size, quieted
from kraft_runbook.runbook.broker_files import NodeFile


def controller_log4j(spec: ClusterSpec, mode: ControllerMode, size: Size = SMALL) -> dict[str, str]:
    """The log4j properties of a controller that has a ``log4j_file``: as the cluster file has them; in MIGRATION
    without a line for each record copied.
    """
    return quieted(spec.controller_log4j, size) if mode is ControllerMode.MIGRATION else dict(spec.controller_log4j)


def size_in_file(spec: ClusterSpec, controller: Controller, properties: Mapping[str, str]) -> Size | None:
    """The size that a controller's file was rendered for. None: it is not in migration mode, or its tuning is from
    another hand.
    """
    if lacking_migration_mode(properties):
        return None
    for size in SIZES:
        rendered = controller_properties(spec, controller, ControllerMode.MIGRATION, also=size.properties)
        if all(properties.get(key) == rendered.get(key) for key in TUNED_PROPERTIES):
            return size
    return None


def settled_size(spec: ClusterSpec, files: Mapping[int, Mapping[str, str]], *, first: int | None = None) -> Size | None:
    """The size that the controllers' files settle, so that a count that moved meanwhile changes no file: the ``first``
    controller's, else any other's.

    ``files``: the configuration of each controller that has one, by id. None: no file settles it.
    """
    for controller in sorted(spec.controllers, key=lambda each: each.id != first):
        found = size_in_file(spec, controller, files[controller.id]) if controller.id in files else None
        if found is not None:
            return found
    return None


def lacking_migration_mode(properties: Mapping[str, str]) -> tuple[str, ...]:
    """What keeps a controller started with these properties from being in migration mode, one phrase a key; empty: it
    would be (KIP-866).

    The hosts apply the same rule before each step (``playbooks/module_utils/migration_mode.py``).
    """
    found = []
    flag, roles = properties.get(MIGRATION_FLAG), properties.get("process.roles")
    if flag is None or flag.strip().lower() != "true":
        found.append(f"{MIGRATION_FLAG} is {'missing' if flag is None else flag or 'empty'}, not true")
    if not properties.get("zookeeper.connect", "").strip():
        found.append("zookeeper.connect is missing")
    if roles is None or roles.strip() != "controller":
        found.append(f"process.roles is {'missing' if roles is None else roles or 'empty'}, not controller")
    return tuple(found)


def controller_files(
    seen: ClusterObservation, spec: ClusterSpec, phase: Phase, size: Size = SMALL
) -> Iterator[NodeFile]:
    """One a controller, in the cluster file's order; of an observation with the hosts. Rendered for the mode of the
    phase; in dual write for KRaft mode where the file has left ZooKeeper, so that a finalization that is half done is
    no difference. ``size``: of the copy, where no file settles it.
    """
    for controller in spec.controllers:
        config = host_part(seen, controller.id, "config")
        if isinstance(config, Unread):
            yield NodeFile(controller, unread=config.reason)
        elif not isinstance(config, Mapping):
            yield NodeFile(controller, missing=True)
        else:
            left = phase is Phase.DUAL_WRITE and not config.keys() & {MIGRATION_FLAG, "zookeeper.connect"}
            if left or phase in (Phase.FINALIZED, Phase.KRAFT):
                wanted = controller_properties(spec, controller, ControllerMode.KRAFT)
            else:
                tuned = (size_in_file(spec, controller, config) or size).properties
                wanted = controller_properties(spec, controller, ControllerMode.MIGRATION, also=tuned)
            yield NodeFile(controller, held=config, wanted=wanted)
