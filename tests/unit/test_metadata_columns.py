"""Reading the log in columns gives what reading it record by record gives: on every version of every such record, and
on whole logs.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_encoding import ABORT, BEGIN, END, NO_OP, batch, change, config, record, uvarint
from whole_image import every_row, every_version

from kraft_runbook.metadata.canonical_rows import Fingerprints, Kind, parse_key
from kraft_runbook.metadata.image.image import MetadataImage, Touched
from kraft_runbook.metadata.image.log_replay import TOUCHED, LogReplay
from kraft_runbook.metadata.log.frames import Garbled
from kraft_runbook.metadata.log.log_chunks import Chunk, SnapshotId
from kraft_runbook.metadata.log.record_columns import TYPES, Spans, Uuids, decode_columns
from kraft_runbook.metadata.log.record_index import index_records
from kraft_runbook.metadata.log.record_schemas import SCHEMAS, Field, RecordType, decode
from kraft_runbook.metadata.log.transactions import Transactions
from kraft_runbook.metadata.topic_columns import ConfigColumns, Lists, PartitionColumns, TopicColumns
from kraft_runbook.metadata.topic_prints import BLOCK, topic_prints

PRINTS = Fingerprints(b"salt")
NUMBERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def any_value(field: Field) -> st.SearchStrategy[Any]:
    def primitive(kind: str) -> st.SearchStrategy[Any]:
        if kind in NUMBERS:
            return st.integers(-(2 ** (NUMBERS[kind] - 1)), 2 ** (NUMBERS[kind] - 1) - 1)
        return st.uuids() if kind == "uuid" else st.text(max_size=200)

    plain = (
        st.lists(primitive(field.type[2:]), max_size=5).map(tuple)
        if field.type.startswith("[]")
        else primitive(field.type)
    )
    return st.one_of(st.none(), plain) if field.nullable else plain


@cache
def some_records(kind: RecordType, version: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    fields = [field for field in SCHEMAS[kind].fields if field.since <= version]
    tagged = {field.name: any_value(field) for field in fields if field.tag is not None}
    whole = {field.name: any_value(field) for field in fields if field.tag is None}
    return st.lists(st.fixed_dictionaries(whole, optional=tagged), min_size=1, max_size=8)


def plain_rows(column: np.ndarray[Any, Any] | Spans | Uuids, kind: str) -> list[Any]:
    """A column as the generic decoder would give its values."""
    if isinstance(column, Uuids):
        return [UUID(int=high << 64 | low) for high, low in zip(column.high.tolist(), column.low.tolist(), strict=True)]
    if isinstance(column, np.ndarray):
        return list(column.tolist())
    if kind == "string":
        return list(column.texts())
    if kind == "[]uuid":
        return [None if n < 0 else ("uuids", n) for n in column.length.tolist()]
    lists = column.ids()
    return [
        None if null else tuple(lists.values[a:b].tolist())
        for null, a, b in zip(column.is_null, lists.offsets, lists.offsets[1:], strict=False)
    ]


@pytest.mark.parametrize(
    ("kind", "version"), [(kind, version) for kind in TYPES for version in range(SCHEMAS[kind].latest + 1)]
)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_field_of_every_version_is_what_the_generic_decoder_reads(
    kind: RecordType, version: int, data: st.DataObject
) -> None:
    wanted = data.draw(some_records(kind, version))
    chunk = Chunk(batch(0, *(record(kind, version, **values) for values in wanted)), up_to=99)
    columns = decode_columns(index_records(chunk))
    generic = [decode(each) for each in chunk.records()]
    for field in SCHEMAS[kind].fields:
        expected = [each[field.name] for each in generic]
        if field.type == "[]uuid":
            expected = [None if each is None else ("uuids", len(each)) for each in expected]
        assert plain_rows(columns[field.name], field.type) == expected, field.name


@pytest.mark.parametrize("border", [1 << 6, 1 << 13, 1 << 20])
def test_a_record_is_found_whatever_the_bytes_of_its_length(border: int) -> None:
    """A record's length is a varint of one byte below 64, of two below 8,192, of three below 1,048,576."""
    values = [config("retention.ms", "x" * (border + more)) for more in range(-40, 3)]
    chunk = Chunk(batch(0, *values), up_to=99)
    assert index_records(chunk).records() == list(chunk.records())


def test_texts_that_are_not_ascii_are_read_as_utf_8() -> None:
    values = ["plain", "", "é", "日本", "a\u0080b", None, "🦜"]
    chunk = Chunk(batch(0, *(config(f"name{at}", value) for at, value in enumerate(values))), up_to=99)
    texts = decode_columns(index_records(chunk))["value"]
    assert isinstance(texts, Spans) and texts.texts() == values


def test_an_unknown_tag_is_skipped_and_a_record_with_bytes_too_many_or_of_a_later_version_is_named_by_its_offset() -> (
    None
):
    whole = record(RecordType.REMOVE_TOPIC, topic_id=UUID(int=7))
    tagged = whole[:-1] + uvarint(1) + uvarint(99) + uvarint(2) + b"xx"
    columns = decode_columns(index_records(Chunk(batch(0, whole, tagged), up_to=9)))
    assert plain_rows(columns["topic_id"], "uuid") == [UUID(int=7)] * 2
    for broken in (whole + b"\0", whole[:-3], tagged[:-1], uvarint(1) + uvarint(9) + uvarint(3) + whole[3:]):
        with pytest.raises(Garbled, match="at offset 41"):
            decode_columns(index_records(Chunk(batch(40, whole, broken), up_to=99)).take(np.array([1])))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(0, 60), st.integers(0, 60), st.integers(0, 30))
def test_the_index_holds_the_records_of_the_chunk(sizes: Sequence[int], since: int, up_to: int, cut: int) -> None:
    data, offset = b"", 5
    for size in sizes:
        data += batch(offset, *(config("k" * at, "v" * 40 * at) for at in range(size)), epoch=size, control=size == 7)
        offset += size
    for chunk in (Chunk(data[: len(data) - cut], since=since, up_to=up_to), Chunk(data, snapshot=SnapshotId(100, 3))):
        assert index_records(chunk).records() == list(chunk.records())


# -- whole logs --------------------------------------------------------------------------------------------------------


def some_log(draw: random.Random, length: int, *, transactions: bool = True) -> Iterator[bytes]:
    """A log that Kafka could have written: topics come, change and go, transactions are ended or aborted."""
    live: dict[str, tuple[UUID, int]] = {}
    before: dict[str, tuple[UUID, int]] | None = None
    ids = lambda: draw.sample(range(1, 9), draw.randint(0, 5))  # noqa: E731
    for _ in range(length):
        name = draw.choice("abcdef")
        match draw.randrange(12):
            case 0 if transactions and before is None:
                before = dict(live)
                yield BEGIN
            case 0 if before is not None:
                if draw.random() < 0.5:
                    live = before
                    yield ABORT
                else:
                    yield END
                before = None
            case 1 if name in live:
                yield record(RecordType.REMOVE_TOPIC, topic_id=live.pop(name)[0])
            case 2 | 3:
                yield config(
                    draw.choice(("x", "y", "sasl.jaas.config")),
                    draw.choice([None, "1", "2"]),
                    resource=draw.choice(["a", "b", "g", "1"]),
                    resource_type=draw.choice([2, 2, 4, 16]),
                )
            case 4:
                yield NO_OP
            case 5:
                yield record(RecordType.FEATURE_LEVEL, name="metadata.version", feature_level=draw.randrange(25))
            case 6 | 7 if name not in live:
                live[name] = (UUID(int=draw.getrandbits(128)), 0)
                yield record(RecordType.TOPIC, name=name, topic_id=live[name][0])
            case 6 | 7 | 8 if name in live:
                topic_id, count = live[name]
                live[name] = (topic_id, count + 1)
                extras = {"directories": [UUID(int=1)]} if draw.random() < 0.5 else {}
                yield record(
                    RecordType.PARTITION,
                    len(extras),
                    topic_id=topic_id,
                    partition_id=count,
                    replicas=ids(),
                    isr=ids(),
                    removing_replicas=ids(),
                    adding_replicas=ids(),
                    leader=draw.randint(-1, 8),
                    leader_epoch=draw.randrange(9),
                    leader_recovery_state=draw.randrange(2),
                    **extras,
                )
            case _ if name in live and live[name][1]:
                fields = {
                    "isr": ids(),
                    "leader": draw.randint(-2, 8),
                    "replicas": ids(),
                    "removing_replicas": ids(),
                    "adding_replicas": ids(),
                    "leader_recovery_state": draw.randint(-1, 1),
                }
                yield change(
                    draw.randrange(live[name][1]),
                    live[name][0],
                    **{k: v for k, v in fields.items() if draw.random() < 0.4},
                )


def generically(chunks: Sequence[Chunk]) -> MetadataImage:
    image, transactions = MetadataImage(PRINTS, "3.9"), Transactions()
    for chunk in chunks:
        for _, each in transactions.effective(chunk.records()):
            image.apply(each, Touched())
    return image


def one_by_one(start: int, chunks: Sequence[Chunk]) -> LogReplay:
    """A replay without columns."""
    replay = LogReplay(start, PRINTS, "3.9")
    replay._bulk = None
    for chunk in chunks:
        replay.apply(chunk)
    return replay


def chunks_of(values: Sequence[bytes], draw: random.Random) -> list[Chunk]:
    """The log in chunks of a few batches each; the first may be a snapshot where no transaction is open."""
    found, at = [], 0
    while at < len(values):
        size = draw.randint(1, 12)
        data = b"".join(batch(at + k, values[at + k]) for k in range(min(size, len(values) - at)))
        found.append(Chunk(data, since=at, up_to=len(values)))
        at += size
    return found


@pytest.mark.parametrize("seed", range(150))
def test_a_log_adds_up_to_the_same_rows_wherever_m_lies(seed: int) -> None:
    draw = random.Random(seed)
    length, part = draw.randint(1, 150), draw.uniform(0, 1.1)
    values = list(some_log(draw, length))
    chunks = chunks_of(values, draw)
    replay = LogReplay(int(len(values) * part) - 1, PRINTS, "3.9")
    for chunk in chunks:
        replay.apply(chunk)
    expected = generically(chunks)
    told = {str(v) for v in (*replay.versions_beside_topics(), *replay.versions_of_topics("abcdefg1"))}
    names = whole(replay).keys()
    assert sorted(map(str, every_row(replay.image))) == sorted(map(str, every_row(expected)))
    assert (
        told == set(map(str, every_version(replay))) == set(map(str, every_version(one_by_one(replay.start, chunks))))
    )
    assert names >= set(expected.topic_ids)
    last = {(v.kind, v.key): v.value for v in every_version(replay) if v.last and v.value is not None}
    assert {(row.kind, row.key) for row in every_row(expected)} == last.keys()


@pytest.mark.parametrize("seed", range(100))
def test_two_topics_have_one_fingerprint_where_and_only_where_their_rows_are_the_same(seed: int) -> None:
    draw = random.Random(seed)
    values = list(some_log(draw, draw.randint(1, 80)))
    changed = [*values, *(each for each in some_log(draw, 3) if each[1] == RecordType.CONFIG)]
    first, second = (replay_of(each, 10**6, draw) for each in (values, changed))
    left, right = whole(first), whole(second)
    for name, value in right.items():
        left_rows, right_rows = (
            {row for row in each.image.rows_of_topic(name) if row.kind is not Kind.PARTITION_EPOCH}
            for each in (first, second)
        )
        same = left_rows == right_rows
        assert (value is not None and left.get(name) == value) == (same and value is not None)
        if value is not None:
            rows = [row for row in second.image.rows_of_topic(name) if row.kind is not Kind.PARTITION_EPOCH]
            partitions, configs, _ = value.split(" ")
            assert 1 + 2 * int(partitions) + int(configs) == len(rows)


def whole(replay: LogReplay) -> dict[str, str | None]:
    """Each topic's fingerprint; None where it has none."""
    found = {parse_key(v.key)[0]: json.loads(v.value) for v in replay.whole_topics()}
    return {name: None if value == TOUCHED else value for name, value in found.items()}


def replay_of(values: Sequence[bytes], start: int, draw: random.Random) -> LogReplay:
    replay = LogReplay(start, PRINTS, "3.9")
    for chunk in chunks_of(values, draw):
        replay.apply(chunk)
    return replay


# -- fingerprints ------------------------------------------------------------------------------------------------------

Columns = dict[str, Any]


def topics(**changes: Any) -> TopicColumns:
    """One topic, one partition, with the changes made."""
    plain: Columns = {
        "replicas": [3, 1, 2],
        "adding": [],
        "removing": [],
        "leader": 1,
        "leader_epoch": 4,
        "isr": [1, 2],
        "recovery": 0,
        "partition": 0,
        "epoch": 0,
    }
    plain |= {k: v for k, v in changes.items() if k in plain}
    columns = {k: Lists.of([v]) if isinstance(v, list) else np.array([v], np.int32) for k, v in plain.items()}
    configs = changes.get("configs", {"a": "1"})
    return TopicColumns(
        ["t"],
        [changes.get("id", "x")],
        PartitionColumns(topic=np.zeros(1, np.int32), **columns),
        ConfigColumns(np.zeros(len(configs), np.int32), list(configs), list(configs.values())),
    )


def print_of(columns: TopicColumns) -> str:
    (found,) = topic_prints(columns, b"salt")
    return found.value


@pytest.mark.parametrize(
    "change",
    [
        {"replicas": [1, 3, 2]},
        {"replicas": [3, 1]},
        {"replicas": [3, 1, 2, 2]},
        {"adding": [2]},
        {"removing": [2]},
        {"adding": [1], "removing": [2]},
        {"leader": -1},
        {"leader": 2},
        {"leader_epoch": 5},
        {"isr": [1]},
        {"isr": [1, 2, 3]},
        {"isr": []},
        {"recovery": 1},
        {"partition": 1},
        {"id": "y"},
        {"configs": {}},
        {"configs": {"a": "2"}},
        {"configs": {"b": "1"}},
        {"configs": {"a": "1", "b": "1"}},
        {"configs": {"a1": ""}},
        {"replicas": [3, 1, 2], "isr": [1, 2, 4], "adding": [], "removing": []},
    ],
)
def test_every_change_of_a_topic_changes_its_fingerprint(change: Columns) -> None:
    assert print_of(topics()) != print_of(topics(**change))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a\0b": "c"}, {"a": "b\0c"}),
        ({"": "3\0a\0bc"}, {"a\0b": "c"}),
        ({"a\0": ""}, {"a": "\0"}),
        ({"": "\0"}, {"\0": ""}),
    ],
)
def test_a_config_whose_name_holds_a_nul_is_no_other_config(one: dict[str, str], other: dict[str, str]) -> None:
    assert print_of(topics(configs=one)) != print_of(topics(configs=other))


def test_sets_have_no_order_and_a_salt_changes_every_fingerprint() -> None:
    assert print_of(topics(isr=[2, 1], adding=[5, 4], removing=[2, 1])) == print_of(
        topics(isr=[1, 2], adding=[4, 5], removing=[1, 2])
    )
    assert print_of(topics(configs={"a": "1", "b": "2"})) == print_of(topics(configs={"b": "2", "a": "1"}))
    assert next(topic_prints(topics(), b"other")).digest != next(topic_prints(topics(), b"salt")).digest


def test_partitions_in_another_order_are_the_same_topic() -> None:
    draw = random.Random(3)
    order = draw.sample(range(40), 40)
    lists = [draw.sample(range(1, 99), draw.randint(0, 9)) for _ in range(40)]

    def columns(numbers: Sequence[int]) -> TopicColumns:
        held, column = Lists.of([lists[number] for number in numbers]), np.array(numbers, np.int32)
        partitions = PartitionColumns(
            np.zeros(40, np.int32), column, held, held, held, column, column, held, column, column
        )
        return TopicColumns(["t"], ["x"], partitions, ConfigColumns(np.empty(0, np.int32), [], []))

    assert print_of(columns(order)) == print_of(columns(sorted(order)))


def test_a_fingerprint_does_not_depend_on_the_topics_beside_it() -> None:
    draw = random.Random(7)
    lists = [draw.sample(range(1, 99), draw.randint(0, 9)) for _ in range(BLOCK + 100)]
    count = len(lists)
    number = np.arange(count, dtype=np.int32)
    many = TopicColumns(
        [str(at) for at in range(count)],
        ["x"] * count,
        PartitionColumns(
            number,
            np.zeros(count, np.int32),
            Lists.of(lists),
            Lists.of(lists),
            Lists.empty(count),
            number,
            number,
            Lists.of(lists),
            number % 2,
            number,
        ),
        ConfigColumns(np.empty(0, np.int32), [], []),
    )
    found = list(topic_prints(many, b"salt"))
    assert len({each.digest for each in found}) == count
    for at in (0, 1, 777, BLOCK - 1, BLOCK, count - 1):
        one = topics(
            replicas=lists[at], adding=lists[at], leader=at, leader_epoch=at, isr=lists[at], recovery=at % 2, configs={}
        )
        assert print_of(one) == found[at].value
