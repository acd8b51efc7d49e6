"""Canonical rows as Arrow batches, which Spark takes without touching each row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa

from kraft_runbook.errors import RunbookError
from kraft_runbook.metadata.canonical_rows import Row

BATCH = 16_384

ROW_SCHEMA = "kind string, key string, value string, path string"
ROWS = pa.schema([("kind", pa.string()), ("key", pa.string()), ("value", pa.string()), ("path", pa.string())])
"""``path``: the znode that said so; whole topics have none, so that it costs them nothing."""

FAILED = "failed"
"""The kind of a row that says why a worker could not read on: an exception's type and way out would be lost on the way
to the driver.
"""


def row_batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Rows in batches."""
    return _batches((row.kind, row.key, row.value, row.path) for row in rows)


def row_batches_of_a_worker(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Rows in batches; a RunbookError on the way becomes a last row of kind FAILED."""
    return _batches(_guarded((row.kind, row.key, row.value, row.path) for row in rows))


def _batches(rows: Iterator[tuple[str, str, str, str]]) -> Iterator[pa.RecordBatch]:
    while held := list(islice(rows, BATCH)):
        yield pa.record_batch([_array(column) for column in zip(*held, strict=True)], schema=ROWS)


def _array(values: Sequence[str]) -> pa.Array:
    """As ``pa.array``, which would import pandas for it: a second of each worker's start."""
    text = "".join(values)
    lengths = list(map(len, values)) if text.isascii() else [len(value.encode()) for value in values]
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(text.encode())])


def _guarded(rows: Iterator[tuple[str, str, str, str]]) -> Iterator[tuple[str, str, str, str]]:
    try:
        yield from rows
    except RunbookError as error:
        yield FAILED, type(error).__name__, json.dumps({"problem": error.problem, "way_out": error.way_out}), ""
