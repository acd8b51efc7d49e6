"""Feature levels of metadata.version (``MetadataVersion``), of every release up to Kafka 4.4."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.errors import RunbookError

LEVELS = {
    "3.0-IV1": 1,
    "3.1-IV0": 2,
    "3.2-IV0": 3,
    "3.3-IV0": 4,
    "3.3-IV1": 5,
    "3.3-IV2": 6,
    "3.3-IV3": 7,
    "3.4-IV0": 8,
    "3.5-IV0": 9,
    "3.5-IV1": 10,
    "3.5-IV2": 11,
    "3.6-IV0": 12,
    "3.6-IV1": 13,
    "3.6-IV2": 14,
    "3.7-IV0": 15,
    "3.7-IV1": 16,
    "3.7-IV2": 17,
    "3.7-IV3": 18,
    "3.7-IV4": 19,
    "3.8-IV0": 20,
    "3.9-IV0": 21,
    "4.0-IV0": 22,
    "4.0-IV1": 23,
    "4.0-IV2": 24,
    "4.0-IV3": 25,
    "4.1-IV0": 26,
    "4.1-IV1": 27,
    "4.2-IV0": 28,
    "4.2-IV1": 29,
    "4.3-IV0": 30,
    "4.4-IV0": 31,
    "4.4-IV1": 32,
    "4.4-IV2": 33,
}
NEWEST_LEVEL = max(LEVELS.values())
"""The highest level whose records this tool reads; its schemas are those of the same release."""
BRINGS: Mapping[int, str] = {
    3: "how a leader recovers after an unclean election",
    5: "records that keep the log moving (NoOpRecord)",
    6: "changes of a broker's registration (BrokerRegistrationChangeRecord)",
    7: "controlled shutdown in a broker's registration",
    8: "the state of a migration from ZooKeeper",
    11: "SCRAM credentials",
    13: "metadata transactions",
    14: "delegation tokens",
    15: "registrations of controllers",
    17: "log directories of brokers and partitions",
    23: "eligible leader replicas (ELR)",
    30: "cordoned log directories",
    32: "ACLs for ranges of addresses",
    33: "the end of a controller's registration (UnregisterControllerRecord)",
}
"""What the levels that changed metadata brought (``MetadataVersion``'s own methods ``isXSupported``). No server lowers
across one of them.
"""


def highest_level(version: str) -> int | None:
    """The highest level of metadata.version that a version of Kafka ("3.9.2", "7.9.2-ccs") supports; None for a
    release that is not in the list.
    """
    release = KafkaVersion.of(version).minor
    return max((level for name, level in LEVELS.items() if name.startswith(f"{release}-")), default=None)


def level_name(level: int) -> str | None:
    """What kafka-storage takes as ``--release-version`` for that level, in every release that knows it; None for a
    level of a later Kafka.
    """
    return next((name for name, each in LEVELS.items() if each == level), None)


def required_level(ibp: str) -> int:
    """The level of an inter.broker.protocol.version: the highest that its brokers take, so the least that covers it.
    Before 3.0: 0.

    Without an IV it is the latest of its release. Raises RunbookError for one that no Kafka up to 4.4 knows.
    """
    if ibp in LEVELS:
        return LEVELS[ibp]
    of_release = [level for name, level in LEVELS.items() if name.startswith(f"{ibp.split('-')[0]}-")]
    if of_release:
        return max(of_release)
    if int(ibp.split(".")[0]) < 3:
        return 0
    raise RunbookError(
        f"inter.broker.protocol.version {ibp} is not one that Kafka knows (up to 4.4)",
        way_out="set kafka.inter_broker_protocol_version in the cluster file to what the brokers use, such as 3.9",
    )
