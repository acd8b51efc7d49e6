"""The JSON with which a znode's data begins."""

from __future__ import annotations

import json
from typing import Any

from kraft_runbook.cluster.java_values import NotJson, parse_json
from kraft_runbook.metadata.znodes.znode_values import (
    BadZnode,
    refuse_constant,
)

_decode_json = json.JSONDecoder(parse_constant=refuse_constant).decode


def parse_object(data: bytes) -> dict[str, Any]:
    """The JSON object with which a znode's data begins, as Kafka reads it. Raises BadZnode, which never quotes the
    data: it may hold a secret.
    """
    try:
        parsed = _decode_json(data.decode(json.detect_encoding(data)))
    except (ValueError, RecursionError):
        parsed = _before_what_is_behind(data)
    if not isinstance(parsed, dict):
        raise BadZnode("not a JSON object")
    return parsed


def _before_what_is_behind(data: bytes) -> Any:
    if not data:
        raise BadZnode("empty")
    try:
        return parse_json(data)
    except NotJson:
        raise BadZnode("not JSON") from None
