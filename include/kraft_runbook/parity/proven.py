"""What a MATCH in dual write proved, in one file: what ZooKeeper held, and the metadata at M, from where the log can be
read on.

The first is what a finalized cluster is compared with, once ZooKeeper is written no more (``--baseline``). The second
is what a look at the changes since then builds on (``--since``).

A zip archive. ``head.json``: the fields of ``Head``. ``zookeeper.jsonl``: ZooKeeper's rows, one a line; most topics as
one fingerprint, those that needed a closer look row by row. ``log.json`` and one ``.npy`` a column: ``StateAt``. The
rows hold fingerprints of secrets, and the head their salt: keep the file as you keep the metadata itself. It is written
with mode 0600, whole or not at all.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from numpy.lib.format import read_array, write_array

from kraft_runbook.cluster.observation import BrokerRegistration, ZkMigrationState
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.private_file import private_file
from kraft_runbook.metadata.canonical_rows import Kind, Row
from kraft_runbook.metadata.image.frozen_topics import FrozenTopics
from kraft_runbook.metadata.image.log_replay import StateAt
from kraft_runbook.metadata.topic_columns import Lists, PartitionColumns
from kraft_runbook.parity.parity_report import ZOOKEEPER, ParityReport, Verdict

FORMAT = 1
HEAD, ROWS, LOG, IDS = "head.json", "zookeeper.jsonl", "log.json", "ids"
LINES = 10_000
"""Lines that are compressed in one call: one by one they take half as much time again."""
_encode = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class Head:
    """What was proven. ``migration_offset`` and ``end_offset``: the M and E of the comparison, ``last_offset``: the E
    of its last look at what first did not fit; ``digest``: its report's; ``proven_at``: when it ended; ``log_epoch``:
    the epoch of the quorum's leader at M.
    """

    cluster: str
    cluster_id: str
    migration_offset: int
    end_offset: int
    last_offset: int
    migration_epoch: int
    digest: str
    salt: bytes = field(repr=False)
    proven_at: datetime
    log_epoch: int


def may_leave_a_proof(report: ParityReport) -> bool:
    """Whether a report may leave this file: only a MATCH against ZooKeeper itself."""
    return report.verdict is Verdict.MATCH and report.against == ZOOKEEPER


def outlives_zookeeper(kind: Kind) -> bool:
    """Whether rows of this kind still mean something once ZooKeeper is gone: hybrid brokers, the znodes of controllers
    and versions of znodes don't.
    """
    return kind not in (Kind.BROKER, Kind.CONTROLLER, Kind.UNREADABLE, Kind.PARTITION_EPOCH)


# -- writing -----------------------------------------------------------------------------------------------------------


def write_proven(path: Path, head: Head, rows: Iterable[Row], state: StateAt, *, version: int = FORMAT) -> None:
    """Write the whole file or nothing. ``rows``: ZooKeeper's; ``state``: the log's at ``head.migration_offset``."""
    with private_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        plain = asdict(head) | {"format": version, "salt": head.salt.hex(), "proven_at": head.proven_at.isoformat()}
        archive.writestr(HEAD, json.dumps(plain))
        with archive.open(ROWS, "w", force_zip64=True) as lines:
            kept = (row for row in rows if outlives_zookeeper(row.kind))
            while some := list(islice(kept, LINES)):
                lines.write("".join(_line(row) for row in some).encode())
        archive.writestr(LOG, json.dumps(_told(state)))
        for name, column in _columns(state.topics):
            as_it_is = zipfile.ZipInfo(f"{name}.npy")  # not compressed: reading it is most of a look at what changed
            with archive.open(as_it_is, "w", force_zip64=True) as raw:
                write_array(raw, column, allow_pickle=False)


def _line(row: Row) -> str:
    return f"{_encode([row.kind.value, row.key, row.value])}\n"


def _told(state: StateAt) -> dict[str, Any]:
    """What of a state is no column."""
    return {
        "names": list(state.topics.names),
        "configs": {topic: dict(config) for topic, config in state.topics.configs.items()},
        "acls": {acl_id.hex: row.key for acl_id, row in state.acls.items()},
        "registrations": [asdict(each) for each in state.registrations.values()],
        "features": dict(state.features),
        "migration_state": None if state.migration_state is None else int(state.migration_state),
    }


def _columns(topics: FrozenTopics) -> Iterator[tuple[str, np.ndarray]]:
    yield IDS, np.frombuffer(b"".join(each.to_bytes(16, "big") for each in topics.ids), np.uint8)
    for name in (each.name for each in fields(PartitionColumns)):
        column = getattr(topics.partitions, name)
        if isinstance(column, Lists):
            yield f"{name}.offsets", column.offsets
            yield f"{name}.values", column.values
        else:
            yield name, column


# -- reading -----------------------------------------------------------------------------------------------------------

FULL = "run a full comparison (kraft-runbook parity --save-proven FILE)"
UNREADABLE = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile)


def read_head(path: Path) -> Head:
    """What a file proves. Raises RunbookError for one that is missing or is none."""
    if not path.exists():
        raise RunbookError(
            f"there is no proven state at {path}",
            way_out=f"name the one that the last MATCH in dual write left; before finalization {FULL} leaves one",
        )
    try:
        with zipfile.ZipFile(path) as archive:
            head = json.loads(archive.read(HEAD))
            if head.pop("format") != FORMAT:
                raise ValueError("another version wrote it")
            proven_at = datetime.fromisoformat(head["proven_at"])
            return Head(**head | {"salt": bytes.fromhex(head["salt"]), "proven_at": proven_at})
    except UNREADABLE as error:
        raise _not_whole(path, error) from None


def require_of(spec: ClusterSpec, head: Head, path: Path) -> None:
    """Raise RunbookError where a file is about another cluster."""
    if head.cluster != spec.name:
        raise RunbookError(
            f"the proven state at {path} is of cluster {head.cluster}, not {spec.name}",
            way_out="name the one of this cluster",
        )


def read_rows(path: Path) -> Iterator[Row]:
    """ZooKeeper's rows. Raises RunbookError for a file that is cut short."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(ROWS) as lines:
            for line in lines:
                kind, key, value = json.loads(line)
                yield Row(Kind(kind), key, value)
    except UNREADABLE as error:
        raise _not_whole(path, error) from None


def read_state(path: Path) -> StateAt:
    """The log's state at M. Raises RunbookError for a file that is cut short."""
    try:
        with zipfile.ZipFile(path) as archive:
            told = json.loads(archive.read(LOG))
            columns: dict[str, Any] = {
                name.removesuffix(".npy"): _column(archive, name)
                for name in archive.namelist()
                if name.endswith(".npy")
            }
        ids = columns[IDS].tobytes()
        lists = {name.removesuffix(".offsets") for name in columns if name.endswith(".offsets")}
        partitions: dict[str, Any] = {
            name: Lists(columns[f"{name}.offsets"], columns[f"{name}.values"]) if name in lists else columns[name]
            for name in (each.name for each in fields(PartitionColumns))
        }
        registrations = [
            BrokerRegistration(**each | {"endpoints": tuple(each["endpoints"])}) for each in told["registrations"]
        ]
        return StateAt(
            FrozenTopics(
                told["names"],
                [int.from_bytes(ids[at : at + 16], "big") for at in range(0, len(ids), 16)],
                PartitionColumns(**partitions),
                told["configs"],
            ),
            {UUID(hex=acl_id): Row(Kind.ACL, key, "{}") for acl_id, key in told["acls"].items()},
            {each.broker_id: each for each in registrations},
            told["features"],
            None if told["migration_state"] is None else ZkMigrationState(told["migration_state"]),
        )
    except UNREADABLE as error:
        raise _not_whole(path, error) from None


def _column(archive: zipfile.ZipFile, name: str) -> Any:
    with archive.open(name) as raw:
        return read_array(raw, allow_pickle=False)


def _not_whole(path: Path, error: Exception) -> RunbookError:
    return RunbookError(
        f"{path} is not a whole proven state: {error}",
        way_out=f"name one that a MATCH in dual write left; before finalization {FULL}",
    )
