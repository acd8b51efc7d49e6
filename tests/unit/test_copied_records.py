"""The bytes of the metadata copy's batches: never fewer than Kafka's own, whatever the order."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_runbook.cluster.copy_groups import BATCH_BYTES, CopyGroups
from kraft_runbook.metadata.topic_columns import ConfigColumns, Lists, PartitionColumns, TopicColumns
from kraft_runbook.metadata.znodes.copied_records import CopiedRecords
from kraft_runbook.migration.copy_tuning import HEAVIEST, HEAVY, LARGE, SMALL, size_of

LONG = ",".join(f"{n}:1" for n in range(2_430))[:16_000]
"""A config of 16,000 characters."""


def of_topics(count: int, partitions: int, config: dict[str, str]) -> CopiedRecords:
    seen = CopiedRecords()
    for number in range(count):
        seen.see_topic(f"heavy-{number:03}", [3] * partitions, config)
    return seen


def test_the_tree_that_ended_every_controller_is_too_large_at_5000_and_fits_at_1000() -> None:
    """700 topics with 3 partitions and 16 kB of configs each: Kafka 3.9.2 refused one batch of 11,414,112 bytes, with
    the lab's own topics in it.
    """
    groups = of_topics(700, 3, {"leader.replication.throttled.replicas": LONG}).groups
    assert groups.records == 3_500
    assert 11_300_000 < groups.most_bytes(5000) < 11_600_000
    assert groups.most_bytes(5000) > BATCH_BYTES > groups.most_bytes(1000) > 3_200_000
    assert size_of(2_100, groups) is HEAVY
    assert size_of(1_999, groups) is SMALL
    assert groups.greatest_setting() in range(2_400, 2_600)


def test_a_usual_large_cluster_keeps_the_batches_that_were_measured() -> None:
    groups = of_topics(2_000, 10, {"retention.ms": "604800000", "cleanup.policy": "delete"}).groups
    assert size_of(20_000, groups) is LARGE
    assert groups.most_bytes(5000) < 600_000
    assert size_of(20_000) is LARGE


def test_configs_longer_still_leave_kafkas_own_batches() -> None:
    groups = of_topics(2_000, 1, {"leader.replication.throttled.replicas": LONG * 2}).groups
    assert size_of(2_000, groups) is HEAVIEST
    assert HEAVIEST.min_batch_size == 200


def test_everything_that_the_copy_appends_is_counted() -> None:
    seen = CopiedRecords()
    pem = "-----BEGIN CERTIFICATE-----\n" + "x" * 90_000
    acls = [{"principal": "User:a", "host": "*", "operation": "Read", "permissionType": "Allow"}] * 7
    for path, held, records in [
        ("/config/brokers/1", {"config": {"listener.name.ssl.ssl.keystore.certificate.chain": pem}}, 1),
        ("/config/users/u", {"config": {"producer_byte_rate": "1", "SCRAM-SHA-512": "s" * 300}}, 2),
        ("/config/users/u/clients/c", {"config": {"producer_byte_rate": "1"}}, 1),
        ("/kafka-acl/Topic/t", {"version": 1, "acls": acls}, 7),
        ("/kafka-acl-extended/prefixed/Topic/t", {"version": 1, "acls": acls}, 7),
        ("/delegation_token/tokens/t1", {"version": 3, "owner": "User:a"}, 1),
        ("/latest_producer_id_block", {"version": 1}, 1),
        ("/config/topics/gone", {"config": {"retention.ms": "1"}}, 0),
        ("/feature", {"version": 2}, 0),
        ("/config/brokers/2", {}, 0),
    ]:
        before = seen.groups
        data = json.dumps(held).encode()
        seen.see_znode(path, data)
        assert seen.groups.records - before.records == records, path
        assert (seen.groups.size - before.size >= len(data)) is (records > 0), path
    for odd in (b"", b"[1]", b"{", b'{"config": 3}'):
        seen.see_znode("/config/brokers/3", odd)
    assert seen.groups.records == 20
    assert seen.groups.largest > 90_000


def test_all_tokens_are_one_group_that_is_split_at_ten_thousand_records() -> None:
    seen = CopiedRecords()
    for number in range(30_000):
        seen.see_znode(f"/delegation_token/tokens/{number}", b'{"version":1,"owner":"%b"}' % (b"x" * 400))
    assert seen.groups.records == 30_000
    assert seen.groups.largest < 6_000_000 < BATCH_BYTES < seen.groups.size


def test_in_bulk_a_topic_weighs_what_it_weighs_alone() -> None:
    one = of_topics(1, 2, {"retention.ms": "é", "cleanup.policy": "compact"})
    bulk, lists, empty = CopiedRecords(), Lists.of([[1, 2, 3], [1, 2, 3]]), Lists.empty(2)
    zeros = np.zeros(2, np.int32)
    bulk.see_columns(
        TopicColumns(
            ["heavy-000"],
            ["B" * 21 + "A"],
            PartitionColumns(zeros, np.array([0, 1], np.int32), lists, empty, empty, zeros, zeros, lists, zeros, zeros),
            ConfigColumns(np.zeros(2, np.int32), ["retention.ms", "cleanup.policy"], ["é", "compact"]),
        )
    )
    assert bulk.groups.records == one.groups.records == 5
    assert bulk.groups.size + 2 * 4 * 6 == one.groups.size  # alone every replica may be joining or leaving too


SIZES = st.lists(st.tuples(st.integers(1, 30), st.integers(50, 40_000)), min_size=1, max_size=60)


@given(SIZES, st.integers(1, 400), st.integers(0, 2**32))
def test_no_order_makes_a_larger_batch_than_is_told(groups: list[tuple[int, int]], setting: int, seed: int) -> None:
    seen = CopiedRecords()
    for records, size in groups:
        seen._see(np.array([records]), np.array([records * size]))
    random.Random(seed).shuffle(groups)
    batch, held, largest = 0, 0, 0
    for records, size in [*groups, (setting, 0)]:  # the last one flushes
        batch, held = batch + records, held + records * size
        if batch >= setting:
            largest, batch, held = max(largest, held), 0, 0
    assert largest <= seen.groups.most_bytes(setting)


@given(SIZES)
def test_a_larger_setting_never_makes_smaller_batches(groups: list[tuple[int, int]]) -> None:
    seen = CopiedRecords()
    for records, size in groups:
        seen._see(np.array([records]), np.array([records * size]))
    most = [seen.groups.most_bytes(setting) for setting in (1, 20, 200, 1_000, 5_000, 20_000)]
    assert all(one <= other for one, other in pairwise(most))


@pytest.mark.parametrize("limit", [1_000_000, BATCH_BYTES])
def test_the_greatest_setting_is_the_last_that_fits(limit: int) -> None:
    groups = CopyGroups(20_000, 80_000_000, 60_000, ((20_000, 4_000.0),))
    greatest = groups.greatest_setting(limit)
    assert greatest is not None
    assert groups.most_bytes(greatest) <= limit < groups.most_bytes(greatest + 1)
    assert CopyGroups(1, limit + 1, limit + 1, ((1, limit + 1),)).greatest_setting(limit) is None
