"""Clusters in a known phase: each made once by a real migration by hand, stopped cleanly, and kept as a copy of its
directory below ``build``.

A lab begins with a copy, in a place of its own: another directory and another loopback network than the one that was
copied. What belongs to a place (configurations, Kafka's home, supervisor's files, logs, the count of starts) is not
kept, but made anew. Data and secrets are the same in every lab that begins so.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from modulefinder import ModuleFinder
from pathlib import Path

import by_hand
from kept_copies import Copies, copy_directory
from labs import Lab, describe_lab, describe_new_lab

from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.local import supervision
from lab import ROOT, lifecycle
from lab.health import wait_until_healthy
from lab.layout import ZOOKEEPER, config_files, layout, zookeeper_servers
from lab.seed import seed
from lab.trial import free_network

HOME = ROOT / "build" / "kept-states"
MODES = {
    Phase.ZOOKEEPER: (BrokerMode.ZOOKEEPER, None),
    Phase.HYBRID: (BrokerMode.HYBRID, ControllerMode.MIGRATION),
    Phase.DUAL_WRITE: (BrokerMode.KRAFT, ControllerMode.MIGRATION),
    Phase.FINALIZED: (BrokerMode.KRAFT, ControllerMode.KRAFT),
}
"""The phases that are kept, and the mode of every broker and of every controller in each (None: not provisioned)."""


@contextmanager
def lab_in(phase: Phase, *, topics: int = 0, only: Collection[str] = (), ensemble: bool = False) -> Iterator[Lab]:
    """A lab of one's own in that phase, seeded; ended and removed afterwards, also when it never came up.

    ``topics``: further topics of 10 partitions. ``only``: of its services these alone are started. ``ensemble``: with
    three ZooKeeper servers, not one.
    """
    lab = describe_new_lab(ensemble=ensemble)
    try:
        put(phase, lab.spec, topics=topics)
        start(phase, lab, only=only)
        yield lab
    finally:
        lifecycle.down(lab.spec, purge=True)


def put(phase: Phase, spec: ClusterSpec, *, topics: int = 0) -> None:
    """Put a copy where this lab has its directory, which must not exist yet, configured for its place. Nothing is
    started.

    A copy that is not kept yet is made first, which takes from half a minute (ZOOKEEPER) to three (FINALIZED, from
    nothing). What is kept is always of a lab with one ZooKeeper server; each server of an ensemble is given a copy of
    its data.
    """
    directory = layout(spec).directory
    Copies(HOME, key()).take(f"{phase}-{topics}", directory, lambda draft: _make(phase, topics, draft))
    try:
        _share_among_servers(spec)
        _configure(phase, spec)
    except BaseException:
        shutil.rmtree(directory)
        raise


def start(phase: Phase, lab: Lab, *, only: Collection[str] = ()) -> None:
    """Start the lab that ``put`` left, until it is healthy and, where there is one, dual write lives. What fails is
    raised with the ends of the logs.
    """
    with _with_logs(lab.spec):
        lifecycle.up(lab.spec, only=only)
        if phase in (Phase.HYBRID, Phase.DUAL_WRITE) and not only:
            by_hand.await_dual_write(lab.spec, secrets=lab.secrets)


@contextmanager
def _with_logs(spec: ClusterSpec) -> Iterator[None]:
    """The lab is removed with its logs when something fails: the error tells how they end."""
    try:
        yield
    except Exception as error:
        here = layout(spec)
        for log in sorted(here.logs.glob("*.log")) if not hasattr(error, "__notes__") else ():
            error.add_note(f"{log.name} ends:\n{supervision.log_tail(here, log.stem, lines=20)}")
        raise


def _share_among_servers(spec: ClusterSpec) -> None:
    """Give each server of an ensemble the data that was kept of one: with equal snapshots and logs they agree.

    A lone server writes no epochs (``acceptedEpoch``, ``currentEpoch``): each takes them from its last transaction
    (``QuorumPeer.loadDataBase``).
    """
    servers, kept = zookeeper_servers(spec), layout(spec).directory / ZOOKEEPER
    if len(servers) == 1:
        return
    for server in servers:
        server.directory.mkdir()
        copy_directory(kept / server.data.name, server.data)
    shutil.rmtree(kept)


def _configure(phase: Phase, spec: ClusterSpec) -> None:
    """Write what ``lifecycle.up`` does not: every node's configuration in the mode that it has by then. And
    supervisor's, by which a lab is known.
    """
    layout(spec).supervisor_config.write_text(supervision.render_configuration(spec))
    of_brokers, of_controllers = MODES[phase]
    for broker in spec.brokers:
        by_hand.write(broker, broker_properties(spec, broker, of_brokers))
    for controller in spec.controllers if of_controllers else ():
        by_hand.write(controller, controller_properties(spec, controller, of_controllers))


def _make(phase: Phase, topics: int, draft: Path) -> None:
    """Bring a lab to that phase, stop it cleanly, and copy to ``draft`` what does not belong to its place."""
    lab = _makers_lab(f"{phase}-{topics}")
    _end(lab)  # a maker that was killed leaves its lab running
    try:
        print(f"making a cluster in {phase}, to be kept")
        with _with_logs(lab.spec):
            _FROM[phase](lab, topics)
            wait_until_healthy(lab.spec, say=print)
            lifecycle.down(lab.spec)
        _strip(lab.spec)
        copy_directory(lab.directory, draft)
    finally:
        _end(lab)


def _to_zookeeper(lab: Lab, topics: int) -> None:
    if topics:
        put(Phase.ZOOKEEPER, lab.spec)
    lifecycle.up(lab.spec)
    seed(lab.spec, extra_topics=topics)


def _to_hybrid(lab: Lab, topics: int) -> None:
    put(Phase.ZOOKEEPER, lab.spec, topics=topics)
    start(Phase.ZOOKEEPER, lab)
    by_hand.to_dual_write(lab.spec, secrets=lab.secrets)


def _to_dual_write(lab: Lab, topics: int) -> None:
    put(Phase.HYBRID, lab.spec, topics=topics)
    start(Phase.HYBRID, lab)
    by_hand.roll_brokers(lab.spec, BrokerMode.KRAFT, secrets=lab.secrets)
    by_hand.await_dual_write(lab.spec, secrets=lab.secrets)


def _to_finalized(lab: Lab, topics: int) -> None:
    """On from HYBRID, not from a copy in DUAL_WRITE: to make that one too would start and stop seven processes more."""
    _to_dual_write(lab, topics)
    by_hand.finalize(lab.spec, secrets=lab.secrets)


_FROM: dict[Phase, Callable[[Lab, int], None]] = {
    Phase.ZOOKEEPER: _to_zookeeper,
    Phase.HYBRID: _to_hybrid,
    Phase.DUAL_WRITE: _to_dual_write,
    Phase.FINALIZED: _to_finalized,
}


def _makers_lab(name: str) -> Lab:
    """Always in the same directory, so that the next maker of this state finds what one that was killed
    left running.
    """
    checkout = hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]
    return describe_lab(Path(tempfile.gettempdir(), f"krb-make-{checkout}-{name}"), free_network())


def _end(lab: Lab) -> None:
    """End a maker's lab, whatever is there of it, and remove its directory."""
    if layout(lab.spec).supervisor_config.exists():
        lifecycle.down(lab.spec, purge=True)
    shutil.rmtree(lab.directory, ignore_errors=True)


def _strip(spec: ClusterSpec) -> None:
    """Remove what belongs to the place."""
    here = layout(spec)
    for directory in (here.kafka_home, here.logs):
        shutil.rmtree(directory)
    for file in (here.supervisor_config, here.supervisor_socket, here.starts_log, *config_files(spec).values()):
        file.unlink(missing_ok=True)
    for server in zookeeper_servers(spec):
        server.config.unlink(missing_ok=True)
    for name in ("supervisord.pid", "lock"):
        (here.directory / name).unlink(missing_ok=True)


@functools.cache
def key() -> str:
    """Of all that a kept state is made of: each module of this project that is loaded to make one, the lab, its cluster
    file, the libraries' versions.
    """
    finder = ModuleFinder(path=[str(ROOT / "tests" / "integration"), str(ROOT / "include"), str(ROOT)])
    finder.run_script(__file__)
    files = {Path(module.__file__).resolve() for module in finder.modules.values() if module.__file__}
    files |= {path for path in (ROOT / "lab").rglob("*") if path.is_file() and path.suffix != ".pyc"}
    files |= {
        ROOT / "include" / "clusters" / "lab.yaml",
        *(ROOT / "include" / "kraft_runbook").rglob("*.json"),
        *ROOT.glob("requirements*.lock"),
    }
    found = hashlib.sha256()
    for path in sorted(files):
        found.update(f"{path.relative_to(ROOT)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    return found.hexdigest()[:16]
