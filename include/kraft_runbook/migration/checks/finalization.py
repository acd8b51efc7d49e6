"""Only the runbook's last step may finalize the migration: checks of the controllers' processes, of their files, and
the alarm.

Any controller that becomes active without the migration flag finalizes the migration at once, while brokers may still
be in migration mode (KAFKA-20960).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    ControllerMode,
    ZkMigrationState,
    was_read,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import DURING_MIGRATION, check
from kraft_runbook.migration.controller_files import lacking_migration_mode, size_in_file
from kraft_runbook.migration.copy_tuning import SMALL
from kraft_runbook.runbook.check_results import BLOCKING, WARNING, Finding, failed, settle
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.differing_files import capped, differing_keys
from kraft_runbook.runbook.read_parts import broker_modes, host_parts, split_read, unread_reasons

ON_DISK = ("KRB-PRE-047",)
"""The blocking checks of the controllers' files, for a watch that reads only these files."""


@check(
    "KRB-PRE-047",
    severity=BLOCKING,
    fix=(
        "put the named keys back before anybody restarts that controller: the first time it leads without them, the"
        " migration is final"
    ),
    stages=DURING_MIGRATION,
    needs=Needs.HOSTS,
)
def controller_files_are_in_migration_mode(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every controller's configuration on disk is in migration mode.

    The file must hold: the migration flag is true, zookeeper.connect is that of the cluster file, process.roles is
    controller. It decides the controller's next start, whoever causes it. A controller restarted without the flag
    finalizes the migration when it is elected (KAFKA-20960). A controller that does not run and has no file can't
    start, so it passes: it is not provisioned yet, or its host was installed again (KRB-PRE-006 reports that it is
    down).
    """
    wrong = []
    found, unread = split_read("controller {}", host_parts(seen, spec.controller_ids, "config"))
    for controller_id, config in found.items():
        file = spec.controller(controller_id).config_file
        if config is None:
            if seen.controllers[controller_id].running is not False:
                wrong.append(f"controller {controller_id} has no file {file}")
            continue
        lacks = [*lacking_migration_mode(config), *_another_zookeeper(config, spec)]
        if lacks:
            wrong.append(f"in controller {controller_id}'s file {file}: {', '.join(lacks)}")
    return settle(wrong, unread, "all are")


def _another_zookeeper(config: Mapping[str, str], spec: ClusterSpec) -> Iterator[str]:
    found = config.get("zookeeper.connect")
    if found and found != spec.ensemble.connect:
        yield f"zookeeper.connect is {found}, the cluster file's is {spec.ensemble.connect}"


@check(
    "KRB-PRE-053",
    severity=WARNING,
    fix=(
        "make the cluster file's properties equal to the host's file, or correct the host's file; finalization writes"
        " the file whole"
    ),
    stages=DURING_MIGRATION,
    needs=Needs.HOSTS,
)
def controller_files_are_as_rendered(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every controller's configuration file is what the cluster file renders for migration mode.

    A difference means that somebody or another program also writes the file. Values of secrets are not compared.
    """
    wrong = []
    found, unread = split_read("controller {}", host_parts(seen, spec.controller_ids, "config"))
    for controller_id, config in found.items():
        if config is None:
            continue
        controller = spec.controller(controller_id)
        size = size_in_file(spec, controller, config) or SMALL
        rendered = controller_properties(spec, controller, ControllerMode.MIGRATION, also=size.properties)
        differences = differing_keys(config, rendered)
        if differences:
            wrong.append(f"controller {controller_id}: {capped(differences)}")
    return settle(wrong, unread, "every existing file is")


@check(
    "KRB-PRE-048",
    severity=BLOCKING,
    fix=(
        "restart that controller with zookeeper.metadata.migration.enable=true before it is elected, and restart no"
        " other controller before that: the first time it leads, the migration is final"
    ),
    stages=DURING_MIGRATION,
)
def no_controller_runs_without_the_flag(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No controller runs without the migration flag before finalization.

    The process shows the flag that it was started with (ApiVersions), whatever its file says now. The first controller
    that becomes active without the flag finalizes the migration at once, in whatever mode the brokers are
    (KAFKA-20960).
    """
    wrong = [
        f"controller {c.id} runs without the migration flag"
        for c in seen.controllers.values()
        if c.mode == ControllerMode.KRAFT
    ]
    running = {c.id: c.mode for c in seen.controllers.values() if c.running is not False}
    unread = unread_reasons("controller {}", running)
    return settle(wrong, unread, "every running controller has it")


@check(
    "KRB-GATE-007",
    severity=BLOCKING,
    fix=(
        "restart each named broker in KRaft mode now, one by one (docs/finalization.md): it is the only way left."
        " Putting the migration flag back does not help: the state stays final and ZooKeeper is never written again. Do"
        " not restart a broker in migration mode: it may not be able to register. Do not go back to ZooKeeper: it lacks"
        " every change made since"
    ),
)
def no_broker_was_left_behind(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No broker is in migration mode once the migration is final.

    The first election of a controller without the flag finalizes the migration, in whatever mode the brokers are. Those
    in migration mode go on serving, and nothing logs an error, but ZooKeeper lacks everything created from then on
    (measured on 3.9.2).
    """
    final = [
        f"controller {c.id}"
        for c in seen.controllers.values()
        if was_read(c.metrics) and c.metrics.zk_migration_state is ZkMigrationState.POST_MIGRATION
    ]
    if was_read(seen.quorum) and seen.quorum.migration_state_record is ZkMigrationState.POST_MIGRATION:
        final.append("the metadata log")
    if not final:
        running = {c.id: c.metrics for c in seen.controllers.values() if c.running is not False}
        return settle([], unread_reasons("controller {}", running), "the migration is not final")
    left = list(_left_behind(seen))
    if left:
        return failed(
            f"THE MIGRATION WAS FINALIZED TOO EARLY: ZkMigrationState is 3 (POST_MIGRATION) on {', '.join(final)}, but"
            f" {'; '.join(left)}. Topics created from now on are not in ZooKeeper, and nothing logs an error"
        )
    _, unread = broker_modes(seen)
    return settle([], unread, "every broker is in KRaft mode")


def _left_behind(seen: ClusterObservation) -> Iterator[str]:
    shown = [b for b in seen.brokers.values() if was_read(b.mode) and b.mode is not BrokerMode.KRAFT]
    yield from (f"broker {b.id} is in {b.mode} mode" for b in shown)
    if was_read(seen.quorum):
        known = {b.id for b in shown}
        registered = [i for i, r in seen.quorum.registrations.items() if r.is_migrating_zk_broker and i not in known]
        yield from (f"broker {i} is registered as migrating" for i in sorted(registered))
    for controller in seen.controllers.values():
        if was_read(controller.metrics) and controller.metrics.migrating_zk_broker_count:
            yield f"controller {controller.id} counts {controller.metrics.migrating_zk_broker_count} migrating brokers"
