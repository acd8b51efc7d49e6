"""The metadata at the offset that a full comparison proved, as bytes: from here on only what the log says later has to
be read (``parity.recheck``).

It holds topics, partitions, topic configs, ACLs and broker registrations. Credentials, tokens and quotas are not in it:
whatever touches one of those says the whole of it anew.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np

from kraft_runbook.cluster.observation import BrokerRegistration, ZkMigrationState
from kraft_runbook.errors import RunbookError
from kraft_runbook.metadata.canonical_rows import Kind, Row
from kraft_runbook.metadata.image.frozen_topics import FrozenTopics
from kraft_runbook.metadata.image.image import MetadataImage
from kraft_runbook.metadata.image.thawing_topics import ThawingTopics
from kraft_runbook.metadata.topic_columns import Lists, PartitionColumns

FORMAT = 2


@dataclass(frozen=True, slots=True)
class ProvenHead:
    """What was proven: by the report with ``digest``, at ``proven_at``. ``offset``: M; ``epoch``: the leader epoch of
    the log there.
    """

    cluster: str
    offset: int
    epoch: int
    digest: str
    proven_at: datetime


def dump(head: ProvenHead, image: MetadataImage) -> bytes:
    """The state of an image of which nothing was taken out of the columns since ``head.offset``."""
    assert image.frozen is not None
    topics = image.frozen.frozen
    told = {
        "format": FORMAT,
        "head": asdict(head) | {"proven_at": head.proven_at.isoformat()},
        "names": list(topics.names),
        "configs": {topic: dict(config) for topic, config in topics.configs.items()},
        "acls": {acl_id.hex: row.key for acl_id, row in image.acls.items()},
        "registrations": [asdict(each) for each in image.registrations.values()],
        "features": image.features,
        "migration_state": None if image.migration_state is None else int(image.migration_state),
    }
    ids = b"".join(each.to_bytes(16, "big") for each in topics.ids)
    columns: dict[str, Any] = {
        "told": np.frombuffer(json.dumps(told).encode(), np.uint8),
        "ids": np.frombuffer(ids, np.uint8),
    }
    for name in (each.name for each in fields(PartitionColumns)):
        column = getattr(topics.partitions, name)
        columns |= (
            {f"{name}.offsets": column.offsets, f"{name}.values": column.values}
            if isinstance(column, Lists)
            else {name: column}
        )
    out = io.BytesIO()
    np.savez(out, **columns)
    return out.getvalue()


def load(data: bytes, image: MetadataImage) -> ProvenHead:
    """Fill an empty image with a state that ``dump`` wrote. Raises RunbookError for bytes that are none."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as columns:
            told = json.loads(columns["told"].tobytes())
            if told["format"] != FORMAT:
                raise ValueError(f"format {told['format']}")
            partitions = PartitionColumns(
                **{each.name: _column(columns, each.name) for each in fields(PartitionColumns)}
            )
            ids = columns["ids"].tobytes()
        topic_ids = [int.from_bytes(ids[at : at + 16], "big") for at in range(0, len(ids), 16)]
        image.frozen = ThawingTopics(FrozenTopics(told["names"], topic_ids, partitions, told["configs"]))
        image.acls = {UUID(hex=acl_id): Row(Kind.ACL, key, "{}") for acl_id, key in told["acls"].items()}
        for each in told["registrations"]:
            image.registrations[each["broker_id"]] = BrokerRegistration(
                **each | {"endpoints": tuple(each["endpoints"])}
            )
        image.features = told["features"]
        image.migration_state = None if told["migration_state"] is None else ZkMigrationState(told["migration_state"])
        return ProvenHead(**told["head"] | {"proven_at": datetime.fromisoformat(told["head"]["proven_at"])})
    except (ValueError, KeyError, TypeError, OSError, EOFError) as error:
        raise RunbookError(
            f"this is not a proven state that this version wrote: {type(error).__name__}: {error}",
            way_out="run a full comparison; its MATCH writes a new one",
        ) from None


def _column(columns: Mapping[str, Any], name: str) -> Any:
    return columns[name] if name in columns else Lists(columns[f"{name}.offsets"], columns[f"{name}.values"])
