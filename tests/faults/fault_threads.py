"""Ending one thread of a running broker: what a defect of Kafka's does now and then when the controller changes."""

from __future__ import annotations

import subprocess
import tempfile
import zipfile
from pathlib import Path

from fault_case import Fault
from fault_injectors import injector
from fault_processes import soon
from fault_scene import Scene

from kraft_runbook.io.hosts.host_facts import gather_host_facts
from kraft_runbook.migration.controller_threads import dead_threads

SOURCE = Path(__file__).with_name("EndThread.java")


@injector("end_thread")
def end_thread(scene: Scene, fault: Fault) -> None:
    """``target``: the broker's id and a part of the thread's name. Needs a JDK (javac, jcmd)."""
    broker, part = int(fault.target[0]), str(fault.target[1])
    end_thread_of(scene.process(scene.ground.spec.broker(broker).service).pid, part)

    def one_is_missing() -> bool | None:
        threads = gather_host_facts(scene.ground.spec, [broker])[broker].controller_threads
        return (isinstance(threads, tuple) and dead_threads(broker, threads) == 1) or None

    soon(one_is_missing, f"the thread {part} of broker {broker} ends", within=60, every=1)


def end_thread_of(pid: int, part: str) -> None:
    """End the first thread of this JVM whose name holds ``part``."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(
            ["jcmd", str(pid), "JVMTI.agent_load", str(_agent(Path(directory))), part],
            check=True,
            capture_output=True,
            timeout=60,
        )


def _agent(directory: Path) -> Path:
    subprocess.run(["javac", "-d", str(directory), str(SOURCE)], check=True, capture_output=True, timeout=120)
    jar = directory / "end-thread.jar"
    with zipfile.ZipFile(jar, "w") as packed:
        packed.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nAgent-Class: EndThread\n")
        packed.write(directory / "EndThread.class", "EndThread.class")
    return jar
