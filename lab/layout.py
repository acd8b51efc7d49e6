"""Where a lab keeps its things: as any cluster on one machine does (``kraft_runbook.io.local.layout``)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.local.layout import (
    ENSEMBLE,
    ZOOKEEPER,
    Layout,
    ZookeeperServer,
    config_files,
    layout,
    nodes,
    starts,
    zookeeper_servers,
)
from lab.secret_files import read_environment_file

__all__ = [
    "ENSEMBLE",
    "ROOT",
    "ZOOKEEPER",
    "Layout",
    "ZookeeperServer",
    "config_files",
    "environment",
    "in_words",
    "layout",
    "load",
    "nodes",
    "starts",
    "zookeeper_servers",
]

ROOT = Path(__file__).resolve().parent.parent


def load(environ: Mapping[str, str] = os.environ) -> ClusterSpec:
    """The lab's cluster file, read with this environment: include/clusters/lab.yaml, or the lab.yaml in
    ``KRB_LAB_CLUSTERS``. A relative ``KRB_LAB_DIR`` counts from here.

    Raises ClusterFileError.
    """
    given = dict(environ)
    if given.get("KRB_LAB_DIR"):
        given["KRB_LAB_DIR"] = str(Path(given["KRB_LAB_DIR"]).absolute())
    directory = Path(given.get("KRB_LAB_CLUSTERS") or ROOT / "include" / "clusters")
    return load_cluster("lab", directory=directory, environment=given)


def in_words(spec: ClusterSpec) -> str:
    """The servers that a lab begins with, for a person: ``3 ZooKeeper servers, 4 brokers in 2 racks``."""
    ensemble, racks = len(zookeeper_servers(spec)), len({broker.rack for broker in spec.brokers})
    servers = f"{ensemble} ZooKeeper server{'s' if ensemble > 1 else ''}, " if ensemble else ""
    where = f" in {racks} racks" if 1 < racks < len(spec.brokers) else ""
    return f"{servers}{len(spec.brokers)} brokers{where}"


def environment(spec: ClusterSpec) -> dict[str, str]:
    """What another process needs in its environment to load this lab's cluster file and to resolve its secrets.

    Holds secret values. Raises RunbookError where the lab was never brought up.
    """
    here = layout(spec)
    place = {"KRB_LAB_DIR": str(here.directory), "KRB_LAB_NET": spec.brokers[0].host.rpartition(".")[0]}
    return place | read_environment_file(here.secrets_environment)
