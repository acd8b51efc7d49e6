"""What a run saves before it changes anything: the whole assignment and the throttles that were set. JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kraft_runbook.cluster.assignment import Assignment, TopicPartition
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.plan import plain
from kraft_runbook.reassignment.throttles import Former
from kraft_runbook.runbook.digests import digest_of

FORMAT = 1


@dataclass(frozen=True, slots=True)
class SavedState:
    """``assignment``: of every partition, not of the planned alone, so that partitions that come later are known.
    ``topic_ids``: of the planned topics, where they have one.
    """

    cluster_id: str
    assignment: Assignment
    throttles: Former
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """With a digest over all of it, which ``from_json`` asks for."""
        body: dict[str, Any] = {
            "format": FORMAT,
            "cluster_id": self.cluster_id,
            "assignment": plain(self.assignment),
            "throttles": {
                "rates": dict(self.throttles.rates),
                "of_brokers": {str(broker): dict(values) for broker, values in self.throttles.of_brokers.items()},
                "lists": {topic: dict(values) for topic, values in self.throttles.lists.items()},
            },
        }
        if self.topic_ids:
            body["topic_ids"] = dict(self.topic_ids)
        return json.dumps(body | {"digest": digest_of(body)}, separators=(",", ":"), ensure_ascii=False)


def from_json(text: str, *, source: str) -> SavedState:
    """What a run saved. ``source`` names the file in errors. Raises Refused where it is none, or was changed."""
    try:
        body: Mapping[str, Any] = json.loads(text)
        if body["format"] != FORMAT:
            raise Refused(f"{source} has format {body['format']!r}", way_out="read it with the version that wrote it")
        if body["digest"] != digest_of(body):
            raise Refused(f"{source} was changed since it was saved", way_out="take an untouched copy of the file")
        throttles = body["throttles"]
        return SavedState(
            body["cluster_id"],
            {TopicPartition(topic, number): tuple(replicas) for topic, number, replicas in body["assignment"]},
            Former(
                throttles["rates"],
                {int(broker): values for broker, values in throttles["of_brokers"].items()},
                throttles["lists"],
            ),
            body.get("topic_ids", {}),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(
            f"{source} is no saved assignment ({type(error).__name__}: {error})",
            way_out="name the file that a run saved before it began",
        ) from None
