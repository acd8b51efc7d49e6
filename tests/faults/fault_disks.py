"""Faults of disks: full, or gone."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fault_case import Fault
from fault_injectors import answer, injector, once_stopped, services_of
from fault_processes import soon
from fault_scene import Scene, Undo

from kraft_runbook.cluster.observation import was_read
from kraft_runbook.procedures.observe import observe
from lab.layout import ZOOKEEPER, zookeeper_servers


@injector("fill_disk_in_restart")
def fill_disk_in_restart(scene: Scene, fault: Fault) -> Undo:
    """As soon as the broker has stopped, its log directory is on a file system without a byte left."""
    broker = next(b for b in scene.ground.spec.brokers if b.service == fault.when.stopped)
    disk = SmallDisk(Path(broker.log_dirs[0]))
    once_stopped(scene, fault)
    config = Path(broker.config_file)
    with config.with_name(f".{config.name}.lock").open("a") as lock:  # the playbook's own: the start waits for it
        fcntl.flock(lock, fcntl.LOCK_EX)
        disk.mount()
        disk.fill()

    def undo() -> None:
        if scene.process(broker.service).runs:
            scene.kill_service(broker.service)
        disk.remove(keep=False)
        scene.start_service(broker.service)
        soon(lambda: answer(scene, [broker.service]) or None, f"{broker.service} answers again", every=0.5)

    return undo


@injector("small_disk")
def small_disk(scene: Scene, fault: Fault) -> Undo:
    """Before the run: what a service (``target``) writes, or Airflow's tasks (``airflow``), lies on a small disk, on
    which ``fill_disk`` leaves no byte.

    A service is killed and started again for it, and once more for the way back.
    """
    service, directory = _who_writes_where(scene, fault.target)
    disk = SmallDisk(directory)
    if service:
        scene.kill_service(service)
    disk.mount()
    if service:
        _start(scene, service)

    def undo() -> None:
        if service and scene.process(service).runs:
            scene.kill_service(service)
        disk.remove(keep=True)
        if service:
            _start(scene, service)

    return undo


@injector("fill_disk")
def fill_disk(scene: Scene, fault: Fault) -> Undo:
    """The small disk of this target is full from now on. Broken once the service has ended of it."""
    service, directory = _who_writes_where(scene, fault.target)
    disk = SmallDisk(directory)
    disk.fill()
    if service:
        soon(lambda: not scene.process(service).runs or None, f"{service} ends of its full disk", within=90, every=0.2)
    return disk.empty


def _who_writes_where(scene: Scene, target: object) -> tuple[str, Path]:
    """The service (none for Airflow) and the directory that it writes."""
    if target == "airflow":
        return "", scene.stage.airflow.home / "kraft-runbook"
    (service,) = services_of(scene, target)
    if service == ZOOKEEPER:
        return service, zookeeper_servers(scene.ground.lab.spec)[0].data
    return service, Path(next(c for c in scene.ground.spec.controllers if c.service == service).log_dir)


def _start(scene: Scene, service: str) -> None:
    scene.start_service(service)
    if service == ZOOKEEPER:
        soon(
            lambda: was_read(observe(scene.ground.spec, secrets=scene.ground.lab.secrets).zookeeper) or None,
            "ZooKeeper answers",
            every=0.5,
        )
    else:
        soon(lambda: answer(scene, [service]) or None, f"{service} answers", within=120, every=0.5)


@dataclass(frozen=True)
class SmallDisk:
    """A tmpfs in a directory's place, with a copy of what lies there.

    Small, and large enough for preflight, which wants 1 GiB free. ZooKeeper's logs are 64 MiB each by their length, and
    sparse.
    """

    directory: Path

    @property
    def place(self) -> Path:
        return self.directory.with_name(f"{self.directory.name}-small-disk")

    @property
    def filler(self) -> Path:
        return self.place / "filler"

    def mount(self) -> None:
        self.directory.mkdir(exist_ok=True)
        self.place.mkdir()
        _run("mount", "-t", "tmpfs", "-o", "size=1200m", "tmpfs", self.place)
        _run("cp", "-a", "--sparse=always", f"{self.directory}/.", self.place)
        _run("mount", "--bind", self.place, self.directory)

    def fill(self) -> None:
        """Leave no byte."""
        subprocess.run(["dd", "if=/dev/zero", f"of={self.filler}", "bs=4k"], check=False, capture_output=True)

    def empty(self) -> None:
        self.filler.unlink()

    def remove(self, *, keep: bool) -> None:
        """The directory is what it was before; ``keep``: with what was written since."""
        self.filler.unlink(missing_ok=True)
        _run("umount", self.directory)
        if keep:
            shutil.rmtree(self.directory)
            _run("cp", "-a", "--sparse=always", self.place, self.directory)
        _run("umount", self.place)
        self.place.rmdir()


def _run(*command: object) -> None:
    subprocess.run([str(each) for each in command], check=True)


@injector("lose_disk")
def lose_disk(scene: Scene, fault: Fault) -> Undo:
    """A controller dies, and its log directory with it."""
    (service,) = services_of(scene, fault.target)
    controller = next(c for c in scene.ground.spec.controllers if c.service == service)
    scene.kill_service(service)
    shutil.rmtree(controller.log_dir)
    return lambda: None
