"""The znodes of the cluster itself to canonical rows: its id, its brokers, its controller, its migration."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.observation import ControllerZnode, MigrationZnode
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Row
from kraft_runbook.metadata.znodes.znode_json import parse_object
from kraft_runbook.metadata.znodes.znode_values import (
    INT64,
    BadZnode,
    json_int,
    json_text,
    json_texts,
    number_in_a_path,
)


def cluster_id_rows(data: bytes) -> Iterator[Row]:
    """/cluster/id."""
    yield canonical_rows.cluster_id(json_text(parse_object(data)["id"]))


def broker_rows(broker_id: str, data: bytes) -> Iterator[Row]:
    """/brokers/ids/<id>."""
    parsed = parse_object(data)
    rack = parsed.get("rack")
    yield canonical_rows.broker(
        number_in_a_path(broker_id), json_texts(parsed["endpoints"]), None if rack is None else json_text(rack)
    )


def controller_rows(data: bytes) -> Iterator[Row]:
    """/controller: the KRaft controller that claimed it. Held by a ZooKeeper broker, its epoch is -1."""
    parsed = parse_controller(data)
    yield canonical_rows.controller("/controller", parsed.broker_id, parsed.kraft_controller_epoch)


def parse_controller(data: bytes, version: int = 0) -> ControllerZnode:
    """/controller; ``version``: the znode's own. Raises BadZnode."""
    parsed = parse_object(data)
    if "brokerid" not in parsed:
        raise BadZnode("/controller names no broker")
    return ControllerZnode(json_int(parsed["brokerid"]), json_int(parsed.get("kraftControllerEpoch", -1)), version)


def migration_rows(data: bytes) -> Iterator[Row]:
    """/migration: the controller that writes to ZooKeeper."""
    parsed = parse_migration(data)
    yield canonical_rows.controller("/migration", parsed.kraft_controller_id, parsed.kraft_controller_epoch)


def parse_migration(data: bytes, version: int = 0) -> MigrationZnode:
    """/migration (KIP-866); ``version``: the znode's own. Raises BadZnode."""
    parsed = parse_object(data)
    try:
        return MigrationZnode(
            kraft_metadata_offset=json_int(parsed["kraft_metadata_offset"], INT64),
            kraft_controller_id=json_int(parsed["kraft_controller_id"]),
            kraft_metadata_epoch=json_int(parsed["kraft_metadata_epoch"]),
            kraft_controller_epoch=json_int(parsed["kraft_controller_epoch"]),
            version=version,
        )
    except (KeyError, TypeError, ValueError):
        raise BadZnode("/migration lacks a field or holds something else than numbers") from None
