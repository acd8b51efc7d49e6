"""Where an installation of Kafka has its jars and its scripts: Apache's archive, or Confluent's (whose packages put the
same below ``/usr``). ``LAYOUTS`` says the same as ``kraft_runbook.cluster.distributions``; a test compares them.
"""

from __future__ import annotations

import os

from ansible.module_utils.kafka_host import names_in

LAYOUTS = (("libs", "bin/{}.sh"), ("share/java/kafka", "bin/{}"))
_BESIDES = ("share/java/confluent-telemetry",)
"""What Confluent's scripts put on the class path beside Kafka's own jars."""


def jars_directory(home: str) -> str:
    """The one that holds Kafka's jars; that of Apache's layout where none does. Raises OSError for one that can't be
    read.
    """
    places = [os.path.join(home, jars) for jars, _ in LAYOUTS]
    return next((each for each in places if any(_is_jar(name, "kafka") for name in names_in(each))), places[0])


def _is_jar(name: str, begins: str, ends: str = "") -> bool:
    return name.startswith(begins) and name.endswith(f"{ends}.jar")


def jar_directories(home: str) -> list:
    """All that the class path has, Kafka's own first."""
    besides = [os.path.join(home, each) for each in _BESIDES]
    return [jars_directory(home), *filter(os.path.isdir, besides)]


def holds(home: str, version: str) -> bool:
    """Whether Kafka's jar of that version is there. Raises OSError where that can't be told."""
    return any(_is_jar(name, "kafka_", f"-{version}") for name in names_in(jars_directory(home)))


def script(home: str, tool: str) -> str:
    """The path of a tool such as kafka-storage: the one that is there; as Apache names it where neither is."""
    places = [os.path.join(home, name.format(tool)) for _, name in LAYOUTS]
    return next((each for each in places if os.path.exists(each)), places[0])
