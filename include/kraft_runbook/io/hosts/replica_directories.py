"""What ``module_utils/replica_directories`` read of a node's log directories, as a value."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

from kraft_runbook.cluster.replica_directories import ReplicaDirectories


def replica_directories_of(told: Mapping[str, Any]) -> ReplicaDirectories:
    lines = _unpacked(told["ids"]).splitlines()
    return ReplicaDirectories(
        directories=told["directories"],
        topic_ids=dict((topic, topic_id) for topic, _, topic_id in (line.rpartition(" ") for line in lines)),
        several_ids=json.loads(_unpacked(told["several"])),
        without_id=tuple(told["without_id"]),
        without_id_count=told["without_id_count"],
        torn=tuple(told["torn"]),
        torn_count=told["torn_count"],
        strays=told["strays"],
        stray_count=told["stray_count"],
        unread=tuple(f"{path}: {reason}" for path, reason in told["unread"].items()),
        unread_count=told["unread_count"],
    )


def _unpacked(text: str) -> str:
    return zlib.decompress(base64.b64decode(text)).decode()
