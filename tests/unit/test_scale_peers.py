"""The benchmarks' peers decode as Kafka means it, and the tables do not flatter: the same facts or no figure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.copy import DEFAULTS, Outcome, table
from benchmarks.facts import CAMEL, Facts, LogScript, differences, summary_of_facts
from benchmarks.parity import LINES, Run, _require_same
from benchmarks.parity import table as parity_table
from benchmarks.scale.cluster import Plan, heaps, load_spec, saved_plan, write_cluster_file
from benchmarks.scale.driver_log import COPIED, DUAL_WRITE
from benchmarks.scale.measure import CopyFigures
from kraft_runbook.errors import RunbookError, StepFailed
from kraft_runbook.io.kafka.stand_in_server import LEADER_AND_ISR, UPDATE_METADATA, done

PARTITION = {
    "partitionId": 0,
    "topicId": "id",
    "replicas": [3, 1, 2],
    "isr": [3, 1, 2],
    "removingReplicas": [],
    "addingReplicas": [],
    "leader": 3,
    "leaderEpoch": 7,
}


def script(*records: tuple[str, dict[str, object]]) -> Facts:
    log = LogScript(CAMEL)
    for kind, data in records:
        log.take(kind, data)
    return log.facts


def test_a_change_of_leader_raises_the_epoch_and_one_without_does_not() -> None:
    first = [("TOPIC_RECORD", {"name": "t", "topicId": "id"}), ("PARTITION_RECORD", PARTITION)]
    change: dict[str, object] = {"partitionId": 0, "topicId": "id"}
    assert script(*first).partitions["t"][0] == ((3, 1, 2), (), (), 3, 7, (1, 2, 3), 0)
    assert script(*first, ("PARTITION_CHANGE_RECORD", change | {"isr": [3]})).partitions["t"][0] == (
        (3, 1, 2),
        (),
        (),
        3,
        7,
        (3,),
        0,
    )
    assert script(*first, ("PARTITION_CHANGE_RECORD", change | {"leader": 1})).partitions["t"][0] == (
        (3, 1, 2),
        (),
        (),
        1,
        8,
        (1, 2, 3),
        0,
    )


def test_what_stands_in_an_aborted_transaction_never_was() -> None:
    topic = ("TOPIC_RECORD", {"name": "t", "topicId": "id"})
    begin, abort, end = (
        ("BEGIN_TRANSACTION_RECORD", {}),
        ("ABORT_TRANSACTION_RECORD", {}),
        ("END_TRANSACTION_RECORD", {}),
    )
    assert script(begin, topic, abort).ids == {}
    assert script(begin, topic).ids == {}
    assert script(begin, topic, end).ids == {"t": "id"}


def test_a_removed_topic_takes_its_partitions_and_configs_along() -> None:
    config = {"resourceType": 2, "resourceName": "t", "name": "a", "value": "1"}
    facts = script(
        ("TOPIC_RECORD", {"name": "t", "topicId": "id"}),
        ("PARTITION_RECORD", PARTITION),
        ("CONFIG_RECORD", config),
        ("REMOVE_TOPIC_RECORD", {"topicId": "id"}),
    )
    assert facts == Facts()


def test_the_dict_diff_counts_each_fact_once() -> None:
    left, right = Facts({"t": "id"}, {}, {"t": {"a": "1"}}), Facts({"t": "id"}, {}, {"t": {"a": "2", "b": "3"}})
    left.partition("t", 0, ((1,), (), (), 1, 0, (1,), 0))
    assert differences(left, left) == 0
    assert differences(left, right) == 3
    assert differences(right, left) == 3


def test_a_summary_holds_each_partition_of_its_sample() -> None:
    facts = Facts({"t": "id"}, {}, {"t": {"a": "1"}})
    facts.partition("t", 0, ((3, 1), (), (), 3, 7, (1, 3), 0))
    assert json.loads(json.dumps(summary_of_facts(facts, 1).sample))["t"]["partitions"]["0"] == [
        [3, 1],
        [],
        [],
        3,
        7,
        [1, 3],
        0,
    ]


def run(name: str, seconds: float, partitions: int = 10) -> Run:
    return Run(name, seconds, 100, {"topics": 1, "partitions": partitions, "configs": 2, "sample": {}}, "")


def test_no_table_when_two_sides_found_different_facts() -> None:
    with pytest.raises(StepFailed, match="this is no comparison"):
        _require_same([run("ours.log", 1), run("peers.dump_log", 2, partitions=9)])
    _require_same([run("ours.log", 1), run("peers.dump_log", 2)])


def test_a_ratio_is_of_two_that_begin_alike_and_read_in_as_many_processes() -> None:
    alike = [line for line in LINES if line.alike]
    for line in alike:
        assert [state for state in ("warm", "cold") if (state in line.title) != (state in line.peer_title)] in (
            [],
            ["cold"],
        ), line
        assert ("in_two" in line.peer) == ("in_two" in line.ours or line.ours == "ours.gate"), line
    readers = {(line.ours, line.peer) for line in alike if line.what == "zookeeper"}
    assert {(ours.removesuffix("_in_two"), peer.removesuffix("_in_two")) for ours, peer in readers} == {
        ("ours.zookeeper", "kazoo_peers.loop"),
        ("ours.zookeeper", "kazoo_peers.windowed"),
    }
    assert len(readers) == 4


def test_two_that_are_not_alike_have_no_ratio() -> None:
    (line,) = [line for line in LINES if line.peer == "peers.dict_diff_gate"]
    assert "| 2.00 | 30.00 | - |" in parity_table(
        [line], [run("ours.gate", 2), run("peers.dict_diff_gate", 30)], 200_000
    )


def test_an_aim_that_was_missed_says_no() -> None:
    lines = [line for line in LINES if line.what == "log"]
    said = parity_table(
        lines, [run("ours.log", 2), run("peers.dump_log", 30), run("peers.generic_decoder", 4)], 200_000
    )
    assert "| 15.0 | >= 10x | yes |" in said
    assert "| 2.0 | >= 5x | no |" in said
    slow = parity_table(lines, [run("ours.log", 7), run("peers.dump_log", 700)], 2_000_000)
    assert "| 100.0 | <= 6 s, >= 10x | no |" in slow


def figures(seconds: float) -> CopyFigures:
    whole = dict.fromkeys(CopyFigures.__dataclass_fields__, 0)
    return CopyFigures(**(whole | {"copy": seconds, "registration_to_state_1": seconds + 1}))  # type: ignore[arg-type]


def test_a_copy_that_failed_stands_in_the_table() -> None:
    said = table(
        [
            Outcome(DEFAULTS, 20, figures(10)),
            Outcome("batch 5000", 20, figures(5)),
            Outcome("linger 0", 20, None, "the controller ended"),
        ]
    )
    assert "| 20 | batch 5000 | 1 | 6.0 | 1.83 | 5.0 | 2.00 |" in said
    assert "| 20 | linger 0 | 0 of 1: the controller ended |" in said


def test_the_drivers_lines_are_recognised() -> None:
    copied = COPIED.search(
        b"[2026-11-21 21:28:52,123] INFO [KRaftMigrationDriver id=3001] Completed migration of metadata from ZooKeeper"
        b" to KRaft. 26001 records were generated in 14820 ms across 126 batches. The average time spent waiting on a"
        b" batch was 30.52 ms. The record types were {TOPIC_RECORD=2000}. (x)"
    )
    assert copied is not None
    assert (copied[1], copied["records"], copied["ms"], copied["batches"], copied["wait"]) == (
        b"2026-11-21 21:28:52,123",
        b"26001",
        b"14820",
        b"126",
        b"30.52",
    )
    line = (
        b"[2026-11-21 21:29:07,001] INFO [KRaftMigrationDriver id=3001] 30 transitioning from"
        b" KRAFT_CONTROLLER_TO_BROKER_COMM to DUAL_WRITE state (x)"
    )
    assert DUAL_WRITE.search(line) is not None
    assert DUAL_WRITE.search(line.replace(b"to DUAL_WRITE", b"to SYNC_KRAFT_TO_ZK")) is None


def test_a_stand_ins_answer_has_the_length_it_claims() -> None:
    for api_key, body in ((LEADER_AND_ISR, b"\0\0\1\0"), (UPDATE_METADATA, b"\0\0\0")):
        answer = done(api_key, 77)
        assert int.from_bytes(answer[:4]) == len(answer) - 4
        assert answer[4:] == (77).to_bytes(4) + b"\0" + body


def test_the_cluster_file_is_one_that_everything_else_can_read(tmp_path: Path) -> None:
    plan = Plan(
        tmp_path,
        200,
        brokers=5,
        controllers=3,
        network="127.77.7",
        properties={"zookeeper.max.in.flight.requests": "200"},
    )
    plan.save()
    spec = write_cluster_file(plan)
    assert saved_plan(tmp_path) == plan
    assert load_spec(saved_plan(tmp_path)) == spec
    assert (len(spec.brokers), len(spec.controllers), spec.zookeeper.connect) == (5, 3, "127.77.7.1:2181")
    assert spec.controller_properties["zookeeper.max.in.flight.requests"] == "200"
    assert all(each.startswith("127.") for each in (*spec.bootstrap_servers, *(c.address for c in spec.controllers)))


def test_a_directory_without_a_cluster_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(RunbookError, match="no cluster of this harness"):
        saved_plan(tmp_path)


def test_heaps_follow_brokers_and_partitions() -> None:
    assert heaps(20_000, 30) == ("1g", "1g")
    assert heaps(200_000, 30) == ("1g", "1g")
    assert heaps(1_000_000, 30) == ("17g", "4g")
    assert heaps(2_000_000, 10) == ("11g", "8g")
