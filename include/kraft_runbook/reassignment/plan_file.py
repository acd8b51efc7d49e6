"""The JSON that kafka-reassign-partitions reads and writes (``--reassignment-json-file``), version 1."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kraft_runbook.cluster.assignment import Assignment, Replicas, TopicPartition
from kraft_runbook.cluster.log_dirs import Directories
from kraft_runbook.errors import Refused

ANY_DIRECTORY = "any"


def to_json(assignment: Assignment, directories: Directories | None = None) -> str:
    """The assignment as kafka-reassign-partitions ``--execute`` takes it. ``directories``: that its replicas are to lie
    in; a partition without one names none.
    """
    wanted = directories or {}
    named = {partition for _, partition in wanted}
    partitions: list[dict[str, object]] = []
    for p in sorted(assignment):
        entry: dict[str, object] = {"topic": p.topic, "partition": p.partition, "replicas": list(assignment[p])}
        if p in named:
            entry["log_dirs"] = [wanted.get((broker, p), ANY_DIRECTORY) for broker in assignment[p]]
        partitions.append(entry)
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"), ensure_ascii=False)


def from_json(
    text: str, *, source: str, ignored: Callable[[str], object] | None = None
) -> dict[TopicPartition, Replicas]:
    """What such a file says. ``source`` names it in errors.

    Empty lists and repeated brokers are read as they stand: ``refusals`` names them. Kafka 4.2's ``--generate`` writes
    the log directory of each replica into the present assignment: directories (``directories_in`` reads them) are left
    out where ``ignored`` takes the sentence that says so, and refused without it. Raises Refused for what is no such
    file, for a partition that is named twice, and for such a directory other than "any".
    """
    found: dict[TopicPartition, Replicas] = {}
    in_directories = 0
    for partition, replicas, log_dirs in _entries(text, source):
        if set(log_dirs) - {ANY_DIRECTORY}:
            if ignored is None:
                raise Refused(
                    f"{source}: {partition} names log directories, and this takes replicas alone",
                    way_out="leave log_dirs out here",
                )
            in_directories += 1
        found[partition] = replicas
    if in_directories and ignored is not None:
        told = f"{source}: the log directories of {in_directories} partitions are ignored"
        ignored(f"{told}. Replicas alone are read here")
    return found


def directed_from_json(text: str, *, source: str) -> tuple[dict[TopicPartition, Replicas], Directories]:
    """What such a file says, with the log directories that it asks for; "any" asks for none. Raises Refused as
    ``from_json`` does, and where a partition does not name one for each replica.
    """
    directories = directories_in(text, source=source)
    return from_json(text, source=source, ignored=lambda _: None), directories


def directories_in(text: str, *, source: str) -> dict[tuple[int, TopicPartition], str]:
    """The log directories that such a file names, by broker and partition; "any" names none. Raises Refused where it
    is no such file, names a partition twice, or not one directory for each of its replicas.
    """
    found: dict[tuple[int, TopicPartition], str] = {}
    for partition, replicas, paths in _entries(text, source):
        if paths and len(paths) != len(replicas):
            raise Refused(
                f"{source}: {partition} names {len(paths)} log_dirs for {len(replicas)} replicas",
                way_out='name one for each replica, or "any"',
            )
        found |= {(b, partition): path for b, path in zip(replicas, paths, strict=False) if path != ANY_DIRECTORY}
    return found


def _entries(text: str, source: str) -> list[tuple[TopicPartition, Replicas, Sequence[str]]]:
    """What such a file says of each partition. Raises Refused."""
    try:
        document = json.loads(text)
        version, partitions = document.get("version", 1), document["partitions"]
        entries = [_entry_of(each) for each in partitions]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(
            f"{source}: this is no plan of kafka-reassign-partitions ({type(error).__name__}: {error})",
            way_out='write {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]},'
            ' and "log_dirs": ["/disk1", "any", "any"] beside the replicas where their directories matter',
        ) from None
    if version != 1 or isinstance(version, bool):
        raise Refused(f"{source}: version {version!r} is not known", way_out="write version 1")
    named: set[TopicPartition] = set()
    for partition, _, _ in entries:
        if partition in named:  # which of the entries is meant, nobody knows
            raise Refused(
                f"{source}: {partition} is named twice; Kafka would take the last", way_out="name each partition once"
            )
        named.add(partition)
    return entries


def _entry_of(entry: Mapping[str, Any]) -> tuple[TopicPartition, Replicas, Sequence[str]]:
    """The partition that an entry of such a file names, its replicas, and their log directories (none: not named).
    Nothing is read as what it is not: a text as the brokers of its digits. Raises KeyError or TypeError for what is no
    such entry.
    """
    topic, partition, replicas = entry["topic"], entry["partition"], entry["replicas"]
    log_dirs = entry.get("log_dirs") or []
    if not isinstance(topic, str) or not _are_ids([partition]):
        raise TypeError(f"topic {topic!r}, partition {partition!r}")
    if not _are_ids(replicas):
        raise TypeError(f"replicas {replicas!r} of {topic}-{partition}")
    if not isinstance(log_dirs, list) or not all(isinstance(each, str) for each in log_dirs):
        raise TypeError(f"log_dirs {log_dirs!r} of {topic}-{partition}")
    return TopicPartition(topic, partition), tuple(replicas), log_dirs


def _are_ids(found: object) -> bool:
    """A list of whole numbers: true is one to Python."""
    return isinstance(found, list) and all(isinstance(each, int) and not isinstance(each, bool) for each in found)
