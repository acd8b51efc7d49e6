"""How a command looks at the cluster that it is asked about."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import typer

from kraft_runbook.cli.asking import Asking
from kraft_runbook.cli.cluster_files import clusters_directory
from kraft_runbook.cli.progress import reading
from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.migration.checks.catalogue import UNTIL_FINALIZED
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.operations import OPERATIONS
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.runbook.operation import Operation

PATIENCE_SECONDS = 20.0
"""How long a contradiction that may be a node's start is looked at again before it is shown to the person who waits."""


def groups_in_words(ask: Asking, asked: Operation, spec: ClusterSpec, seen: ClusterObservation) -> tuple[str, ...]:
    """The consumer groups in words, where the migration is explained and ZooKeeper is not yet behind."""
    if asked is not MIGRATION or not was_read(seen.zookeeper) or detect_phase(seen).phase not in UNTIL_FINALIZED:
        return ()
    return ask.groups(spec, secrets=environment_secrets())


def operation_of(name: str) -> Operation:
    if name not in OPERATIONS:
        raise typer.BadParameter(f"--operation is {' or '.join(OPERATIONS)}, not {name}")
    return OPERATIONS[name]


def load(name: str, directory: Path | None) -> ClusterSpec:
    return load_cluster(name, directory=clusters_directory(directory), environment=os.environ)


def look(
    ask: Asking,
    spec: ClusterSpec,
    *,
    after: ClusterObservation | None = None,
    scope: Scope = Scope.LIVE,
    with_hosts: bool = False,
) -> ClusterObservation:
    """A settled look, and where it is the second, one that lies far enough behind the first to tell whether dual write
    is alive.
    """
    if after is not None:
        time.sleep(ask.liveness)
    tell = partial(typer.echo, err=True)
    parts = ("every topic's znodes",) * (scope is Scope.FULL) + ("the hosts",) * with_hosts
    with reading(f"looking at {spec.name}: {', '.join(('brokers', 'controllers', *parts))}"):
        return ask.settled(
            spec, secrets=environment_secrets(), tell=tell, scope=scope, with_hosts=with_hosts, within=PATIENCE_SECONDS
        )


def two_looks(
    ask: Asking, asked: Operation, spec: ClusterSpec, *, scope: Scope = Scope.LIVE, with_hosts: bool = False
) -> tuple[Any, Any, ClusterObservation]:
    """Two looks, as the operation sees the cluster, and the observation of the second. ``scope``, ``with_hosts``: of
    the second, where the operation sees an observation.
    """
    if asked.sees is ClusterObservation:
        earlier = look(ask, spec)
        seen = look(ask, spec, after=earlier, scope=scope, with_hosts=with_hosts)
        return earlier, seen, seen
    see = partial(ask.own_looks[asked.sees], spec, secrets=environment_secrets(), tell=partial(typer.echo, err=True))
    before = see()
    time.sleep(ask.apart)
    now = see()
    return before, now, now.cluster
