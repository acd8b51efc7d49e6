"""Faults of disks: full, or gone."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

from fault_case import Fault
from fault_injectors import answer, injector, once_stopped, services_of
from fault_processes import soon
from fault_scene import Scene, Undo


@injector("fill_disk")
def fill_disk(scene: Scene, fault: Fault) -> Undo:
    """As soon as the broker has stopped, its log directory is on a file system without a byte left (a small tmpfs with a copy of it)."""
    broker = next(b for b in scene.ground.spec.brokers if b.service == fault.when.stopped)
    data = Path(broker.log_dirs[0])
    small = data.with_name("small-disk")
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(small)], check=True)
    once_stopped(scene, fault)
    config = Path(broker.config_file)
    with config.with_name(f".{config.name}.lock").open("a") as lock:  # the playbook's own: the start waits for it
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["cp", "-a", "--sparse=always", f"{data}/.", str(small)], check=True)
        subprocess.run(["dd", "if=/dev/zero", f"of={small}/filler", "bs=1M"], check=False, capture_output=True)
        subprocess.run(["mount", "--bind", str(small), str(data)], check=True)

    def undo() -> None:
        if scene.process(broker.service).runs:
            scene.kill_service(broker.service)
        subprocess.run(["umount", str(data)], check=True)
        subprocess.run(["umount", str(small)], check=True)
        small.rmdir()
        scene.start_service(broker.service)
        soon(lambda: answer(scene, [broker.service]) or None, f"{broker.service} answers again", every=0.5)

    return undo


@injector("lose_disk")
def lose_disk(scene: Scene, fault: Fault) -> Undo:
    """A controller dies, and its log directory with it."""
    (service,) = services_of(scene, fault.target)
    controller = next(c for c in scene.ground.spec.controllers if c.service == service)
    scene.kill_service(service)
    shutil.rmtree(controller.log_dir)
    return lambda: None
