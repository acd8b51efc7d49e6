"""The situations that ``explain`` tells apart: each occurs, none contradicts another, and the docs say the same."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations_with_replacement
from pathlib import Path

import pytest
from kept_observations import AMISS, HANG, UNREAD, WITHOUT, all_of, behind_the_copy, came_back, kept, pairs, unled
from observations import SPEC, WHY, Spoil, a_controller, both, broker, gauges, observation, part, zookeeper
from recording import RecordingCluster

from kraft_runbook.cluster.observation import (
    NO_ZOOKEEPER,
    BrokerMode,
    ControllerMode,
    ControllerZnode,
    MigrationZnode,
    ZkMigrationState,
)
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import StepFailed
from kraft_runbook.migration.checks import CHECKS
from kraft_runbook.migration.conditions import CONDITIONS
from kraft_runbook.migration.explain import explain
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.situation import Answer, Situation
from kraft_runbook.migration.situation_docs import render_situations
from kraft_runbook.migration.situation_facts import Facts
from kraft_runbook.migration.situations import WITH_ZOOKEEPER, forward, holding, means, waits_for, way_out
from kraft_runbook.migration.situations_in_kraft import WITHOUT_ZOOKEEPER
from kraft_runbook.migration.transitions import TABLE
from kraft_runbook.migration.way_back import way_back
from kraft_runbook.migration.without_zookeeper import is_led
from kraft_runbook.steps.waiting import Wait

KEPT = {name: Facts(seen, seen, spec) for name, seen, spec in kept()}
EACH = (*WITH_ZOOKEEPER, *WITHOUT_ZOOKEEPER)
DOCS = Path(__file__).resolve().parents[2] / "docs" / "interruptions.md"


ORDER = (
    {"nothing runs"},
    {"a controller without the flag"},
    {"a controller of a migration that was left"},
    {
        "the controllers died in the copy",
        "no leader, controllers are down",
        "no leader, controllers hang",
        "no leader, every controller runs",
    },
    {"a controller is down before the copy", "a controller is down after the copy"},
    {"a broker is down"},
    {"a node hangs"},
    {"nodes are down and hide the phase"},
    {"the quorum can't be read"},
    {"the roll into KRaft mode goes on"},
)
"""Which advice comes first where two things are amiss. No other two situations hold with different advice."""


def test_where_two_situations_give_different_advice_their_order_is_a_named_one() -> None:
    """But the last one, which holds where no other does."""
    rank = {name: i for i, names in enumerate(ORDER) for name in names}
    differ = 0
    for name, seen, spec in (*kept(), *behind_the_copy(), *pairs()):
        facts = Facts(seen, seen, spec)
        advice = {each.name: each.forward.of(facts) for each in holding(facts)[:-1]}
        if len(set(advice.values())) > 1:
            differ += 1
            ranks = [rank[each] for each in advice]
            assert ranks == sorted(set(ranks)), (name, advice)
    assert differ > 100


def test_each_situation_is_reached() -> None:
    reached = {holding(facts)[0].name for facts in KEPT.values()}
    assert reached == {each.name for each in EACH}


def test_the_last_one_of_each_list_always_holds_and_answers_everything() -> None:
    for last in (WITH_ZOOKEEPER[-1], WITHOUT_ZOOKEEPER[-1]):
        assert last.means and last.waits_for
        assert all(last.holds(facts) for facts in KEPT.values())


def hopeless(facts: Facts) -> set[str]:
    """What a step that may run now would wait for in vain."""
    ids = {"broker": facts.spec.broker_ids, "controller": facts.spec.controller_ids}
    progress = [
        condition.progress(facts.seen, facts.spec, node_id=node, earlier=facts.earlier)
        for edge in TABLE.edges
        if facts.phase in edge.may_run_in
        for condition in edge.waits
        for node in (ids[condition.phrase.split()[0]] if condition.of_a_node else (None,))
    ]
    return {each.waiting_for for each in progress if each.hopeless}


def test_where_a_wait_is_in_vain_it_is_a_situation_with_a_way_out_of_its_own() -> None:
    """But in ZooKeeper mode, where the controllers are not there yet."""
    stuck = {
        name: facts
        for name, facts in KEPT.items()
        if facts.seen.has_zookeeper and facts.phase is not Phase.ZOOKEEPER and hopeless(facts)
    }
    assert len(stuck) > 50
    assert [name for name, facts in stuck.items() if holding(facts)[0] is WITH_ZOOKEEPER[-1]] == []


AFTER_THE_COPY = {
    name: Facts(seen, seen, spec)
    for name, seen, spec in (*kept(), *behind_the_copy())
    if name.startswith((Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED))
}


def away(facts: Facts) -> bool:
    """Whether a node is down or hangs, or no controller leads."""
    return bool(facts.down or facts.ended or facts.silent) or not is_led(facts.seen)


def test_after_the_copy_whoever_is_down_there_is_a_way_out() -> None:
    stuck = {name: facts for name, facts in AFTER_THE_COPY.items() if away(facts)}
    assert len(stuck) > 50
    last = (WITH_ZOOKEEPER[-1], WITHOUT_ZOOKEEPER[-1])
    assert [name for name, facts in stuck.items() if holding(facts)[0] in last or not forward(facts)] == []


KEEPS_THE_ONLY_COPY = re.compile(r"(?<!not )delete /(controller|migration)\b|rename their data|move their data away")


@pytest.mark.parametrize("name", AFTER_THE_COPY)
def test_after_the_copy_nothing_tells_to_destroy_the_only_copy(name: str) -> None:
    """What explain says but for the rollback's own steps, and each check of the preflight in that phase."""
    facts = AFTER_THE_COPY[name]
    told = explain(facts.seen, facts.spec, earlier=facts.seen)
    report = CHECKS.run(facts.seen, facts.spec, told.phase, earlier=facts.seen)
    texts = [*told.because, told.means, *told.forward, *told.problems, *(each.fix for each in report.results)]
    assert [text for text in texts if KEEPS_THE_ONLY_COPY.search(text)] == []


def test_where_controllers_show_that_nobody_led_they_are_started_and_kept() -> None:
    for name, facts in AFTER_THE_COPY.items():
        if facts.lost and facts.down and facts.seen.has_zookeeper and not facts.unflagged:
            assert f"start {facts.down} with the present configuration" in " ".join(forward(facts)), name


BEHIND = {name: Facts(seen, seen, spec) for name, seen, spec in behind_the_copy()}


@pytest.mark.parametrize(
    ("what", "then"),
    [
        ("two controllers and ZooKeeper are down", "start controllers 101, 103 with the present configuration"),
        ("two controllers and ZooKeeper are down, a broker is mute", "start controllers 101, 103 with the present"),
        ("nobody leads and ZooKeeper is down", "wait for a leader: every controller runs, and an election"),
    ],
)
def test_a_lost_quorum_shows_without_zookeeper_too_and_zookeeper_comes_first(what: str, then: str) -> None:
    """No broker is in KRaft mode, so only a controller that knows of the copy shows it."""
    facts = BEHIND[f"{Phase.HYBRID}, {what}"]
    zookeeper, controllers = forward(facts)
    assert zookeeper == "start ZooKeeper, or make it readable, first" and controllers.startswith(then)
    assert means(facts).startswith("The metadata was copied, but the controller quorum has no leader")
    assert waits_for(facts)[0].endswith("that the metadata was copied, and none leads")
    (only,) = forward(BEHIND[f"{Phase.DUAL_WRITE}, {what}"])
    assert only.startswith(then), "a broker in KRaft mode needs the controllers, whatever ZooKeeper says"


@pytest.mark.parametrize("phase", [Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED])
def test_where_neither_zookeeper_nor_a_broker_tells_anything_zookeeper_is_read_first(phase: Phase) -> None:
    (told,) = forward(BEHIND[f"{phase}, the same, and no broker tells its mode"])
    assert told.startswith("start ZooKeeper, or make it readable; or, if you know the migration to be final, leave it")


def test_a_controller_that_came_back_after_the_way_back_is_no_lost_quorum() -> None:
    left = all_of("broker", SPEC.broker_ids, mode=BrokerMode.ZOOKEEPER)
    facts = BEHIND[f"{Phase.HYBRID}, two controllers and ZooKeeper are down"]
    assert Facts(left(facts.seen), left(facts.seen), SPEC).lost is None


@pytest.mark.parametrize(
    ("who", "spoil"),
    [
        ("a controller is down", part()),
        ("two controllers are down", part()),
        ("two controllers are down", gauges(102, zk_migration_state=ZkMigrationState.NOT_PUBLISHED)),
        ("two controllers are down", part(zookeeper=WHY)),
        ("nobody leads", part()),
        ("nobody leads", a_controller(103, metrics=WHY)),
        ("nobody leads", broker(3, mode=BrokerMode.ZOOKEEPER)),
    ],
)
def test_a_controller_without_the_flag_comes_first_while_a_broker_would_be_left_behind(who: str, spoil: Spoil) -> None:
    """Another one that is started gives it a majority: once elected, it ends the migration."""
    seen = spoil(BEHIND[f"half rolled, one runs without the flag, {who}"].seen)
    facts = Facts(seen, seen, SPEC)
    assert facts.phase in (Phase.DUAL_WRITE, Phase.UNKNOWN)
    (told,) = forward(facts)
    assert told.startswith("restart controller 102 with the migration flag before it is elected, and no other")
    assert waits_for(facts)[0].startswith("an operator: restart controller 102 with the migration flag")


@pytest.mark.parametrize("what", ["a controller is down", "two controllers are down", "a broker is down and unread"])
def test_a_finalization_in_order_is_not_turned_back(what: str) -> None:
    seen = both(a_controller(102, mode=ControllerMode.KRAFT), AMISS[what])(observation(Phase.DUAL_WRITE))
    assert "with the migration flag" not in " ".join(forward(Facts(seen, seen, SPEC)))


READ_102 = "make the metrics of controller 102 readable: they show the phase"
LOOK_AT_102 = (
    "look at controller 102: the process hangs or gets no CPU time. If it does not recover, end it and start it again"
)
PROVISION_103 = (
    "provision_controllers: go on with controller 103; one whose disk is empty is formatted again and catches up from"
    " the others"
)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (a_controller(102, metrics=WHY), (READ_102, f"then {PROVISION_103}")),
        (a_controller(102, **HANG), (LOOK_AT_102, f"then {PROVISION_103}")),
        (
            both(a_controller(102, metrics=WHY), part(zookeeper=WHY)),
            ("start ZooKeeper, or make it readable", f"then {READ_102}"),
        ),
    ],
)
def test_before_the_copy_what_hides_the_phase_comes_before_a_controller_that_is_not_there_yet(
    spoil: Spoil, told: tuple[str, ...]
) -> None:
    """It was never formatted, so there is no configuration to start it with, and no disk that may not be empty."""
    seen = both(AMISS["a controller is down"], part(quorum=WHY), spoil)(observation(Phase.PRE_MIGRATION))
    assert forward(Facts(seen, seen, SPEC)) == told


def test_once_something_shows_a_copy_no_controller_is_provisioned_anew() -> None:
    """One that was behind goes on showing PRE_MIGRATION."""
    behind = gauges(101, zk_migration_state=ZkMigrationState.PRE_MIGRATION)
    seen = both(behind, AMISS["a controller is down"], part(quorum=WHY), a_controller(102, metrics=WHY))
    for phase in (Phase.HYBRID, Phase.DUAL_WRITE):
        facts = Facts(seen(observation(phase)), seen(observation(phase)), SPEC)
        first, then = forward(facts)
        assert first.startswith("start controller 103 with the present configuration") and then == f"then {READ_102}"


def test_metrics_that_hide_the_phase_are_named_though_nothing_is_down() -> None:
    seen = both(part(quorum=WHY), a_controller(102, metrics=WHY))(observation(Phase.PRE_MIGRATION))
    assert forward(Facts(seen, seen, SPEC)) == (READ_102,)


UNREAD_103 = "make the quorum readable: controller 103 shows that it leads, and the quorum can't be read (a test did"


@pytest.mark.parametrize("phase", [Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE])
@pytest.mark.parametrize("state", [ZkMigrationState.PRE_MIGRATION, None])
def test_where_a_controller_s_own_gauge_says_that_it_leads_nobody_says_that_none_does(
    phase: Phase, state: ZkMigrationState | None
) -> None:
    """Whatever the controllers show of the migration: some are behind."""
    seen = unled(observation(phase))
    for i in SPEC.controller_ids if state else ():
        seen = gauges(i, zk_migration_state=state)(seen)
    facts = Facts(seen := gauges(103, active=True)(seen), seen, SPEC)
    (told,) = forward(facts)
    assert told.startswith(UNREAD_103) and waits_for(facts)[0].startswith("the controller quorum to be read: ")
    plan = way_back(seen, SPEC)
    assert "no quorum has a leader" not in plan.why and not [each for each in plan.steps if "restore_quorum" in each]
    alone = all_of("controller", (101, 102), **UNREAD)(seen)
    if phase is not Phase.PRE_MIGRATION:  # a leader without a majority resigns in seconds
        assert "a majority of the controllers must run first" in way_back(alone, SPEC).why


def test_a_copy_under_way_is_not_taken_for_one_in_which_everybody_died() -> None:
    """The controller that copies is busy, and its quorum could not be read in time."""
    copying = zookeeper(controller=ControllerZnode(103, 4), migration=MigrationZnode(-1, 103, -1, 4))
    hybrid = all_of("broker", SPEC.broker_ids, mode=BrokerMode.HYBRID)
    seen = both(hybrid, copying, unled, gauges(103, active=True))(observation(Phase.PRE_MIGRATION))
    facts = Facts(seen, seen, SPEC)
    assert forward(facts)[0].startswith(UNREAD_103) and not facts.died_in_the_copy
    assert "nothing shows that the metadata copy was completed" not in way_back(seen, SPEC).why


@pytest.mark.parametrize(
    "spoil",
    [part(), all_of("broker", SPEC.broker_ids, mode=BrokerMode.ZOOKEEPER), AMISS["a broker is down"]],
)
def test_a_controller_that_came_back_after_the_way_back_is_stopped_and_gets_no_company(spoil: Spoil) -> None:
    """Its metrics show HYBRID: the next step was offered, or to start the other controllers."""
    seen = spoil(came_back())
    facts = Facts(seen, seen, SPEC)
    assert facts.phase is Phase.HYBRID
    (told,) = forward(facts)
    assert told.startswith("stop controller 102 by hand, and start no other controller")
    assert "ZooKeeper leads" in means(facts) and waits_for(facts) == ("an operator: stop controller 102",)


def test_once_final_it_makes_no_difference_whether_the_file_still_names_zookeeper() -> None:
    final = observation(Phase.FINALIZED)
    amiss = {what: spoil for what, spoil in AMISS.items() if "ZooKeeper" not in what and what != "everything is down"}
    for (what, one), (besides, other) in combinations_with_replacement(amiss.items(), 2):
        seen = both(one, other)(final)
        with_it, without = way_out(seen, SPEC), way_out(replace(seen, zookeeper=NO_ZOOKEEPER), WITHOUT)
        if "every controller is down" in (what, besides):  # then nothing shows that it is final
            if "left behind" not in what + besides:
                assert with_it[0].startswith(without[0]), (what, besides)
        else:
            assert with_it == without, (what, besides)


def test_once_final_a_broker_is_not_started_before_a_majority_of_the_controllers() -> None:
    seen = both(AMISS["two controllers are down"], AMISS["a broker is down and unread"])(observation(Phase.FINALIZED))
    seen = gauges(102, active=False)(seen)
    told = explain(seen, SPEC, earlier=seen)
    assert told.means.startswith("The controller quorum has no leader")
    assert told.forward[0].startswith("start controllers 101, 103 with the present configuration")
    assert told.forward[1:] == ("then start broker 2 in KRaft mode; the log there says why it ended",)


def test_a_wait_that_is_in_vain_says_what_explain_says() -> None:
    down = both(*(a_controller(i, running=False) for i in (101, 103)), part(quorum=WHY))
    lost = down(observation(Phase.HYBRID))
    wait = Wait(RecordingCluster(lost), CONDITIONS["quorum_whole"], 0.0, began=1.0, advice=MIGRATION.way_out)
    with pytest.raises(StepFailed) as failed:
        wait.look()
    (first, *_) = MIGRATION.explain(lost, SPEC).forward
    assert first.startswith("start controllers 101, 103 with the present configuration")
    assert failed.value.way_out.startswith(f"nothing more is changed: {first}")


def test_where_the_steps_go_on_as_the_table_has_it_no_wait_is_told_to_do_anything() -> None:
    for phase in Phase:
        if phase is not Phase.UNKNOWN:
            assert MIGRATION.way_out(observation(phase), SPEC) == ()


def answers(each: Situation) -> list[Answer]:
    return [answer for answer in (each.means, each.waits_for, each.forward) if answer]


@pytest.mark.parametrize("each", EACH, ids=lambda each: each.name)
def test_what_a_text_names_is_a_fact(each: Situation) -> None:
    named = {name for answer in answers(each) for name in re.findall(r"{(\w*)}", answer.text)}
    assert named <= {name for name in dir(Facts) if not name.startswith("_")}


@pytest.mark.parametrize("each", EACH, ids=lambda each: each.name)
def test_each_sentence_begins_with_a_capital(each: Situation) -> None:
    assert not [answer.text for answer in answers(each) if re.search(r"\. [a-z]", answer.text)]


def test_the_docs_are_made_of_them() -> None:
    assert render_situations() in DOCS.read_text(), (
        "put into docs/interruptions.md what this prints: python -c 'from kraft_runbook.migration.situation_docs import"
        " render_situations as made; print(made(), end=str())'"
    )
