"""Versions of state znodes against partition epochs: what lies behind, by row and in columns, and how a
report says it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_runbook.io.zookeeper.multi_read import MAX_REQUEST_BYTES
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Kind
from kraft_runbook.metadata.image.frozen_topics import FrozenTopics
from kraft_runbook.metadata.image.log_replay import Version
from kraft_runbook.metadata.topic_columns import ConfigColumns, Lists, PartitionColumns, TopicColumns
from kraft_runbook.metadata.znodes.znode_rows import path_of, stat_rows
from kraft_runbook.parity.comparison import Comparison, ParityReport, Verdict, compare, make_report
from kraft_runbook.parity.partition_epochs import compare_packed, is_behind, packed
from kraft_runbook.parity.state_versions import Behind
from kraft_runbook.procedures.raise_versions import WRITES_AT_ONCE, batches

STATE = "/brokers/topics/t/partitions/7/state"


@pytest.mark.parametrize(
    ("version", "epochs", "behind"),
    [
        ("3", ["4"], True),
        ("4", ["4"], False),
        ("9", ["10"], True),  # numbers, not texts
        ("5", ["4"], False),  # ahead does no harm
        ("3", ["6", "5", "3"], False),  # touched since M: one of the epochs it had
        ("2", ["6", "5", "3"], True),
        ("0", ["9", None], False),  # the topic was made anew meanwhile
        ("0", [], False),
        (None, ["3"], False),  # no state znode: a difference of another kind
    ],
)
def test_a_version_lies_behind_where_it_is_lower_than_every_epoch_since_m(
    version: str | None, epochs: list[str | None], behind: bool
) -> None:
    assert is_behind(version, epochs) is behind


def test_the_stat_of_a_state_znode_gives_a_row_at_the_path_of_its_key() -> None:
    (row,) = stat_rows(STATE, 12)
    assert row == canonical_rows.partition_epoch("t", 7, 12)
    assert path_of(row.kind, row.key) == STATE
    assert stat_rows("/brokers/topics/t", 3) == stat_rows("/brokers/topics/t/partitions/x/state", 3) == []


def columns(counts: list[int], numbers: list[int]) -> PartitionColumns:
    topic = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    count = len(topic)
    zeros, none = np.zeros(count, np.int32), Lists.empty(count)
    partition = np.array([number for held in counts for number in range(held)], np.int32)
    return PartitionColumns(topic, partition, none, none, none, zeros, zeros, none, zeros, np.array(numbers, np.int32))


def by_row(names: list[str], counts: list[int], versions: list[int], epochs: list[int]) -> Comparison:
    keys = [
        canonical_rows.partition_epoch(name, number, 0).key
        for name, held in zip(names, counts, strict=True)
        for number in range(held)
    ]
    rows = [
        canonical_rows.Row(Kind.PARTITION_EPOCH, key, str(version)) for key, version in zip(keys, versions, strict=True)
    ]
    return compare(
        rows,
        [Version(Kind.PARTITION_EPOCH, key, str(epoch), 0, last=True) for key, epoch in zip(keys, epochs, strict=True)],
    )


@given(st.data())
def test_in_columns_the_same_partitions_lie_behind_as_row_by_row(data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 4), max_size=6))
    names = [f"topic-{n}" for n in range(len(counts))]
    draw = st.lists(st.integers(0, 3), min_size=sum(counts), max_size=sum(counts))
    versions, epochs = data.draw(draw), data.draw(draw)
    but = set(data.draw(st.lists(st.sampled_from(names), unique=True))) if names else set()
    log_order = data.draw(st.permutations(range(len(names))))

    starts = np.cumsum([0, *counts])
    log_epochs = [epochs[at] for topic in log_order for at in range(starts[topic], starts[topic + 1])]
    log = FrozenTopics([names[at] for at in log_order], [], columns([counts[at] for at in log_order], log_epochs), {})
    cut = data.draw(st.integers(0, len(names)))  # two workers' rows
    rows = [
        packed(
            TopicColumns(
                names[a:b],
                ["x"] * (b - a),
                columns(counts[a:b], versions[starts[a] : starts[b]]),
                ConfigColumns(np.empty(0, np.int32), [], []),
            )
        )
        for a, b in ((0, cut), (cut, len(names)))
    ]
    both, behind = compare_packed(rows, log, but=but)

    expected = by_row(names, counts, versions, epochs)
    kept = [each for each in expected.differences if canonical_rows.parse_key(each.key)[0] not in but]
    assert sorted(map(str, behind)) == sorted(map(str, kept))
    assert both[Kind.PARTITION_EPOCH] + len(behind) == sum(
        held for name, held in zip(names, counts, strict=True) if name not in but
    )


def report_of(found: Comparison) -> ParityReport:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    return make_report(
        cluster="lab",
        against="ZooKeeper",
        both=found.both,
        differences=found.differences,
        undecoded=(),
        obstacles=(),
        migration_offset=5,
        end_offset=6,
        migration_epoch=1,
        leader_id=101,
        leader_epoch=1,
        rounds=1,
        started_at=now,
        finished_at=now,
    )


def test_a_version_that_lies_behind_is_no_difference_and_every_text_of_the_report_says_that_it_forbids_leaving() -> (
    None
):
    report = report_of(by_row(["t"], [3], [4, 7, 9], [4, 9, 8]))
    assert (report.verdict, report.behind, report.differing) == (Verdict.MATCH, 1, 0)
    for text in (report.summary, report.render_text(), report.render_markdown()):
        assert "lower than their partition epoch" in text
        assert "leav" in text
    assert "/brokers/topics/t/partitions/1/state" in report.render_text()
    assert ParityReport.from_dict(report.to_dict()) == report


def test_beside_a_difference_it_is_still_told_and_alone_it_is_not_told_where_there_is_none() -> None:
    behind = by_row(["t"], [1], [0], [3])
    different = compare(
        [canonical_rows.topic("t", "a")],
        [Version(Kind.TOPIC, canonical_rows.topic("t", "b").key, canonical_rows.topic("t", "b").value, 0, last=True)],
    )
    report = report_of(replace(different, differences=(*different.differences, *behind.differences)))
    assert (report.verdict, report.behind, report.differing) == (Verdict.MISMATCH, 1, 1)
    assert "lower than their partition epoch" in report.render_text()
    fine = report_of(by_row(["t"], [2], [4, 5], [4, 4]))
    assert (fine.verdict, fine.behind) == (Verdict.MATCH, 0)
    assert "lower than their partition epoch" not in fine.render_text()


@pytest.mark.parametrize(("version", "epoch"), list(product((0, 3), (0, 3))))
def test_only_a_lower_version_counts(version: int, epoch: int) -> None:
    assert bool(by_row(["t"], [1], [version], [epoch]).differences) is (version < epoch)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3000), st.integers(0, 400)), max_size=8))
def test_every_version_is_raised_to_its_epoch_in_transactions_that_fit(wanted: list[tuple[int, int, int]]) -> None:
    """(version, how far behind, bytes of data) a partition: each write at the version that the one before it left."""
    behind = [Behind("t", number, version, version + deficit) for number, (version, deficit, _) in enumerate(wanted)]
    versions = {each.path: each.version for each in behind}
    znodes = [
        Znode(each.path, b"x" * size, each.version, 1, 1, 1, 0)
        for each, (_, _, size) in zip(behind, wanted, strict=True)
    ]
    for batch in batches(list(zip(behind, znodes, strict=True))):
        assert 0 < sum(times for _, _, times in batch) <= WRITES_AT_ONCE
        assert sum(times * (len(znode.path) + len(znode.data)) for _, znode, times in batch) <= MAX_REQUEST_BYTES
        for _, znode, times in batch:
            assert versions[znode.path] == znode.version
            versions[znode.path] += times
    assert versions == {each.path: each.epoch for each in behind}
