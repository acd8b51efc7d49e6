"""A lab for tests: its own directory and its own loopback network, so that sessions side by side don't clash."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kraft_runbook.cluster.addresses import split_address
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.secrets import Secrets, environment_secrets
from kraft_runbook.io.zookeeper.servers import leads
from lab import ROOT, lifecycle
from lab.cluster_file import write_cluster_file
from lab.layout import ENSEMBLE, ZookeeperServer, environment, load, zookeeper_servers
from lab.seed import seed
from lab.trial import free_network


@dataclass(frozen=True)
class Lab:
    """A lab: its cluster file as read, and where it is."""

    spec: ClusterSpec
    directory: Path
    network: str
    clusters: Path | None = None
    """Where its cluster file lies, where it is not the lab's own."""

    @property
    def place(self) -> dict[str, str]:
        """The whole environment of a process that is to find this lab; without its secrets, which exist
        once it was up.
        """
        named = {"KRB_LAB_CLUSTERS": str(self.clusters), "KRAFT_RUNBOOK_CLUSTERS": str(self.clusters)}
        place = {"KRB_LAB_DIR": str(self.directory), "KRB_LAB_NET": self.network}
        return {**os.environ, **place, **(named if self.clusters else {})}

    @property
    def environment(self) -> dict[str, str]:
        """The same with the lab's secrets."""
        return {**self.place, **environment(self.spec)}

    @property
    def secrets(self) -> Secrets:
        return environment_secrets(self.environment)

    def command(self, *arguments: str, **changes: str) -> tuple[int, str]:
        """``python -m lab`` as a user runs it, with some variables changed: its exit code, and all that it said."""
        done = subprocess.run(
            [sys.executable, "-m", "lab", *arguments],
            env=self.place | changes,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


def describe_lab(directory: Path, network: str, *, ensemble: bool = False) -> Lab:
    """The lab in that directory, or the one that is to be made there. ``ensemble``: with three ZooKeeper servers."""
    spec = load({**os.environ, "KRB_LAB_DIR": str(directory), "KRB_LAB_NET": network})
    return Lab(with_ensemble(spec) if ensemble else spec, directory, network)


def with_ensemble(spec: ClusterSpec) -> ClusterSpec:
    """The same lab with an ensemble of ZooKeeper servers: the first one declared, and two at the next addresses."""
    host, port = split_address(spec.zookeeper.servers[0])
    network, _, first = host.rpartition(".")
    servers = tuple(f"{network}.{int(first) + further}:{port}" for further in range(ENSEMBLE))
    return spec.model_copy(update={"zookeeper": spec.zookeeper.model_copy(update={"servers": servers})})


def zookeeper_leader(spec: ClusterSpec) -> ZookeeperServer | None:
    """The server that leads the lab's ensemble; None while none says so."""
    return next((server for server in zookeeper_servers(spec) if leads(server.address)), None)


def describe_new_lab(*, ensemble: bool = False) -> Lab:
    """A lab that does not exist yet, where nothing else is. ``ensemble``: as in ``describe_lab``."""
    directory = Path(tempfile.mkdtemp(prefix="krb-"))
    directory.rmdir()
    return describe_lab(directory, free_network(), ensemble=ensemble)


def described_in(clusters: Path) -> Lab:
    """A lab that does not exist yet, as the ``lab.yaml`` in that directory describes it."""
    plain = describe_new_lab()
    place = {"KRB_LAB_DIR": str(plain.directory), "KRB_LAB_NET": plain.network, "KRB_LAB_CLUSTERS": str(clusters)}
    return Lab(load({**os.environ, **place}), plain.directory, plain.network, clusters)


@contextmanager
def up(lab: Lab, *, new_in: BrokerMode = BrokerMode.ZOOKEEPER) -> Iterator[Lab]:
    """A lab that does not exist yet, up in that mode (``lifecycle.up``); ended and removed afterwards."""
    try:
        lifecycle.up(lab.spec, new_in=new_in)
        yield lab
    finally:
        lifecycle.down(lab.spec, purge=True)


@contextmanager
def lab_of(racks: Sequence[str], *, mode: BrokerMode, clusters: Path, disks: int = 1) -> Iterator[Lab]:
    """A new, empty lab with one broker in each of ``racks``, up in ``mode`` (ZOOKEEPER or KRAFT); ended and removed
    afterwards. ``clusters``: where its cluster file is written; ``disks``: log directories of each broker.
    """
    write_cluster_file(clusters, racks=racks, disks=disks)
    with up(described_in(clusters), new_in=mode) as lab:
        yield lab


@contextmanager
def secured_lab(clusters: Path) -> Iterator[Lab]:
    """A new, seeded lab in ZooKeeper mode, as the ``lab.yaml`` in that directory describes it; ended and removed
    afterwards.
    """
    with up(described_in(clusters)) as lab:
        seed(lab.spec)
        yield lab
