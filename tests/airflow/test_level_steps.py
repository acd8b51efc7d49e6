"""A level's change as tasks: what is planned is what is signed, and what is signed is what is applied, once. The
quorum's leader is a fake that records what it is asked.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from feature_looks import in_log, kafka3, look
from in_run import run_in
from observations import SPEC
from recording import RecordingCluster
from signed_run import PASSED, sign
from test_upgrade_checks import cluster

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, Answer, WrittenLevel
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import AlreadyDone, Planned, Played, Reached, of_kind
from kraft_runbook.gates.proof import Proof, make_proof
from kraft_runbook.levels.change import plan_change
from kraft_runbook.levels.operation import LEVELS
from kraft_runbook.levels.stages import Gate
from kraft_runbook.procedures.change_level import await_level, change_level
from kraft_runbook.procedures.preview_levels import preview_change
from kraft_runbook.steps.levels import LevelPlan, apply_level, plan_level, plan_of, see_level, shows_plan


class Shows(RecordingCluster):
    stage: Stage

    def observe(self, **_: Any) -> Any:
        return self.stage.seen()


class Stage:
    """One run of the DAG: its context, its cluster, and what the leader was asked to apply."""

    def __init__(self) -> None:
        self.level = 21
        self.answer = Answer(0, "", {METADATA_VERSION: (0, "")})
        self.applied: list[int] = []
        ti = SimpleNamespace(dag_id="upgrade_features__lab", run_id="one", task_id="task")
        self.context: dict[str, Any] = {"ti": ti, "params": {"feature": METADATA_VERSION, "level": "20", "down": True}}
        leader: Any = {"ask": lambda *_, **__: self.answer, "lost": lambda *_, **__: ()}
        preview = lambda *given: preview_change(SPEC, *given, secrets=lambda _: "", **leader)  # noqa: E731
        self.cluster = Shows(answers={change_level: self.apply, await_level: 0.4, preview_change: preview})
        vars(self.cluster)["stage"] = self
        self.run = run_in(self.context, self.cluster)

    def seen(self) -> Any:
        found = cluster()
        at = in_log(look(kafka3(), self.level), written=(WrittenLevel(METADATA_VERSION, self.level, 5),))
        return replace(found, features=replace(at, hosts=found.features.hosts))

    def apply(self, change: Any, **__: Any) -> bool:
        self.applied.append(change.target)
        self.level = change.target
        return True

    def plan(self) -> Any:
        return plan_level(self.run)

    def sign(self, *without: str) -> None:
        """The gate's proof, as ``ProveGate`` puts it on record, with what it shows of this run."""
        shown = shows_plan(self.run)
        seen = self.seen()
        proof: Proof = make_proof(
            Gate.LEVEL,
            seen,
            SPEC,
            checks=(PASSED,),
            parity=None,
            rollback=LEVELS.way_back(seen, SPEC),
            made_at=datetime.now(UTC),
            exhibits=shown.exhibits,
        )
        sign(self.context["ti"], Gate.LEVEL, proof, *without)

    def change(self) -> Any:
        return apply_level(self.run)

    def records(self, kind: Any) -> list[Any]:
        return [told for _, told in of_kind(self.run.journal.records(), kind)]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    monkeypatch.delenv("KRAFT_RUNBOOK_EVIDENCE", raising=False)
    return Stage()


def test_what_was_planned_and_signed_is_applied_once_and_seen(stage: Stage) -> None:
    stage.plan()
    stage.sign()
    assert stage.change() == {"changed": True}
    assert see_level(stage.run) == {"seconds": 0.4}
    assert stage.applied == [20]
    (planned,), (played,), (reached,) = (stage.records(kind) for kind in (Planned, Played, Reached))
    assert planned.goal == "metadata.version 21 -> 20" and planned.digest == plan_of(stage.run).digest
    assert played.changed == ("metadata.version 21 -> 20",) and reached.condition == "level_shown_by_every_node"


def test_cleared_and_run_again_it_changes_nothing(stage: Stage) -> None:
    stage.plan()
    stage.sign()
    stage.change()
    assert stage.change() == {"changed": False}
    assert stage.applied == [20]
    assert [each.why for each in stage.records(AlreadyDone)] == ["metadata.version is at 20"]


def test_the_page_shows_the_plan_with_the_server_s_answer(stage: Stage) -> None:
    stage.plan()
    (exhibit,) = shows_plan(stage.run).exhibits
    assert "metadata.version 21 -> 20 (3.8-IV0), by the table of Kafka 3.9.2" in exhibit.rendered
    assert "the quorum's leader accepts it (validate-only, nothing was changed)" in exhibit.rendered


def test_a_step_down_has_to_be_ticked(stage: Stage) -> None:
    stage.context["params"]["down"] = False
    with pytest.raises(Refused, match="20 lies below it"):
        stage.plan()


@pytest.mark.parametrize("level", ["16", "22"])
def test_what_can_t_be_had_is_never_put_before_a_person(stage: Stage, level: str) -> None:
    stage.context["params"]["level"] = level
    with pytest.raises(Refused):
        stage.plan()
    with pytest.raises(Refused, match="no plan of a level is on record"):
        shows_plan(stage.run)


def test_what_the_leader_refuses_is_never_put_before_a_person(stage: Stage) -> None:
    stage.answer = Answer(0, "", {METADATA_VERSION: (95, "Broker 7 only supports versions 1-19")})
    with pytest.raises(Refused, match="the quorum's leader refuses it: Broker 7 only supports versions 1-19"):
        stage.plan()


def test_without_a_confirmed_signature_nothing_is_applied(stage: Stage) -> None:
    stage.plan()
    stage.sign("confirm")
    with pytest.raises(Refused, match="was not confirmed"):
        stage.change()
    assert stage.applied == []


def test_a_plan_that_was_made_anew_after_the_signature_is_not_applied(stage: Stage) -> None:
    stage.plan()
    stage.sign()
    stage.context["params"]["level"] = "19"
    stage.plan()
    with pytest.raises(Refused, match="Nobody has signed it"):
        stage.change()
    assert stage.applied == []


def test_a_level_that_somebody_else_changed_meanwhile_is_not_changed_on_the_old_signature(stage: Stage) -> None:
    stage.plan()
    stage.sign()
    stage.level = 19
    with pytest.raises(Refused, match=r"the signed plan is metadata\.version 21 -> 20 on Kafka 3\.9\.2; now"):
        stage.change()
    assert stage.applied == []


def test_what_the_leader_refuses_by_now_is_not_applied(stage: Stage) -> None:
    stage.plan()
    stage.sign()
    stage.answer = Answer(0, "", {METADATA_VERSION: (95, "controller 103 has not registered")})
    with pytest.raises(Refused, match="controller 103 has not registered"):
        stage.change()
    assert stage.applied == []


def test_a_plan_whose_file_was_altered_is_none(stage: Stage, tmp_path: Path) -> None:
    stage.plan()
    (file,) = (tmp_path / "plans").glob("*.json")
    file.write_text(file.read_text().replace('"target": 20', '"target": 17'))
    with pytest.raises(Refused, match="is not in the state directory as it was recorded"):
        plan_of(stage.run)


def test_a_plan_s_digest_covers_all_that_a_person_reads() -> None:
    change = plan_change(kafka3(), METADATA_VERSION, 21, "20")
    plan = LevelPlan(METADATA_VERSION, 21, 20, "3.9.2", "what was read")
    assert plan.fits(change)
    for name in asdict(plan):
        assert replace(plan, **{name: 7 if name in ("now", "target") else "other"}).digest != plan.digest


def test_a_controller_that_is_about_to_register_is_looked_at_again(stage: Stage) -> None:
    """Right after a raise to 15 or beyond controllers take seconds to register."""
    refused = Answer(95, "controller 103 has not registered, and may not support this feature", {})
    answers = [refused, refused, stage.answer]
    stage.cluster.answers[preview_change] = lambda *given: preview_change(
        SPEC, *given, secrets=lambda _: "", ask=lambda *_, **__: answers.pop(0), lost=lambda *_, **__: ()
    )
    stage.plan()
    assert not answers and stage.cluster.paused == 2 * SPEC.deadlines.poll
    answers[:] = [refused] * 3
    with pytest.raises(Refused, match="has not registered"):
        stage.plan()
    assert not answers
