"""Kafka's classes, loaded and checked once and kept for every later start of the lab's processes: class data sharing, a
feature of the JVM.

    python -m lab.class_archive

makes the archive, as `make test`, `make demo` and `make lab-up` do. It is bound to this Java and to these very jars
(paths, sizes, times): any other JVM ignores it, says so on standard error, and starts as ever without. It saves a third
of the processor time of a broker's start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kraft_runbook.cluster.properties_text import render_properties
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError, StepFailed
from kraft_runbook.io.private_file import draft_of
from lab.installation import CLASS_ARCHIVE, JARS, fetch_jars, install, java
from lab.layout import load
from lab.trial import free_network

CLUSTER_ID = "Y2xhc3MtYXJjaGl2ZS0xMQ"
START_WITHIN = 120.0
"""Seconds until the node of nothing runs (measured: 3 on two cores)."""
END_WITHIN = 180.0
"""Seconds until it has ended and the archive is written (measured: 3 on two cores)."""


def make_archive(archive: Path = CLASS_ARCHIVE, *, jars: Path = JARS, java_command: Path | None = None) -> None:
    """Start broker and controller in one process, and keep the classes that it loaded: the whole archive or none.

    Two may do so at once; the later replaces the earlier. Raises RunbookError where there is no archive to keep.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{archive.name}.", dir=archive.parent) as work:
        network = free_network()
        spec = load({**os.environ, "KRB_LAB_DIR": work, "KRB_LAB_NET": network})
        # A node without an archive: the JVM can't write one upon another of its kind.
        install(
            spec,
            jars=fetch_jars(spec.kafka.version, jars=jars),
            java_command=java_command or java(),
            class_archive=Path(work, "none"),
        )
        config = Path(work, "server.properties")
        config.write_text(
            render_properties(_combined_node(work, network), header="Broker and controller in one process")
        )
        _format(spec, config)
        with draft_of(archive) as draft:
            _run(spec, config, draft)


def _combined_node(work: str, network: str) -> dict[str, str]:
    """What brokers and controllers load, in one process: one start costs less than one of each. Only ZooKeeper's
    classes are missing.
    """
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{network}.101:9093",
        "listeners": f"PLAINTEXT://{network}.11:9092,SASL://{network}.11:9094,CONTROLLER://{network}.101:9093",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.sasl.scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "log.dirs": f"{work}/data",
        "log.cleaner.dedupe.buffer.size": "16777216",
    }


def _format(spec: ClusterSpec, config: Path) -> None:
    command = [str(Path(spec.kafka.home, "bin", "kafka-storage.sh")), "format", "-t", CLUSTER_ID, "-c", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=START_WITHIN, check=False)
    if done.returncode != 0:
        raise _no_archive((done.stderr or done.stdout).strip())


def _run(spec: ClusterSpec, config: Path, draft: Path) -> None:
    """Start the node, and end it as soon as it runs; the JVM writes the draft at its end."""
    home = Path(spec.kafka.home)
    given = {
        **os.environ,
        "KAFKA_LOG4J_OPTS": f"-Dkafka.logs.dir={config.parent}"
        f" -Dlog4j.configuration=file:{home / 'config' / 'log4j.properties'}",
        "JDK_JAVA_OPTIONS": f'"-XX:ArchiveClassesAtExit={draft}"',
    }
    said = config.with_name("output")
    with said.open("wb") as output:
        command = [str(home / "bin" / "kafka-run-class.sh"), "kafka.Kafka", str(config)]
        process = subprocess.Popen(
            command, env=given, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            deadline = time.monotonic() + START_WITHIN
            while "Kafka Server started" not in said.read_text(errors="replace"):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise _no_archive(said.read_text(errors="replace"))
                time.sleep(0.05)
            process.terminate()
            process.wait(END_WITHIN)
        finally:
            process.kill()
            process.wait()
    if not draft.is_file():
        raise _no_archive(said.read_text(errors="replace"))


def _no_archive(said: str) -> StepFailed:
    end = "\n".join(f"    {line[:300]}" for line in said.splitlines()[-8:])
    return StepFailed(
        f"Java wrote no class archive of Kafka's jars; it said:\n{end}",
        way_out="nothing depends on it; the lab starts without it as ever",
    )


if __name__ == "__main__":
    try:
        make_archive()
    except (RunbookError, OSError, subprocess.TimeoutExpired) as error:
        print(f"no class archive: {error}", file=sys.stderr)
        sys.exit(1)
    print(f"Kafka's classes are kept in {CLASS_ARCHIVE}", file=sys.stderr)
