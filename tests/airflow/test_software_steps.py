"""What each step of the software roll takes for done, refuses and plays. The host is a fake that records who asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from feature_looks import all_registered, on_disk
from in_run import run_in
from observations import WHY, Spoil, a_controller, broker, ended, nobody, topics, with_quorum
from recording import RecordingCluster, run_on
from test_upgrade_checks import ALL, NEW_HOME, OLD_HOME, PLAIN, cluster

from kraft_runbook.cluster.feature_levels import NamedClass, NamedClasses
from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.cluster.spec_parts import QuorumKind, Software
from kraft_runbook.errors import Refused
from kraft_runbook.io.hosts import feature_state
from kraft_runbook.procedures.observe_features import observe_features
from kraft_runbook.procedures.require_readable import require_readable
from kraft_runbook.software import conditions
from kraft_runbook.software.operation import SOFTWARE
from kraft_runbook.software.roll import Rolled
from kraft_runbook.steps.node_step import Look, NodeStep, take_step
from kraft_runbook.steps.software import (
    BROKER_BACK,
    BROKER_UP,
    CONTROLLER_BACK,
    CONTROLLER_UP,
    roll_active_controller,
    start_what_is_down,
)
from kraft_runbook_airflow.base.report import ClosingReport

SPEC = PLAIN.model_copy(
    update={
        "brokers": tuple(each.model_copy(update={"home_link": f"/srv/{each.service}"}) for each in PLAIN.brokers),
        "controllers": tuple(
            each.model_copy(update={"home_link": f"/srv/{each.service}"}) for each in PLAIN.controllers
        ),
    }
)


def look(node: int, seen: ClusterObservation, answers: Any = None) -> Look:
    return Look(RecordingCluster(seen, spec=SPEC, answers=answers), node, seen, SOFTWARE.read(seen, SPEC))


def guard(step: NodeStep, node: int, seen: ClusterObservation, asked: list[tuple[int, str]] | None = None) -> None:
    """``asked``: which nodes' disks were asked for, and for which software. Every one of them is readable."""

    def ask(node_id: int, software: Software, **__: Any) -> None:
        assert asked is not None, "no disk is to be asked"
        asked.append((node_id, software.version))

    step.guard(look(node, seen, {require_readable: ask}))


@pytest.mark.parametrize(
    ("step", "node", "on_new", "done"),
    [
        (CONTROLLER_UP, 102, (), None),
        (CONTROLLER_UP, 102, (102,), "node 102 runs Kafka 4.1.1"),
        (CONTROLLER_UP, 101, (), "left for last: controller 101 is the active one"),
        (CONTROLLER_UP, 101, (102, 103), None),
        (CONTROLLER_BACK, 101, ALL, "left for last: controller 101 is the active one"),
        (CONTROLLER_BACK, 103, ALL, None),
        (CONTROLLER_BACK, 103, (), "node 103 runs Kafka 3.9.2"),
        (BROKER_UP, 1, (101, 102, 103), None),
        (BROKER_UP, 1, ALL, "node 1 runs Kafka 4.1.1"),
        (BROKER_BACK, 1, ALL, None),
        (BROKER_BACK, 1, (101, 102, 103), "node 1 runs Kafka 3.9.2"),
    ],
)
def test_what_is_done_is_left_alone_and_the_active_controller_is_left_for_last(
    step: NodeStep, node: int, on_new: tuple[int, ...], done: str | None
) -> None:
    seen = cluster(on_new)
    assert seen.active_controller.id == 101
    assert (step.done(look(node, seen)) or step.passed_over(look(node, seen))) == done


def test_a_node_that_is_down_is_never_done_and_its_step_may_run() -> None:
    for step, node, spoil in (
        (CONTROLLER_UP, 103, a_controller(103, running=False)),
        (BROKER_UP, 3, broker(3, running=False)),
    ):
        seen = spoil(cluster((101, 102, 103)))
        assert step.why_done(look(node, seen)) is None
        step.require_stage(look(node, seen))


@pytest.mark.parametrize(
    ("step", "node", "spoil", "words"),
    [
        (
            CONTROLLER_UP,
            102,
            a_controller(103, running=False),
            "controller 103 does not answer",
        ),
        (CONTROLLER_BACK, 102, a_controller(103, running=False), "the quorum is not whole"),
        (BROKER_UP, 1, broker(2, running=False), "broker 2 does not answer; stopping broker 1 too"),
        (BROKER_UP, 1, topics(out_of_sync_by_broker={2: 4}), "replicas on other brokers are out of sync"),
        (BROKER_BACK, 1, topics(out_of_sync_by_broker={2: 4}), "replicas on other brokers are out of sync"),
    ],
)
def test_a_restart_that_could_take_a_majority_or_a_partition_away_is_refused(
    step: NodeStep, node: int, spoil: Spoil, words: str
) -> None:
    with pytest.raises(Refused, match=words):
        guard(step, node, spoil(cluster((101, 102, 103))))


def test_each_restart_asks_the_nodes_own_disk_for_the_software_that_it_is_to_run() -> None:
    asked: list[tuple[int, str]] = []
    for step, node in ((CONTROLLER_UP, 102), (BROKER_UP, 1), (BROKER_BACK, 2), (CONTROLLER_BACK, 103)):
        guard(step, node, cluster(), asked)
    assert asked == [(102, "4.1.1"), (1, "4.1.1"), (2, "3.9.2"), (103, "3.9.2")]


def test_what_is_played_leads_the_link_to_the_right_home() -> None:
    homes = {}
    for step, node in ((CONTROLLER_UP, 102), (BROKER_UP, 1), (BROKER_BACK, 1), (CONTROLLER_BACK, 102)):
        play = step.play(look(node, cluster()))
        assert (play.playbook, play.node_id) == ("switch_software", node)
        homes[step.step] = (play.variables["home_link"], play.variables["home"], play.variables["version"])
    assert homes == {
        "roll_controllers_up": ("/srv/controller-102", NEW_HOME, "4.1.1"),
        "roll_brokers_up": ("/srv/broker-1", NEW_HOME, "4.1.1"),
        "roll_brokers_back": ("/srv/broker-1", OLD_HOME, "3.9.2"),
        "roll_controllers_back": ("/srv/controller-102", OLD_HOME, "3.9.2"),
    }


# -- the disk, right before the restart --------------------------------------------------------------------------------


def judge(
    changes: dict[str, Any] | Unread,
    *,
    software: Any = SPEC.kafka,
    tell: Any = print,
    is_led: bool = True,
    declared: dict[str, str] | None = None,
) -> None:
    """``declared``: properties of the controllers in the cluster file."""
    host = cluster(ALL).features.hosts[101]
    seen = changes if isinstance(changes, Unread) else replace(host, **changes)
    look: Any = lambda *_, **__: {101: seen}  # noqa: E731
    spec = SPEC.model_copy(update={"controller_properties": {**SPEC.controller_properties, **(declared or {})}})
    require_readable(spec, 101, software, secrets=nobody, tell=tell, is_led=is_led, look=look)


def back(declared: dict[str, str] | None = None, **changes: Any) -> str:
    """What refuses controller 101 the way back to 3.9.2; empty: nothing."""
    try:
        judge(changes, declared=declared)
    except Refused as refused:
        return str(refused)
    return ""


def test_the_trap_is_refused_before_the_controller_is_stopped() -> None:
    assert back() == ""
    said = back(disk=on_disk(101, snapshot=98, after={130: 22, 140: 21}))
    assert "controller 101 cannot run 3.9.2 yet: its log holds metadata.version 22 at offset 130" in said
    assert "controller 101 was not touched; then clear this task" in said


def test_without_a_leader_a_controller_is_judged_by_its_own_disk_or_there_may_never_be_one() -> None:
    unled = replace(on_disk(101), to_come=WHY)
    assert WHY.reason in back(disk=unled)
    told: list[str] = []
    judge({"disk": unled}, tell=told.append, is_led=False)
    assert "no controller leads" in told[0]
    trapped = {"disk": on_disk(101, snapshot=98, after={130: 22, 140: 21})}
    with pytest.raises(Refused, match="cannot run"):
        judge(trapped, is_led=False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"disk": WHY}, "nothing shows whether controller 101 can run"),
        ({"software": {}}, "could not be read on the host of controller 101: it was not looked at"),
        ({"software": {OLD_HOME: WHY}}, WHY.reason),
    ],
)
def test_what_was_not_read_refuses(changes: dict[str, Any], words: str) -> None:
    assert words in back(**changes)
    with pytest.raises(Refused, match="is not known"):
        judge(WHY)


def test_a_file_that_the_target_would_refuse_is_not_written_and_one_that_is_written_over_does_not_count() -> None:
    small = {"log.segment.bytes": "1024"}
    with pytest.raises(
        Refused, match=r"controller 101's file, as it would be written: log\.segment\.bytes=1024 is below"
    ):
        judge({}, software=SPEC.kafka.upgrade_to, declared=small)
    judge({"config": {"process.roles": "controller", **small}}, software=SPEC.kafka.upgrade_to)
    gone = NamedClass("metric.reporters", "com.Gone", {OLD_HOME: "old.jar", NEW_HOME: None})
    held = {"config": {"metric.reporters": "com.Gone"}, "classes": NamedClasses((gone,))}
    judge(held, software=SPEC.kafka.upgrade_to)
    with pytest.raises(Refused, match=r"com\.Gone, which no jar of"):
        judge(held, software=SPEC.kafka.upgrade_to, declared={"metric.reporters": "com.Gone"})


@pytest.mark.parametrize(
    ("step", "node"), [(CONTROLLER_UP, 102), (BROKER_UP, 1), (BROKER_BACK, 2), (CONTROLLER_BACK, 103)]
)
def test_a_quorum_that_the_cluster_file_calls_dynamic_and_is_not_gets_no_file_without_its_voters(
    step: NodeStep, node: int
) -> None:
    dynamic = SPEC.model_copy(update={"quorum": QuorumKind.DYNAMIC})
    seen = cluster((103, 2))
    at = RecordingCluster(seen, spec=dynamic, answers={require_readable: None})
    with pytest.raises(Refused, match="where the quorum is is not written: the cluster file says 'quorum: dynamic'"):
        take_step(run_on(at), step, node)
    assert not [each for each in at.did if each.startswith("played")]


def test_what_the_version_before_does_not_start_with_is_refused_before_the_node_is_stopped() -> None:
    said = back({"group.coordinator.append.linger.ms": "-1"})
    assert "as it would be written: group.coordinator.append.linger.ms=-1 is below the smallest that 3.9.2" in said
    named = NamedClass("metric.reporters", "com.Mine", {OLD_HOME: None, NEW_HOME: "new.jar"})
    assert f"com.Mine, which no jar of {OLD_HOME} has" in back(classes=NamedClasses((named,)))
    assert "controller 101 was not touched" in said


def test_what_only_a_process_could_tell_is_told_and_brings_a_node_back_all_the_same() -> None:
    own = NamedClass("metric.reporters", "com.Own", {OLD_HOME: None, NEW_HOME: None})
    told: list[str] = []
    judge({"classes": NamedClasses((own,), unasked=("which class x names can't be told",))}, tell=told.append)
    assert told[:2] == [
        "controller 101: not judged: which class x names can't be told",
        "controller 101: not judged: metric.reporters names com.Own, which no home is known to have; what else is on"
        " its class path is seen while it runs",
    ]
    assert f"com.Own, which no jar of {OLD_HOME} has" in back(classes=NamedClasses((own,)))
    with pytest.raises(Refused, match=r"com\.Own, which no jar of"):
        judge({"classes": NamedClasses((own,), unasked=())}, software=SPEC.kafka.upgrade_to)


def test_a_host_s_answer_is_read_as_a_value() -> None:
    told = {"snapshot": {"end": 9, "taken": 1.5, "levels": {"a": 1}}, "after": [], "bootstrap": {}}
    disk = feature_state.on_disk_of(7, {**told, "end": 12, "epoch": 4})
    assert disk.snapshot is not None and (disk.node_id, disk.snapshot.end, disk.end, disk.epoch) == (7, 9, 12, 4)


# -- what is down, on the way back -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("back", "to", "on"), [(True, "back", "former"), (False, "up", "target")])
def test_what_is_down_is_started_on_the_software_to_come_controllers_first_and_each_is_awaited(
    monkeypatch: pytest.MonkeyPatch, back: bool, to: str, on: str
) -> None:
    seen = a_controller(102, running=False)(ended(2)(cluster((101, 103, 1))))
    at = RecordingCluster(seen, spec=SPEC, answers={require_readable: None})
    found = start_what_is_down(run_on(at), back=back)
    assert found == {"started": [102, 2]}
    assert at.did == [
        "played switch_software on 102",
        f"awaited {conditions.CONDITIONS[f'controller_on_{on}'].describe(102)}",
        "played switch_software on 2",
        f"awaited {conditions.CONDITIONS[f'broker_on_{on}'].describe(2)}",
        f"awaited {conditions.BROKER_IN_SYNC.describe(2)}",
    ]


def test_a_dry_run_lists_the_start_of_what_is_down_once() -> None:
    seen = a_controller(102, running=False)(broker(2, running=False)(cluster((101, 103, 1))))
    at = RecordingCluster(seen, spec=SPEC)
    vars(at)["rehearses"] = True
    run = run_on(at)
    start_what_is_down(run, back=False)
    for step, node in ((CONTROLLER_UP, 102), (CONTROLLER_UP, 103), (BROKER_UP, 2), (BROKER_UP, 3)):
        take_step(run, step, node)
    played = [each for each in at.did if each.startswith("played")]
    assert played == [f"played switch_software on {node}" for node in (102, 2, 3)], "103 runs on it"


def test_where_every_node_runs_nothing_is_started() -> None:
    at = RecordingCluster(cluster(ALL), spec=SPEC)
    assert start_what_is_down(run_on(at), back=False) == {"started": []} and at.did == []


def test_a_controller_that_is_down_is_started_whatever_the_others_do() -> None:
    asked: list[tuple[int, str]] = []
    both_down = a_controller(103, running=False)(a_controller(102, running=False)(cluster((101, 103))))
    guard(CONTROLLER_BACK, 102, both_down, asked)
    guard(BROKER_BACK, 2, broker(2, running=False)(broker(3, running=False)(cluster((1,)))), asked)
    assert asked == [(102, "3.9.2"), (2, "3.9.2")]


# -- the active controller ---------------------------------------------------------------------------------------------


def test_one_that_is_elected_between_two_looks_has_its_turn_and_is_not_awaited_without_it() -> None:
    def led(by: int, *on_new: int) -> ClusterObservation:
        return with_quorum(leader_id=by)(cluster(on_new))

    at = RecordingCluster(
        led(101, 103),  # before the loop
        led(101, 103),  # it chooses 102, which does not lead
        led(102, 103),  # the step's own look
        led(102, 103),
        *[led(102, 102, 103)] * 2,
        *[led(102, 102, 103)] * 2,
        led(102, *ALL),
        spec=SPEC,
        answers={require_readable: None, observe_features: all_registered()},
    )
    roll_active_controller(run_on(at), back=False)
    assert [each for each in at.did if each.startswith("played") or "run the target" in each] == [
        "played switch_software on 102",
        f"awaited {conditions.CONTROLLER_ON_TARGET.describe(102)}",
        "played switch_software on 101",
        f"awaited {conditions.CONTROLLER_ON_TARGET.describe(101)}",
    ]


# -- the end of a run that stopped -------------------------------------------------------------------------------------


def test_a_roll_that_stopped_says_where_it_stands_and_not_only_that_the_cluster_is_finalized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    states = {"one": {"roll_controllers_up.controller_103.restart": "failed"}}
    ti = SimpleNamespace(dag_id="d", run_id="one", task_id="report", get_task_states=lambda *_, **__: states)
    context = {"ti": ti, "params": {}}
    task = ClosingReport(task_id="report", cluster="lab", operation=SOFTWARE, goal=Rolled.NEW)
    with pytest.raises(AirflowFailException, match="the run stopped in MIXED"):
        task.act(context, run_in(context, RecordingCluster(cluster((101, 102)), spec=SPEC)))
    said = capsys.readouterr().out
    assert "Cluster lab is in MIXED (2 of 6 nodes run 4.1.1, the others 3.9.2)." in said
    assert "To go back (trigger downgrade_software__lab)" in said
