"""Real clients that Kafka 4 does not answer: the Scala producer and the SimpleConsumer of Kafka 1.1.1, which speak
Produce 2, ListOffsets 0 and Fetch 3. And the Java clients of that release, which speak later versions.
``make jars-old`` brings their jars.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import pytest
from old_consumers import JARS

from lab import installation

LOGGING = ("reload4j-*.jar", "slf4j-reload4j-*.jar")
"""Kafka 1.1.1 brings no logger of its own: what its clients say goes where Kafka 3.9's logger writes it."""


def produce(bootstrap: str, topic: str, records: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """The Scala producer sends each record and waits for its leader's answer. Its client id is console-producer."""
    how = ["--old-producer", "--sync", "--request-timeout-ms", "20000", "--broker-list", bootstrap, "--topic", topic]
    return _run("ConsoleProducer", *how, said="".join(f"{each}\n" for each in records))


def consume(bootstrap: str, topic: str, count: int, *, client_id: str) -> subprocess.CompletedProcess[str]:
    """The SimpleConsumer reads the first records of partition 0."""
    how = ["--broker-list", bootstrap, "--topic", topic, "--max-messages", str(count), "--max-wait-ms", "20000"]
    return _run("SimpleConsumerShell", *how, "--clientId", client_id)


def produce_by_java(bootstrap: str, topic: str, records: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """``KafkaProducer`` of 1.1.1."""
    return _run(
        "ConsoleProducer", "--broker-list", bootstrap, "--topic", topic, said="".join(f"{each}\n" for each in records)
    )


def consume_by_java(bootstrap: str, topic: str, count: int) -> subprocess.CompletedProcess[str]:
    """``KafkaConsumer`` of 1.1.1, in a group of its own."""
    how = ["--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning", "--max-messages", str(count)]
    return _run("ConsoleConsumer", *how, "--timeout-ms", "60000")


def _run(tool: str, *arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
    if not any(JARS.glob("kafka_*.jar")):
        pytest.fail(f"there are no jars in {JARS}: make jars-old")
    logger = [str(next(installation.JARS.glob(each))) for each in LOGGING]
    settings = f"-Dlog4j.configuration=file:{installation.TEMPLATES / 'tools-log4j.properties'}"
    java = ["java", "-Xmx64m", "-XX:TieredStopAtLevel=1", settings, "-cp", ":".join([f"{JARS}/*", *logger])]
    command = [*java, f"kafka.tools.{tool}", *arguments]
    return subprocess.run(command, input=said, capture_output=True, text=True, timeout=180, check=False)
