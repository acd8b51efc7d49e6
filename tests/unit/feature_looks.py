"""A look at a cluster's feature levels, made by hand: three brokers, three controllers, as the lab has them."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

from observations import SPEC

from kraft_runbook.cluster.feature_levels import (
    METADATA_VERSION,
    FeatureObservation,
    LevelsInLog,
    NodeFeatures,
    NodeHost,
    NodeOnDisk,
    Range,
    Registered,
    Snapshot,
    SoftwareLevels,
    WrittenLevel,
)
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.io.hosts.feature_state import software_of
from lab.installation import JARS, JARS4

BROKERS, CONTROLLERS = (1, 2, 3), (101, 102, 103)
MODULES = Path(__file__).resolve().parents[2] / "playbooks" / "module_utils"


def host_module(name: str) -> ModuleType:
    """A file of ``playbooks/module_utils``, as Ansible gives it to a host."""
    spec = importlib.util.spec_from_file_location(f"ansible.module_utils.{name}", MODULES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@cache
def software_in(jars: Path) -> SoftwareLevels:
    """The feature levels of the Kafka in these jars, as a host reads them."""
    host_module("kafka_host")
    host_module("installation")
    reader = host_module("feature_levels")
    home = jars.with_name(f"{jars.name}-as-a-home")
    home.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):  # several processes of one session make it
        (home / "libs").symlink_to(jars)
    return software_of(reader.levels_of(str(home)))


def kafka3() -> SoftwareLevels:
    return software_in(JARS)


def kafka4() -> SoftwareLevels:
    return software_in(JARS4)


def ranges(software: SoftwareLevels) -> dict[str, Range]:
    return {name: table.supported for name, table in software.features.items() if table.supported.highest}


def registered(node_id: int, software: SoftwareLevels) -> Registered:
    """A controller is registered at its address in the lab's cluster file."""
    at = (f"CONTROLLER://{SPEC.controller(node_id).address}",) if node_id in CONTROLLERS else ()
    return Registered(node_id, ranges(software), "one", endpoints=at)


def on_disk(
    node_id: int, *, snapshot: int | None = 10, held: int = 21, after: Mapping[int, int] | None = None
) -> NodeOnDisk:
    """A node's disk. ``snapshot``: where it ends, with metadata.version ``held``; ``after``: levels by offset."""
    written = tuple(WrittenLevel(METADATA_VERSION, level, offset) for offset, level in (after or {}).items())
    taken = Snapshot(snapshot, 0.0, {METADATA_VERSION: held}) if snapshot is not None else None
    return NodeOnDisk(node_id, taken, written, {METADATA_VERSION: 21}, 1000, to_come=())


def look(
    software: SoftwareLevels | None = None, level: int = 21, *, levels: Mapping[str, int] | None = None
) -> FeatureObservation:
    """Every node on one software and at one level, all registered, the migration final. ``levels``: other features'."""
    of_all = software or kafka3()
    finalized = {METADATA_VERSION: level, **(levels or {})}
    shown = {i: NodeFeatures(i, ranges(of_all), finalized, 7, of_all.version) for i in (*BROKERS, *CONTROLLERS)}
    return FeatureObservation(
        "lab",
        {i: shown[i] for i in BROKERS},
        {i: shown[i] for i in CONTROLLERS},
        101,
        LevelsInLog(
            tuple(WrittenLevel(name, each, 5 + at) for at, (name, each) in enumerate(finalized.items())),
            {i: registered(i, of_all) for i in BROKERS},
            {i: registered(i, of_all) for i in CONTROLLERS},
            3,
            999,
            {},
        ),
        {
            i: NodeHost(i, {f"/kafka-{of_all.version}": of_all}, None, on_disk(i, held=level), {})
            for i in (*BROKERS, *CONTROLLERS)
        },
    )


def in_log(seen: FeatureObservation, **changes: object) -> FeatureObservation:
    """The same look with another metadata log."""
    assert isinstance(seen.log, LevelsInLog)
    return replace(seen, log=replace(seen.log, **changes))  # type: ignore[arg-type]


def all_registered() -> FeatureObservation:
    """Every controller registered as it runs, with the migration flag."""
    seen = look()
    assert isinstance(seen.log, LevelsInLog)
    ready = {i: replace(each, migration_ready=True) for i, each in seen.log.controllers.items()}
    return in_log(seen, controllers=ready)


def shown(seen: FeatureObservation) -> dict[str, tuple[int, str | Unread]]:
    """The version of each node, by what it is called."""
    return {
        seen.who(i): (i, each if isinstance(each, Unread) else each.software_version) for i, each in seen.nodes.items()
    }
