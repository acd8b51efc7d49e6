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


@contextmanager
def old_consumer(
    spec: ClusterSpec, group: str, where: Path, *, topics: str = "", pattern: str = "", settings: Mapping[str, str] = {}
) -> Iterator[subprocess.Popen[bytes]]:
    """One member of the group, of a topic or of a pattern, until the end of the block. ``where``: a directory of the
    test's own, for its properties and its log.
    """
    if not any(JARS.glob("kafka_*.jar")):
        pytest.fail(f"there are no jars in {JARS}: make jars-old")
    name = f"{group}-{len(list(where.glob('*.properties')))}"
    config = where / f"{name}.properties"
    config.write_text("".join(f"{k}={v}\n" for k, v in {**SETTINGS, "group.id": group, **settings}.items()))
    named: Sequence[str] = ["--topic", topics] if topics else ["--whitelist", pattern]
    command = ["java", "-Xmx128m", "-cp", f"{JARS}/*", "kafka.tools.ConsoleConsumer"]
    with (where / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--zookeeper", spec.ensemble.connect, *named, "--consumer.config", str(config)],
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
