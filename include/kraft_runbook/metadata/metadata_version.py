"""Feature levels of metadata.version (Kafka 3.9, ``MetadataVersion``)."""

from __future__ import annotations

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
}


def required_level(ibp: str) -> int:
    """The least level that covers an inter.broker.protocol.version; the latest of its release where it has no IV. Before 3.0: 0.

    Raises RunbookError for one that Kafka 3.9 does not know.
    """
    if ibp in LEVELS:
        return LEVELS[ibp]
    of_release = [level for name, level in LEVELS.items() if name.startswith(f"{ibp.split('-')[0]}-")]
    if of_release:
        return max(of_release)
    if int(ibp.split(".")[0]) < 3:
        return 0
    raise RunbookError(
        f"inter.broker.protocol.version {ibp} is not one that Kafka 3.9 knows",
        way_out="set kafka.inter_broker_protocol_version in the cluster file to what the brokers use, such as 3.9",
    )
