"""Many records of one type and version decoded at once, field by field, along the same schemas that the generic decoder
reads.

For the types whose fields are numbers, texts, ids and lists of broker ids: ``TYPES``. A property test compares it with
``record_schemas.decode`` on every version of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kraft_runbook.metadata.log.frames import Garbled
from kraft_runbook.metadata.log.record_index import Bytes, Places, RecordIndex, uvarints
from kraft_runbook.metadata.log.record_schemas import SCHEMAS, Field, RecordType, decode
from kraft_runbook.metadata.topic_columns import Lists, offsets_of, within_each

TYPES = (
    RecordType.TOPIC,
    RecordType.PARTITION,
    RecordType.PARTITION_CHANGE,
    RecordType.CONFIG,
    RecordType.REMOVE_TOPIC,
)

_NUMBERS = {"int8": ">i1", "int16": ">i2", "uint16": ">u2", "int32": ">i4", "int64": ">i8"}
_SIZES = {"int32": 4, "uuid": 16}


@dataclass(frozen=True, slots=True)
class Spans:
    """Texts, or lists of fixed-size items: where each begins in ``data``, and its length in items; -1: null."""

    data: Bytes
    start: Places
    length: Places

    @property
    def is_null(self) -> NDArray[np.bool_]:
        return self.length < 0

    def take(self, wanted: Places | NDArray[np.bool_]) -> Spans:
        return Spans(self.data, self.start[wanted], self.length[wanted])

    def texts(self) -> list[str | None]:
        """As texts. Raises UnicodeDecodeError."""
        letters = str(
            self.data.data, "latin-1"
        )  # one a byte: what is cut out of it is the text itself where that is ASCII
        places = zip(self.start.tolist(), (self.start + self.length).tolist(), strict=True)
        return [
            None if e < s else t if (t := letters[s:e]).isascii() else t.encode("latin-1").decode() for s, e in places
        ]

    def ids(self) -> Lists:
        """As lists of int32; null as an empty one."""
        lengths = np.maximum(self.length, 0)
        return Lists(
            offsets_of(lengths),
            _at(self.data, ">i4", np.repeat(self.start, lengths) + 4 * within_each(lengths)).astype(np.int32),
        )


@dataclass(frozen=True, slots=True)
class Uuids:
    """Ids of 16 bytes, as their two halves."""

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]

    def take(self, wanted: Places | NDArray[np.bool_]) -> Uuids:
        return Uuids(self.high[wanted], self.low[wanted])

    @classmethod
    def joined(cls, parts: list[Uuids]) -> Uuids:
        none = np.empty(0, np.uint64)
        return cls(
            np.concatenate([none, *(each.high for each in parts)]),
            np.concatenate([none, *(each.low for each in parts)]),
        )


Column = NDArray[np.int64] | Spans | Uuids


def decode_columns(records: RecordIndex) -> Mapping[str, Column]:
    """The fields of these records, all of one type and version. Raises Garbled, naming the offset of the first that is
    no such record.
    """
    schema, version = SCHEMAS[int(records.api_key[0])], int(records.version[0])
    found = None
    if version <= schema.latest:
        try:
            found, at = _fields(schema.fields, version, records.data, records.start, records.end)
            if (at != records.end).any():
                found = None
        except IndexError:
            found = None
    if found is None:
        for each in records.records():
            decode(each)
        raise Garbled(
            f"records of type {schema.name} could be read one by one, but not as a whole",
            way_out="run again, and take the report to the project",
        )
    return found


def _fields(
    fields: tuple[Field, ...], version: int, data: Bytes, at: Places, end: Places
) -> tuple[dict[str, Column], Places]:
    values: dict[str, Column] = {}
    tagged: dict[int, Field] = {}
    for field in fields:
        if field.since > version or field.tag is not None:
            values[field.name] = _default(field, data, len(at))
            if field.tag is not None and field.since <= version:
                tagged[field.tag] = field
        else:
            values[field.name], at = _value(field, data, at, end)
    left, at = uvarints(data, at)
    rows = np.flatnonzero(left)
    while len(rows):
        tag, place = uvarints(data, at[rows])
        size, place = uvarints(data, place)
        if (place + size > end[rows]).any():
            raise IndexError("a tagged field reaches beyond its record")
        for number in np.unique(tag).tolist():
            if number in tagged:  # an unknown tag is skipped, as Kafka does
                of_it = tag == number
                part, _ = _value(tagged[number], data, place[of_it], end[rows[of_it]])
                _put(values[tagged[number].name], rows[of_it], part)
        at[rows] = place + size
        left[rows] -= 1
        rows = rows[left[rows] > 0]
    return values, at


def _value(field: Field, data: Bytes, at: Places, end: Places) -> tuple[Column, Places]:
    if field.type in _NUMBERS:
        layout = _NUMBERS[field.type]
        return _at(data, layout, at).astype(np.int64), at + np.dtype(layout).itemsize
    if field.type == "uuid":
        return Uuids(_at(data, ">u8", at).astype(np.uint64), _at(data, ">u8", at + 8).astype(np.uint64)), at + 16
    item = 1 if field.type in ("string", "bytes") else _SIZES[field.type.removeprefix("[]")]
    length, at = uvarints(data, at)
    length = length - 1
    behind = at + item * np.maximum(length, 0)
    if (behind > end).any():
        raise IndexError("a list reaches beyond its record")
    return Spans(data, at, length), behind


def _default(field: Field, data: Bytes, count: int) -> Column:
    if field.type in _NUMBERS:
        return np.full(count, field.default, np.int64)
    if field.type == "uuid":
        return Uuids(np.zeros(count, np.uint64), np.zeros(count, np.uint64))
    return Spans(data, np.zeros(count, np.int64), np.full(count, -1 if field.default is None else 0, np.int64))


def _put(column: Column, rows: Places, part: Column) -> None:
    if isinstance(column, Spans) and isinstance(part, Spans):
        column.start[rows], column.length[rows] = part.start, part.length
    elif isinstance(column, Uuids) and isinstance(part, Uuids):
        column.high[rows], column.low[rows] = part.high, part.low
    elif isinstance(column, np.ndarray) and isinstance(part, np.ndarray):
        column[rows] = part


def _at(data: Bytes, layout: str, at: Places) -> NDArray[np.generic]:
    """The numbers that begin at these places, aligned or not. Raises IndexError beyond the data."""
    size = np.dtype(layout).itemsize
    return np.ndarray(len(data) - size + 1, layout, data, strides=(1,))[at]
