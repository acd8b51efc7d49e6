"""Up, down, and the figures of Kafka's own copy: what the migration driver logs, what the processes took, what lies on
disk.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.scale.cluster import Plan, load_spec, write_cluster_file
from benchmarks.scale.driver_log import COPIED, DUAL_WRITE, DriverLog, moment
from benchmarks.scale.processes import Processes, Usage
from benchmarks.scale.start import (
    GHOSTS,
    ZOOKEEPER,
    await_leader,
    await_registration,
    sockets,
    start_controller,
    start_stand_ins,
    start_zookeeper,
)
from benchmarks.scale.tree import write_snapshot
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.local.ports import require_free
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.znodes.cluster_rows import parse_migration
from lab.installation import fetch_jars, install, java

Say = Callable[[str], None]
BOOTSTRAP = "00000000000000000000-0000000000.checkpoint"
"""The checkpoint that formatting writes; it holds no copy."""


@dataclass(frozen=True, slots=True)
class CopyFigures:
    """What one copy took. Seconds, bytes, MiB (heap, resident); "active": the controller that copied.

    ``registration_to_state_1``: from the last stand-in's registration to the end of the copy, when the record of
    ZkMigrationState 1 is committed; ``copy``: the driver's own time; ``wait_a_batch``: seconds that each batch waited
    for its commit; ``registration_to_dual_write``: until the driver has also read ZooKeeper again and told the brokers,
    None where that was not awaited (then "at dual write" is at the copy's end); ``load_average``: the machine's, over
    the minute before state 1: above its cores, others ran beside it.
    """

    partitions: int
    brokers: int
    controllers: int
    properties: dict[str, str]
    quiet: bool
    controller_heap: str
    tree_written: float
    tree_bytes: int
    zookeeper_loaded: float
    registration_to_state_1: float
    copy: float
    records: int
    batches: int
    wait_a_batch: float
    records_a_second: float
    log_bytes: int
    snapshot_bytes: int
    active_cpu_at_state_1: float
    zookeeper_cpu_at_state_1: float
    registration_to_dual_write: float | None
    active_cpu_at_dual_write: float
    active_heap_after_gc: int | None
    active_peak_rss: int
    zookeeper_cpu_at_dual_write: float
    zookeeper_heap_after_gc: int | None
    load_average: float


def up(
    plan: Plan, *, patience: float = 7200, keep: bool = False, copy_only: bool = False, say: Say = print
) -> CopyFigures:
    """Make the cluster and bring it to dual write; ``patience``: seconds that the copy and dual write may take.
    ``copy_only``: no further than the copy's end.

    Afterwards everything runs on, the stand-ins heartbeat, and (but for ``copy_only``) ``/migration`` moves. When it
    fails everything is stopped, unless ``keep``; the logs stay. Raises RunbookError.
    """
    processes = Processes(plan.directory)
    if any(processes.pid(name) for name in processes.names()):
        raise Refused(
            f"a cluster of this harness runs in {plan.directory}",
            way_out=f"python -m benchmarks.scale down --directory {plan.directory}",
        )
    _clear(plan.directory)
    plan.directory.mkdir(parents=True)
    plan.save()
    try:
        return _up(plan, processes, patience, copy_only, say)
    except BaseException:
        if not keep:
            down(plan, say=say)
        raise


def _up(plan: Plan, processes: Processes, patience: float, copy_only: bool, say: Say) -> CopyFigures:
    spec = write_cluster_file(plan)
    install(spec, jars=fetch_jars(spec.kafka.version), java_command=java())
    require_free(sockets(plan, spec))
    began = time.monotonic()
    snapshot = write_snapshot(plan.zookeeper_data, plan.shape, spec.cluster_id or "")
    tree_written = time.monotonic() - began
    say(
        f"the tree is written: {plan.partitions} partitions, {plan.shape.znodes} znodes of topics,"
        f" {snapshot.stat().st_size / 1e6:.0f} MB, {tree_written:.1f} s"
    )
    zookeeper_loaded = start_zookeeper(plan, spec, processes)
    say(f"ZooKeeper has loaded it: {zookeeper_loaded:.1f} s")
    for controller in spec.controllers:
        start_controller(plan, spec, processes, controller.id)
    await_leader(spec, processes)
    start_stand_ins(plan, processes, BrokerMode.HYBRID)
    registered_at = await_registration(plan, spec, processes)
    say(f"{plan.brokers} stand-ins have registered; the copy can begin")
    watch = DriverLog(plan, spec, processes, deadline=time.monotonic() + patience)
    active, copied = watch.first(COPIED)
    at_state_1, load_average = _taken(plan, spec, processes, active), os.getloadavg()[0]
    copied_at, copy_ms, records = moment(copied[1]), int(copied["ms"]), int(copied["records"])
    say(
        f"the copy is done: {records} records in {copy_ms / 1000:.1f} s, {copied_at - registered_at:.1f} s after the"
        " last registration"
    )
    to_dual_write, at_end = None, at_state_1
    if not copy_only:
        active_now, dual = watch.first(DUAL_WRITE)
        to_dual_write, at_end = round(moment(dual[1]) - registered_at, 2), _taken(plan, spec, processes, active_now)
    figures = CopyFigures(
        partitions=plan.partitions,
        brokers=plan.brokers,
        controllers=plan.controllers,
        properties=dict(plan.properties),
        quiet=plan.quiet,
        controller_heap=plan.controller_heap,
        tree_written=round(tree_written, 2),
        tree_bytes=snapshot.stat().st_size,
        zookeeper_loaded=round(zookeeper_loaded, 2),
        registration_to_state_1=round(copied_at - registered_at, 2),
        copy=copy_ms / 1000,
        records=records,
        batches=int(copied["batches"]),
        wait_a_batch=round(float(copied["wait"]) / 1000, 4),
        records_a_second=round(records / max(copy_ms, 1) * 1000, 1),
        log_bytes=at_state_1.log_bytes,
        snapshot_bytes=at_end.snapshot_bytes,
        active_cpu_at_state_1=at_state_1.active.cpu,
        zookeeper_cpu_at_state_1=at_state_1.zookeeper.cpu,
        registration_to_dual_write=to_dual_write,
        active_cpu_at_dual_write=at_end.active.cpu,
        active_heap_after_gc=at_end.active.heap_after_gc,
        active_peak_rss=at_end.active.peak_rss,
        zookeeper_cpu_at_dual_write=at_end.zookeeper.cpu,
        zookeeper_heap_after_gc=at_end.zookeeper.heap_after_gc,
        load_average=round(load_average, 1),
    )
    plan.result.write_text(json.dumps(asdict(figures), indent=1) + "\n")
    if to_dual_write is None:
        return figures
    await_movement(spec, within=120)
    say(
        f"dual write, {to_dual_write:.1f} s after the last registration; /migration moves. Cluster file:"
        f" {plan.clusters / 'scale.yaml'}"
    )
    return figures


def down(plan: Plan, *, purge: bool = False, say: Say = print) -> None:
    """Stop every process of this directory, stand-ins first; ``purge`` removes the directory too. Raises StepFailed for
    one that can't be ended.
    """
    processes = Processes(plan.directory)
    for name in reversed(processes.names()):
        say(f"stopping {name}")
        processes.stop(name)
    if purge:
        _clear(plan.directory)


def _clear(directory: Path) -> None:
    """Remove what a former run left here. Raises Refused for a directory that is none of this harness's."""
    if not directory.exists():
        return
    if any(directory.iterdir()) and not (directory / "plan.json").exists():
        raise Refused(
            f"{directory} is not empty and holds no plan.json of this harness", way_out="give another --directory"
        )
    shutil.rmtree(directory)


# -- looking -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Taken:
    active: Usage
    zookeeper: Usage
    log_bytes: int
    snapshot_bytes: int


def _taken(plan: Plan, spec: ClusterSpec, processes: Processes, controller_id: int) -> _Taken:
    """What was used up to now. Segments are preallocated or not, so the log's size is its bytes in use."""
    log = Path(spec.controller(controller_id).log_dir) / "__cluster_metadata-0"
    return _Taken(
        processes.usage(spec.controller(controller_id).service),
        processes.usage(ZOOKEEPER),
        sum(each.stat().st_size for each in log.glob("*.log")),
        max((each.stat().st_size for each in log.glob("*.checkpoint") if each.name != BOOTSTRAP), default=0),
    )


def migration_offset(spec: ClusterSpec) -> int:
    """``/migration``'s offset now; -1 where there is none."""
    with ZookeeperReader(spec.zookeeper, secrets=environment_secrets({})) as reader:
        znode = reader.get("/migration")
    return -1 if znode is None else parse_migration(znode.data).kraft_metadata_offset


def await_movement(spec: ClusterSpec, *, within: float) -> None:
    """Dual write is alive when ``/migration`` moves (a NoOpRecord comes twice a second). Raises StepFailed when it does
    not.
    """
    first, deadline = migration_offset(spec), time.monotonic() + within
    while migration_offset(spec) == first:
        if time.monotonic() > deadline:
            raise StepFailed(f"/migration stands still at offset {first}", way_out="read the controllers' logs")
        time.sleep(0.5)


def status(plan: Plan) -> list[str]:
    """One line a process, and whether dual write moves."""
    processes, spec, lines = Processes(plan.directory), load_spec(plan), []
    for name in (ZOOKEEPER, *(each.service for each in spec.controllers), GHOSTS):
        pid = processes.pid(name)
        if pid is None:
            lines.append(f"{name}: does not run")
            continue
        used = processes.usage(name)
        lines.append(f"{name}: pid {pid}, {used.cpu:.1f} cpu-seconds, at most {used.peak_rss} MiB resident")
    if processes.pid(ZOOKEEPER) is not None:
        before = migration_offset(spec)
        time.sleep(2)
        after = migration_offset(spec)
        lines.append(
            f"/migration: offset {after}, {'moves' if after > before else 'STANDS STILL'} ({datetime.now(UTC):%H:%M:%S}"
            " UTC)"
        )
    return lines
