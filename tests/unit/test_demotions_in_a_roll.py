"""A broker's leaders around its restart: off right before it is stopped, back once it is in sync, where it is asked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from observations import SPEC, broker, ended, observation
from placements import of
from recording import Evidence, RecordingCluster, run_on

from kraft_runbook.cluster.assignment import Assignment, PartitionSeen
from kraft_runbook.cluster.modes import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.io.kafka.topic_ids import topic_ids
from kraft_runbook.procedures.demote_broker import Demoted, GivenBack, demote_broker, give_orders_back, keep_orders
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.reassignment.goals import GiveBackOrder
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.restart.operation import RESTARTS
from kraft_runbook.steps.account import account_of
from kraft_runbook.steps.demotions import give_leaders_back, kept_by, kept_for
from kraft_runbook.steps.node_step import rehearse_step, take_step
from kraft_runbook.steps.reassignment.ending import verify_plan
from kraft_runbook.steps.reassignment.planning import plan_moves
from kraft_runbook.steps.reassignment.wanted import asks_to_restore
from kraft_runbook.steps.restart import BROKER, restarts_no_brokers
from kraft_runbook.steps.run import NothingToDo, Run

ASKS = SPEC.model_copy(update={"rolling_restart": SPEC.rolling_restart.model_copy(update={"demote": True})})
SEEN = observation(Phase.FINALIZED)
OFF = "put broker 1 last in the order of its partitions, and let others lead them"
BACK = "give broker 1 the order of its partitions back, and its leaders"

FORM = {
    "topics": ".*", "exclude": "", "throttle_mb": None, "partitions_a_request": None, "moves_a_broker": 20,
    "mb_a_broker": None, "order": "by name", "hours": None, "allow_replication_factor": False, "allow_racks": False,
    "allow_no_rack": False,
}  # fmt: skip


def run_of(state: Path, seen: Any = SEEN, *, spec: Any = ASKS, evidence: Evidence | None = None, **answers: Any) -> Run:
    found = {demote_broker: Demoted(3), give_orders_back: GivenBack(3), **answers.pop("answers", {})}
    cluster = RecordingCluster(seen, spec=spec, answers=found)
    return run_on(cluster, evidence or Evidence(), state=state, **answers)


def did(run: Run) -> list[str]:
    assert isinstance(run.cluster, RecordingCluster)
    return run.cluster.did


def test_leaders_go_off_right_before_the_process_is_stopped(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    take_step(run, BROKER, 1)
    assert did(run) == [OFF, "played restart_node on 1"]
    assert [told.what for _, told in of_kind(run.journal.records(), Moves)] == ["demoted"]
    take_step(run, BROKER, 1)  # cleared: its process is not stopped again
    assert did(run)[2:] == ["played restart_node on 1"]


@pytest.mark.parametrize(("seen", "spec"), [(SEEN, SPEC), (ended(1)(SEEN), ASKS)])
def test_not_where_nobody_asks_or_where_it_does_not_run(tmp_path: Path, seen: Any, spec: Any) -> None:
    run = run_of(tmp_path, seen, spec=spec)
    take_step(run, BROKER, 1)
    assert did(run) == ["played restart_node on 1"]


@pytest.mark.parametrize("phase", [Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE])
def test_while_a_migration_is_under_way_no_order_is_changed(tmp_path: Path, phase: Phase) -> None:
    run = run_of(tmp_path, observation(phase))
    take_step(run, BROKER, 1)
    assert did(run) == ["played restart_node on 1"]
    assert isinstance(run.cluster, RecordingCluster)
    assert any(each.startswith("The leaders of broker 1 stay") for each in run.cluster.told)


def test_a_broker_that_dies_while_leaders_go_off_keeps_the_other_from_being_stopped(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert isinstance(run.cluster, RecordingCluster)
    run.cluster.shown.append(broker(3, running=False)(SEEN))
    with pytest.raises(Refused, match="broker 3 does not answer"):
        take_step(run, BROKER, 1)
    assert did(run) == [OFF]


def test_what_fails_before_the_stop_leaves_the_process_alone(tmp_path: Path) -> None:
    def fails(*_: Any, **__: Any) -> Demoted:
        raise StepFailed("broker 1 still leads 2 partitions", way_out="wait")

    run = run_of(tmp_path, answers={demote_broker: fails})
    with pytest.raises(StepFailed, match="still leads"):
        take_step(run, BROKER, 1)
    assert did(run) == [OFF]


def test_what_earlier_runs_took_from_this_broker_is_handed_on_the_oldest_first(tmp_path: Path) -> None:
    for at, (name, number) in enumerate((("b", 1), ("a", 1), ("a", 2), ("one", 1))):
        path = tmp_path / "demotions" / name / f"broker-{number}.json"
        keep_orders(path, "id", of(t=[(1, 2)]), of(t=[(2, 1)]), {})
        os.utime(path, (at, at))
    given: list[Any] = []
    run = run_of(tmp_path, answers={demote_broker: lambda *a, **h: given.append((a, h)) or Demoted(0)})
    take_step(run, BROKER, 1)
    ((node, path), how), *_ = given
    assert node == 1 and path == kept_for(run, 1)
    assert [each.parent.name for each in how["others"]] == ["b", "a"]


def test_they_come_back_once_and_a_run_without_brokers_has_no_turn(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert give_leaders_back(run, broker=1, left_out=restarts_no_brokers) == {"given_back": 0}
    keep_orders(kept_for(run, 1), "id", of(t=[(1, 2)]), of(t=[(2, 1)]), {})
    assert give_leaders_back(run, broker=1, left_out=restarts_no_brokers) == {"given_back": 3, "left": 0}
    assert did(run) == [BACK]
    other = run_of(tmp_path, nodes="controllers")
    assert "not_asked_for" in give_leaders_back(other, broker=1, left_out=restarts_no_brokers)
    assert did(other) == []


def test_what_an_earlier_run_took_comes_back_also_where_the_broker_was_down(tmp_path: Path) -> None:
    """That run stopped it and it did not come up. This one has nothing to take from it, and lets it lead again."""
    dead = tmp_path / "demotions" / "dead" / "broker-1.json"
    keep_orders(dead, "id", of(t=[(1, 2)]), of(t=[(2, 1)]), {})
    given: list[Any] = []
    answer = {give_orders_back: lambda *a, **h: given.append((a, h)) or GivenBack(1)}
    run = run_of(tmp_path, ended(1)(SEEN), answers=answer)
    take_step(run, BROKER, 1)
    assert isinstance(run.cluster, RecordingCluster)
    run.cluster.shown[:] = [SEEN]
    assert give_leaders_back(run, broker=1, left_out=restarts_no_brokers) == {"given_back": 1, "left": 0}
    assert given == [((kept_for(run, 1),), {"others": [dead]})]
    assert did(run) == ["played restart_node on 1", BACK]


def test_what_is_kept_of_another_clusters_broker_is_nothing_to_give_back(tmp_path: Path) -> None:
    keep_orders(tmp_path / "demotions" / "dead" / "broker-1.json", "other", of(t=[(1, 2)]), of(t=[(2, 1)]), {})
    run = run_of(tmp_path, answers={give_orders_back: None})
    assert give_leaders_back(run, broker=1, left_out=restarts_no_brokers) == {"given_back": 0}


@pytest.mark.parametrize("phase", [Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE])
def test_while_a_migration_is_under_way_no_order_is_given_back(tmp_path: Path, phase: Phase) -> None:
    run = run_of(tmp_path, observation(phase))
    keep_orders(kept_for(run, 1), "id", of(t=[(1, 2)]), of(t=[(2, 1)]), {})
    assert give_leaders_back(run, broker=1, left_out=restarts_no_brokers) == {"given_back": 0}
    assert did(run) == [] and kept_for(run, 1).exists()
    unknown = run_of(tmp_path, broker(2, mode=BrokerMode.KRAFT)(observation(Phase.ZOOKEEPER)))
    with pytest.raises(Unreachable, match="the cluster's phase is UNKNOWN"):
        give_leaders_back(unknown, broker=1, left_out=restarts_no_brokers)


def test_a_rehearsal_tells_both_and_does_neither(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    vars(run.cluster)["rehearses"] = True
    rehearse_step(run, BROKER, 1)
    give_leaders_back(run, broker=1, left_out=restarts_no_brokers)
    assert [each for each in did(run) if "broker 1" in each] == [OFF, BACK]
    give_leaders_back(run, broker=2, left_out=restarts_no_brokers)
    assert len([each for each in did(run) if "leaders" in each]) == 1, "nothing would be taken from broker 2"


def test_a_report_names_whose_leaders_are_off_and_they_can_be_given_back_by_the_runs_name(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert account_of(run, RESTARTS, Phase.FINALIZED) is None and kept_by("one", tmp_path) is None
    keep_orders(kept_for(run, 1), "id", of(t=[(1, 2)]), of(t=[(2, 1)]), {"t": "x"})
    told = account_of(run, RESTARTS, Phase.FINALIZED)
    assert told is not None and told.startswith("The leaders of broker 1 are off.")
    assert "restore_assignment__lab with this run's name, one" in told
    wanted = asks_to_restore(run_of(tmp_path, run="one", **FORM))
    assert wanted.goal == GiveBackOrder(of(t=[(1, 2)]), of(t=[(2, 1)]))
    assert (wanted.cluster_id, wanted.topic_ids) == ("id", {"t": "x"})


def restores(state: Path, **form: Any) -> Run:
    """A run that gives back what run "old" took from broker 1, of a cluster whose partitions lie on 1 and 2."""
    run = run_of(state, run="old", **FORM | form)
    assert isinstance(run.cluster, RecordingCluster)
    run.cluster.answers[topic_ids] = {}
    shows(run, of(t=[(2, 1)], u=[(2, 1)]))
    return run


def shows(run: Run, present: Assignment) -> None:
    assert isinstance(run.cluster, RecordingCluster)
    seen = {p: PartitionSeen(order, order[0], order) for p, order in present.items()}
    placement = Placement(dict.fromkeys((1, 2, 3)), present)
    run.cluster.answers[look_at_replicas] = ReplicasLook("id", placement, seen, {1: {}, 2: {}, 3: {}}, 0.0)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """What run "old" took, and did not give back."""
    path = tmp_path / "demotions" / "old" / "broker-1.json"
    keep_orders(path, "id", of(t=[(1, 2)], u=[(1, 2)]), of(t=[(2, 1)], u=[(2, 1)]), {})
    os.utime(path, (7, 7))
    return path


def test_what_was_restored_is_not_given_back_once_more_by_a_later_run(tmp_path: Path, old: Path) -> None:
    """Somebody may sign for the order of the demotion since, and a later run takes over what lies there."""
    run = restores(tmp_path)
    plan_moves(run, asks=asks_to_restore)
    assert kept_by("old", tmp_path) is not None, "not yet"
    shows(run, of(t=[(1, 2)], u=[(1, 2)]))
    for _ in range(2):  # killed, and done again
        assert verify_plan(run, asks=asks_to_restore) == {"partitions": 2, "added_since": 0}
        assert not old.exists()


def test_of_topics_that_were_not_restored_it_can_be_given_back_still(tmp_path: Path, old: Path) -> None:
    run = restores(tmp_path, topics="t")
    plan_moves(run, asks=asks_to_restore)
    shows(run, of(t=[(1, 2)], u=[(2, 1)]))
    verify_plan(run, asks=asks_to_restore)
    kept = kept_by("old", tmp_path)
    assert kept is not None and {p.topic for p in (*kept.before, *kept.after)} == {"u"}
    assert old.stat().st_mtime == 7, "by that the first of a run's brokers is known"


def test_what_somebody_gave_back_by_hand_is_nothing_to_do_and_not_given_back_later(tmp_path: Path, old: Path) -> None:
    run = restores(tmp_path)
    shows(run, of(t=[(1, 2)], u=[(1, 2)]))
    for rehearses in (True, False, False):
        vars(run.cluster)["rehearses"] = rehearses
        with pytest.raises(NothingToDo, match="the cluster is as wanted"):
            plan_moves(run, asks=asks_to_restore)
        assert old.exists() == rehearses


def test_of_two_brokers_of_a_run_what_was_before_the_first_is_given_back(tmp_path: Path) -> None:
    """By name broker 10 comes before broker 9, which was restarted first."""
    run = run_of(tmp_path)
    for at, (number, before, after) in enumerate(((9, (9, 10, 1), (10, 1, 9)), (10, (10, 1, 9), (1, 9, 10)))):
        keep_orders(kept_for(run, number), "id", of(t=[before]), of(t=[after]), {})
        os.utime(kept_for(run, number), (at, at))
    kept = kept_by(run.name, tmp_path)
    assert kept is not None and (kept.before, kept.after) == (of(t=[(9, 10, 1)]), of(t=[(1, 9, 10)]))


def test_the_gate_says_what_is_ahead() -> None:
    assert not any("lead" in each for each in RESTARTS.ahead("restart", SEEN, SPEC, ())[1:])
    assert any("the broker's leaders go to other brokers" in each for each in RESTARTS.ahead("restart", SEEN, ASKS, ()))
