"""The explanation and the plan of every phase."""

from __future__ import annotations

import pytest
from kept_observations import unled
from observations import (
    SPEC,
    WHY,
    Spoil,
    a_controller,
    apart,
    both,
    broker,
    gauges,
    later,
    observation,
    on_host,
    part,
    topics,
    tree,
    with_quorum,
    zookeeper,
)

from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import (
    NO_ZOOKEEPER,
    BrokerMode,
    ClusterObservation,
    ControllerMode,
    MigrationZnode,
    Unread,
    Voter,
    ZkMigrationState,
    unread_parts,
)
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.migration.copy_tuning import LARGE, SMALL, Settings, estimate, heap_needed
from kraft_runbook.migration.explain import explain
from kraft_runbook.migration.plan import make_plan
from kraft_runbook.migration.transitions import Step


@pytest.mark.parametrize(
    ("phase", "waits_for", "forward", "back"),
    [
        (Phase.ZOOKEEPER, ("an operator: preflight, then the start gate",), "provision_controllers", None),
        (
            Phase.PRE_MIGRATION,
            tuple(f"broker {i} to register as migrating: 0 of 3 seen; it is in zookeeper mode" for i in (1, 2, 3)),
            "roll_brokers_to_hybrid",
            "deprovision_controllers",
        ),
        (
            Phase.HYBRID,
            ("an operator: the dual_write gate, then the brokers' roll into KRaft mode",),
            "roll_brokers_to_kraft",
            "leave_kraft",
        ),
        (
            Phase.DUAL_WRITE,
            ("an operator: the finalize gate, after the soak",),
            "finalize_controllers",
            "roll_brokers_back_to_hybrid",
        ),
        (Phase.FINALIZED, (), None, None),
    ],
)
def test_says_what_is_waited_for_and_what_can_be_done(
    phase: Phase, waits_for: tuple[str, ...], forward: str | None, back: str | None
) -> None:
    told = explain(observation(phase), SPEC)
    assert told.phase is phase
    assert told.waits_for == waits_for
    assert [f.partition(":")[0] for f in told.forward] == ([forward] if forward else [])
    assert [b.partition(":")[0] for b in told.back][:1] == ([back] if back else [])
    assert told.problems == () and told.unread == ()
    assert told.render_text().startswith(f"lab is in {phase.value}.")


def test_finalizing_is_not_offered_while_a_broker_is_in_migration_mode() -> None:
    told = explain(broker(2, mode=BrokerMode.HYBRID)(observation(Phase.DUAL_WRITE)), SPEC)
    assert told.forward == ("roll_brokers_to_kraft: go on with broker 2; finalize_controllers comes after that",)


@pytest.mark.parametrize("phase", [Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE])
def test_no_step_is_offered_that_would_be_refused_while_a_broker_is_down(phase: Phase) -> None:
    told = explain(broker(2, running=False)(observation(phase)), SPEC)
    assert told.forward == (
        "start broker 2 first; the log there says why it ended. No other broker is restarted while one is down",
    )


@pytest.mark.parametrize("phase", [Phase.PRE_MIGRATION, Phase.HYBRID])
def test_a_controller_without_the_flag_is_what_is_waited_for(phase: Phase) -> None:
    told = explain(a_controller(102, mode=ControllerMode.KRAFT)(observation(phase)), SPEC)
    assert told.waits_for == (
        "an operator: restart controller 102 with the migration flag before it is elected, or the migration is final",
    )


def test_a_premature_finalization_is_told_with_the_only_way_that_is_left() -> None:
    seen = broker(1, mode=BrokerMode.HYBRID)(broker(2, mode=BrokerMode.HYBRID)(observation(Phase.FINALIZED)))
    told = explain(seen, SPEC)
    assert (
        "finalized the migration too early" in told.means
        and "brokers 1, 2 are not in KRaft mode" in told.means
        and "may be decommissioned" not in told.means
    )
    assert told.forward == (
        (
            "restart brokers 1, 2 in KRaft mode, one by one (docs/finalization.md): it is the only way left. Do not"
            " restart a broker in migration mode"
        ),
    )
    assert [w.partition(" to register")[0] for w in told.waits_for] == ["broker 1", "broker 2"]
    assert told.rollback.possible is False and told.back == ()
    assert any("KRB-GATE-007" in p and "THE MIGRATION WAS FINALIZED TOO EARLY" in p for p in told.problems)


def test_without_a_majority_every_controller_that_is_down_is_named_and_no_step_is_offered() -> None:
    seen = both(a_controller(101, running=False), a_controller(103, running=False), part(quorum=WHY))(
        observation(Phase.HYBRID)
    )
    told = explain(seen, SPEC)
    assert "the controller quorum has no leader" in told.means
    assert told.waits_for[0].startswith(
        "a majority of the controllers: controllers 101, 103 do not run; /controller names KRaft controller"
    )
    assert told.forward[0].startswith("start controllers 101, 103 with the present configuration")
    assert told.back[0].startswith("restore_quorum")


def test_a_controller_that_is_missing_before_the_copy_is_provisioned_again_not_refused() -> None:
    told = explain(a_controller(103, running=False)(observation(Phase.PRE_MIGRATION)), SPEC)
    assert told.forward[0].startswith("provision_controllers: go on with controller 103")
    assert not [problem for problem in told.problems if "KRB-PRE-006" in problem]


def test_an_election_is_waited_for_and_nobody_is_called_down() -> None:
    told = explain(unled(observation(Phase.DUAL_WRITE)), SPEC)
    assert told.waits_for[0].startswith("a leader of the controller quorum: ")
    assert told.forward[0].endswith(". No step goes on before the quorum has a leader")


def test_controllers_that_all_run_and_elect_nobody_may_not_reach_each_other() -> None:
    told = explain(unled(observation(Phase.DUAL_WRITE)), SPEC)
    addresses = ", ".join(each.address for each in SPEC.controllers)
    assert f"they can't reach each other: look at the network between {addresses}" in told.forward[0]


@pytest.mark.parametrize("phase", [Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED])
def test_a_controller_that_hangs_is_named_though_its_port_is_open_and_no_step_is_offered(phase: Phase) -> None:
    seen = a_controller(103, mode=WHY, metrics=WHY, silent=True)(observation(phase))
    told = explain(seen, SPEC)
    assert told.waits_for[0] == "controller 103 to answer: the port accepts connections, but no response comes"
    assert [each.partition(":")[0] for each in told.forward] == ["look at controller 103 first"]
    once = explain(seen, SPEC, earlier=observation(phase))
    assert not [each for each in (*once.waits_for, *once.forward) if "to answer" in each or "look at" in each], (
        "it answered a moment ago"
    )


@pytest.mark.parametrize(
    "phase", [Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED]
)
def test_a_broker_that_hangs_is_named_though_the_quorum_still_tells_its_mode(phase: Phase) -> None:
    told = explain(broker(2, metrics=WHY, silent=True)(observation(phase)), SPEC)
    assert told.waits_for[0] == "broker 2 to answer: the port accepts connections, but no response comes"
    assert [each.partition(":")[0] for each in told.forward] == ["look at broker 2 first"]


def test_a_node_that_could_not_be_read_but_refused_or_answered_does_not_hang() -> None:
    seen = both(broker(2, mode=WHY, metrics=WHY), a_controller(103, mode=WHY, metrics=WHY))(
        observation(Phase.DUAL_WRITE)
    )
    assert not [each for each in explain(seen, SPEC).waits_for if "to answer" in each]


def test_a_majority_that_hangs_is_named() -> None:
    hang = {"mode": WHY, "metrics": WHY, "silent": True}
    told = explain(
        both(a_controller(101, **hang), a_controller(103, **hang), part(quorum=WHY))(observation(Phase.DUAL_WRITE)),
        SPEC,
    )
    assert told.waits_for[0].startswith(
        "a majority of the controllers: controllers 101, 103 run and do not answer; /controller names"
    )
    assert told.forward[0].startswith("look at controllers 101, 103: the process hangs")


def test_after_a_power_cut_the_order_of_starting_is_told() -> None:
    seen = part(zookeeper=WHY, quorum=WHY, topics=WHY)(observation(Phase.DUAL_WRITE))
    for i in SPEC.broker_ids:
        seen = broker(i, running=False, mode=WHY, metrics=WHY)(seen)
    for i in SPEC.controller_ids:
        seen = a_controller(i, running=False, mode=WHY, metrics=WHY)(seen)
    told = explain(seen, SPEC)
    assert told.phase is Phase.UNKNOWN
    assert told.forward[0].startswith(
        "nothing of the cluster runs: start ZooKeeper first, then controllers 101, 102, 103 if provisioned, then"
        " brokers 1, 2, 3"
    )


@pytest.mark.parametrize(
    ("spoil", "how"),
    [
        (a_controller(103, running=False), "start controller 103 with the present configuration"),
        (broker(2, running=False), "start broker 2 in KRaft mode"),
        (broker(2, running=False, mode=BrokerMode.HYBRID), "restart broker 2 in KRaft mode, one by one"),
    ],
)
def test_a_node_that_is_down_after_finalization_is_to_be_started_in_kraft_mode(spoil: Spoil, how: str) -> None:
    assert explain(spoil(observation(Phase.FINALIZED)), SPEC).forward[0].startswith(how)


@pytest.mark.parametrize("besides", [broker(2, running=False), a_controller(103, mode=WHY, metrics=WHY, silent=True)])
def test_a_controller_without_the_flag_comes_before_whatever_else_is_wrong(besides: Spoil) -> None:
    """Each other restart may bring the election that makes the migration final."""
    told = explain(both(a_controller(102, mode=ControllerMode.KRAFT), besides)(observation(Phase.HYBRID)), SPEC)
    assert told.forward[0].startswith(
        "restart controller 102 with the migration flag before it is elected, and no other controller before that"
    )


def test_one_controller_that_hangs_hides_no_quorum_from_the_two_others() -> None:
    hang = a_controller(103, mode=WHY, metrics=WHY, silent=True)
    told = explain(both(hang, part(quorum=WHY))(observation(Phase.DUAL_WRITE)), SPEC)
    assert told.phase is Phase.UNKNOWN, "what the log says could not be read"
    assert "the controller quorum has no leader" not in told.means and not [
        each for each in told.waits_for if "majority" in each
    ]


def test_what_could_not_be_read_is_listed_with_its_reason() -> None:
    told = explain(part(zookeeper=WHY)(observation(Phase.ZOOKEEPER)), SPEC)
    assert told.phase is Phase.UNKNOWN
    assert "ZooKeeper: a test did not read it" in told.unread
    assert told.forward == ("start ZooKeeper, or make it readable",) and told.rollback.possible is False
    assert "Could not be read" in told.render_text()


def test_a_quorum_that_is_not_there_yet_is_not_called_unread() -> None:
    assert unread_parts(observation(Phase.ZOOKEEPER)) == ()


@pytest.mark.parametrize(
    ("phase", "spoil", "fragment"),
    [
        (Phase.DUAL_WRITE, a_controller(102, mode=ControllerMode.KRAFT), "KRB-PRE-048"),
        (Phase.HYBRID, part(topics_apart=apart(only_in_zookeeper=["a"])), "KRB-GATE-004"),
        (Phase.FINALIZED, broker(2, mode=BrokerMode.HYBRID), "KRB-GATE-007"),
    ],
)
def test_problems_of_the_phase_are_shown(phase: Phase, spoil: Spoil, fragment: str) -> None:
    seen = spoil(observation(phase))
    assert any(fragment in p for p in explain(seen, SPEC, earlier=seen).problems)


@pytest.mark.parametrize(
    ("phase", "spoil", "fragment"),
    [
        (
            Phase.ZOOKEEPER,
            both(broker(2, mode=BrokerMode.HYBRID), topics(out_of_sync_by_broker={1: 31})),
            "wait until the replicas are back in sync. If they stay out of sync, a broker in migration mode (broker 2)",
        ),
        (
            Phase.HYBRID,
            topics(out_of_sync_by_broker={1: 1, 3: 43}, under_replicated=("a-0",), under_replicated_count=43),
            "wait until broker 3 is back in sync. If it stays out of sync, a replica there may lack",
        ),
    ],
)
def test_replicas_that_stay_out_of_sync_are_looked_at_before_the_next_step(
    phase: Phase, spoil: Spoil, fragment: str
) -> None:
    (first,) = explain(spoil(observation(phase)), SPEC).forward
    assert first.startswith(fragment)
    (down,) = explain(both(spoil, broker(1, running=False))(observation(phase)), SPEC).forward
    assert down.startswith("start broker 1 first"), "which would be the reason"


@pytest.mark.parametrize("phase", [p for p in Phase if p is not Phase.UNKNOWN])
def test_nothing_is_unknown_that_was_not_asked_for(phase: Phase) -> None:
    """A quick look reads neither each topic's znodes nor the hosts; what is left out is said in one line."""
    no_znodes = zookeeper(tree=Unread("not asked for"), connections=Unread("not asked for"))
    quick = part(hosts=Unread("not asked for"))(
        observation(phase) if phase is Phase.KRAFT else no_znodes(observation(phase))
    )
    told = explain(quick, SPEC)
    assert told.problems == () and told.unread == ()
    assert told.not_looked_at.startswith("Not looked at: ") and "the hosts (" in told.not_looked_at
    assert told.not_looked_at in told.render_text().splitlines()
    assert explain(observation(phase), SPEC).not_looked_at == ""


WITHOUT = SPEC.model_copy(update={"zookeeper": None})
HEALTHY = (
    "controller 101 leads the quorum in epoch 4, every voter has caught up",
    "3 of 3 controllers run",
    "3 of 3 brokers are registered and not fenced",
    "44 partitions: 0 offline, 0 under-replicated",
)


def without(phase: Phase) -> ClusterObservation:
    return part(zookeeper=NO_ZOOKEEPER)(observation(phase))


@pytest.mark.parametrize(
    ("phase", "means", "back"),
    [
        (
            Phase.KRAFT,
            "The cluster runs in KRaft mode, without ZooKeeper.",
            "the cluster file names no ZooKeeper to go back to",
        ),
        (
            Phase.FINALIZED,
            "The migration is final, and the cluster file names no ZooKeeper any more.",
            "the migration is final, and the cluster file names no ZooKeeper to go back to",
        ),
    ],
)
def test_a_healthy_cluster_without_zookeeper_is_told_how_it_is_and_that_nothing_is_to_be_migrated(
    phase: Phase, means: str, back: str
) -> None:
    told = explain(without(phase), WITHOUT)
    assert (told.phase, told.means) == (phase, f"{means} There is nothing to migrate.")
    assert told.because[1:] == HEALTHY
    assert (told.waits_for, told.forward, told.back, told.problems, told.unread) == (
        (),
        ("there is nothing to migrate",),
        (),
        (),
        (),
    )
    assert (told.rollback.possible, told.rollback.why) == (False, back)


def test_kafka_4_waits_for_no_gauge_that_it_does_not_have() -> None:
    seen = both(*(gauges(i, zk_migration_state=None) for i in (101, 102, 103)))(without(Phase.FINALIZED))
    told = explain(seen, WITHOUT)
    assert (told.phase, told.waits_for, told.problems) == (Phase.FINALIZED, (), ())


def test_without_zookeeper_what_is_down_is_named_controllers_first() -> None:
    seen = both(
        a_controller(102, running=False, metrics=WHY),
        broker(3, running=False),
        with_quorum(voters=(Voter(101, 1000), Voter(103, 1000))),
    )
    told = explain(seen(without(Phase.KRAFT)), WITHOUT)
    assert told.forward == (
        "start controller 102 with the present configuration; the log there says why it ended",
        "then start broker 3 in KRaft mode; the log there says why it ended",
    )
    assert "2 of 3 controllers run" in told.because
    assert told.waits_for[0] == "controller 102: its port refuses connections"
    assert told.waits_for[1] == "broker 3: its port refuses connections"
    assert any(each.startswith("KRB-PRE-004") for each in told.problems)


def test_without_zookeeper_and_without_a_leader_nothing_can_be_changed() -> None:
    down = both(*(a_controller(i, running=False, metrics=WHY) for i in (101, 102, 103)))
    told = explain(both(down, part(quorum=WHY))(without(Phase.KRAFT)), WITHOUT)
    assert told.phase is Phase.UNKNOWN
    assert told.means.startswith("The controller quorum has no leader")
    assert told.forward == (
        "start controllers 101, 102, 103 with the present configuration; the log there says why it ended. Never start a"
        " majority on empty disks: it elects one of itself, and the metadata begins anew (docs/rollback.md)",
    )
    assert "0 of 3 controllers run" in told.because and "3 of 3 brokers run" in told.because
    elected = explain(both(part(quorum=WHY), gauges(101, active=False))(without(Phase.KRAFT)), WITHOUT)
    assert elected.forward[0].startswith("no controller is down: an election takes seconds")
    late = explain(part(quorum=WHY)(without(Phase.KRAFT)), WITHOUT)
    assert not late.means.startswith("No quorum") and "election" not in late.forward[0], (
        "a controller's own gauge says that it leads"
    )


@pytest.mark.parametrize("phase", [Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE])
def test_a_file_that_leaves_out_a_zookeeper_in_use_is_what_is_wrong(phase: Phase) -> None:
    told = explain(without(phase), WITHOUT)
    assert told.phase is Phase.UNKNOWN
    assert told.waits_for == ("an operator: see under Seen",)
    assert told.forward == (
        "name the ensemble under 'zookeeper' in the cluster file: every step is refused until then",
    )
    assert told.means == "The observation does not prove that this cluster runs without ZooKeeper, as its file says."


def test_without_zookeeper_a_broker_that_was_left_behind_is_restarted_in_kraft_mode() -> None:
    told = explain(broker(2, mode=BrokerMode.HYBRID)(without(Phase.FINALIZED)), WITHOUT)
    assert told.forward == (
        (
            "restart broker 2 in KRaft mode, one by one (docs/finalization.md): it is the only way left. Do not restart"
            " a broker in migration mode"
        ),
    )
    assert "nothing to migrate" not in told.means and "broker 2 is not in KRaft mode" in told.means
    assert told.waits_for == ("broker 2 to register in KRaft mode: 2 of 3 seen; it is in hybrid mode",)


@pytest.mark.parametrize(("seen", "spec"), [(observation(Phase.FINALIZED), SPEC), (without(Phase.FINALIZED), WITHOUT)])
def test_where_brokers_were_left_behind_and_no_controller_leads_the_controllers_come_first(
    seen: ClusterObservation, spec: ClusterSpec
) -> None:
    """A broker that is restarted in KRaft mode then registers nowhere."""
    nobody_leads = both(*(gauges(each, active=False) for each in SPEC.controller_ids), part(quorum=WHY))
    behind = broker(2, mode=BrokerMode.HYBRID)(nobody_leads(seen))
    for given, first in (
        (a_controller(103, running=False)(behind), "start controller 103 first, with the present configuration"),
        (behind, "wait for a leader of the quorum"),
    ):
        leader, kraft = explain(given, spec).forward
        assert leader.startswith(first) and kraft.startswith("restart broker 2 in KRaft mode")


def test_two_looks_tell_that_dual_write_has_died() -> None:
    dead = zookeeper(migration=MigrationZnode(500, 101, 4, 4))(observation(Phase.DUAL_WRITE))
    told = explain(later(dead, 3), SPEC, earlier=dead)
    assert any("KRB-DW-001" in p and "has stood at offset 500" in p for p in told.problems)
    assert not told.rollback.possible


# -- the plan ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "steps"),
    [
        (
            Phase.ZOOKEEPER,
            [
                Step.PROVISION_CONTROLLERS,
                Step.ROLL_BROKERS_TO_HYBRID,
                Step.ROLL_BROKERS_TO_KRAFT,
                Step.FINALIZE_CONTROLLERS,
            ],
        ),
        (Phase.PRE_MIGRATION, [Step.ROLL_BROKERS_TO_HYBRID, Step.ROLL_BROKERS_TO_KRAFT, Step.FINALIZE_CONTROLLERS]),
        (Phase.HYBRID, [Step.ROLL_BROKERS_TO_KRAFT, Step.FINALIZE_CONTROLLERS]),
        (Phase.DUAL_WRITE, [Step.FINALIZE_CONTROLLERS]),
        (Phase.FINALIZED, []),
    ],
)
def test_the_plan_leads_from_here_to_finalized(phase: Phase, steps: list[Step]) -> None:
    plan = make_plan(observation(phase), SPEC)
    assert [s.step for s in plan.steps] == steps
    numbers = [a.number for s in plan.steps for a in s.actions]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_roll_that_was_interrupted_comes_first_with_what_is_left_of_it() -> None:
    plan = make_plan(broker(1, mode=BrokerMode.KRAFT)(observation(Phase.HYBRID)), SPEC)
    assert plan.phase is Phase.DUAL_WRITE
    assert [s.step for s in plan.steps] == [Step.ROLL_BROKERS_TO_KRAFT, Step.FINALIZE_CONTROLLERS]
    assert [a.node_id for a in plan.steps[0].actions if a.node_id] == [2, 3]


def test_the_active_controller_is_finalized_last() -> None:
    plan = make_plan(with_quorum(leader_id=102)(observation(Phase.DUAL_WRITE)), SPEC)
    assert [a.node_id for a in plan.steps[0].actions if a.node_id] == [101, 103, 102]


def test_each_restart_shows_what_changes_in_its_file() -> None:
    plan = make_plan(observation(Phase.HYBRID), SPEC)
    changes = {str(c) for c in next(a for a in plan.steps[0].actions if a.node_id == 2).changes}
    assert {
        "- broker.id=2",
        "+ node.id=2",
        "+ process.roles=broker",
        "- zookeeper.metadata.migration.enable=true",
    } <= changes


def test_the_plan_shows_no_secret_and_the_way_back_from_each_step() -> None:
    text = make_plan(observation(Phase.ZOOKEEPER), SPEC).render_text()
    assert "password.encoder.secret=<set>" in text and "${secrets:" not in text
    assert "Rollback from DUAL_WRITE: roll_brokers_back_to_hybrid then leave_kraft" in text
    assert "Rollback from FINALIZED: not possible" in text
    assert "finalize_controllers: DUAL_WRITE -> FINALIZED (can not be undone)" in text


def test_the_plan_says_how_long_the_copy_takes_what_is_rendered_for_it_and_the_heap() -> None:
    plan = make_plan(tree(partitions=200_000)(observation(Phase.ZOOKEEPER)), SPEC)
    text = plan.render_text()
    assert f"200,000 partitions of 9 topics: {estimate(200_000, Settings.TUNED)} with the rendered settings" in text
    assert f"each controller needs {heap_needed(200_000, 3)} for 200,000 partitions × 3 brokers" in text
    for action in (a for s in plan.steps for a in s.actions if a.node_id in SPEC.controller_ids):
        changes = {str(c) for c in action.changes}
        sign = "+" if "provision" not in action.does and "format" in action.does else "-"
        assert {f"{sign} {key}={value}" for key, value in LARGE.properties.items()} <= changes


def test_a_small_cluster_s_plan_renders_nothing_for_the_copy() -> None:
    plan = make_plan(observation(Phase.ZOOKEEPER), SPEC)
    assert "no setting is rendered for it" in plan.render_text()
    assert not [c for s in plan.steps for a in s.actions for c in a.changes if c.key in LARGE.properties]


def test_without_a_deep_read_the_brokers_count_is_taken_and_without_any_the_plan_says_so() -> None:
    counted = both(zookeeper(tree=WHY), topics(partition_count=30_000))(observation(Phase.ZOOKEEPER))
    assert "30,000 partitions" in make_plan(counted, SPEC).render_text()
    unread = both(zookeeper(tree=WHY), part(topics=WHY))(observation(Phase.ZOOKEEPER))
    assert f"its length is not known: {WHY.reason}" in make_plan(unread, SPEC).render_text()


def test_the_size_that_the_controllers_files_settled_is_the_plans_whatever_is_counted_now() -> None:
    large = dict(controller_properties(SPEC, SPEC.controller(101), ControllerMode.MIGRATION, also=LARGE.properties))
    plan = make_plan(both(on_host(101, config=large), tree(partitions=1_999))(observation(Phase.PRE_MIGRATION)), SPEC)
    assert plan.copy is not None and plan.copy != WHY
    assert plan.copy.size is LARGE  # type: ignore[union-attr]
    files_unread = part(hosts=WHY)(tree(partitions=1_999)(observation(Phase.PRE_MIGRATION)))
    assert make_plan(files_unread, SPEC).copy.size is SMALL  # type: ignore[union-attr]


@pytest.mark.parametrize("phase", [Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED])
def test_a_copy_that_lies_behind_is_not_forecast(phase: Phase) -> None:
    plan = make_plan(observation(phase), SPEC)
    assert plan.copy is None and "The metadata's copy" not in plan.render_text()


@pytest.mark.parametrize("phase", [Phase.KRAFT, Phase.FINALIZED])
def test_the_plan_of_a_cluster_without_zookeeper_asks_for_none_though_a_controller_is_down(phase: Phase) -> None:
    assert make_plan(a_controller(102, running=False, mode=WHY)(without(phase)), WITHOUT).steps == ()


def test_there_is_no_plan_for_an_unknown_phase() -> None:
    with pytest.raises(Refused) as refused:
        make_plan(
            with_quorum(migration_state_record=ZkMigrationState.NONE)(
                part(controllers={})(observation(Phase.DUAL_WRITE))
            ),
            SPEC,
        )
    assert "created in KRaft mode" in refused.value.problem
