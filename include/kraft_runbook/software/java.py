"""Which Java a version of Kafka needs, by the class files of its own jars: 3.9.2 runs on 8, the servers of 4.x on 17
(its clients on 11).
"""

from __future__ import annotations

from kraft_runbook.cluster.kafka_version import release_of


def needed_java(version: str) -> int:
    """The oldest Java that brokers and controllers of that Kafka start on."""
    return 17 if release_of(version) >= (4, 0) else 8
