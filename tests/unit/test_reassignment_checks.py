"""What must hold before replicas are moved, and what a lost plan or another cluster's file does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from observations import SPEC, WHY, gauges, observation, part, with_quorum
from placements import of, tp

from kraft_runbook.cluster.assignment import Answer, Ongoing, PartitionResult, PartitionSeen
from kraft_runbook.cluster.observation import ZkMigrationState, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.io.kafka.assignment_seen import AssignmentSeen
from kraft_runbook.procedures.look_at_replicas import LOOKS, agreed, look_at_plan
from kraft_runbook.procedures.move_replicas import (
    CancelledInPart,
    StartedInPart,
    cancel_moves,
    prefer_first_replicas,
    read_state,
    save_state,
    start_next_batch,
)
from kraft_runbook.reassignment.batches import Limits
from kraft_runbook.reassignment.checks import CHECKS
from kraft_runbook.reassignment.goals import Explicit
from kraft_runbook.reassignment.look import ReassignmentSeen, ReplicasLook
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import plan_from_dict, plan_to_dict
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.stages import CANCEL, MOVE, PlanStage
from kraft_runbook.reassignment.throttles import DISK_RATE, FOLLOWER_RATE, Former
from kraft_runbook.runbook.cluster_checks import SHOW_ALL

NOTHING = Former({}, {}, {})
PRESENT = of(a=[(1, 2), (2, 1)])
LOOK = ReplicasLook(
    "id",
    Placement(dict.fromkeys((1, 2, 3)), PRESENT),
    {p: PartitionSeen(replicas, replicas[0], replicas) for p, replicas in PRESENT.items()},
    {},
    0.0,
)
MOVING = {tp("a"): Ongoing((3, 2, 1), (3,), (1,))}


def blocked(
    look: ReplicasLook = LOOK,
    phase: Phase = Phase.ZOOKEEPER,
    throttles: Former = NOTHING,
    faulty: Any = (),
    gate: str | None = None,
) -> list[str]:
    seen = ReassignmentSeen(observation(phase), look, throttles, faulty)
    results = CHECKS.run(seen, SPEC, REASSIGNMENT.read(seen, SPEC).stage, gate=gate).results
    codes = [f"KRB-MOV-00{n}" for n in range(1, 9)]
    assert [each.code for each in results] == (codes if gate != CANCEL else [codes[1], *codes[5:7]])
    assert all(each.passed or (each.fix and each.evidence) for each in results)
    return [each.code.removeprefix("KRB-MOV-00") + ("" if each.blocks else "w") for each in results if not each.passed]


@pytest.mark.parametrize("phase", [Phase.ZOOKEEPER, Phase.FINALIZED])
def test_a_healthy_cluster_outside_the_migration_passes(phase: Phase) -> None:
    assert blocked(phase=phase) == []


@pytest.mark.parametrize("phase", [Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE])
def test_nothing_is_moved_while_the_cluster_leaves_zookeeper(phase: Phase) -> None:
    assert blocked(phase=phase) == ["2"]


def test_each_obstacle_is_named_by_its_own_check() -> None:
    leaderless = replace(LOOK, seen={**LOOK.seen, tp("a"): PartitionSeen((1, 2), None, (1,))})
    assert blocked(leaderless) == ["1w", "6w"]
    assert blocked(replace(LOOK, placement=replace(LOOK.placement, ongoing=MOVING))) == ["3"]
    assert blocked(replace(LOOK, hidden=MOVING)) == ["3"], "also of topics that are not shown"
    assert blocked(replace(LOOK, legacy="{}")) == ["4"]
    assert blocked(faulty=("a-0: its list of replicas is empty",)) == ["5"]
    assert blocked(throttles=Former({}, {3: {FOLLOWER_RATE: "5"}}, {})) == ["7w"]
    assert blocked(throttles=Former({}, {3: {DISK_RATE: "5"}}, {})) == ["7w"]


def test_a_topic_that_is_not_shown_to_this_tool_is_in_no_plan_so_nothing_is_moved() -> None:
    seen = observation(Phase.ZOOKEEPER)
    assert was_read(seen.topics)
    topics = replace(seen.topics, refused=("pay",), refused_count=1)
    hidden = ReassignmentSeen(replace(seen, topics=topics), LOOK, NOTHING, ())
    assert CHECKS["KRB-MOV-008"].run(hidden, SPEC).evidence == "not shown to this tool: 1: pay"


def test_a_cluster_created_in_kraft_mode_whose_file_names_a_zookeeper_is_told_what_to_do() -> None:
    cluster = with_quorum(migration_state_record=ZkMigrationState.NONE)(observation(Phase.FINALIZED))
    for controller in SPEC.controller_ids:
        cluster = gauges(controller, zk_migration_state=ZkMigrationState.NONE)(cluster)
    seen = ReassignmentSeen(part(zookeeper=WHY)(cluster), LOOK, NOTHING, None)
    (found,) = CHECKS.run(seen, SPEC, "as before").blocking
    assert found.code == "KRB-MOV-002" and "created in KRaft mode" in found.evidence
    assert found.fix == "take 'zookeeper' out of the cluster file: the cluster uses none"


def test_what_a_cancel_ends_does_not_hinder_it() -> None:
    leaderless = {**LOOK.seen, tp("a"): PartitionSeen((1, 2), None, (1,))}
    bad = replace(LOOK, seen=leaderless, placement=replace(LOOK.placement, ongoing=MOVING), legacy="{}")
    faulty = ("a-0: its list of replicas is empty",)
    assert blocked(bad, faulty=faulty, gate=CANCEL) == ["6w"]
    assert blocked(bad, faulty=faulty, gate=MOVE) == ["1w", "3", "4", "5", "6w"]
    assert blocked(phase=Phase.DUAL_WRITE, gate=CANCEL) == ["2"]


def test_a_plan_comes_back_from_its_file_and_a_changed_one_does_not() -> None:
    plan = make_plan(Explicit(of(a=[(3, 2)])), LOOK.placement)
    stored = plan_to_dict(plan)
    assert plan_from_dict(stored).digest == plan.digest and plan_from_dict(stored).target == plan.target
    with pytest.raises(ValueError, match="changed since it was made"):
        plan_from_dict(stored | {"target": [["a", 0, [1, 3]]]})


def test_what_the_first_try_saved_stays_and_another_cluster_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run" / "saved.json"
    first = save_state(file, LOOK, NOTHING)
    moved = replace(LOOK, placement=replace(LOOK.placement, present=of(a=[(3, 2), (2, 1)])))
    assert save_state(file, moved, NOTHING) == first == read_state(file)
    with pytest.raises(Refused, match="was saved of cluster id, and this is other"):
        save_state(file, replace(LOOK, cluster_id="other"), NOTHING)
    with pytest.raises(Refused, match="can't be read"):
        read_state(tmp_path / "none.json")


def test_a_move_that_has_just_ended_and_is_still_shown_is_looked_at_again() -> None:
    """Seen in KRaft mode: the quorum lists no move any more, and the broker's Metadata still has all three replicas."""
    plan = make_plan(Explicit(of(a=[(3, 2)])), LOOK.placement)
    late = replace(LOOK, placement=replace(LOOK.placement, present=of(a=[(3, 2, 1), (2, 1)])))
    ended = replace(LOOK, placement=replace(LOOK.placement, present=of(a=[(3, 2), (2, 1)])))
    shown = [late, late, ended]
    how: Any = {"secrets": lambda _: "", "looks": lambda *_, **__: shown.pop(0), "apart": 0.0}
    assert look_at_plan(SPEC, plan, **how)[1].stage is PlanStage.AS_PLANNED
    shown[:] = [late] * LOOKS
    assert look_at_plan(SPEC, plan, **how)[1].stage is PlanStage.UNKNOWN
    assert not shown


def test_a_leader_that_is_being_elected_is_waited_for_before_anything_is_held_up_by_it() -> None:
    plan = make_plan(Explicit(of(a=[(3, 2)])), LOOK.placement)
    elects = replace(LOOK, placement=replace(LOOK.placement, leaderless=frozenset(plan.target)))
    shown = [elects, elects, LOOK]
    how: Any = {"secrets": lambda _: "", "looks": lambda *_, **__: shown.pop(0), "apart": 0.0}
    assert not look_at_plan(SPEC, plan, **how)[1].leaderless
    shown[:] = [elects] * LOOKS
    assert look_at_plan(SPEC, plan, **how)[1].leaderless == plan.target.keys()
    assert not shown


def test_what_moves_of_a_plan_and_is_not_shown_counts_as_deleted_for_nobody() -> None:
    """The right to describe its topic was taken away while it moves."""
    plan = make_plan(Explicit(of(a=[(3, 2)])), LOOK.placement)
    ended = replace(LOOK, placement=replace(LOOK.placement, present=of(a=[(3, 2), (2, 1)])))
    secret = replace(LOOK, placement=replace(LOOK.placement, present={}), hidden=MOVING)
    other = replace(ended, hidden={tp("other"): MOVING[tp("a")]})
    shown = [secret, secret, other]
    how: Any = {"secrets": lambda _: "", "looks": lambda *_, **__: shown.pop(0), "apart": 0.0}
    assert look_at_plan(SPEC, plan, **how)[1].stage is PlanStage.AS_PLANNED, "its topic was being deleted"
    shown[:] = [secret] * LOOKS
    with pytest.raises(
        Unreachable, match="1 partitions move of topics that this tool's user may not describe: a-0"
    ) as no:
        look_at_plan(SPEC, plan, **how)
    assert SHOW_ALL in no.value.way_out


def test_a_plan_is_made_of_an_assignment_that_two_looks_agree_on() -> None:
    def seen(*replicas: int) -> AssignmentSeen:
        return AssignmentSeen("id", {}, {tp("a"): PartitionSeen(replicas, replicas[0], replicas)})

    shown = [seen(3, 2, 1), seen(3, 2), seen(3, 2)]
    how: Any = {"secrets": lambda _: "", "seen_by": lambda *_, **__: shown.pop(0), "apart": 0.0}
    assert agreed(SPEC, **how).partitions[tp("a")].replicas == (3, 2)
    shown[:] = [seen(1, n) for n in range(2, 10)]
    with pytest.raises(Unreachable, match="the assignment changed at each of 7 looks"):
        agreed(SPEC, **how)


class Client:
    """Records what is asked for; answers each partition so; ``others``: topics with another answer."""

    def __init__(self, answer: Answer, *, fails_after: int = 99, **others: Answer) -> None:
        self.answer, self.sent, self.fails_after, self.others = answer, [], fails_after, others

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self

    def alter(self, moves: Any, *, allow_replication_factor_change: bool) -> dict:
        self.sent.append(([m.partition for m in moves], allow_replication_factor_change))
        answers = {m.partition: self.others.get(m.partition.topic, self.answer) for m in moves}
        return {p: PartitionResult(p, answer, "Kafka's text") for p, answer in answers.items()}

    def cancel(self, partitions: Any) -> dict:
        if len(self.sent) == self.fails_after:
            raise Unreachable("nobody answers", way_out="start the controller")
        self.sent.append(list(partitions))
        return {p: PartitionResult(p, self.answer, "Kafka's text") for p in partitions}


def test_what_kafka_refused_is_told_in_its_words_and_a_deleted_topic_is_no_error() -> None:
    plan = make_plan(Explicit(of(a=[(3, 2)])), LOOK.placement)
    how: Any = {"secrets": lambda _: "", "looks": lambda *_, **__: LOOK}
    client = Client(Answer.INVALID_REPLICA_ASSIGNMENT)
    with pytest.raises(StepFailed, match=r"did not start 1 of 1 .*a-0: invalid replica assignment \(Kafka's text\)"):
        start_next_batch(SPEC, plan, LOOK, Limits(5), client=client, **how)
    assert client.sent == [([tp("a")], False)]
    two = replace(LOOK, placement=replace(LOOK.placement, present=of(a=[(1, 2)], b=[(1, 2)])))
    both, how["looks"] = make_plan(Explicit(of(a=[(3, 2)], b=[(3, 2)])), two.placement), lambda *_, **__: two
    client = Client(Answer.ACCEPTED, a=Answer.INVALID_REPLICA_ASSIGNMENT)
    with pytest.raises(StartedInPart, match="did not start 1 of 2") as in_part:
        start_next_batch(SPEC, both, two, Limits(5), client=client, **how)
    assert [move.partition for move in in_part.value.done] == [tp("b")]
    how["looks"] = lambda *_, **__: LOOK
    gone = Client(Answer.UNKNOWN_TOPIC_OR_PARTITION)
    assert start_next_batch(SPEC, plan, LOOK, Limits(5), client=gone, **how) == () and len(gone.sent) == 1


def test_what_somebody_gave_another_target_since_the_look_is_left_alone() -> None:
    plan = make_plan(Explicit(of(a=[(3, 2)])), LOOK.placement)
    client = Client(Answer.ACCEPTED)
    ongoing = {tp("a"): Ongoing((4, 2, 1), (4,), (1,))}
    since = replace(LOOK, placement=replace(LOOK.placement, ongoing=ongoing))
    how: Any = {"secrets": lambda _: "", "looks": lambda *_, **__: since}
    assert start_next_batch(SPEC, plan, LOOK, Limits(5), client=client, **how) == ()
    assert not any(sent for sent, _ in client.sent)


def test_what_lost_its_leader_since_the_look_is_not_started() -> None:
    plan = make_plan(Explicit(of(a=[(3, 2), (3, 1)])), LOOK.placement)
    since = replace(LOOK, placement=replace(LOOK.placement, leaderless=frozenset({tp("a")})))
    client = Client(Answer.ACCEPTED)
    how: Any = {"secrets": lambda _: "", "looks": lambda *_, **__: since, "client": client}
    assert [move.partition for move in start_next_batch(SPEC, plan, LOOK, Limits(5), **how)] == [tp("a", 1)]


def test_what_was_found_to_have_no_room_is_not_started_by_the_second_look_either() -> None:
    plan = make_plan(Explicit(of(a=[(3, 2), (3, 1)])), LOOK.placement)
    full = replace(LOOK, placement=replace(LOOK.placement, full=frozenset({3})))
    how: Any = {"secrets": lambda _: "", "looks": lambda *_, **__: LOOK, "client": Client(Answer.ACCEPTED)}
    assert start_next_batch(SPEC, plan, full, Limits(5), **how) == ()


def test_who_leads_is_looked_at_again_before_a_batch() -> None:
    """A broker that has become the leader of both since the look gives one copy, as the limit says."""
    four = replace(LOOK.placement, racks=dict.fromkeys((1, 2, 3, 4)), leaders={tp("a", 0): 1, tp("a", 1): 2})
    plan = make_plan(Explicit(of(a=[(3, 2), (4, 1)])), four)
    since = replace(four, leaders=dict.fromkeys(PRESENT, 2))
    for now, numbers in ((four, [0, 1]), (since, [0])):
        how: Any = {"looks": lambda *_, now=now, **__: replace(LOOK, placement=now), "client": Client(Answer.ACCEPTED)}
        started = start_next_batch(
            SPEC, plan, replace(LOOK, placement=four), Limits(5, moves=1), secrets=lambda _: "", **how
        )
        assert [move.partition.partition for move in started] == numbers


def moving(*numbers: int, unsafe: int | None = None) -> ReplicasLook:
    """These partitions of topic a move from 1 and 2 to 3; of one of them 3 alone is in sync."""
    ongoing = {tp("a", n): Ongoing((3, 1, 2), (3,), (1, 2)) for n in numbers}
    seen = {tp("a", n): PartitionSeen((3, 1, 2), 3, (3,) if n == unsafe else (1, 2)) for n in numbers}
    return replace(LOOK, seen=seen, placement=replace(LOOK.placement, ongoing=ongoing))


def cancelling(client: Any, *looks: ReplicasLook, patience: float = 0.05) -> Any:
    """How a cancel is done where these looks follow one another; the last is seen from then on. Of each look, what
    moves is listed first.
    """
    shown = [*looks]

    def ongoing(partitions: Any) -> dict:
        found = shown[0].placement.ongoing
        return {p: found[p] for p in partitions if p in found}

    def sees(*_: Any, **__: Any) -> AssignmentSeen:
        look = shown.pop(0) if len(shown) > 1 else shown[0]
        return AssignmentSeen("id", look.placement.racks, look.seen)

    client.ongoing = ongoing
    return {"secrets": lambda _: "", "client": client, "sees": sees, "patience": patience, "apart": 0.0}


def test_an_unsafe_cancel_is_not_sent_and_hinders_no_other() -> None:
    client: Any = Client(Answer.ACCEPTED)
    look = moving(0, 1, unsafe=1)
    how = cancelling(client, look)
    with pytest.raises(Refused, match="cancelling would lose data: a-1: none of the replicas"):
        cancel_moves(SPEC, look, [tp("a", 1)], **how)
    assert not client.sent
    with pytest.raises(CancelledInPart, match=r"1 reassignments are cancelled, and not all: .* a-1") as error:
        cancel_moves(SPEC, look, list(look.seen), **how)
    assert client.sent == [[tp("a", 0)]] == [list(error.value.done)]
    assert list(cancel_moves(SPEC, look, [tp("a", 0)], **how)) == [tp("a", 0)]


def test_cancels_go_in_batches_and_what_was_taken_of_them_is_known() -> None:
    look = moving(*range(120))
    client: Any = Client(Answer.ACCEPTED)
    assert len(cancel_moves(SPEC, look, list(look.seen), **cancelling(client, look))) == 120
    assert [len(each) for each in client.sent] == [50, 50, 20]
    failing: Any = Client(Answer.ACCEPTED, fails_after=2)
    with pytest.raises(CancelledInPart, match="100 reassignments are cancelled, and not all: nobody answers") as error:
        cancel_moves(SPEC, look, list(look.seen), **cancelling(failing, look))
    assert len(error.value.done) == 100
    refusing: Any = Client(Answer.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(CancelledInPart, match="0 reassignments are cancelled, and not all: Kafka did not cancel"):
        cancel_moves(SPEC, look, list(look.seen), **cancelling(refusing, look))
    ended: Any = Client(Answer.NO_REASSIGNMENT_IN_PROGRESS)
    assert not cancel_moves(SPEC, look, list(look.seen), **cancelling(ended, look))


def test_what_has_become_unsafe_since_the_first_request_is_not_cancelled_by_a_later_one() -> None:
    look = moving(*range(120))
    client: Any = Client(Answer.ACCEPTED)
    with pytest.raises(CancelledInPart, match=r"119 reassignments are cancelled, and not all: .* a-70: none of"):
        cancel_moves(SPEC, look, list(look.seen), **cancelling(client, look, moving(*range(120), unsafe=70)))
    assert [len(each) for each in client.sent] == [50, 49, 20]


def test_a_cancel_that_a_new_controller_is_to_take_is_judged_anew() -> None:
    class Elected(Client):
        """The first request finds no controller."""

        def cancel(self, partitions: Any) -> dict:
            if not self.sent:
                self.sent.append([])
                raise Unreachable("it is not the controller (any more)", way_out="")
            return super().cancel(partitions)

    client: Any = Elected(Answer.ACCEPTED)
    look = moving(0, 1)
    with pytest.raises(CancelledInPart, match=r"1 reassignments are cancelled, and not all: .* a-1: none of"):
        how = cancelling(client, look, moving(0, 1, unsafe=1), patience=30.0)
        cancel_moves(SPEC, look, list(look.seen), **how)
    assert client.sent == [[], [tp("a", 0)]]


def test_isrs_are_looked_at_after_everything_that_may_wait() -> None:
    order: list[str] = []
    client: Any = Client(Answer.ACCEPTED)
    look = moving(0)
    how = cancelling(client, look)
    listed, sees, sent = client.ongoing, how["sees"], client.cancel
    client.ongoing = lambda some: order.append("list") or listed(some)
    how["sees"] = lambda *_, **__: order.append("look") or sees()
    client.cancel = lambda some: order.append("cancel") or sent(some)
    assert cancel_moves(SPEC, look, list(look.seen), **how)
    assert order == ["list", "look", "cancel"]


def test_a_move_that_somebody_began_since_is_not_cancelled_and_one_that_ended_is_no_error() -> None:
    client: Any = Client(Answer.ACCEPTED)
    look, since = moving(0, 1, 2), moving(0, 1)
    elsewhere = {**since.placement.ongoing, tp("a", 1): Ongoing((4, 1, 2), (4,), (1, 2))}
    since = replace(since, placement=replace(since.placement, ongoing=elsewhere))
    with pytest.raises(CancelledInPart, match=r"1 reassignments .* not all: 1 move elsewhere .*: a-1"):
        cancel_moves(SPEC, look, list(look.seen), **cancelling(client, since))
    assert client.sent == [[tp("a", 0)]]
    assert not cancel_moves(SPEC, look, [tp("a", 2)], **cancelling(client, since))


def test_elections_go_in_batches() -> None:
    asked: list[int] = []

    def elect(spec: Any, partitions: Any, *, secrets: Any) -> dict:
        asked.append(len(partitions))
        return {partitions[0]: "error 83"}

    look = moving(*range(120))
    look = replace(look, seen={p: replace(each, leader=1) for p, each in look.seen.items()})
    refused = prefer_first_replicas(SPEC, look, list(look.seen), secrets=lambda _: "", elect=elect)
    assert asked == [50, 50, 20] and len(refused) == 3
