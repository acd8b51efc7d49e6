"""What explain says of reassignments: how far, how fast, who is slowest, why one is stuck, and what is left."""

from __future__ import annotations

from dataclasses import replace

from moves_seen import MB, TO_4, A, B, moves_seen
from observations import SPEC, WHY, part
from placements import tp

from kraft_runbook.cli.outputs import ReassignStatusOutput
from kraft_runbook.cli.reassign_command import _reading_of, _status_text
from kraft_runbook.cluster.assignment import Ongoing, PartitionSeen
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.reassignment.explain import explain_moves
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.stages import PlanStage, read_what_moves
from kraft_runbook.reassignment.throttles import DISK_RATE, FOLLOWER_LIST, FOLLOWER_RATE, LEADER_RATE, Former

RATE = Former({LEADER_RATE: "5000000", FOLLOWER_RATE: "5000000"}, {}, {})


def test_what_moves_is_told_with_its_bytes_its_rate_and_its_slowest_broker() -> None:
    before = moves_seen(20 * MB, moving={A: TO_4}, throttles=RATE)
    now = moves_seen(40 * MB, moving={A: TO_4}, throttles=RATE, at=10.0)
    text = explain_moves(now, SPEC, earlier=before).render_text()
    assert "Replicas are being moved." in text
    assert "60.0 MB left of them (40 % copied) at 2.0 MB/s, about 30 s; slowest: broker 4" in text
    assert "a throttle of 5.0 MB/s a broker is set for all brokers" in text
    assert "a-0: the copy grows (broker 4): wait: 60,000,000 bytes are left" in text
    assert "Problems: none seen" in text and "throttles without a move" not in text
    assert "trigger cancel_reassignments__lab" in text and "trigger change_pace__lab" in text


def test_why_one_is_stuck_comes_in_the_order_in_which_the_reasons_exclude_each_other() -> None:
    moving = {A: TO_4, B: Ongoing((3, 1, 2), (3,), (2,))}
    leaderless = {B: PartitionSeen((3, 2, 1), None, (2,))}
    before = moves_seen(20 * MB, moving=moving, seen=leaderless, live=(1, 3, 4))
    now = moves_seen(20 * MB, moving=moving, seen=leaderless, live=(1, 3, 4), at=5.0)
    waits = explain_moves(now, SPEC, earlier=before).waits_for
    assert [each.split(" (")[0] for each in waits] == ["a-1: no leader", "a-0: the copy stands still"]
    problems = explain_moves(now, SPEC, earlier=before).problems
    assert any(each.startswith("stuck: a-1: no leader (broker 2): start broker 2") for each in problems)
    assert not any("KRB-MOV-003" in each for each in problems), "what moves is the subject, and no obstacle"


def test_what_is_left_without_a_move_is_named() -> None:
    left = Former({LEADER_RATE: "5000000"}, {3: {FOLLOWER_RATE: "7"}}, {"a": {FOLLOWER_LIST: "0:4"}})
    text = explain_moves(moves_seen(throttles=left), SPEC).render_text()
    assert "nothing is being reassigned" in text and "No replica is being moved." in text
    for each in (f"the brokers' default: {LEADER_RATE}=5000000", f"broker 3: {FOLLOWER_RATE}=7", f"{FOLLOWER_LIST}=0"):
        assert each in text
    legacy = explain_moves(moves_seen(legacy='{"partitions": []}'), SPEC)
    assert "/admin/reassign_partitions holds" in legacy.render_text()
    assert any(each.startswith("KRB-MOV-004") for each in legacy.problems)


def test_what_moves_and_is_not_shown_is_named_and_no_throttle_counts_as_left() -> None:
    found = explain_moves(moves_seen(hidden={tp("secret"): TO_4}, throttles=RATE), SPEC)
    text = found.render_text()
    said = "1 partitions move of topics that this tool's user may not describe: secret-0. To see how far they are, let"
    assert said in text and any(each.startswith(said) for each in found.unread)
    assert "Replicas are being moved." in text
    assert "nothing that is shown is being reassigned" in text and "throttles without a move" not in text


def test_the_status_says_nothing_moves_only_where_nothing_does() -> None:
    reading = read_what_moves(moves_seen().look.placement)
    found = ReassignStatusOutput("lab", 0, None, "none", (), ())
    assert _status_text(found, reading) == "lab: nothing is being reassigned"
    hidden = replace(found, moving=1, hidden="1 partitions move of topics that are hidden")
    assert _status_text(hidden, reading).startswith(f"{hidden.hidden}. To see how far they are, let this tool's user")


def test_what_moves_of_a_plan_and_is_not_shown_leaves_its_stage_unknown() -> None:
    now = moves_seen(hidden={tp("secret"): TO_4}).look
    there = dict(now.placement.present)
    assert _reading_of(there, now).stage is PlanStage.AS_PLANNED
    found = _reading_of({**there, tp("secret"): (4, 2)}, now)
    assert found.stage is PlanStage.UNKNOWN and not found.gone and found.there == there.keys()


def test_what_was_not_read_is_said() -> None:
    seen = moves_seen(moving={A: TO_4}, unread={4: "broker 4 did not describe its log directories"})
    seen = replace(seen, cluster=part(zookeeper=WHY)(seen.cluster))
    found = explain_moves(seen, SPEC)
    assert "broker 4 did not describe its log directories" in found.unread and len(found.unread) > 1
    assert found.waits_for == (), "one look alone does not tell whether a copy grows"


def test_the_operation_reads_its_own_look_and_knows_nothing_of_a_plan_from_an_observation() -> None:
    assert REASSIGNMENT.read(moves_seen(), SPEC).stage == "as before"
    assert REASSIGNMENT.read(moves_seen(moving={A: TO_4}), SPEC).stage == "moving"
    assert REASSIGNMENT.read(moves_seen().cluster, SPEC).stage == "unknown"
    assert REASSIGNMENT.explain(moves_seen(phase=Phase.FINALIZED), SPEC).phase is Phase.FINALIZED


def test_a_throttle_of_copies_between_disks_is_not_said_to_be_without_a_move() -> None:
    text = explain_moves(moves_seen(throttles=Former({DISK_RATE: "5"}, {}, {})), SPEC).render_text()
    assert f"throttles of copies between disks: the brokers' default: {DISK_RATE}=5" in text
    assert "throttles without a move" not in text
