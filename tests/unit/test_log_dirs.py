"""How much room a broker has for replicas that come."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from connected import nodes_that
from kafka.protocol.admin import AlterReplicaLogDirsResponse, DescribeLogDirsResponse
from kafka.protocol.broker_version_data import BrokerVersionData
from observations import SPEC
from placements import of, tp

from kraft_runbook.cluster.log_dirs import LogDir, all_cordoned, filled, is_one_volume, may_be_one_volume, usable_bytes
from kraft_runbook.io.kafka.log_dirs import alter_replica_log_dirs, describe_log_dirs
from kraft_runbook.reassignment.disk_room import perhaps_too_full, too_full
from kraft_runbook.reassignment.goals import Explicit
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.planner import make_plan

GB = 10**9
Shown = tuple[str, int | None, int | None, int]
"""Path, total GB, usable GB, logs."""


def directories(*shown: Shown) -> tuple[LogDir, ...]:
    return tuple(
        LogDir(path, total and total * GB, free if free is None else int(free * GB), logs=logs)
        for path, total, free, logs in shown
    )


def refused_and_noted(shown: list[Shown], sizes: list[int]) -> tuple[list[str], list[str]]:
    """What is said of a plan that brings replicas of these GB to broker 2."""
    present = of(a=[(1,)] * len(sizes))
    placement = Placement(
        dict.fromkeys((1, 2)),
        present,
        sizes={p: size * GB for p, size in zip(present, sizes, strict=True)},
        directories={2: directories(*shown)},
    )
    plan = make_plan(Explicit(dict.fromkeys(present, (2,))), placement)
    return [why for _, why in too_full(plan.moves, placement)], list(perhaps_too_full(plan, placement))


@pytest.mark.parametrize(
    ("shown", "sizes"),
    [
        pytest.param([("/a", 4000, 3000, 40), ("/b", 4000, 2900, 30)], [40] * 100, id="counts even out, then in turn"),
        pytest.param([("/a", 100, 40, 9)], [9] * 4, id="one volume"),
        pytest.param([("/a", 100, 1, 50), ("/b", 100, 90, 3)], [1] * 40, id="the full one gets none"),
        pytest.param([("/a", 100, 90, 0), ("/b", 200, 90, 0)], [80, 80], id="two empty volumes"),
        pytest.param([("/a", None, None, 5)], [10**6], id="it does not say: the preview shows that"),
        pytest.param([("/a", 100, 41, 5), ("/b", 100, None, 5)], [30, 999], id="the other does not say"),
    ],
)
def test_what_fits_in_each_directory_is_not_refused(shown: list[Shown], sizes: list[int]) -> None:
    assert refused_and_noted(shown, sizes)[0] == []


@pytest.mark.parametrize(
    ("shown", "sizes", "said"),
    [
        ([("/a", 100, 40, 9)], [37], "broker 2 is to take 37,000,000,000 bytes and has 40,000,000,000 free"),
        (
            [("/a", 100, 1, 3), ("/b", 100, 90, 50)],
            [1] * 10,
            "broker 2 is to take 10,000,000,000 bytes in /a and has 1,000,000,000 free",
        ),
        (
            [("/a", 100, 40, 5), ("/b", 100, 40, 5)],
            [20, 20],
            "broker 2 is to take 40,000,000,000 bytes in /a and /b and has 40,000,000,000 free",
        ),
    ],
)
def test_a_directory_that_is_filled_is_refused_by_its_name(shown: list[Shown], sizes: list[int], said: str) -> None:
    assert refused_and_noted(shown, sizes)[0] == [said]


@pytest.mark.parametrize("logs_and_free", [(0, 99), (7, 98.99)], ids=["empty", "written to between the two looks"])
def test_whether_two_directories_share_a_volume_is_said_to_be_unknown(logs_and_free: tuple[int, float]) -> None:
    logs, free = logs_and_free
    shown: list = [("/a", 100, 99, logs), ("/b", 100, free, logs)]
    refused, noted = refused_and_noted(shown, [50, 50])
    assert not refused
    assert len(noted) == 1 and noted[0].startswith("broker 2: whether /a and /b are one volume is not known; if they")
    assert refused_and_noted(shown, [40, 40]) == ([], [])  # it fits in any case
    assert len(refused_and_noted(shown, [95, 95])[0]) == 2  # it does not in any case
    assert usable_bytes(directories(*shown)) is None


def test_which_replicas_a_directory_gets_is_said_to_be_kafkas_choice_where_it_matters() -> None:
    refused, noted = refused_and_noted([("/a", 100, 50, 0), ("/b", 200, 190, 0)], [1, 60])
    assert not refused
    assert noted == [
        "broker 2: /a takes about 1,000,000,000 bytes, up to 60,000,000,000 if the largest replicas come there, which"
        " Kafka decides; 50,000,000,000 are free"
    ]


def test_a_directory_that_failed_takes_nothing() -> None:
    failed, works = LogDir("/a", 9, 9, "error 56"), LogDir("/b", 8, 5, logs=7)
    assert usable_bytes([failed, works]) == 5 and usable_bytes([failed]) is None
    (volume,) = filled([failed, works], [3, 1], one=is_one_volume)
    assert (volume.paths, volume.taken, volume.at_most) == (("/b",), 4, 4)
    assert filled([failed], [3], one=is_one_volume) == ()


def test_free_bytes_of_one_volume_count_once() -> None:
    one, two = directories(("/a", 100, 40, 5), ("/b", 100, 40, 5))
    assert usable_bytes([one, two]) == 40 * GB
    assert usable_bytes([one, replace(two, usable=9 * GB)]) == 49 * GB
    assert usable_bytes([one, replace(two, usable=None)]) is None
    assert not may_be_one_volume(one, replace(two, total=99 * GB))


@pytest.mark.parametrize(("newest", "cordoned"), [(4, False), (5, True), (6, True)])
def test_whether_a_directory_is_cordoned_is_asked_of_a_broker_that_can_say_it(newest: int, cordoned: bool) -> None:
    """``newest``: the version that the broker has. Its answer is in the one that is asked, as over a connection."""

    def answer(_: str, request: Any) -> Any:
        asked = request.API_VERSION
        if asked is None:
            asked = BrokerVersionData(api_versions={35: (0, newest)}).api_version(request)
        result = DescribeLogDirsResponse.DescribeLogDirsResult
        said = {
            "log_dir": "/a",
            "topics": [],
            "total_bytes": 9,
            "usable_bytes": 5,
            "is_cordoned": True,
            "error_code": 0,
        }
        made = DescribeLogDirsResponse(version=asked, throttle_time_ms=0, error_code=0, results=[result(**said)])
        return DescribeLogDirsResponse.decode(made.encode(version=asked), version=asked)

    found = describe_log_dirs(SPEC, SPEC.brokers[0], secrets=lambda _: "", connect=nodes_that(answer))
    assert found.directories == (LogDir("/a", 9, 5, cordoned=cordoned),)


def test_a_copy_to_a_cordoned_directory_is_refused_in_words() -> None:
    topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
    partition = topic.AlterReplicaLogDirPartitionResult(partition_index=0, error_code=39)
    answer = AlterReplicaLogDirsResponse(version=1, results=[topic(topic_name="a", partitions=[partition])])
    given: Any = {"secrets": lambda _: "", "connect": nodes_that(lambda *_: answer)}
    assert alter_replica_log_dirs(SPEC, SPEC.brokers[0], {tp("a"): "/a"}, **given) == {
        tp("a"): "the directory is cordoned"
    }


def test_a_cordoned_directory_takes_nothing() -> None:
    """Its few logs would draw what comes, and its room hide that the other one has none."""
    used, cordoned = directories(("/a", 1000, 100, 200), ("/b", 1000, 900, 10))
    cordoned = replace(cordoned, cordoned=True)
    assert usable_bytes([used, cordoned]) == 100 * GB
    (volume,) = filled([used, cordoned], [10 * GB] * 30, one=is_one_volume)
    assert (volume.paths, volume.taken) == (("/a",), 300 * GB)
    assert all_cordoned([cordoned]) and all_cordoned([cordoned, replace(used, error="error 56")])
    assert not all_cordoned([used, cordoned]) and not all_cordoned([]) and not all_cordoned([replace(used, error="x")])
