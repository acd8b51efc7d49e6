"""Whether this is the cluster that the file describes, and whether all of it can be read."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.birth import born_in_kraft
from kraft_runbook.cluster.naming import name_ids, nodes
from kraft_runbook.cluster.observation import ClusterObservation, ZkMigrationState, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import BEFORE_THE_COPY, CHECKS, DURING_MIGRATION, UNTIL_FINALIZED, check
from kraft_runbook.runbook.check_results import BLOCKING, Finding, failed, passed, settle, unknown
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS, phase_known
from kraft_runbook.runbook.read_parts import split_read, unread_reasons

CHECKS.take(*CLUSTER_CHECKS.of("KRB-PRE-004", "KRB-PRE-005", "KRB-PRE-009"))


@check(
    "KRB-PRE-001",
    severity=BLOCKING,
    fix="make the named parts readable, or resolve the contradiction; kraft-runbook explain says more",
)
def the_phase_is_known(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The observation proves the cluster's phase.

    Every step depends on it. An unread part is never guessed.
    """
    return phase_known(seen)


@check("KRB-PRE-002", severity=BLOCKING, fix="there is nothing to migrate; the cluster file may leave out 'zookeeper'")
def the_cluster_can_be_migrated(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The cluster is neither finalized nor created in KRaft mode.

    ZkMigrationState 3 means that the migration is over; Kafka 4 shows it in the metadata log only. A cluster never used
    ZooKeeper if its metadata log says 0 and no broker is in ZooKeeper or migration mode. A gauge of 0 alone does not
    prove that: a controller that has published nothing yet shows 0 too.
    """
    states = {c.id: c.metrics.zk_migration_state for c in seen.controllers.values() if was_read(c.metrics)}
    final = [i for i, found in states.items() if found is ZkMigrationState.POST_MIGRATION]
    if final:
        return failed(f"the migration is already final: ZkMigrationState is 3 on {nodes('controller', final)}")
    reading = detect_phase(seen)
    if reading.phase in (Phase.FINALIZED, Phase.KRAFT):
        return failed(f"there is nothing to migrate: {'; '.join(reading.reasons)}")
    if born_in_kraft(seen):
        return failed(
            "the cluster was created in KRaft mode: ZkMigrationState is 0 in the metadata log, and every broker that"
            " answers is in KRaft mode"
        )
    running = {c.id: c.metrics for c in seen.controllers.values() if c.running is not False}
    unread = unread_reasons("controller {}'s metrics", running)
    return settle([], unread, "no controller shows a finalized migration or a cluster created in KRaft mode")


@check(
    "KRB-PRE-080",
    severity=BLOCKING,
    fix=(
        "name the ensemble under 'zookeeper' in the cluster file (docs/cluster-file.md); a cluster in KRaft mode has no"
        " ensemble and nothing to migrate"
    ),
)
def the_file_names_a_zookeeper(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The cluster file names a ZooKeeper ensemble.

    A file without one describes a cluster in KRaft mode, which can be observed and explained, but not migrated.
    """
    return passed(spec.zookeeper.connect) if spec.zookeeper else failed("the cluster file names no ZooKeeper")


@check(
    "KRB-PRE-003",
    severity=BLOCKING,
    fix=(
        "point the cluster file at the cluster it names, or correct cluster_id there (zookeeper-shell: get /cluster/id)"
    ),
    stages=UNTIL_FINALIZED,
)
def the_cluster_has_the_declared_id(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """ZooKeeper, every broker and the cluster file name the same cluster id.

    With a wrong address the runbook would migrate another cluster, or parts of two.
    """
    if not was_read(seen.zookeeper):
        return unknown(seen.zookeeper)
    stored = seen.zookeeper.cluster_id
    if stored is None:
        return failed(
            f"ZooKeeper at {spec.ensemble.connect} holds no /cluster/id",
            "check zookeeper.servers and zookeeper.chroot in the cluster file",
        )
    wrong = (
        [f"the cluster file says {spec.cluster_id}, ZooKeeper {stored}"]
        if spec.cluster_id not in (None, stored)
        else []
    )
    found, unread = split_read("broker {}", {b.id: b.advertised_cluster_id for b in seen.brokers.values()})
    wrong += [f"broker {i} says {said}, ZooKeeper {stored}" for i, said in found.items() if said != stored]
    return settle(wrong, unread, f"all name {stored}")


@check(
    "KRB-PRE-006",
    severity=BLOCKING,
    fix=(
        "start the controller. If its disk was lost, clear its provision task in the migration's run"
        " (docs/rollback.md). Without a majority of the controllers no metadata can change"
    ),
    stages=DURING_MIGRATION,
    not_at={"start"},
)
def every_controller_runs(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Once the migration has begun, every declared controller runs.

    If only a bare majority runs, one more failure stops the migration. Before the metadata copy a run provisions the
    missing controllers and waits for them. After the copy the start gate's signature allows a controller that is down
    to be provisioned again, so this check does not apply at that gate.
    """
    down = [c.id for c in seen.controllers.values() if c.running is False]
    before_the_copy = detect_phase(seen).phase is Phase.PRE_MIGRATION
    wrong = (
        []
        if before_the_copy
        else [f"controller {i} does not run ({spec.controller(i).address} refuses connections)" for i in down]
    )
    unread = unread_reasons("controller {}", {c.id: c.running for c in seen.controllers.values()})
    running = {c.id: c.mode for c in seen.controllers.values() if c.running is True}
    unread += unread_reasons("controller {}'s mode", running)
    total = len(seen.controllers)
    return settle(
        wrong,
        unread,
        f"{total - len(down)} of {total} run"
        + (f"; {nodes('controller', down, 'is')} provisioned in this phase" if down else ""),
    )


@check(
    "KRB-PRE-007",
    severity=BLOCKING,
    fix="give the controllers ids that no broker has, for example from 1000 on",
    stages=UNTIL_FINALIZED,
)
def controller_ids_are_free(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No controller has the id of a broker.

    Brokers and controllers share one space of node ids in KRaft.
    """
    if not was_read(seen.zookeeper):
        return unknown(seen.zookeeper)
    taken = sorted(set(spec.controller_ids) & (set(seen.zookeeper.brokers) | set(spec.broker_ids)))
    return (
        failed(f"id {name_ids(taken)} is used by a broker and a controller")
        if taken
        else passed(f"controllers: {name_ids(spec.controller_ids)}")
    )


@check(
    "KRB-PRE-008",
    severity=BLOCKING,
    fix=(
        "correct the listeners in the cluster file, or the broker's advertised.listeners; the controllers connect to"
        " brokers by them"
    ),
    stages=BEFORE_THE_COPY,
)
def brokers_advertise_what_is_declared(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every broker advertises the listeners and the rack that the cluster file declares.

    The brokers' files are rendered from the cluster file, so every difference would take effect at the first restart.
    """
    if not was_read(seen.zookeeper):
        return unknown(seen.zookeeper)
    wrong: list[str] = []
    for broker_id, znode in sorted(seen.zookeeper.brokers.items()):
        if broker_id in spec.broker_ids:
            wrong += _endpoint_differences(spec, broker_id, znode.endpoints)
            if znode.rack != spec.broker(broker_id).rack:
                wrong.append(
                    f"broker {broker_id} has rack {znode.rack}, the cluster file {spec.broker(broker_id).rack}"
                )
    missing = [f"broker {i} is not in /brokers/ids" for i in spec.broker_ids if i not in seen.zookeeper.brokers]
    return settle(wrong, missing, "endpoints and racks are as declared")


def _endpoint_differences(spec: ClusterSpec, broker_id: int, endpoints: tuple[str, ...]) -> Iterator[str]:
    broker = spec.broker(broker_id)
    live = {e.partition("://")[0].upper(): e.partition("://")[2] for e in endpoints}
    declared = {each.name: broker.advertised(each) for each in broker.listeners}
    for name in sorted(live.keys() | declared.keys()):
        if live.get(name) != declared.get(name):
            yield (
                f"broker {broker_id} listener {name}: live {live.get(name, 'none')}, declared"
                f" {declared.get(name, 'none')}"
            )
