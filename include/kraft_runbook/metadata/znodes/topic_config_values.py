"""Topic configs that end a broker: the definitions of Kafka 3.9's ``LogConfig``, and what ``TopicConfigHandler`` parses
on its own.

A broker that starts, in ZooKeeper mode and in KRaft mode, makes a LogConfig of each topic's overrides
(``LogManager.fetchTopicConfigOverrides``); a value that LogConfig refuses ends it. Names that LogConfig does not know
are let pass there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from kraft_runbook.cluster.java_values import INT_RANGE, LONG_RANGE, is_java_double, java_int, java_long, trim
from kraft_runbook.metadata.metadata_version import LEVELS
from kraft_runbook.metadata.znodes.znode_values import double

Refusal = Callable[[str], str | None]
"""Why a value is refused, which never quotes it; None: it is taken."""


def refused(name: str, value: str) -> str | None:
    """Why a broker that starts refuses this topic config; None: it takes it, or does not know the name."""
    judge = _JUDGES.get(name)
    return judge(value) if judge else None


def is_known(name: str) -> bool:
    return name in _JUDGES


REMOTE_STORAGE = "remote.storage.enable"


def is_true(value: str) -> bool:
    """As ``ConfigDef`` reads a boolean."""
    return trim(value).lower() == "true"


def _whole(within: range, value: str, *, least: int | None = None, most: int | None = None) -> str | None:
    number = (java_int if within is INT_RANGE else java_long)(trim(value))
    if number is None:
        return f"is not a whole number of {32 if within is INT_RANGE else 64} bits"
    if least is not None and number < least:
        return f"is below {least}"
    return f"is above {most}" if most is not None and number > most else None


def _int(least: int | None = None, most: int | None = None) -> Refusal:
    return partial(_whole, INT_RANGE, least=least, most=most)


def _long(least: int | None = None) -> Refusal:
    return partial(_whole, LONG_RANGE, least=least)


def _boolean(value: str) -> str | None:
    return None if trim(value).lower() in ("true", "false") else "is neither true nor false"


def _ratio(value: str) -> str | None:
    text = trim(value)
    if not is_java_double(text):
        return "is not a number"
    number = double(text)
    return "is not between 0 and 1" if number < 0 or number > 1 else None  # NaN is neither


def _gzip_level(value: str) -> str | None:
    number = java_int(trim(value))
    return (
        None
        if number is not None and (number == -1 or 1 <= number <= 9)
        else "is neither -1 nor a whole number from 1 to 9"
    )


def _one_of(*values: str) -> Refusal:
    return lambda value: None if trim(value) in values else f"is none of {', '.join(values)}"


def _policies(value: str) -> str | None:
    text = trim(value)
    known = not text or all(each in ("compact", "delete") for each in re.split(r"\s*,\s*", text))
    return None if known else "is not made of compact and delete"


def _never_in_zookeeper_mode(value: str) -> str | None:
    return _boolean(value) or ("can't be true in ZooKeeper mode" if is_true(value) else None)


_THROTTLED = re.compile(r"([0-9]+):([0-9]+)")


def _throttled_replicas(value: str) -> str | None:
    """``*``, or partition:broker pairs. ``parseThrottledPartitions`` takes less than the definition does: no blanks, no
    empty pair between two others.
    """
    text = trim(value)
    if text in ("", "*"):
        return None
    pairs = [_THROTTLED.fullmatch(each) for each in text.rstrip(",").split(",")]
    fine = text.strip(",") and all(
        pair and java_int(pair[1]) is not None and java_int(pair[2]) is not None for pair in pairs
    )
    return None if fine else "is not a list of partition:broker pairs without blanks"


_RELEASES = [
    "0.8.0",
    "0.8.1",
    "0.8.2",
    "0.9.0",
    "0.10.0",
    "0.10.1",
    "0.10.2",
    "0.11.0",
    "1.0",
    "1.1",
    "2.0",
    "2.1",
    "2.2",
    "2.3",
    "2.4",
    "2.5",
    "2.6",
    "2.7",
    "2.8",
    "3.0",
    "3.1",
    "3.2",
    "3.3",
    "3.4",
    "3.5",
    "3.6",
    "3.7",
    "3.8",
    "3.9",
]
_INTERIM = {
    "0.10.0": 2,
    "0.10.1": 3,
    "0.11.0": 3,
    "2.0": 2,
    "2.1": 3,
    "2.2": 2,
    "2.4": 2,
    "2.7": 3,
    "2.8": 2,
}
"""How many interim versions (``-IV0`` …) a release has; the others have one, those before 0.10 none, and those from 3.0
on stand in ``LEVELS``.
"""
_BEFORE_LEVELS = slice(_RELEASES.index("0.10.0"), _RELEASES.index("3.0"))
_VERSIONS = {
    *_RELEASES,
    *(f"{each}-IV{n}" for each in _RELEASES[_BEFORE_LEVELS] for n in range(_INTERIM.get(each, 1))),
    "3.0-IV0",  # has no level
    *(name for name, level in LEVELS.items() if level <= LEVELS["4.0-IV1"]),  # the last that 3.9 names
}


def _message_format(value: str) -> str | None:
    """``MetadataVersion.fromVersionString``: the first two segments count, of 0.x versions the first three. Blanks are
    not taken away.
    """
    segments = value.split(".")
    key = ".".join(segments[: 3 if value.startswith("0.") else 2])
    return None if key in _VERSIONS else "names no version of Kafka"


_JUDGES: Mapping[str, Refusal] = {
    "segment.bytes": _int(14),
    "segment.ms": _long(1),
    "segment.jitter.ms": _long(0),
    "segment.index.bytes": _int(4),
    "flush.messages": _long(1),
    "flush.ms": _long(0),
    "retention.bytes": _long(),
    "retention.ms": _long(-1),
    "max.message.bytes": _int(0),
    "index.interval.bytes": _int(0),
    "delete.retention.ms": _long(0),
    "min.compaction.lag.ms": _long(0),
    "max.compaction.lag.ms": _long(1),
    "file.delete.delay.ms": _long(0),
    "min.cleanable.dirty.ratio": _ratio,
    "cleanup.policy": _policies,
    "unclean.leader.election.enable": _boolean,
    "min.insync.replicas": _int(1),
    "compression.type": _one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    "compression.gzip.level": _gzip_level,
    "compression.lz4.level": _int(1, 17),
    "compression.zstd.level": _int(-131072, 22),
    "preallocate": _boolean,
    "message.format.version": _message_format,
    "message.timestamp.type": _one_of("CreateTime", "LogAppendTime"),
    "message.timestamp.difference.max.ms": _long(0),
    "message.timestamp.before.max.ms": _long(0),
    "message.timestamp.after.max.ms": _long(0),
    "leader.replication.throttled.replicas": _throttled_replicas,
    "follower.replication.throttled.replicas": _throttled_replicas,
    "message.downconversion.enable": _boolean,
    REMOTE_STORAGE: _boolean,
    "local.retention.ms": _long(-2),
    "local.retention.bytes": _long(-2),
    "remote.log.copy.disable": _never_in_zookeeper_mode,
    "remote.log.delete.on.disable": _never_in_zookeeper_mode,
}
