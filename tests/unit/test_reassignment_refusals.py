"""What must not be planned is refused, with the names that it is about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from placements import MB, of, one_volume_each, tp

from kraft_runbook.cli.reassign_goal import plan_in
from kraft_runbook.cluster.assignment import Ongoing
from kraft_runbook.cluster.log_dirs import LogDir
from kraft_runbook.errors import Refused
from kraft_runbook.procedures.move_replicas import read_assignment
from kraft_runbook.reassignment.goals import AddBrokers, Explicit
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan_file import from_json, to_json
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.refusals import Reason, refusals, require_no_refusal

PLACEMENT = Placement(
    {1: "a", 2: "b", 3: "a", 4: "b"},
    of(a=[(1, 2), (3, 4)]),
    sizes={tp("a", 0): 100 * MB, tp("a", 1): 100 * MB},
    directories=one_volume_each({1: 1000 * MB, 2: 1000 * MB, 3: 1000 * MB, 4: 105 * MB}),
    min_isr={"a": 2},
)
DECLARED = (1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("target", "changes", "reason", "said"),
    [
        (of(a=[(1, 9)]), {}, Reason.UNKNOWN_BROKER, "unknown broker: 9 for a-0"),
        (of(a=[(1, 5)]), {"racks": {1: None, 2: None}}, Reason.DEAD_BROKER, "dead broker: 5 for a-0"),
        (of(a=[()]), {}, Reason.EMPTY_LIST, "empty list: a-0"),
        (of(a=[(2, 2)]), {}, Reason.DUPLICATE, "broker named twice: a-0 [2, 2]"),
        (of(x=[(1, 2)]), {}, Reason.UNKNOWN_PARTITION, "unknown partition: x-0"),
        (
            of(a=[(1, 4)]),
            {"leaderless": frozenset([tp("a", 0)]), "directories": {}},
            Reason.LEADERLESS,
            "partition without a leader: a-0",
        ),
        (of(a=[(2, 1)]), {"being_deleted": frozenset("a")}, Reason.BEING_DELETED, "topic being deleted: a-0"),
        (
            of(a=[(2, 1)]),
            {"ongoing": {tp("a"): Ongoing((1, 2, 3), (3,), ())}},
            Reason.BEING_REASSIGNED,
            "partition being reassigned: a-0",
        ),
        (of(a=[(1, 2, 3)]), {}, Reason.REPLICATION_FACTOR, "replication factor changes: a-0 from 2 to 3"),
        (of(a=[(1, 3)]), {}, Reason.RACKS, "racks not kept: a-0 [1, 3]"),
        (
            of(a=[(1, 4), (3, 4)]),
            {"directories": {4: (LogDir("/d", 9, 9, cordoned=True),)}},
            Reason.CORDONED,
            "broker 4 is to take 1 replicas, and all its log directories are cordoned",
        ),
        (of(a=[(1, 4)]), {}, Reason.DISK, "broker 4 is to take 100,000,000 bytes and has 105,000,000 free"),
    ],
)
def test_each_reason_is_named(target: dict, changes: dict, reason: Reason, said: str) -> None:
    placement = replace(PLACEMENT, **changes)
    found = refusals(make_plan(Explicit(target), placement), placement, declared=DECLARED)
    assert [each.reason for each in found] == [reason]
    assert said in str(found[0]) and found[0].way_out
    assert any(said in str(each) for each in found)


def test_fewer_replicas_than_min_insync_replicas_are_refused_also_where_the_factor_may_change() -> None:
    plan = make_plan(Explicit(of(a=[(1,)])), PLACEMENT)
    found = refusals(plan, PLACEMENT, declared=DECLARED, allowed=[Reason.REPLICATION_FACTOR])
    assert [str(each) for each in found] == ["fewer replicas than min.insync.replicas: a-0 1 of 2"]


def test_a_topic_that_has_fewer_replicas_than_min_insync_replicas_already_can_be_moved_off_a_broker() -> None:
    """As where the brokers' default is 2 and a topic has one replica: a move makes it no worse."""
    placement = replace(PLACEMENT, present=of(a=[(1,), (3,)]))
    assert not refusals(make_plan(Explicit(of(a=[(2,)])), placement), placement, declared=DECLARED)


def test_a_broker_without_a_rack_takes_nothing_where_others_have_racks_unless_that_is_allowed() -> None:
    racks = {1: "a", 2: "b", 3: None}
    placement = Placement(racks, of(t=[(1, 2), (2, 1), (1, 2)]))
    plan = make_plan(AddBrokers((3,)), placement)
    with pytest.raises(Refused, match="broker without a rack among brokers with racks: 3 for 2 replicas") as refused:
        require_no_refusal(plan, placement, declared=racks)
    assert "set broker.rack" in refused.value.way_out
    require_no_refusal(plan, placement, declared=racks, allowed=[Reason.NO_RACK])
    without = Placement(dict.fromkeys(racks), placement.present)
    require_no_refusal(make_plan(AddBrokers((3,)), without), without, declared=racks)


def test_a_partition_without_a_leader_hinders_no_other_and_no_new_order() -> None:
    lost = replace(PLACEMENT, leaderless=frozenset([tp("a", 0)]))
    assert not refusals(make_plan(Explicit(of(a=[(1, 2), (3, 2)])), lost), lost, declared=DECLARED)
    assert not refusals(make_plan(Explicit(of(a=[(2, 1)])), lost), lost, declared=DECLARED)


def test_only_the_factor_and_the_racks_may_be_allowed_by_name() -> None:
    for target, reason in ((of(a=[(1, 2, 3)]), Reason.REPLICATION_FACTOR), (of(a=[(1, 3)]), Reason.RACKS)):
        plan = make_plan(Explicit(target), PLACEMENT)
        assert not refusals(plan, PLACEMENT, declared=DECLARED, allowed=[reason])
    plan = make_plan(Explicit(of(a=[(1, 4)])), PLACEMENT)
    assert refusals(plan, PLACEMENT, declared=DECLARED, allowed=list(Reason))


def test_a_dead_replica_that_is_held_already_may_stay_where_only_the_order_changes() -> None:
    placement = replace(PLACEMENT, present=of(a=[(5, 2)]), racks={1: None, 2: None})
    assert not refusals(make_plan(Explicit(of(a=[(2, 5)])), placement), placement, declared=DECLARED)
    (found,) = refusals(make_plan(Explicit(of(a=[(5, 1)])), placement), placement, declared=DECLARED)
    assert str(found) == "dead broker: 5 for a-0", "the move would wait for it: all of the target must be in sync"


def test_what_a_running_move_gains_is_refused_as_any_newcomer_is() -> None:
    """Kafka's legacy znode takes a broker that does not exist, and waits for it."""
    placement = replace(PLACEMENT, present=of(a=[(1, 2, 99)]), ongoing={tp("a"): Ongoing((99, 2, 1), (99,), (1,))})
    found = refusals(make_plan(Explicit(of(a=[(99, 2)])), placement), placement, declared=DECLARED)
    assert [each.reason for each in found] == [Reason.UNKNOWN_BROKER, Reason.BEING_REASSIGNED]


def test_racks_that_were_broken_before_are_no_reason() -> None:
    placement = replace(PLACEMENT, present=of(a=[(1, 3)]))
    assert not refusals(make_plan(Explicit(of(a=[(2, 4)])), placement), placement, declared=DECLARED, allowed=[])[1:]
    assert Reason.RACKS not in {
        each.reason for each in refusals(make_plan(Explicit(of(a=[(2, 4)])), placement), placement, declared=DECLARED)
    }


def test_all_reasons_are_said_at_once() -> None:
    plan = make_plan(Explicit(of(a=[(1, 9), (3, 3)])), PLACEMENT)
    with pytest.raises(Refused, match=r"unknown broker: 9 for a-0; broker named twice: a-1 \[3, 3\]") as error:
        require_no_refusal(plan, PLACEMENT, declared=DECLARED)
    assert "name each broker once" in error.value.way_out


def test_the_tool_s_json_goes_in_and_comes_out_the_same() -> None:
    assignment = of(b=[(1, 2)], a=[(2, 1), (1,)])
    assert from_json(to_json(assignment), source="x") == assignment
    stock = '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[2,1],"log_dirs":["any","any"]}]}'
    assert from_json(stock, source="x") == of(a=[(2, 1)])
    assert from_json('{"partitions": [{"topic": "a", "partition": 0, "replicas": []}]}', source="x") == of(a=[()])


GENERATED = (
    '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[2,1],"log_dirs":["/data/1","/data/2"]},'
    '{"topic":"a","partition":1,"replicas":[1],"log_dirs":["any"]}]}'
)
"""As ``--generate`` of Kafka 4.2 writes the present assignment."""


def test_what_generate_of_kafka_4_2_writes_is_taken_with_a_word_on_its_log_directories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a plan that leads back, and as ``--before``."""
    file, told = tmp_path / "before.json", []
    file.write_text(GENERATED)
    word = f"{file}: the log directories of 1 partitions are ignored."
    assert read_assignment(file, ignored=told.append) == plan_in(file) == of(a=[(2, 1), (1,)])
    assert len(told) == 1 and told[0].startswith(word)
    said = capsys.readouterr()
    assert (said.out, said.err.startswith(word)) == ("", True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "no plan of kafka-reassign-partitions"),
        ("no json", "no plan of kafka-reassign-partitions"),
        ('{"partitions": [{"topic": 1, "partition": 0, "replicas": [1]}]}', "topic 1"),
        ('{"version": 2, "partitions": []}', "version 2 is not known"),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1]},'
            ' {"topic": "a", "partition": 0, "replicas": [2]}]}',
            "a-0 is named twice",
        ),
        ('{"version": true, "partitions": []}', "version True is not known"),
        ('{"partitions": [{"topic": "a", "partition": true, "replicas": [1]}]}', "partition True"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": "12"}]}', "replicas '12' of a-0"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": [1.9, 2]}]}', r"replicas \[1\.9, 2\] of a-0"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": [true, 2]}]}', r"replicas \[True, 2\] of a-0"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": {"3": 0}}]}', r"replicas \{'3': 0\} of a-0"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "log_dirs": 5}]}', "log_dirs 5 of a-0"),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "log_dirs": ["/d"]}]}',
            "a-0 names log directories",
        ),
    ],
)
def test_a_file_that_can_t_be_taken_is_refused_by_its_name(text: str, said: str) -> None:
    with pytest.raises(Refused, match=f"^.*plan.json: .*{said}"):
        from_json(text, source="plan.json")
