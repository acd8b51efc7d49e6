"""Real consumers that coordinate through ZooKeeper: ConsoleConsumer of Kafka 1.1.1, which is a
ZookeeperConsumerConnector of one thread. ``make jars-old`` brings its jars.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from kraft_runbook.cluster.spec import ClusterSpec
from lab import ROOT

JARS = ROOT / "build" / "jars-old"
SETTINGS = {
    "auto.offset.reset": "smallest",
    "auto.commit.interval.ms": "500",
    "zookeeper.session.timeout.ms": "6000",
    "rebalance.backoff.ms": "500",
}


def old_command(
    spec: ClusterSpec, group: str, config: Path, asks: Sequence[str], settings: Mapping[str, str] = {}
) -> list[str]:
    """What starts one member of the group. ``config``: the properties that it is given, written here. ``asks``: for a
    topic or a pattern.
    """
    if not any(JARS.glob("kafka_*.jar")):
        pytest.fail(f"there are no jars in {JARS}: make jars-old")
    config.write_text("".join(f"{k}={v}\n" for k, v in {**SETTINGS, "group.id": group, **settings}.items()))
    command = ["java", "-Xmx128m", "-cp", f"{JARS}/*", "kafka.tools.ConsoleConsumer"]
    return [*command, "--zookeeper", spec.ensemble.connect, *asks, "--consumer.config", str(config)]


@contextmanager
def old_consumer(
    spec: ClusterSpec, group: str, where: Path, *, topics: str = "", pattern: str = "", settings: Mapping[str, str] = {}
) -> Iterator[subprocess.Popen[bytes]]:
    """One member of the group, of a topic or of a pattern, until the end of the block. ``where``: a directory of the
    test's own, for its properties and its log.
    """
    name = f"{group}-{len(list(where.glob('*.properties')))}"
    asks = ["--topic", topics] if topics else ["--whitelist", pattern]
    command = old_command(spec, group, where / f"{name}.properties", asks, settings)
    with (where / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
