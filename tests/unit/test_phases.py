"""Every phase as it is detected, every edge of the table, every refusal's exact text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from observations import WHY, Spoil, a_controller, both, broker, gauges, observation, part, with_quorum, zookeeper

from kraft_runbook.cluster.observation import (
    NO_ZOOKEEPER,
    BrokerMode,
    ControllerMode,
    ControllerZnode,
    MigrationZnode,
    Unread,
    ZkMigrationState,
)
from kraft_runbook.cluster.phases import LEFT_CONTROLLER, Phase, PhaseReading, detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.migration.transitions import TABLE, Step
from kraft_runbook.migration.way_back import rollback_plan

KNOWN = tuple(p for p in Phase if p is not Phase.UNKNOWN)


@pytest.mark.parametrize("phase", KNOWN)
def test_a_healthy_cluster_shows_its_phase(phase: Phase) -> None:
    assert detect_phase(observation(phase)).phase is phase


def all_gauges(**changes: object) -> Spoil:
    return both(*(gauges(i, **changes) for i in (101, 102, 103)))


def every(node_ids: tuple[int, ...], make: object, **changes: object) -> Spoil:
    return both(*(make(i, **changes) for i in node_ids))  # type: ignore[operator]


CONTROLLERS, BROKERS = (101, 102, 103), (1, 2, 3)
UNSEEN = part(quorum=WHY)
NO_FILE = part(zookeeper=NO_ZOOKEEPER)
KAFKA_4 = all_gauges(zk_migration_state=None)
"""Kafka 4's controllers have no gauge ZkMigrationState."""
NO_RECORD = with_quorum(migration_state_record=None)

CASES: dict[str, tuple[Phase, Spoil, Phase, tuple[str, ...]]] = {
    "the only controller that is left was behind when the copy ended": (
        Phase.HYBRID,
        both(
            UNSEEN,
            every((101, 103), a_controller, running=False, mode=WHY, metrics=WHY),
            gauges(102, zk_migration_state=ZkMigrationState.PRE_MIGRATION),
        ),
        Phase.UNKNOWN,
        (
            (
                "ZkMigrationState is 2 (PRE_MIGRATION) on controller 102, which may be behind: /controller names KRaft"
                " controller 101, and /migration has a copy's offset"
            ),
        ),
    ),
    "a controller without the flag has just started beside brokers in KRaft mode": (
        Phase.FINALIZED,
        both(UNSEEN, all_gauges(zk_migration_state=ZkMigrationState.NOT_PUBLISHED)),
        Phase.UNKNOWN,
        (
            (
                "controllers 101, 102, 103 run without the migration flag and show no state yet, and brokers 1, 2, 3"
                " are in KRaft mode"
            ),
        ),
    ),
    "a quorum without the flag leads where a KRaft controller held /controller": (
        Phase.HYBRID,
        both(
            all_gauges(zk_migration_state=ZkMigrationState.NONE),
            with_quorum(migration_state_record=ZkMigrationState.NONE),
        ),
        Phase.UNKNOWN,
        (
            (
                "ZkMigrationState is 0 (NONE) on controllers 101, 102, 103 and in the metadata log: these controllers"
                " formed their quorum without the migration flag, but broker 1 is in hybrid mode, broker 2 is in hybrid"
                " mode, broker 3 is in hybrid mode, and /controller names KRaft controller 101: a controller may hold"
                " the only copy of the metadata. Set no data aside, and see first whether 'zookeeper' in the cluster"
                " file is this cluster's. If it is: docs/rollback.md, '/controller names a KRaft controller that is"
                " gone'"
            ),
        ),
    ),
    "one controller shows 3": (
        Phase.DUAL_WRITE,
        gauges(102, zk_migration_state=ZkMigrationState.POST_MIGRATION),
        Phase.FINALIZED,
        ("ZkMigrationState is 3 (POST_MIGRATION) on controller 102",),
    ),
    "no ZooKeeper, and the log of Kafka 4 says 3": (
        Phase.FINALIZED,
        both(NO_FILE, KAFKA_4),
        Phase.FINALIZED,
        ("ZkMigrationState is 3 (POST_MIGRATION) in the metadata log",),
    ),
    "no ZooKeeper, and the log of Kafka 4 says 0": (
        Phase.KRAFT,
        KAFKA_4,
        Phase.KRAFT,
        ("ZkMigrationState is 0 (NONE) in the metadata log: this cluster was created in KRaft mode",),
    ),
    "no ZooKeeper, and the log of Kafka 4 says nothing": (
        Phase.KRAFT,
        both(KAFKA_4, NO_RECORD),
        Phase.KRAFT,
        (
            (
                "the metadata log holds no migration state: this cluster was created in KRaft mode, or runs Kafka 4,"
                " whose"
                " snapshots drop the state of a migration"
            ),
        ),
    ),
    "no ZooKeeper, and every controller is down": (
        Phase.KRAFT,
        both(every(CONTROLLERS, a_controller, running=False, metrics=WHY), UNSEEN),
        Phase.UNKNOWN,
        (
            (
                "the metadata log could not be read, and without ZooKeeper nothing else shows a migration: a"
                " test did not read it"
            ),
        ),
    ),
    "no ZooKeeper in the file, and the copy was made": (
        Phase.HYBRID,
        NO_FILE,
        Phase.UNKNOWN,
        (
            (
                "the cluster file names no ZooKeeper, but ZkMigrationState is 1 (MIGRATION) on controllers 101, 102,"
                " 103; broker 1 is in hybrid mode; broker 2 is in hybrid mode; broker 3 is in hybrid mode: name the"
                " ensemble under 'zookeeper' in the cluster file"
            ),
        ),
    ),
    "no ZooKeeper in the file, and brokers in ZooKeeper mode": (
        Phase.ZOOKEEPER,
        NO_FILE,
        Phase.UNKNOWN,
        (
            (
                "the cluster file names no ZooKeeper, but broker 1 is in zookeeper mode; broker 2 is in zookeeper mode;"
                " broker 3 is in zookeeper mode: name the ensemble under 'zookeeper' in the cluster file"
            ),
        ),
    ),
    "only the log says 3": (
        Phase.DUAL_WRITE,
        with_quorum(migration_state_record=ZkMigrationState.POST_MIGRATION),
        Phase.FINALIZED,
        ("ZkMigrationState is 3 (POST_MIGRATION) in the metadata log",),
    ),
    "born in KRaft": (
        Phase.FINALIZED,
        both(
            all_gauges(zk_migration_state=ZkMigrationState.NONE),
            with_quorum(migration_state_record=ZkMigrationState.NONE),
        ),
        Phase.UNKNOWN,
        (
            (
                "ZkMigrationState is 0 (NONE) on controllers 101, 102, 103 and in the metadata log: "
                "this cluster was created in KRaft mode, there is nothing to migrate"
            ),
        ),
    ),
    "born in KRaft before the state was written to the log": (
        Phase.FINALIZED,
        both(all_gauges(zk_migration_state=ZkMigrationState.NONE), with_quorum(migration_state_record=None)),
        Phase.UNKNOWN,
        (
            (
                "ZkMigrationState is 0 (NONE) on controllers 101, 102, 103 and in the metadata log: "
                "this cluster was created in KRaft mode, there is nothing to migrate"
            ),
        ),
    ),
    "a quorum was formed without the flag beside brokers in ZooKeeper mode": (
        Phase.PRE_MIGRATION,
        both(
            all_gauges(zk_migration_state=ZkMigrationState.NONE),
            with_quorum(migration_state_record=ZkMigrationState.NONE),
        ),
        Phase.UNKNOWN,
        (
            (
                "ZkMigrationState is 0 (NONE) on controllers 101, 102, 103 and in the metadata log: these"
                " controllers formed their quorum without the migration flag, but broker 1 is in zookeeper mode, broker"
                " 2 is in zookeeper mode, broker 3 is in zookeeper mode. Stop them, move their data away and provision"
                " them again, before a broker registers with them"
            ),
        ),
    ),
    "a quorum that has just formed shows 0 beside brokers in ZooKeeper mode": (
        Phase.PRE_MIGRATION,
        both(all_gauges(zk_migration_state=ZkMigrationState.NONE), UNSEEN),
        Phase.PRE_MIGRATION,
        ("controllers 101, 102, 103 run, the quorum has published nothing yet, and the metadata was not copied",),
    ),
    "a quorum that has just formed shows 0, its log is empty": (
        Phase.PRE_MIGRATION,
        both(
            all_gauges(zk_migration_state=ZkMigrationState.NONE),
            with_quorum(migration_state_record=None, metadata_version=None),
        ),
        Phase.PRE_MIGRATION,
        ("controllers 101, 102, 103 run, the quorum has published nothing yet, and the metadata was not copied",),
    ),
    "a controller that has just joined shows 0, the log 2": (
        Phase.PRE_MIGRATION,
        all_gauges(zk_migration_state=ZkMigrationState.NONE),
        Phase.PRE_MIGRATION,
        ("ZkMigrationState is 2 (PRE_MIGRATION) in the metadata log",),
    ),
    "a controller that has just joined shows 0 after the copy": (
        Phase.HYBRID,
        gauges(103, zk_migration_state=ZkMigrationState.NONE),
        Phase.HYBRID,
        (),
    ),
    "one gauge is behind the log": (
        Phase.HYBRID,
        all_gauges(zk_migration_state=ZkMigrationState.PRE_MIGRATION),
        Phase.HYBRID,
        ("ZkMigrationState is 1 (MIGRATION) in the metadata log", "no broker is in KRaft mode"),
    ),
    "one broker in KRaft mode": (
        Phase.HYBRID,
        broker(2, mode=BrokerMode.KRAFT),
        Phase.DUAL_WRITE,
        ("ZkMigrationState is 1 (MIGRATION) on controllers 101, 102, 103", "broker 2 is in KRaft mode"),
    ),
    "a broker's mode is unread after the copy": (
        Phase.HYBRID,
        broker(2, mode=WHY),
        Phase.UNKNOWN,
        (
            "ZkMigrationState is 1 (MIGRATION) on controllers 101, 102, 103, so it is HYBRID or DUAL_WRITE",
            "broker 2's mode could not be read: a test did not read it",
        ),
    ),
    "an unread mode does not matter where another broker is in KRaft mode": (
        Phase.DUAL_WRITE,
        broker(2, mode=WHY),
        Phase.DUAL_WRITE,
        (),
    ),
    "a controller is silent and the log unread after the copy": (
        Phase.HYBRID,
        both(a_controller(103, metrics=WHY), UNSEEN),
        Phase.UNKNOWN,
        (
            "ZkMigrationState is 1 (MIGRATION) on controllers 101, 102, so it is HYBRID, DUAL_WRITE or FINALIZED",
            "controller 103's metrics: a test did not read it",
        ),
    ),
    "a controller is silent and the log unread before the copy": (
        Phase.PRE_MIGRATION,
        both(a_controller(101, metrics=WHY), UNSEEN),
        Phase.UNKNOWN,
        (
            "ZkMigrationState is 2 (PRE_MIGRATION) on controllers 102, 103, so it is PRE_MIGRATION or a later phase",
            "controller 101's metrics: a test did not read it",
        ),
    ),
    "a controller is down": (
        Phase.HYBRID,
        both(a_controller(103, running=False, mode=WHY, metrics=WHY), UNSEEN),
        Phase.HYBRID,
        (),
    ),
    "all metrics silent, the log read": (
        Phase.PRE_MIGRATION,
        every(CONTROLLERS, a_controller, metrics=WHY),
        Phase.PRE_MIGRATION,
        ("ZkMigrationState is 2 (PRE_MIGRATION) in the metadata log",),
    ),
    "controllers run and have published nothing": (
        Phase.PRE_MIGRATION,
        both(all_gauges(zk_migration_state=ZkMigrationState.NOT_PUBLISHED), UNSEEN),
        Phase.PRE_MIGRATION,
        ("controllers 101, 102, 103 run, the quorum has published nothing yet, and the metadata was not copied",),
    ),
    "one controller of three was provisioned": (
        Phase.ZOOKEEPER,
        a_controller(
            101,
            running=True,
            mode=ControllerMode.MIGRATION,
            metrics=observation(Phase.PRE_MIGRATION).controllers[102].metrics,
        ),
        Phase.PRE_MIGRATION,
        ("ZkMigrationState is 2 (PRE_MIGRATION) on controller 101",),
    ),
    "a controller without the flag was started": (
        Phase.PRE_MIGRATION,
        both(
            all_gauges(zk_migration_state=ZkMigrationState.NOT_PUBLISHED),
            a_controller(102, mode=ControllerMode.KRAFT),
            UNSEEN,
        ),
        Phase.UNKNOWN,
        ("controller 102 runs without the migration flag: stop it before it leads a quorum",),
    ),
    "something else holds a controller's port": (
        Phase.ZOOKEEPER,
        a_controller(102, running=True),
        Phase.UNKNOWN,
        ("controller 102's port answers, but not like a controller: a test did not read it",),
    ),
    "a controller runs and its metrics are silent": (
        Phase.PRE_MIGRATION,
        both(every(CONTROLLERS, a_controller, metrics=WHY), UNSEEN),
        Phase.UNKNOWN,
        tuple(f"controller {i}'s metrics: a test did not read it" for i in CONTROLLERS),
    ),
    "ZooKeeper is unread": (
        Phase.ZOOKEEPER,
        part(zookeeper=WHY),
        Phase.UNKNOWN,
        ("ZooKeeper could not be read: a test did not read it",),
    ),
    "ZooKeeper is unread after the copy": (Phase.DUAL_WRITE, part(zookeeper=WHY), Phase.DUAL_WRITE, ()),
    "a controller can't be seen": (
        Phase.ZOOKEEPER,
        a_controller(103, running=WHY),
        Phase.UNKNOWN,
        ("controller 103: a test did not read it",),
    ),
    "the controllers are gone but hold /controller": (
        Phase.ZOOKEEPER,
        zookeeper(controller=ControllerZnode(101, 4)),
        Phase.UNKNOWN,
        (
            (
                "/controller names KRaft controller 101, but the declared controllers do not run: start"
                " them, or read docs/rollback.md"
            ),
        ),
    ),
    "the controllers show no state but hold /controller": (
        Phase.PRE_MIGRATION,
        both(all_gauges(zk_migration_state=None), zookeeper(controller=ControllerZnode(101, 4)), UNSEEN),
        Phase.UNKNOWN,
        (
            (
                "/controller names KRaft controller 101, but the declared controllers show no migration"
                " state: start them, or read docs/rollback.md"
            ),
        ),
    ),
    "a broker is in KRaft mode and no controller runs": (
        Phase.ZOOKEEPER,
        broker(3, mode=BrokerMode.KRAFT),
        Phase.UNKNOWN,
        ("broker 3 is in KRaft mode, but none of the declared controllers runs: start them",),
    ),
}


CLAIMED = zookeeper(controller=ControllerZnode(101, 4))
COPIED = zookeeper(migration=MigrationZnode(999, 101, 4, 4))
ONLY_COPY = (
    ": a controller may hold the only copy of the metadata. Set no data aside, and see first whether 'zookeeper' in the"
    " cluster file is this cluster's"
)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (
            CLAIMED,
            ", and /controller names KRaft controller 101, though /migration shows no copy. Stop them, move their data"
            f" away, do as in {LEFT_CONTROLLER}, and provision them again, before a broker registers with them",
        ),
        (
            both(CLAIMED, COPIED),
            f", and /controller names KRaft controller 101{ONLY_COPY}. If it is: {LEFT_CONTROLLER}",
        ),
        (
            both(CLAIMED, broker(3, mode=BrokerMode.HYBRID)),
            f", and /controller names KRaft controller 101{ONLY_COPY}. If it is: {LEFT_CONTROLLER}",
        ),
        (
            both(CLAIMED, broker(3, mode=WHY)),
            f", and /controller names KRaft controller 101{ONLY_COPY}. If it is: {LEFT_CONTROLLER}",
        ),
        (both(CLAIMED, broker(3, mode=BrokerMode.KRAFT)), f", and broker 3 is in KRaft mode{ONLY_COPY}"),
        (part(zookeeper=WHY), ". Make ZooKeeper readable first: it shows whether their data may be set aside"),
    ],
)
def test_a_quorum_without_the_flag_beside_zookeeper_always_has_a_way_out(spoil: Spoil, told: str) -> None:
    """It ends in moving data away only where no copy can be in it."""
    formed = both(
        all_gauges(zk_migration_state=ZkMigrationState.NONE),
        with_quorum(migration_state_record=ZkMigrationState.NONE),
    )
    (reason,) = detect_phase(spoil(formed(observation(Phase.PRE_MIGRATION)))).reasons
    assert reason.partition(" is in zookeeper mode")[2] and reason.endswith(f" mode{told}")


LATE = Unread("it was not read in the 6 s that a look has", out_of_time=True)


@pytest.mark.parametrize("name", CASES)
def test_detects(name: str) -> None:
    base, spoil, phase, reasons = CASES[name]
    reading = detect_phase(spoil(observation(base)))
    assert reading.phase is phase
    assert not reasons or reading.reasons == reasons


TRANSIENT: dict[str, tuple[Phase, Spoil]] = {
    "the look had no time for ZooKeeper": (Phase.ZOOKEEPER, part(zookeeper=LATE)),
    "the look had no time for a controller": (Phase.ZOOKEEPER, a_controller(103, running=LATE)),
    "gauges of 0 where neither the log nor ZooKeeper can be read": (
        Phase.DUAL_WRITE,
        both(all_gauges(zk_migration_state=ZkMigrationState.NONE), UNSEEN, part(zookeeper=WHY)),
    ),
    "a controller's gauges are not there yet": (Phase.PRE_MIGRATION, both(a_controller(101, metrics=WHY), UNSEEN)),
    "a controller's port is open and it does not answer yet": (Phase.ZOOKEEPER, a_controller(102, running=True)),
    "controllers restarted together hold /controller and have not published": (
        Phase.PRE_MIGRATION,
        both(
            all_gauges(zk_migration_state=ZkMigrationState.NOT_PUBLISHED),
            zookeeper(controller=ControllerZnode(101, 4)),
            UNSEEN,
        ),
    ),
    "no ZooKeeper, and no controller leads yet": (Phase.KRAFT, UNSEEN),
    "no ZooKeeper, and the quorum forms": (Phase.KRAFT, both(NO_RECORD, with_quorum(metadata_version=None))),
    "a broker's port is open and it does not tell its mode yet": (Phase.HYBRID, both(broker(2, mode=WHY), UNSEEN)),
}
LASTING: dict[str, tuple[Phase, Spoil]] = {
    "the one that was behind": CASES["the only controller that is left was behind when the copy ended"][:2],
    "the look had no time for one controller, another is silent": (
        Phase.ZOOKEEPER,
        both(a_controller(102, running=WHY), a_controller(103, running=LATE)),
    ),
    "born in KRaft": CASES["born in KRaft"][:2],
    "no ZooKeeper in the file, and brokers that use it": CASES[
        "no ZooKeeper in the file, and brokers in ZooKeeper mode"
    ][:2],
    "no ZooKeeper, and every controller is down": CASES["no ZooKeeper, and every controller is down"][:2],
    "a quorum formed without the flag": CASES["a quorum was formed without the flag beside brokers in ZooKeeper mode"][
        :2
    ],
    "a controller without the flag": CASES["a controller without the flag was started"][:2],
    "no controller runs, and they hold /controller": CASES["the controllers are gone but hold /controller"][:2],
    "a broker is in KRaft mode and no controller runs": CASES["a broker is in KRaft mode and no controller runs"][:2],
}


@pytest.mark.parametrize("name", [*TRANSIENT, *LASTING])
def test_what_may_be_a_start_is_told_from_what_lasts(name: str) -> None:
    base, spoil = (TRANSIENT | LASTING)[name]
    reading = detect_phase(spoil(observation(base)))
    assert (reading.phase, reading.transient) == (Phase.UNKNOWN, name in TRANSIENT)


@given(
    st.sampled_from(KNOWN),
    st.sets(st.sampled_from(["zookeeper", "quorum", "topics", "hosts"])),
    st.sets(st.sampled_from(CONTROLLERS)),
    st.sets(st.sampled_from(BROKERS)),
)
def test_an_unread_part_never_changes_the_phase_into_another(
    phase: Phase, parts: set[str], controllers: set[int], brokers: set[int]
) -> None:
    """Reading less may only make the phase UNKNOWN."""
    less = part(**dict.fromkeys(parts, WHY))(observation(phase))
    for i in controllers:
        less = a_controller(i, running=WHY, mode=WHY, metrics=WHY)(less)
    for i in brokers:
        less = broker(i, running=WHY, mode=WHY, metrics=WHY)(less)
    assert detect_phase(less).phase in (phase, Phase.UNKNOWN)


MAY_RUN = {
    Step.PROVISION_CONTROLLERS: {Phase.ZOOKEEPER, Phase.PRE_MIGRATION},
    Step.ROLL_BROKERS_TO_HYBRID: {Phase.PRE_MIGRATION, Phase.HYBRID},
    Step.ROLL_BROKERS_TO_KRAFT: {Phase.HYBRID, Phase.DUAL_WRITE},
    Step.FINALIZE_CONTROLLERS: {Phase.DUAL_WRITE, Phase.FINALIZED},
    Step.DEPROVISION_CONTROLLERS: {Phase.PRE_MIGRATION, Phase.ZOOKEEPER},
    Step.ROLL_BROKERS_BACK_TO_HYBRID: {Phase.DUAL_WRITE, Phase.HYBRID},
    Step.LEAVE_KRAFT: {Phase.HYBRID, Phase.ZOOKEEPER},
    Step.ROLL_BROKERS_TO_ZOOKEEPER: {Phase.ZOOKEEPER},
    Step.SET_CONTROLLERS_ASIDE: {Phase.ZOOKEEPER},
}

WAYS_OUT = {
    Phase.UNKNOWN: (
        "make the parts named above readable (kraft-runbook explain says what is missing), then run the step again"
    ),
    Phase.FINALIZED: "nothing is left to migrate; rollback is impossible after finalization (KIP-866)",
    Phase.KRAFT: "there is nothing to migrate, and no ZooKeeper to go back to",
    (Step.PROVISION_CONTROLLERS, Phase.HYBRID): "this step's work is already done; continue with roll_brokers_to_kraft",
    (
        Step.PROVISION_CONTROLLERS,
        Phase.DUAL_WRITE,
    ): "this step's work is already done; continue with finalize_controllers",
    (Step.ROLL_BROKERS_TO_HYBRID, Phase.ZOOKEEPER): "first reach PRE_MIGRATION (provision_controllers)",
    (
        Step.ROLL_BROKERS_TO_HYBRID,
        Phase.DUAL_WRITE,
    ): "this step's work is already done; continue with finalize_controllers",
    (
        Step.ROLL_BROKERS_TO_KRAFT,
        Phase.ZOOKEEPER,
    ): "first reach HYBRID (roll_brokers_to_hybrid or roll_brokers_back_to_hybrid)",
    (
        Step.ROLL_BROKERS_TO_KRAFT,
        Phase.PRE_MIGRATION,
    ): "first reach HYBRID (roll_brokers_to_hybrid or roll_brokers_back_to_hybrid)",
    (Step.FINALIZE_CONTROLLERS, Phase.ZOOKEEPER): "first reach DUAL_WRITE (roll_brokers_to_kraft)",
    (Step.FINALIZE_CONTROLLERS, Phase.PRE_MIGRATION): "first reach DUAL_WRITE (roll_brokers_to_kraft)",
    (Step.FINALIZE_CONTROLLERS, Phase.HYBRID): "first reach DUAL_WRITE (roll_brokers_to_kraft)",
    (Step.DEPROVISION_CONTROLLERS, Phase.HYBRID): "from HYBRID the way back begins with leave_kraft",
    (
        Step.DEPROVISION_CONTROLLERS,
        Phase.DUAL_WRITE,
    ): "from DUAL_WRITE the way back begins with roll_brokers_back_to_hybrid",
    (Step.ROLL_BROKERS_BACK_TO_HYBRID, Phase.ZOOKEEPER): "this step's work is already done",
    (
        Step.ROLL_BROKERS_BACK_TO_HYBRID,
        Phase.PRE_MIGRATION,
    ): "this step's work is already done; continue with deprovision_controllers",
    (Step.LEAVE_KRAFT, Phase.PRE_MIGRATION): "from PRE_MIGRATION the way back begins with deprovision_controllers",
    (Step.LEAVE_KRAFT, Phase.DUAL_WRITE): "from DUAL_WRITE the way back begins with roll_brokers_back_to_hybrid",
    (
        Step.ROLL_BROKERS_TO_ZOOKEEPER,
        Phase.PRE_MIGRATION,
    ): "from PRE_MIGRATION the way back begins with deprovision_controllers",
    (Step.ROLL_BROKERS_TO_ZOOKEEPER, Phase.HYBRID): "from HYBRID the way back begins with leave_kraft",
    (
        Step.ROLL_BROKERS_TO_ZOOKEEPER,
        Phase.DUAL_WRITE,
    ): "from DUAL_WRITE the way back begins with roll_brokers_back_to_hybrid",
    (
        Step.SET_CONTROLLERS_ASIDE,
        Phase.PRE_MIGRATION,
    ): "from PRE_MIGRATION the way back begins with deprovision_controllers",
    (Step.SET_CONTROLLERS_ASIDE, Phase.HYBRID): "from HYBRID the way back begins with leave_kraft",
    (
        Step.SET_CONTROLLERS_ASIDE,
        Phase.DUAL_WRITE,
    ): "from DUAL_WRITE the way back begins with roll_brokers_back_to_hybrid",
}


def test_every_step_is_one_edge_of_the_table() -> None:
    assert [edge.step for edge in TABLE.edges] == list(Step)
    assert {edge.step: set(edge.may_run_in) for edge in TABLE.edges} == MAY_RUN


@pytest.mark.parametrize(("step", "phase"), [(s, p) for s, phases in MAY_RUN.items() for p in Phase if p in phases])
def test_a_step_runs_from_its_source_and_resumes(step: Step, phase: Phase) -> None:
    assert TABLE.require(step, PhaseReading(phase, ("seen",))).step is step


@pytest.mark.parametrize(("step", "phase"), [(s, p) for s, phases in MAY_RUN.items() for p in Phase if p not in phases])
def test_a_step_is_refused_anywhere_else_and_says_why(step: Step, phase: Phase) -> None:
    edge = next(e for e in TABLE.edges if e.step is step)
    with pytest.raises(Refused) as refused:
        TABLE.require(step, PhaseReading(phase, ("first reason", "second")))
    assert (
        refused.value.problem
        == f"{step.value} runs from {edge.source.value} to {edge.target.value}; the cluster is in {phase.value} (first"
        " reason; second)"
    )
    assert refused.value.way_out == (WAYS_OUT[phase] if phase in WAYS_OUT else WAYS_OUT[step, phase])


def test_the_way_forward_reaches_finalized_and_every_way_back_zookeeper() -> None:
    phase, steps = Phase.ZOOKEEPER, []
    while TABLE.forward_from(phase):
        (edge,) = TABLE.forward_from(phase)
        steps.append(edge.step)
        phase = edge.target
    assert (phase, steps) == (
        Phase.FINALIZED,
        [
            Step.PROVISION_CONTROLLERS,
            Step.ROLL_BROKERS_TO_HYBRID,
            Step.ROLL_BROKERS_TO_KRAFT,
            Step.FINALIZE_CONTROLLERS,
        ],
    )
    assert [e.step for e in TABLE.back_from(Phase.DUAL_WRITE)] == [Step.ROLL_BROKERS_BACK_TO_HYBRID]
    assert TABLE.back_from(Phase.FINALIZED) == ()


SETTLING = ["roll_brokers_to_zookeeper", "set_controllers_aside"]


@pytest.mark.parametrize(
    ("phase", "possible", "steps"),
    [
        (Phase.ZOOKEEPER, True, []),
        (Phase.PRE_MIGRATION, True, ["deprovision_controllers", *SETTLING]),
        (Phase.HYBRID, True, ["leave_kraft", *SETTLING]),
        (Phase.DUAL_WRITE, True, ["roll_brokers_back_to_hybrid", "leave_kraft", *SETTLING]),
        (Phase.FINALIZED, False, []),
        (Phase.UNKNOWN, False, []),
    ],
)
def test_rollback_is_known_from_every_phase(phase: Phase, possible: bool, steps: list[str]) -> None:
    plan = rollback_plan(phase)
    assert plan.possible is possible
    assert [s.partition(":")[0] for s in plan.steps] == steps
    assert not steps or any("fenced" in risk for risk in plan.risks)


def test_a_step_is_past_only_beyond_its_target() -> None:
    assert [p for p in Phase if TABLE.already_past(Step.ROLL_BROKERS_TO_HYBRID, p)] == [
        Phase.DUAL_WRITE,
        Phase.FINALIZED,
    ]
    assert not TABLE.already_past(Step.PROVISION_CONTROLLERS, Phase.UNKNOWN)
    assert [p for p in Phase if TABLE.already_past(Step.ROLL_BROKERS_BACK_TO_HYBRID, p)] == [
        Phase.ZOOKEEPER,
        Phase.PRE_MIGRATION,
    ]
