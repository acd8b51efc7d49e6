"""Observations of the lab's cluster in each phase and half-way between two, healthy and with one thing amiss: what
real clusters showed in the tests of the faults, of the copy and of finalization, kept as values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from observations import (
    SPEC,
    WHY,
    Spoil,
    a_controller,
    both,
    broker,
    gauges,
    observation,
    part,
    topics,
    with_quorum,
    zookeeper,
)

from kraft_runbook.cluster.observation import (
    NO_ZOOKEEPER,
    BrokerMode,
    ClusterObservation,
    ControllerMetrics,
    ControllerMode,
    ControllerZnode,
    MigrationZnode,
    ZkMigrationState,
    was_read,
)
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec

WITHOUT = SPEC.model_copy(update={"zookeeper": None})
HANG = {"mode": WHY, "metrics": WHY, "silent": True}
UNREAD = {"running": False, "mode": WHY, "metrics": WHY}


def all_of(spoil: str, ids: tuple[int, ...], **changes: object) -> Spoil:
    make = broker if spoil == "broker" else a_controller
    return both(*(make(each, **changes) for each in ids))


def unled(seen: ClusterObservation) -> ClusterObservation:
    """No controller's gauge says that it leads."""
    for each in seen.controllers.values():
        seen = gauges(each.id, active=False)(seen) if was_read(each.metrics) else seen
    return replace(seen, quorum=WHY)


HALF_WAY: dict[str, tuple[Phase, Spoil]] = {
    "the first broker is in migration mode": (Phase.PRE_MIGRATION, broker(1, mode=BrokerMode.HYBRID)),
    "every broker is in migration mode, not copied yet": (
        Phase.PRE_MIGRATION,
        all_of("broker", (1, 2, 3), mode=BrokerMode.HYBRID),
    ),
    "the first broker is in KRaft mode": (Phase.HYBRID, broker(1, mode=BrokerMode.KRAFT)),
    "two brokers are in KRaft mode": (Phase.DUAL_WRITE, broker(3, mode=BrokerMode.HYBRID)),
    "the first controller is without the flag, to finalize": (
        Phase.DUAL_WRITE,
        a_controller(102, mode=ControllerMode.KRAFT),
    ),
    "a controller's gauge is behind the end": (
        Phase.FINALIZED,
        gauges(103, zk_migration_state=ZkMigrationState.MIGRATION),
    ),
}
"""What a healthy run shows between two phases."""

AMISS: dict[str, Spoil] = {
    "a broker is down": broker(2, running=False),
    "a broker is down and unread": broker(2, **UNREAD),
    "a broker is down and was left behind": broker(2, running=False, mode=BrokerMode.HYBRID),
    "two brokers are down": all_of("broker", (1, 3), running=False),
    "a broker hangs": broker(2, metrics=WHY, silent=True),
    "a broker does not tell its mode": broker(2, mode=WHY),
    "a controller is down": a_controller(103, **UNREAD),
    "a controller hangs": a_controller(103, **HANG),
    "two controllers are down": both(all_of("controller", (101, 103), **UNREAD), part(quorum=WHY)),
    "two controllers hang": both(all_of("controller", (101, 103), **HANG), part(quorum=WHY)),
    "every controller is down": both(all_of("controller", (101, 102, 103), **UNREAD), part(quorum=WHY)),
    "an election": unled,
    "the quorum can't be read": part(quorum=WHY),
    "ZooKeeper is down": part(zookeeper=WHY),
    "the topics could not be read": part(topics=WHY),
    "a controller without the flag": a_controller(102, mode=ControllerMode.KRAFT),
    "a broker that was left behind": broker(2, mode=BrokerMode.HYBRID),
    "everything is down": both(
        part(zookeeper=WHY, quorum=WHY, topics=WHY),
        all_of("broker", (1, 2, 3), **UNREAD),
        all_of("controller", (101, 102, 103), **UNREAD),
    ),
}
"""One thing amiss, as the cases of the fault matrix leave it."""


def died_in_the_copy(*still: int) -> ClusterObservation:
    """As on the cluster of tests/integration/test_died_in_the_copy; ``still``: controllers that run on."""
    seen = observation(Phase.PRE_MIGRATION)
    for i in SPEC.controller_ids:
        seen = a_controller(i, running=i in still, mode=WHY, metrics=WHY)(seen)
    seen = all_of("broker", SPEC.broker_ids, mode=BrokerMode.HYBRID)(seen)
    seen = zookeeper(controller=ControllerZnode(102, 5), migration=MigrationZnode(-1, -1, -1, -1))(seen)
    return replace(seen, quorum=WHY)


def never_elected() -> ClusterObservation:
    """As three controllers that log in to each other by SCRAM: their ports are open, they answer nobody who logs in,
    and none is ever elected. Their gauge is -1.
    """
    seen = observation(Phase.ZOOKEEPER)
    gauges = ControllerMetrics(ZkMigrationState.NOT_PUBLISHED, False, None, None)
    for i in SPEC.controller_ids:
        seen = a_controller(i, running=True, mode=WHY, metrics=gauges)(seen)
    return replace(zookeeper(migration=MigrationZnode(-1, -1, -1, -1))(seen), quorum=WHY)


def end_untold(phase: Phase = Phase.HYBRID) -> ClusterObservation:
    """The controller that copied, 102 in epoch 3, died before it wrote the copy's end to /migration."""
    found = {"controller": ControllerZnode(102, 3), "migration": MigrationZnode(-1, 102, -1, 3)}
    return zookeeper(**found)(observation(phase))


def came_back() -> ClusterObservation:
    """After leave_kraft, with every broker still in migration mode, controller 102 was started again with its data."""
    left = zookeeper(controller=ControllerZnode(2, -1), migration=None)(observation(Phase.HYBRID))
    return AMISS["two controllers are down"](left)


def behind_the_copy() -> Iterator[tuple[str, ClusterObservation, ClusterSpec]]:
    """After the copy, with two things amiss, where few or none are left that know of it."""
    two, every = AMISS["two controllers are down"], AMISS["every controller is down"]
    who = {
        "a controller is down": AMISS["a controller is down"],
        "two controllers are down": two,
        "every controller is down": every,
        "nobody leads": unled,
    }
    for phase in (Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED):
        seen = observation(phase)
        for what in ("a broker is down and unread", "a broker does not tell its mode", "a broker hangs"):
            for controllers, spoil in who.items():
                yield f"{phase}, {controllers}, {what}", spoil(AMISS[what](seen)), SPEC
        away = part(zookeeper=WHY)
        yield f"{phase}, every controller and ZooKeeper are down", both(every, away)(seen), SPEC
        mute_brokers = all_of("broker", SPEC.broker_ids, mode=WHY)
        yield f"{phase}, the same, and no broker tells its mode", both(every, away, mute_brokers)(seen), SPEC
        yield f"{phase}, two controllers and ZooKeeper are down", both(two, away)(seen), SPEC
        yield f"{phase}, nobody leads and ZooKeeper is down", both(unled, away)(seen), SPEC
        one_mute = both(two, away, AMISS["a broker does not tell its mode"])
        yield f"{phase}, two controllers and ZooKeeper are down, a broker is mute", one_mute(seen), SPEC
        mute = gauges(102, zk_migration_state=ZkMigrationState.NOT_PUBLISHED)(seen)
        yield f"{phase}, one controller runs and shows nothing", two(mute), SPEC
        unflagged = a_controller(102, mode=ControllerMode.KRAFT)
        yield f"{phase}, one runs without the flag", two(unflagged(mute)), SPEC
        if phase is Phase.DUAL_WRITE:
            half = both(broker(3, mode=BrokerMode.HYBRID), unflagged)(seen)
            for controllers, spoil in who.items():
                yield f"half rolled, one runs without the flag, {controllers}", spoil(half), SPEC
    for phase in (Phase.HYBRID, Phase.DUAL_WRITE):
        seen = observation(phase)
        behind = gauges(102, zk_migration_state=ZkMigrationState.PRE_MIGRATION)(seen)
        yield f"{phase}, the one that runs was behind", two(behind), SPEC
        other = with_quorum(migration_state_record=ZkMigrationState.NONE)(seen)
        for i in SPEC.controller_ids:
            other = gauges(i, zk_migration_state=ZkMigrationState.NONE)(other)
        yield f"{phase}, a quorum without the flag leads", broker(2, mode=BrokerMode.HYBRID)(other), SPEC


def healthy() -> Iterator[tuple[str, ClusterObservation, ClusterSpec]]:
    """Every phase and half-way between two, with and without ZooKeeper in the cluster file."""
    for phase in Phase:
        if phase is Phase.UNKNOWN:
            continue
        if phase is not Phase.KRAFT:
            yield phase.value, observation(phase), SPEC
        yield f"{phase}, no ZooKeeper in the file", part(zookeeper=NO_ZOOKEEPER)(observation(phase)), WITHOUT
    for name, (phase, spoil) in HALF_WAY.items():
        yield f"{phase}, {name}", spoil(observation(phase)), SPEC


def kept() -> Iterator[tuple[str, ClusterObservation, ClusterSpec]]:
    """The healthy ones, and each of them with each thing amiss."""
    for name, seen, spec in healthy():
        yield name, seen, spec
        for what, spoil in AMISS.items():
            if spec.zookeeper is None and "ZooKeeper" in what:
                continue
            spoilt = spoil(seen)
            yield f"{name}, {what}", spoilt if spec.zookeeper else replace(spoilt, zookeeper=NO_ZOOKEEPER), spec
    for still in ((), (103,), (102, 103)):
        yield f"died in the copy, {still} run on", died_in_the_copy(*still), SPEC
    shown = observation(Phase.PRE_MIGRATION).controllers[103].metrics
    alone = a_controller(103, metrics=shown)(died_in_the_copy(103))
    yield "died in the copy, the last one runs on and shows PRE_MIGRATION", alone, SPEC
    for phase in (Phase.HYBRID, Phase.DUAL_WRITE):
        yield f"{phase}, /migration has no offset", end_untold(phase), SPEC
    half = broker(2, mode=BrokerMode.HYBRID)(end_untold(Phase.DUAL_WRITE))
    yield "a broker is in KRaft mode, /migration has no offset", half, SPEC
    yield "a broker is down, /migration has no offset", broker(2, running=False)(end_untold()), SPEC
    yield "controllers run and elect no leader, nothing was copied", never_elected(), SPEC
    yield "a controller came back after the migration was left", came_back(), SPEC
    behind = topics(out_of_sync_by_broker={3: 43})
    yield "a broker is out of sync after the copy", behind(observation(Phase.HYBRID)), SPEC
    left = broker(2, mode=BrokerMode.HYBRID)(observation(Phase.ZOOKEEPER))
    yield "a rollback left replicas out of sync", behind(left), SPEC


def pairs() -> Iterator[tuple[str, ClusterObservation, ClusterSpec]]:
    """The healthy ones, each with two things amiss."""
    for name, seen, spec in healthy():
        for (what, one), (besides, other) in combinations(AMISS.items(), 2):
            if spec.zookeeper is None and "ZooKeeper" in what + besides:
                continue
            spoilt = both(one, other)(seen)
            yield f"{name}, {what}, {besides}", spoilt if spec.zookeeper else part(zookeeper=NO_ZOOKEEPER)(spoilt), spec
