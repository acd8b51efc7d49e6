"""The JSON that kafka-reassign-partitions reads and writes (``--reassignment-json-file``), version 1."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from kraft_runbook.cluster.assignment import Assignment, Replicas, TopicPartition
from kraft_runbook.errors import Refused

ANY_DIRECTORY = "any"


def to_json(assignment: Assignment) -> str:
    """The assignment as kafka-reassign-partitions ``--execute`` takes it."""
    partitions = [
        {"topic": p.topic, "partition": p.partition, "replicas": list(assignment[p])} for p in sorted(assignment)
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"), ensure_ascii=False)


def from_json(
    text: str, *, source: str, ignored: Callable[[str], object] | None = None
) -> dict[TopicPartition, Replicas]:
    """What such a file says. ``source`` names it in errors.

    Empty lists and repeated brokers are read as they stand: ``refusals`` names them. This tool moves replicas between
    brokers alone, and Kafka 4.2's ``--generate`` writes the log directory of each replica into the present assignment:
    directories are left out where ``ignored`` takes the sentence that says so, and refused without it. Raises Refused
    for what is no such file, for a partition that is named twice, and for such a directory other than "any".
    """

    def refuse(problem: str, way_out: str) -> Refused:
        return Refused(f"{source}: {problem}", way_out=way_out)

    try:
        document = json.loads(text)
        version, partitions = document.get("version", 1), document["partitions"]
        entries = [(_partition(entry), tuple(int(b) for b in entry["replicas"]), entry) for entry in partitions]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise refuse(
            f"this is no plan of kafka-reassign-partitions ({type(error).__name__}: {error})",
            'write {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}',
        ) from None
    if version != 1:
        raise refuse(f"version {version!r} is not known", "write version 1")
    found: dict[TopicPartition, Replicas] = {}
    in_directories = 0
    for partition, replicas, entry in entries:
        if partition in found:
            raise refuse(f"{partition} is named twice; Kafka would take the last", "name each partition once")
        if set(entry.get("log_dirs") or ()) - {ANY_DIRECTORY}:
            if ignored is None:
                raise refuse(
                    f"{partition} names log directories, and this tool moves replicas between brokers alone",
                    "leave log_dirs out here, and give the file to move_between_disks once the replicas are there",
                )
            in_directories += 1
        found[partition] = replicas
    if in_directories and ignored is not None:
        ignored(
            f"{source}: the log directories of {in_directories} partitions are ignored. Replicas are moved between"
            " brokers alone; each broker chooses the directory of a replica that comes to it"
        )
    return found


def _partition(entry: Mapping[str, Any]) -> TopicPartition:
    topic, partition = entry["topic"], entry["partition"]
    if not isinstance(topic, str) or not isinstance(partition, int):
        raise TypeError(f"topic {topic!r}, partition {partition!r}")
    return TopicPartition(topic, partition)
