"""What one broker's Metadata answer lacks of a healthy cluster: the rules alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka.admin import ClusterMetadata
from observations import SPEC

from lab.health import _holds_partitions, missing_in

BROKERS = (1, 2, 3)


def answer(*partitions: tuple[int, list[int], list[int]], brokers: tuple[int, ...] = BROKERS) -> ClusterMetadata:
    """A broker's answer with one topic of these partitions (leader, replicas, in-sync replicas); without
    any, no topic.
    """
    known = {
        number: SimpleNamespace(id=number, leader=leader, replicas=of, isrs=isr)
        for number, (leader, of, isr) in enumerate(partitions)
    }
    found = ClusterMetadata()
    found.brokers = dict.fromkeys(brokers)
    found.topics = {"orders": SimpleNamespace(topic="orders", partitions=known)} if known else {}
    return found


@pytest.mark.parametrize(
    ("seen", "holds_partitions", "missing"),
    [
        (answer((1, [1, 2], [2, 1])), True, ""),
        (answer(), False, ""),
        (answer(), True, "the partitions to be known"),
        (answer((1, [1, 2], [1])), True, "1 of 1 partitions to be in sync, such as orders-0"),
        (answer((1, [1], [1]), (-1, [1], [1])), True, "1 of 2 partitions to be in sync, such as orders-1"),
        (answer((1, [1], [1]), brokers=(1, 3)), True, "broker 2 to register: 2 of 3 seen"),
    ],
)
def test_says_what_is_missing(seen: ClusterMetadata, holds_partitions: bool, missing: str) -> None:
    assert missing_in(seen, BROKERS, holds_partitions=holds_partitions) == missing


@pytest.mark.parametrize(
    ("directories", "holds"),
    [
        ((), False),
        (("__cluster_metadata-0",), False),
        (("orders-0.9f-delete", "orders-1.9f-stray"), False),
        (("__cluster_metadata-0", "orders-0"), True),
    ],
)
def test_only_the_partitions_of_topics_count(tmp_path: Path, directories: tuple[str, ...], holds: bool) -> None:
    for name in directories:
        (tmp_path / name).mkdir()
    assert _holds_partitions(SPEC.broker(1).model_copy(update={"log_dirs": (str(tmp_path),)})) is holds
