"""Canonical rows and versions as Arrow batches, which Spark takes without touching each row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from kraft_runbook.errors import RunbookError
from kraft_runbook.metadata.entities import Row
from kraft_runbook.metadata.metadata_log import Version

BATCH = 16_384

ROW_SCHEMA = "kind string, key string, value string"
ROWS = pa.schema([("kind", pa.string()), ("key", pa.string()), ("value", pa.string())])
VERSIONS = pa.schema([("kind", pa.string()), ("key", pa.string()), ("value", pa.string()), ("offset", pa.int64()), ("last", pa.bool_())])

FAILED = "failed"
"""The kind of a row that says why a worker could not read on: an exception's type and way out would be lost on the way to the driver."""


def row_batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Rows in batches."""
    return _batches(((row.kind.value, row.key, row.value) for row in rows), ROWS)


def version_batches(versions: Iterable[Version]) -> Iterator[pa.RecordBatch]:
    """Versions in batches."""
    return _batches(((v.kind.value, v.key, v.value, v.offset, v.last) for v in versions), VERSIONS)


def row_batches_of_a_worker(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Rows in batches; a RunbookError on the way becomes a last row of kind FAILED."""
    return _batches(_guarded((row.kind.value, row.key, row.value) for row in rows), ROWS)


def _batches(rows: Iterator[tuple[object, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    while held := list(islice(rows, BATCH)):
        columns = zip(*held, strict=True)
        yield pa.record_batch([_array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema=schema)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """As ``pa.array``, which would import pandas for it: a second of each worker's start."""
    valid = pa.py_buffer(np.packbits([value is not None for value in values], bitorder="little"))
    if kind == pa.string():
        encoded = [b"" if value is None else value.encode() for value in values]
        offsets = np.zeros(len(values) + 1, np.int32)
        np.cumsum([len(each) for each in encoded], out=offsets[1:])
        return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))])
    plain = np.packbits(values, bitorder="little") if kind == pa.bool_() else np.array([value or 0 for value in values], np.int64)
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(plain)])


def _guarded(rows: Iterator[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
    try:
        yield from rows
    except RunbookError as error:
        yield FAILED, type(error).__name__, json.dumps({"problem": error.problem, "way_out": error.way_out})
