"""The log directories that an explicit plan asks for: read, judged, told to brokers, and what lies elsewhere later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from observations import SPEC
from placements import MB, of, tp

from kraft_runbook.cli.reassign_command import replicas_elsewhere
from kraft_runbook.cluster.assignment import Answer, Move, Ongoing, PartitionResult, PartitionSeen, TopicPartition
from kraft_runbook.cluster.log_dirs import BrokerLogs, Directories, FutureCopy, LogDir
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.procedures.move_replicas import StartedInPart, start_next_batch
from kraft_runbook.reassignment.batches import Limits, batch_with_room, next_batch
from kraft_runbook.reassignment.directories import (
    copies_left,
    in_words,
    judge_directories,
    lie_elsewhere,
    still_asked,
)
from kraft_runbook.reassignment.disk_room import to_come, too_full
from kraft_runbook.reassignment.disks import DiskMove
from kraft_runbook.reassignment.goals import Explicit
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan, plan_from_dict, plan_to_dict
from kraft_runbook.reassignment.plan_file import directed_from_json, to_json
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.verifying import verify

A, B, C = tp("a", 0), tp("a", 1), tp("a", 2)
ONE, TWO = "/d1", "/d2"
PRESENT = of(a=[(1, 2), (1, 2), (1, 2)])
ASKED: Directories = {(3, A): TWO, (2, A): TWO, (2, B): ONE}
TARGET = {A: (3, 2), B: (1, 2)}


def drives(*usable: int, logs: tuple[int, int] = (5, 9)) -> tuple[LogDir, ...]:
    """Two directories on volumes of their own, with so many bytes free; the second has more logs."""
    return tuple(LogDir(path, 10**12 + at, usable[at], "", logs[at]) for at, path in enumerate((ONE, TWO)))


def placement(free: Mapping[int, tuple[int, int]] | None = None) -> Placement:
    made = {broker: drives(*(free or {}).get(broker, (10**11, 10**11))) for broker in (1, 2, 3)}
    return Placement(dict.fromkeys((1, 2, 3)), PRESENT, sizes=dict.fromkeys(PRESENT, 10 * MB), directories=made)


def logs(now: Placement, **placed: str) -> dict[int, BrokerLogs]:
    """Brokers 1 and 2 with all in the first directory."""
    held = {p: ONE for p in PRESENT}
    return {
        broker: BrokerLogs(broker, each, dict(now.sizes), held if broker < 3 else {})
        for broker, each in now.directories.items()
    }


def plan_of(now: Placement, asked: Directories = ASKED, target: Any = None) -> ReassignmentPlan:
    return make_plan(Explicit(TARGET if target is None else target, directories=asked), now)


NOW = placement()
PLAN = plan_of(NOW)


def test_a_file_of_kafkas_tool_asks_for_a_directory_of_each_replica_or_any() -> None:
    text = to_json(TARGET, ASKED)
    entries = json.loads(text)["partitions"]
    assert [each["log_dirs"] for each in entries] == [[TWO, TWO], ["any", ONE]]
    assert directed_from_json(text, source="f") == (TARGET, ASKED)
    assert "log_dirs" not in to_json(TARGET)
    entries[0]["log_dirs"] = [TWO]
    with pytest.raises(Refused, match="f: a-0 names 1 log_dirs for 2 replicas"):
        directed_from_json(json.dumps({"partitions": entries}), source="f")


def test_a_persons_signature_is_for_the_directories_too() -> None:
    without = plan_of(NOW, {})
    assert PLAN.digest != without.digest != plan_of(NOW, {(3, A): ONE}).digest
    again = plan_from_dict(json.loads(json.dumps(plan_to_dict(PLAN))))
    assert again.directories == ASKED and again.digest == PLAN.digest
    old = plan_to_dict(without)
    del old["directories"]  # as an earlier version has kept it
    assert plan_from_dict(old).digest == without.digest
    with pytest.raises(ValueError, match="changed since it was made"):
        plan_from_dict(plan_to_dict(PLAN) | {"directories": [[3, "a", 0, ONE]]})


def test_what_stays_on_its_broker_is_copied_and_what_is_new_is_made_there() -> None:
    assert PLAN.target == {A: (3, 2)} and PLAN.directories_of_new == {(3, A): TWO} and PLAN.topics == {"a"}
    copies = judge_directories(PLAN, logs(NOW))
    assert copies.moves == (DiskMove(2, A, ONE, TWO, 10 * MB),)
    assert list(in_words(PLAN, copies)) == [
        "broker 3 is told where to make new replicas: 1 in /d2 (10.0 MB)",
        "1 replicas stay on their brokers and are copied between disks once all else has moved, 10.0 MB",
    ]


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        ({"path": "/d3"}, "/d2 is none of broker 3's: /d1, /d3"),
        ({"error": "error 56"}, r"/d2 has failed \(error 56\)"),
        ({"cordoned": True}, "/d2 is cordoned"),
    ],
)
def test_a_directory_that_can_take_nothing_is_refused_with_its_name(spoilt: Any, said: str) -> None:
    seen = logs(NOW)
    one, two = seen[3].directories
    with pytest.raises(Refused, match=said):
        judge_directories(PLAN, seen | {3: replace(seen[3], directories=(one, replace(two, **spoilt)))})


def test_a_broker_of_which_another_directory_has_failed_makes_replicas_and_copies_none() -> None:
    """LogManager.getOrCreateLog: only a log that is new is made while a directory is offline."""

    def with_a_failed_one(broker: int) -> dict[int, BrokerLogs]:
        seen = logs(NOW)
        failed = LogDir("/d3", None, None, "error 56")
        return seen | {broker: replace(seen[broker], directories=(*seen[broker].directories, failed))}

    assert len(judge_directories(PLAN, with_a_failed_one(3)).moves) == 1
    with pytest.raises(Refused, match=r"broker 2 begins no copy .* offline: /d3 has failed") as refused:
        judge_directories(PLAN, with_a_failed_one(2))
    assert "restart the broker" in refused.value.way_out
    with pytest.raises(StepFailed, match=r"broker 2 begins no copy .* offline: /d3 has failed"):
        copies_left({(2, A): TWO}, with_a_failed_one(2))
    assert copies_left({(2, A): ONE}, with_a_failed_one(2)).moves == ()


@pytest.mark.parametrize(("length", "refused"), [(213, False), (214, True)])
def test_a_topic_for_which_a_broker_takes_no_directory_is_refused_before_anything_moves(
    length: int, refused: bool
) -> None:
    """Kafka does not shorten the name of a copy's directory: topic, number, and 40 characters."""
    long = tp("x" * length, 0)
    now = replace(NOW, present={long: (1, 2)}, sizes={long: MB})
    plan = plan_of(now, {(3, long): TWO}, {long: (3, 2)})
    if not refused:
        assert judge_directories(plan, logs(now)).moves == ()
        return
    with pytest.raises(Refused, match="the names of 1 partitions are too long: a broker takes no log directory"):
        judge_directories(plan, logs(now))


def test_a_cordoned_directory_may_keep_what_lies_there() -> None:
    plan, seen = plan_of(NOW, {(2, B): ONE}, {B: (1, 2)}), logs(NOW)
    cordoned = tuple(replace(each, cordoned=each.path == ONE) for each in seen[2].directories)
    assert judge_directories(plan, seen | {2: replace(seen[2], directories=cordoned)}).moves == ()


def test_a_broker_that_says_nothing_and_a_replica_without_a_log_are_refused() -> None:
    seen = logs(NOW)
    with pytest.raises(Refused, match="broker 3 did not describe the log directories"):
        judge_directories(PLAN, {2: seen[2]})
    with pytest.raises(Refused, match="show no log of them: a-0 of broker 2"):
        judge_directories(PLAN, seen | {2: replace(seen[2], placed={B: ONE})})


def test_room_is_judged_in_the_directory_that_is_asked_for() -> None:
    """Kafka by itself would choose the other, which has fewer logs."""
    full = placement({3: (10**11, MB)})
    plan = plan_of(full)
    assert [why for _, why in too_full(plan.moves, full)] == []
    (why,) = [why for _, why in too_full(plan.moves, full, asked=plan.directories)]
    assert why == "broker 3 is to take 10,000,000 bytes in /d2 and has 1,000,000 free"
    other = placement({3: (MB, 10**11)})
    assert list(too_full(plan.moves, other)) and not list(too_full(plan.moves, other, asked=plan.directories))


def test_what_is_made_and_what_is_copied_into_a_directory_count_together() -> None:
    """Each would fit alone."""
    asked = {(3, A): TWO, (3, B): TWO}
    now = replace(placement({3: (10**11, 15 * MB)}), present={A: (1, 2), B: (3, 2)})
    plan = plan_of(now, asked, {A: (3, 2), B: (3, 2)})
    seen = logs(now)
    seen[3] = replace(seen[3], placed={B: ONE})
    with pytest.raises(Refused, match="broker 3 is to take 20,000,000 bytes in /d2 and has 15,000,000 free"):
        judge_directories(plan, seen)


def test_what_still_comes_is_counted_where_it_was_asked_for() -> None:
    """A copy that has begun and shows no log yet: it takes the room of its own directory, and of no other."""
    now = replace(placement({3: (10**11, 15 * MB)}), ongoing={A: Ongoing((3, 2, 1), (3,), (1,))})
    look = ReplicasLook("id", now, {}, {}, 0.0)
    assert to_come(look, ASKED) == {(3, TWO): 10 * MB} and to_come(look) == {(3, ""): 10 * MB}
    plan = plan_of(now, {(3, A): TWO, (3, B): TWO, (3, C): ONE}, dict.fromkeys((A, B, C), (3, 2)))
    none: Any = lambda _: {}  # noqa: E731
    later, batch, why = batch_with_room(plan, look, Limits(5), listed=none)
    assert [m.partition for m in batch] == [C], "what goes to the other disk of that broker goes on"
    assert later.closed == {(3, TWO)} and not later.full and "in /d2" in why[0]


@pytest.mark.parametrize(("spoilt", "said"), [({"error": "error 56"}, "has failed"), ({"cordoned": True}, "cordoned")])
def test_a_directory_that_takes_nothing_holds_up_no_other_move(spoilt: Any, said: str) -> None:
    """Else each batch is of the moves to it, nothing is sent, and the run fails with all others undone."""
    one, two = NOW.directories[3]
    now = replace(NOW, directories={**NOW.directories, 3: (one, replace(two, **spoilt))})
    plan = plan_of(now, {(3, A): TWO, (3, B): ONE}, dict.fromkeys((A, B, C), (3, 2)))
    look = ReplicasLook("id", now, {}, {}, 0.0)
    none: Any = lambda _: {}  # noqa: E731
    later, batch, why = batch_with_room(plan, look, Limits(1), listed=none)
    assert [m.partition for m in batch] == [B] and later.closed == {(3, TWO)}
    assert why[0].startswith("broker 3 is to make 1 replicas in /d2: /d2 ") and said in why[0]
    assert [m.partition for m in next_batch(plan, replace(later, full=frozenset({3})), Limits(5))] == [B]


class Brokers:
    """Records what brokers and the controller are asked, in order."""

    def __init__(self, **answers: Any) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.answers = answers

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self

    def tell(self, _: Any, broker: Any, targets: Any, **__: Any) -> Any:
        self.asked.append((f"broker {broker.id}", dict(targets)))
        answer = self.answers.get(f"b{broker.id}", "the broker holds no replica of it")
        if isinstance(answer, Exception):
            raise answer
        return {} if answer is None else dict.fromkeys(targets, answer)

    def alter(self, moves: Any, **_: Any) -> Any:
        self.asked.append(("controller", [m.partition for m in moves]))
        return {m.partition: PartitionResult(m.partition, Answer.ACCEPTED) for m in moves}


def start(brokers: Brokers, plan: ReassignmentPlan) -> tuple[Move, ...]:
    seen = {p: PartitionSeen(r, r[0], r) for p, r in PRESENT.items()}
    look = ReplicasLook("id", NOW, seen, {}, 0.0)
    how: Any = {"secrets": lambda _: "", "looks": lambda *_, **__: look, "client": brokers, "alter": brokers.tell}
    return start_next_batch(SPEC, plan, look, Limits(5), **how)


BOTH = plan_of(NOW, {(3, A): TWO, (2, A): TWO}, {A: (3, 2), B: (3, 2)})


@pytest.mark.parametrize("answer", ["the broker holds no replica of it", "it does not exist", None])
def test_a_broker_is_told_the_directory_before_the_move_is_sent(answer: str | None) -> None:
    """Of new replicas alone: one that is there would be copied at once, and without a throttle."""
    brokers = Brokers(b3=answer)
    assert len(start(brokers, BOTH)) == 2
    assert brokers.asked == [("broker 3", {A: TWO}), ("controller", [A, B])]


@pytest.mark.parametrize(
    "answer",
    ["the directory has failed", Unreachable("it is silent", way_out="start it"), Refused("it may not", way_out="x")],
)
def test_a_move_whose_broker_does_not_take_the_directory_is_not_sent_and_others_are(answer: Any) -> None:
    brokers = Brokers(b3=answer)
    with pytest.raises(StartedInPart, match=r"replicas are not made where.*a-0 in /d2 of broker 3: ") as part:
        start(brokers, BOTH)
    assert part.value.untold.keys() == {(3, TWO)}
    assert [m.partition for m in part.value.done] == [B] and brokers.asked[-1] == ("controller", [B])
    with pytest.raises(StartedInPart):
        start(brokers, PLAN)
    assert brokers.asked[-1][0] == "broker 3", "nothing is sent where nothing is left to send"


def test_what_a_broker_was_told_for_a_move_that_is_not_sent_is_named() -> None:
    """It remembers that until it restarts: a later replica of that partition would come there unasked."""
    plan = plan_of(NOW, {(3, A): TWO, (2, A): TWO}, {A: (3, 2), B: (3, 2)})
    plan = replace(plan, present={**plan.present, A: (1,)}, target={A: (2, 3), B: (3, 2)})
    brokers = Brokers(b3="the directory has failed")
    seen = {A: PartitionSeen((1,), 1, (1,)), B: PartitionSeen((1, 2), 1, (1, 2))}
    look = ReplicasLook("id", replace(NOW, present={**PRESENT, A: (1,)}), seen, {}, 0.0)
    how: Any = {"secrets": lambda _: "", "looks": lambda *_, **__: look, "client": brokers, "alter": brokers.tell}
    with pytest.raises(StartedInPart, match="Told to their brokers, and not started: a-0 in /d2 of broker 2") as part:
        start_next_batch(SPEC, plan, look, Limits(5), **how)
    assert part.value.told == {(2, A): TWO} and [m.partition for m in part.value.done] == [B]

    def refuses(moves: Any, **_: Any) -> Any:
        return {m.partition: PartitionResult(m.partition, Answer.INVALID_REPLICA_ASSIGNMENT, "no") for m in moves}

    brokers = Brokers()
    vars(brokers)["alter"] = refuses
    with pytest.raises(StartedInPart) as part:
        start(brokers, PLAN)
    assert part.value.told == {(3, A): TWO}


def test_what_was_deleted_or_made_anew_or_has_left_is_asked_for_no_more() -> None:
    held = {A: (3, 2), B: (1, 2)}
    plan = replace(PLAN, topic_ids={"a": "x"})
    assert still_asked(plan, {"a": "x"}, held) == ASKED
    assert still_asked(plan, {"a": "y"}, held) == {}
    assert still_asked(plan, {}, {B: (1, 3)}) == {}


def test_the_command_line_compares_no_directory_of_a_topic_that_was_deleted_since() -> None:
    """The comparison with what was before says that, and that it is no fault; so it does of a replica that has left."""
    asked = {(2, A): TWO, (2, B): ONE, (3, C): TWO, (2, tp("deleted", 0)): TWO}
    heard: list[Any] = []

    def holders(_: Any, topics: Any, **__: Any) -> Any:
        heard.append(topics)
        return {}, PRESENT

    def looks(_: Any, brokers: Any, **__: Any) -> Any:
        heard.append(brokers)
        return {b: each for b, each in logs(NOW).items() if b in brokers}

    secrets: Any = None
    found = replicas_elsewhere(SPEC, asked, secrets=secrets, holders=holders, looks=looks)
    assert found == ("a-0 of broker 2 in /d1, not in /d2",)
    assert heard == [{"a", "deleted"}, {2}]
    assert replicas_elsewhere(SPEC, {}, secrets=secrets, holders=holders, looks=looks) == () and len(heard) == 2


def test_what_lies_elsewhere_is_named_and_copied() -> None:
    seen = logs(NOW)
    asked = {(2, A): TWO, (2, B): ONE}
    assert lie_elsewhere(asked, seen) == ("a-0 of broker 2 in /d1, not in /d2",)
    assert copies_left(asked, seen).moves == (DiskMove(2, A, ONE, TWO, 10 * MB),)
    there = seen | {2: replace(seen[2], placed={A: TWO, B: ONE})}
    assert lie_elsewhere(asked, there) == () and copies_left(asked, there).moves == ()
    assert lie_elsewhere(asked, {}) and lie_elsewhere(asked, {2: replace(seen[2], placed={})})


def test_a_run_that_goes_on_takes_its_own_copies_for_its_own() -> None:
    """As after its plan of disks was lost. One that goes elsewhere is somebody's, and named alone."""
    asked, seen = {(2, A): TWO, (2, B): TWO}, logs(NOW)
    seen[2] = replace(seen[2], future={A: FutureCopy(TWO, 0, 9)})
    assert [each.partition for each in copies_left(asked, seen).moves] == [A, B]
    with pytest.raises(Refused, match="1 replicas are being copied between disks already"):
        judge_directories(plan_of(NOW, asked, {B: (1, 2), A: (3, 2)}), seen)
    seen[2] = replace(seen[2], future={A: FutureCopy(TWO, 0, 9), B: FutureCopy("/d3", 0, 9)})
    with pytest.raises(StepFailed) as failed:
        copies_left(asked, seen)
    assert failed.value.problem == "1 replicas are being copied between disks already: a-1 of broker 2 to /d3"
    assert "move_between_disks with 'back to the old disks'" in failed.value.way_out


def test_a_replica_that_somebody_copies_away_is_not_where_it_is_to_lie() -> None:
    seen = logs(NOW)
    seen[2] = replace(seen[2], future={B: FutureCopy(TWO, 0, 9)})
    said = "a-1 of broker 2 in /d1, and somebody copies it to /d2"
    assert lie_elsewhere({(2, B): ONE}, seen) == (said,)
    assert lie_elsewhere({(2, B): TWO}, seen) == ("a-1 of broker 2 in /d1, not in /d2",)
    with pytest.raises(Refused, match=r"somebody copies 1 replicas away.*a-1 of broker 2 to /d2") as refused:
        judge_directories(plan_of(NOW, {(2, B): ONE}, {B: (1, 2)}), seen)
    assert "let that end" in refused.value.way_out


def test_what_is_compared_is_not_as_planned_while_a_replica_lies_elsewhere() -> None:
    seen = {A: PartitionSeen((3, 2), 3, (3, 2))}
    found = verify({A: (3, 2)}, seen, {})
    assert found.holds
    found = replace(found, elsewhere=lie_elsewhere({(2, A): TWO}, logs(NOW)))
    assert not found.holds
    assert "1 replicas do not lie where the plan asks for: a-0 of broker 2 in /d1, not in /d2" in found.render_text()


def test_where_that_is_not_known_or_something_hinders_it_nothing_counts_as_there() -> None:
    seen, asked = logs(NOW), {(2, A): TWO, (2, B): ONE}

    def spoilt(**changes: Any) -> dict[int, BrokerLogs]:
        return seen | {2: replace(seen[2], **changes)}

    def copied(**future: str) -> dict[TopicPartition, FutureCopy]:
        return {{"a": A, "b": B, "c": C}[name]: FutureCopy(path, 0, 9) for name, path in future.items()}

    with pytest.raises(Unreachable, match="broker 2 does not answer"):
        copies_left(asked, {})
    for found, said in (
        (spoilt(placed={B: ONE}), "show no log of them: a-0 of broker 2"),
        (spoilt(future=copied(b=TWO)), "somebody copies 1 replicas away.*a-1 of broker 2 to /d2"),
        (spoilt(future=copied(c=TWO)), "being copied between disks already"),
        (spoilt(directories=drives(10**11, MB)), "too little disk"),
    ):
        with pytest.raises(StepFailed, match=said):
            copies_left(asked, found)
