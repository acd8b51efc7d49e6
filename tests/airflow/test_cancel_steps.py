"""Cancelling: what is listed is what is signed, and afterwards order and throttles are as an earlier run saved them."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from in_run import run_in
from observations import SPEC, observation
from recording import RecordingCluster
from signed_run import PASSED, sign

from kraft_runbook.cluster.assignment import Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused, Unreachable
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.gates.proof import make_proof
from kraft_runbook.io.kafka.topic_ids import topic_ids
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.procedures.move_replicas import CancelledInPart, cancel_moves, give_back_order, save_state
from kraft_runbook.procedures.throttle_replication import remove_throttles
from kraft_runbook.reassignment.goals import DrainBrokers
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.reassignment.stages import CANCEL
from kraft_runbook.reassignment.throttles import Former
from kraft_runbook.steps.handle import RehearsedCluster
from kraft_runbook.steps.reassignment.cancelling import (
    cancel_reassignments,
    list_reassignments,
    shows_reassignments,
)
from kraft_runbook.steps.reassignment.ending import nothing_to_do
from kraft_runbook.steps.reassignment.files import RunFiles, files_of_all
from kraft_runbook.steps.run import NothingToDo

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
PLACEMENT = Placement({1: "x", 2: "y", 3: "x"}, {A: (1, 2), B: (1, 2)})
PLAN = make_plan(DrainBrokers((1,)), PLACEMENT)
MOVING = {p: Ongoing((*PLAN.target[p], 1), (3,), (1,)) for p in (A, B)}
"""As Kafka lists them: the target, then what leaves. Of the former order nothing is left."""


class Scene:
    """A run that was cancelled half-way, and one that cancels. What is done to the cluster is recorded."""

    def __init__(self) -> None:
        self.ongoing = dict(MOVING)
        self.ids: dict[str, str] = {}
        self.hidden: dict[TopicPartition, Ongoing] = {}
        self.isr: tuple[int, ...] = (1, 2)
        self.lost: set[TopicPartition] = set()
        self.refused: set[TopicPartition] = set()
        self.done: list[Any] = []
        self.other: tuple[TopicPartition, ...] = ()
        self.context = {
            "ti": SimpleNamespace(dag_id="cancel_reassignments__lab", run_id="two", task_id="t"),
            "params": {"topics": ".*", "exclude": "", "approvals_needed": 1},
        }
        self.min_isr: dict[str, int] = {}
        self.cluster = RecordingCluster(
            observation(Phase.ZOOKEEPER),
            answers={
                look_at_replicas: self.look,
                cancel_moves: self.cancel,
                give_back_order: self.order,
                remove_throttles: self.unthrottle,
                topic_ids: lambda topics: {each: self.ids[each] for each in topics if each in self.ids},
            },
        )
        self.run = run_in(self.context, self.cluster)

    def look(self, *_: Any, **__: Any) -> ReplicasLook:
        placement = replace(PLACEMENT, ongoing=dict(self.ongoing), min_isr=self.min_isr)
        return ReplicasLook("id", placement, {p: self.seen(p) for p in (A, B)}, {}, 0.0, hidden=self.hidden)

    def seen(self, partition: TopicPartition) -> PartitionSeen:
        return PartitionSeen((1, 2), 1, (3,) if partition in self.lost else self.isr)

    def cancel(self, look: ReplicasLook, wanted: list[TopicPartition]) -> Any:
        found = {p: self.ongoing.pop(p) for p in wanted if p in self.ongoing and p not in self.refused}
        self.done.append(("cancel", sorted(found)))
        if self.refused:
            raise CancelledInPart(f"{len(found)} reassignments are cancelled", way_out="again", done=found)
        return found

    def order(self, saved: Any) -> Any:
        self.done.append(("order", dict(saved)))
        return self.other

    def unthrottle(self, ours: RunThrottles, former: Former) -> tuple[()]:
        self.done.append(("throttles", ours.rates, former.rates))
        return ()

    def earlier(self, name: str = "one", *, cluster_id: str = "id", throttled: bool = True) -> RunFiles:
        files = RunFiles(files_of_all(self.run.state) / name)
        files.store_plan(PLAN, PLACEMENT.present)
        save_state(files.saved, replace(self.look(), cluster_id=cluster_id), Former({"rate": "9"}, {}, {}))
        if throttled:
            files.will_throttle(RunThrottles.of(PLAN.moves, 5_000_000))
        return files

    def list(self, **params: Any) -> Any:
        self.context["params"] |= params
        return list_reassignments(self.run)

    def sign(self) -> None:
        seen = observation(Phase.ZOOKEEPER)
        back = REASSIGNMENT.way_back(seen, SPEC)
        made = {"checks": (PASSED,), "parity": None, "rollback": back, "made_at": datetime.now(UTC)}
        exhibits = shows_reassignments(self.run).exhibits
        sign(self.context["ti"], CANCEL, make_proof(CANCEL, seen, SPEC, exhibits=exhibits, **made))

    def act(self) -> Any:
        return cancel_reassignments(self.run)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    return Scene()


def test_afterwards_order_and_throttles_are_as_the_run_that_moved_had_saved_them(scene: Scene) -> None:
    files = scene.earlier()
    assert scene.list() == {"partitions": 2}
    scene.sign()
    assert scene.act() == {"cancelled": 2, "ordered": 2, "throttled_on": []}
    assert scene.done == [
        ("cancel", [A, B]),
        ("order", {A: (1, 2), B: (1, 2)}),
        ("throttles", (5_000_000,), {"rate": "9"}),
    ]
    assert files.throttles.rate is None, "another cancel leaves them alone"


def test_its_dry_run_lists_what_it_then_does(scene: Scene) -> None:
    scene.earlier()
    scene.list()
    would = RehearsedCluster(SPEC, lambda _: "", print)
    vars(would).update(ask=scene.cluster.ask)
    assert cancel_reassignments(run_in(scene.context, would)) is None and scene.done == []
    scene.sign()
    scene.act()
    assert would.acts == scene.cluster.acts and len(would.acts) == 5


def test_killed_after_the_cancel_it_gives_back_the_rest_when_it_is_cleared(scene: Scene) -> None:
    scene.earlier()
    scene.list()
    scene.sign()
    scene.ongoing.clear()
    assert scene.act() == {"cancelled": 0, "ordered": 2, "throttled_on": []}
    assert [each[0] for each in scene.done] == ["cancel", "order", "throttles"]


def test_what_is_signed_says_which_order_and_whose_throttles_come_back(scene: Scene) -> None:
    scene.earlier()
    scene.list()
    text = shows_reassignments(scene.run).exhibits[0].rendered
    assert f"| a-0 | [1, 2] | as saved | {list(PLAN.target[A])} |" in text
    assert "Throttles are put back to what they were before: one" in text


def test_of_somebody_elses_moves_the_order_is_unknown_and_said_to_be(scene: Scene) -> None:
    scene.earlier(cluster_id="another cluster")
    scene.list()
    text = shows_reassignments(scene.run).exhibits[0].rendered
    assert "| a-0 | [2, 1] | unknown |" in text and "Of 2 no run of this tool saved the order" in text
    scene.sign()
    assert scene.act() == {"cancelled": 2, "ordered": 0, "throttled_on": []}
    assert scene.done == [("cancel", [A, B]), ("order", {})]


def test_of_some_topics_alone_the_throttles_stay_for_what_still_moves(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    files = scene.earlier()
    assert scene.list(topics="a") == {"partitions": 1}
    scene.sign()
    assert scene.act() == {"cancelled": 1, "ordered": 1, "throttled_on": ["one"]}
    assert "1 of its partitions still move: b-0" in caplog.text
    assert files.throttles.rate == 5_000_000


def test_throttles_that_a_dead_run_left_are_put_back_although_nothing_moves(scene: Scene) -> None:
    scene.earlier()
    scene.ongoing.clear()
    assert scene.list() == {"partitions": 0}
    scene.sign()
    scene.act()
    assert scene.done[-1] == ("throttles", (5_000_000,), {"rate": "9"})


def test_where_nothing_moves_and_nothing_is_left_nobody_is_asked(scene: Scene) -> None:
    scene.earlier(throttled=False)
    scene.ongoing.clear()
    with pytest.raises(NothingToDo, match="nothing of these topics is being reassigned"):
        scene.list()
    assert nothing_to_do(scene.run)


def test_a_list_that_was_made_anew_after_the_signature_is_not_cancelled(scene: Scene) -> None:
    scene.list(topics="a")
    scene.sign()
    scene.list(topics="b")
    with pytest.raises(Refused, match="Nobody has signed it"):
        scene.act()
    assert scene.done == []


def test_a_cancel_that_would_lose_data_is_not_put_before_a_person(scene: Scene) -> None:
    scene.isr = (3,)
    with pytest.raises(Refused, match="cancelling would lose data: a-0") as refused:
        scene.list()
    assert "let the reassignment end: broker 3 holds all of it" in refused.value.way_out


def test_one_that_would_lose_data_is_named_and_hinders_no_other(scene: Scene) -> None:
    scene.lost = {A}
    assert scene.list() == {"partitions": 1}
    text = shows_reassignments(scene.run).exhibits[0].rendered
    assert "1 go on: cancelling would lose data: a-0" in text and "let the reassignment end: broker 3" in text
    scene.sign()
    assert scene.act()["cancelled"] == 1
    assert scene.done[0] == ("cancel", [B])


def test_what_was_cancelled_in_part_is_counted_and_gets_its_order_back(scene: Scene) -> None:
    scene.earlier()
    scene.list()
    scene.sign()
    scene.refused = {A}
    with pytest.raises(CancelledInPart, match="1 reassignments are cancelled"):
        scene.act()
    told = [(each.what, each.partitions) for _, each in of_kind(scene.run.journal.records(), Moves)]
    assert ("cancelled", 1) in told
    assert scene.done[:2] == [("cancel", [B]), ("order", {B: (1, 2)})]


@pytest.mark.parametrize(("named", "moves"), [("b-0", [B]), ("a-0, b-0", [A, B])])
def test_a_single_partition_can_be_cancelled(scene: Scene, named: str, moves: list[TopicPartition]) -> None:
    scene.list(partitions=named)
    scene.sign()
    scene.act()
    assert scene.done[0] == ("cancel", moves)


@pytest.mark.parametrize(("named", "said"), [("b", "'b' names no partition"), ("b-7", "no such partition: b-7")])
def test_a_partition_that_is_none_is_named(scene: Scene, named: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        scene.list(partitions=named)


def test_a_topic_that_was_made_anew_since_it_was_listed_is_left_and_named(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka cancels by names: nobody has signed for what moves of the new one, the same way even."""
    scene.ids = {"a": "one", "b": "two"}
    scene.earlier()
    scene.list()
    scene.sign()
    scene.ids["a"] = "another"
    would = RehearsedCluster(SPEC, lambda _: "", print)
    vars(would).update(ask=scene.cluster.ask)
    cancel_reassignments(run_in(scene.context, would))
    assert [each.what for each in would.acts[:2]] == ["cancel the move of b-0", "give b-0 the order [1, 2]"]
    scene.act()
    assert scene.done[:2] == [("cancel", [B]), ("order", {B: (1, 2)})]
    assert "1 topics were made anew since they were listed, and are left: a" in caplog.text


def test_the_order_of_a_topic_that_was_made_anew_is_not_that_of_the_one_before_it(scene: Scene) -> None:
    """Last year's run moved another topic of that name in the same way."""
    files = RunFiles(files_of_all(scene.run.state) / "one")
    files.store_plan(replace(PLAN, topic_ids={"a": "of last year", "b": "two"}), PLACEMENT.present)
    save_state(files.saved, scene.look(), Former({}, {}, {}))
    scene.ids = {"a": "one", "b": "two"}
    scene.list()
    text = shows_reassignments(scene.run).exhibits[0].rendered
    assert "| a-0 | [2, 1] | unknown |" in text and "| b-0 | [1, 2] | as saved |" in text


def test_of_a_run_that_was_planned_anew_the_order_is_given_back_that_its_last_plan_found(scene: Scene) -> None:
    """It moved a-0 from 1, 2 to 3, 2, then on to 3, 4: a cancel gives back 3 and 2."""
    files = scene.earlier()
    second = ReassignmentPlan("on", {A: (3, 2)}, {A: (3, 4)}, copies=1, bound=1)
    files.store_plan(second, {**PLACEMENT.present, A: (3, 2)})
    scene.isr = (3, 2)
    scene.ongoing = {A: Ongoing((3, 4, 2), (4,), (2,))}
    files.throttles_list(RunThrottles.of(second.moves, 5_000_000))
    scene.list()
    scene.sign()
    scene.ongoing[B] = MOVING[B]  # by somebody, and not in the lists of that run
    scene.act()
    assert scene.done[1] == ("order", {A: (3, 2)})
    assert files.throttles.rate is None, "what its lists do not name keeps no throttle"


def test_a_throttle_stays_for_what_an_earlier_plan_of_its_run_moves_still(scene: Scene) -> None:
    files = scene.earlier()
    files.store_plan(ReassignmentPlan("on", {A: (3, 2)}, {A: (3, 4)}, copies=1, bound=1), PLACEMENT.present)
    scene.list(topics="a")
    scene.sign()
    assert scene.act()["throttled_on"] == ["one"], "b-0 moves still"


@pytest.mark.parametrize("form", [{}, {"partitions": "secret-0"}])
def test_what_moves_and_is_not_shown_is_refused_by_name_and_no_answer_that_nothing_moves(
    scene: Scene, form: dict[str, str]
) -> None:
    scene.ongoing.clear()
    scene.hidden = {TopicPartition("secret", 0): MOVING[A]}
    with pytest.raises(Refused, match=r"1 partitions move of topics that .* may not describe: secret-0") as refused:
        scene.list(**form)
    assert refused.value.way_out.startswith("let this tool's user Describe every topic")
    scene.ongoing = dict(MOVING)
    assert scene.list(partitions="", exclude="secret") == {"partitions": 2}


def test_throttles_of_what_moves_and_is_not_shown_stay(scene: Scene) -> None:
    files = scene.earlier()
    scene.list()
    scene.sign()
    scene.hidden = {B: scene.ongoing.pop(B)}
    assert scene.act()["throttled_on"] == ["one"]
    assert files.throttles.rate == 5_000_000 and not [what for what in scene.done if what[0] == "throttles"]


def test_files_that_cannot_be_read_count_as_no_run_and_are_named(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    files = scene.earlier()
    files.saved.write_text(files.saved.read_text().replace("[1,2]", "[2,1]"))
    scene.list()
    said = caplog.text
    assert "The saved state of run one is left out" in said and "was changed since it was saved" in said
    assert [told.what for _, told in of_kind(scene.run.journal.records(), Moves)] == ["to be cancelled"]


def test_what_began_since_the_signature_is_not_cancelled(scene: Scene) -> None:
    """The listed move ended, and somebody else moves the partition on: nobody signed for the end of that."""
    scene.list()
    scene.sign()
    for since in (Ongoing((4, 3, 2), (4,), (3,)), Ongoing((4, 2, 1), (4,), (1,))):
        scene.ongoing[A] = since
        with pytest.raises(Refused, match="1 partitions do not move as they did when they were listed: a-0") as refused:
            scene.act()
        assert "preflight.list" in refused.value.way_out
        assert not scene.done


def test_patterns_that_choose_no_topic_are_no_success(scene: Scene) -> None:
    with pytest.raises(Refused, match="no topic of the cluster is chosen"):
        scene.list(topics="ordres")


def test_a_run_that_noted_a_rate_and_no_list_is_put_back_with_any_topic(scene: Scene) -> None:
    scene.ongoing.clear()
    files = scene.earlier(throttled=False)
    files.will_throttle(RunThrottles((5_000_000,)))
    assert scene.list(topics="b") == {"partitions": 0}
    scene.sign()
    scene.act()
    assert files.throttles.rate is None


def test_what_an_earlier_run_set_stays_as_long_as_a_later_one_would_give_it_back(scene: Scene) -> None:
    """Put back first, it would come again with the later one's, and nobody would know whose it is."""
    scene.ongoing.clear()
    first, later = scene.earlier("one"), scene.earlier("three", throttled=False)
    later.will_throttle(RunThrottles((9,), {"c": {}}))
    os.utime(first.directory / "throttles.json", (1, 1))
    scene.list(topics="[ab]")
    scene.sign()
    assert scene.act()["throttled_on"] == ["one"]
    assert not [what for what in scene.done if what[0] == "throttles"]
    scene.context["ti"].run_id = "four"
    scene.run = run_in(scene.context, scene.cluster)
    scene.list(topics=".*")
    scene.sign()
    assert scene.act()["throttled_on"] == []
    assert [what[1] for what in scene.done if what[0] == "throttles"] == [(9,), (5_000_000,)]


def test_what_has_too_few_in_sync_afterwards_is_named_before_anybody_signs(scene: Scene) -> None:
    """Its whole copies lie on the targets, which a cancel deletes."""
    scene.min_isr = {"a": 2, "b": 1}
    scene.isr = (1, 3)
    scene.list()
    (exhibit,) = shows_reassignments(scene.run).exhibits
    assert "have fewer replicas in sync than min.insync.replicas afterwards**" in exhibit.rendered
    scene.min_isr = {}
    scene.list()
    (exhibit,) = shows_reassignments(scene.run).exhibits
    assert "fewer replicas in sync" not in exhibit.rendered


def test_a_cancel_is_listed_also_where_a_broker_does_not_say_what_such_a_look_needs(scene: Scene) -> None:
    def sick(*_: Any, settings: bool = True, **__: Any) -> ReplicasLook:
        if settings:
            raise Unreachable("broker 2 does not describe its logs", way_out="restart it")
        return scene.look()

    scene.cluster.answers[look_at_replicas] = sick
    scene.list()
    (exhibit,) = shows_reassignments(scene.run).exhibits
    assert "Not read: which of them have too few replicas in sync afterwards (broker 2" in exhibit.rendered


def test_what_a_cancel_leaves_of_log_directories_is_said_before_anybody_signs(scene: Scene) -> None:
    scene.list()
    assert "log directories" not in shows_reassignments(scene.run).exhibits[0].rendered
    plan = replace(PLAN, directories={(3, A): "/d2", (2, B): "/d2"})
    scene.earlier().store_plan(plan, PLACEMENT.present)
    scene.list()
    (exhibit,) = shows_reassignments(scene.run).exhibits
    assert "1 were to have new replicas in certain log directories: a-0." in exhibit.rendered
    assert "remembers the directory until it restarts" in exhibit.rendered
