"""What ZooKeeper holds of reassignments: the legacy znode, deletions that wait, lists that Kafka can't live with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reader import ZookeeperReader

LEGACY = "/admin/reassign_partitions"
DELETED_TOPICS = "/admin/delete_topics"
TOPICS = "/brokers/topics"


@dataclass(frozen=True, slots=True)
class ReassignmentZnodes:
    """``legacy``: the text of /admin/reassign_partitions, None where it does not exist. ``faulty_lists``: of
    /brokers/topics, each partition whose list is empty or names a broker twice, in words; None where that was not
    asked.

    An empty list ends every controller at its election (measured on 3.9.2: ``head of empty list``, for ever).
    """

    legacy: str | None
    being_deleted: frozenset[str]
    faulty_lists: tuple[str, ...] | None = None


def read_reassignment_znodes(spec: ClusterSpec, *, secrets: Secrets, lists: bool = False) -> ReassignmentZnodes:
    """``lists``: also read every topic's znode. Raises Unreachable; Refused where no ensemble is declared."""
    with ZookeeperReader(spec.ensemble, secrets=secrets) as reader:
        legacy = reader.get(LEGACY)
        deleted = reader.children(DELETED_TOPICS) or ()
        faulty = None
        if lists:
            topics = sorted(reader.children(TOPICS) or ())
            znodes = reader.get_many([f"{TOPICS}/{topic}" for topic in topics])
            faulty = tuple(
                each
                for topic, znode in zip(topics, znodes, strict=True)
                if znode is not None
                for each in _faulty(topic, znode.data)
            )
    text = None if legacy is None else legacy.data.decode("utf-8", "replace")
    return ReassignmentZnodes(text, frozenset(deleted), faulty)


def _faulty(topic: str, data: bytes) -> Iterator[str]:
    try:
        partitions = dict(json.loads(data)["partitions"])
    except (ValueError, KeyError, TypeError):
        yield f"{topic}: its znode is not what Kafka writes"
        return
    for number, replicas in sorted(partitions.items(), key=lambda each: str(each[0])):
        if not replicas:
            yield f"{topic}-{number}: its list of replicas is empty"
        elif len(set(replicas)) < len(replicas):
            yield f"{topic}-{number}: its list names a broker twice: {replicas}"
