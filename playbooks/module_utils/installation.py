"""Where an installation of Kafka has its jars and its scripts: Apache's archive, or Confluent's (whose packages put the
same below ``/usr``). ``LAYOUTS`` says the same as ``kraft_runbook.cluster.distributions``; a test compares them.
"""

from __future__ import annotations

import glob
import os

LAYOUTS = (("libs", "bin/{}.sh"), ("share/java/kafka", "bin/{}"))
_BESIDES = ("share/java/confluent-telemetry",)
"""What Confluent's scripts put on the class path beside Kafka's own jars."""


def jars_directory(home: str) -> str:
    """The one that holds Kafka's jars; that of Apache's layout where none does."""
    places = [os.path.join(home, jars) for jars, _ in LAYOUTS]
    return next((each for each in places if glob.glob(os.path.join(glob.escape(each), "kafka*.jar"))), places[0])


def jar_directories(home: str) -> list:
    """All that the class path has, Kafka's own first."""
    besides = [os.path.join(home, each) for each in _BESIDES]
    return [jars_directory(home), *filter(os.path.isdir, besides)]


def holds(home: str, version: str) -> bool:
    """Whether Kafka's jar of that version is there."""
    jars = glob.escape(jars_directory(home))
    return bool(glob.glob(os.path.join(jars, f"kafka_*-{glob.escape(version)}.jar")))


def script(home: str, tool: str) -> str:
    """The path of a tool such as kafka-storage: the one that is there; as Apache names it where neither is."""
    places = [os.path.join(home, name.format(tool)) for _, name in LAYOUTS]
    return next((each for each in places if os.path.exists(each)), places[0])
