"""The phases between ZooKeeper and KRaft, and how one is observed. Any operation may ask for it.

No variable, XCom or file remembers a phase: ``detect_phase`` derives it from an observation (KIP-866; metrics as
measured on Kafka 3.9.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kraft_runbook.cluster.birth import born_in_kraft, held_by_zookeeper, log_says_none
from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    ControllerMode,
    Unread,
    ZkMigrationState,
    ZookeeperState,
    was_read,
)
from kraft_runbook.errors import Unreachable


class Phase(StrEnum):
    """The phase of a cluster between ZooKeeper and KRaft. Each states what is true now."""

    ZOOKEEPER = "ZOOKEEPER"
    """ZooKeeper holds the metadata; no migration controllers run."""
    PRE_MIGRATION = "PRE_MIGRATION"
    """Migration controllers run and wait; brokers are restarted in migration mode; then the metadata is copied."""
    HYBRID = "HYBRID"
    """The metadata copy is done. A KRaft controller leads and also writes to ZooKeeper. No broker is in KRaft mode."""
    DUAL_WRITE = "DUAL_WRITE"
    """As HYBRID, with at least one broker in KRaft mode."""
    FINALIZED = "FINALIZED"
    """A controller without the migration flag has led. ZooKeeper is no longer written. No rollback is possible."""
    KRAFT = "KRAFT"
    """A cluster in KRaft mode whose file names no ZooKeeper and whose log shows no migration: there is nothing to
    migrate.
    """
    UNKNOWN = "UNKNOWN"
    """The observation proves no phase. Every step is refused."""


FOR_GOOD = frozenset({Phase.FINALIZED, Phase.KRAFT})
"""Phases of a cluster that is in KRaft mode for good. One on Kafka 4 goes from one to the other and back by itself: a
snapshot of 3.9 holds the state of a migration, one of Kafka 4 does not, and each leader tells its own newest.
"""


@dataclass(frozen=True, slots=True)
class PhaseReading:
    """The observed phase and why. For UNKNOWN, ``reasons`` names what could not be read, or the contradiction.

    ``transient``: a starting controller or broker shows the same for some moments (docs/interruptions.md), or the look
    itself ended too early. ``procedures.settled`` then looks again before anything is refused.
    """

    phase: Phase
    reasons: tuple[str, ...]
    transient: bool = False

    @property
    def stage(self) -> str:
        return self.phase.value


MIGRATING = (ZkMigrationState.PRE_MIGRATION, ZkMigrationState.MIGRATION)
"""The states of a migration in progress."""


def detect_phase(seen: ClusterObservation) -> PhaseReading:
    """Derive the phase. Nothing unread is guessed: if the parts that were read prove no phase, it is UNKNOWN, with the
    reasons.

    The metadata log's record counts as well as the controllers' gauges: the record is committed, while a gauge can be
    behind. A gauge of 0 (NONE) alone proves nothing: see ``birth``.
    """
    states = {c.id: c.metrics.zk_migration_state for c in seen.controllers.values() if was_read(c.metrics)}
    recorded = seen.quorum.migration_state_record if was_read(seen.quorum) else None
    shown = set(states.values()) | {recorded}
    if ZkMigrationState.POST_MIGRATION in shown:
        return PhaseReading(Phase.FINALIZED, (_say(states, ZkMigrationState.POST_MIGRATION),))
    if not seen.has_zookeeper:
        return _without_zookeeper(seen, states, recorded)
    silent = [
        f"controller {c.id}'s metrics: {_why(c.metrics)}"
        for c in seen.controllers.values()
        if c.running is not False and not was_read(c.metrics)
    ]
    for state, phases in (
        (ZkMigrationState.MIGRATION, "HYBRID, DUAL_WRITE or FINALIZED"),
        (ZkMigrationState.PRE_MIGRATION, "PRE_MIGRATION or a later phase"),
    ):
        if state not in shown:
            continue
        if silent and recorded is None:
            return PhaseReading(Phase.UNKNOWN, (f"{_say(states, state)}, so it is {phases}", *silent), transient=True)
        if state is ZkMigrationState.MIGRATION:
            return _after_the_copy(seen, states)
        if told := _copied_by_kraft(seen):
            why = f"{_say(states, state)}, which may be behind: {told}"
            return PhaseReading(Phase.UNKNOWN, (why,), transient=_a_majority_runs(seen))
        return PhaseReading(Phase.PRE_MIGRATION, (_say(states, state),))
    if log_says_none(seen):
        return _formed_without_the_flag(seen, states)
    if ZkMigrationState.NONE in shown and not was_read(seen.quorum) and not held_by_zookeeper(seen):
        told = (
            f"{_say(states, ZkMigrationState.NONE)}, as on a cluster created in KRaft mode and on a controller that has"
            " published nothing yet"
        )
        return PhaseReading(
            Phase.UNKNOWN,
            (told, f"the metadata log, which shows the difference, could not be read: {seen.quorum.reason}"),
            transient=True,
        )
    return _without_a_migration_state(seen)


def awaits_the_copy(seen: ClusterObservation) -> bool:
    """Whether ZooKeeper's controller still leads, and migration controllers wait: in PRE_MIGRATION, and where a gauge
    says so, none a later state, and what is silent leaves the phase UNKNOWN.
    """
    if detect_phase(seen).phase is Phase.PRE_MIGRATION:
        return True
    shown = {each.metrics.zk_migration_state for each in seen.controllers.values() if was_read(each.metrics)}
    return ZkMigrationState.PRE_MIGRATION in shown and not shown & {
        ZkMigrationState.MIGRATION,
        ZkMigrationState.POST_MIGRATION,
    }


def kept_in_kraft(seen: ClusterObservation) -> str | None:
    """What shows that controllers held the metadata, whatever those that run now show."""
    in_kraft = seen.brokers_in(BrokerMode.KRAFT)
    if in_kraft:
        return f"{nodes('broker', in_kraft, 'is')} in KRaft mode"
    return _claimed_by_kraft(seen.zookeeper) if was_read(seen.zookeeper) else None


def known_phase(seen: ClusterObservation) -> Phase:
    """Raises Unreachable where a look proves none."""
    reading = detect_phase(seen)
    if reading.phase is Phase.UNKNOWN:
        raise Unreachable(
            f"the cluster's phase is UNKNOWN: {'; '.join(reading.reasons)}",
            way_out="make readable what is named, then clear this task",
        )
    return reading.phase


def _without_zookeeper(
    seen: ClusterObservation, states: dict[int, ZkMigrationState | None], recorded: ZkMigrationState | None
) -> PhaseReading:
    """The phase of a cluster whose file names no ZooKeeper, and which shows no final state. The metadata log decides,
    since Kafka 4 has no gauge of the state.
    """
    shown = set(states.values()) | {recorded}
    used = [*(_say(states, state) for state in MIGRATING if state in shown), *held_by_zookeeper(seen)]
    if used:
        told = (
            f"the cluster file names no ZooKeeper, but {'; '.join(used)}: name the ensemble under 'zookeeper' in the"
            " cluster file"
        )
        return PhaseReading(Phase.UNKNOWN, (told,))
    if not was_read(seen.quorum):
        told = (
            "the metadata log could not be read, and without ZooKeeper nothing else shows a migration:"
            f" {seen.quorum.reason}"
        )
        return PhaseReading(Phase.UNKNOWN, (told,), transient=_a_majority_runs(seen))
    if not log_says_none(seen):
        return PhaseReading(
            Phase.UNKNOWN, ("the metadata log holds no metadata.version yet: its quorum is forming",), transient=True
        )
    if ZkMigrationState.NONE in shown:
        return PhaseReading(
            Phase.KRAFT, (f"{_say(states, ZkMigrationState.NONE)}: this cluster was created in KRaft mode",)
        )
    told = (
        "the metadata log holds no migration state: this cluster was created in KRaft mode, or runs Kafka 4, whose"
        " snapshots drop the state of a migration"
    )
    return PhaseReading(Phase.KRAFT, (told,))


def _formed_without_the_flag(seen: ClusterObservation, states: dict[int, ZkMigrationState | None]) -> PhaseReading:
    said = _say(states, ZkMigrationState.NONE)
    if "on controller" in said:
        said += " and in the metadata log"
    held = held_by_zookeeper(seen)
    if held:
        told = f"{said}: these controllers formed their quorum without the migration flag, but {', '.join(held)}"
        return PhaseReading(Phase.UNKNOWN, (f"{told}{_way_out_of_a_quorum_beside_zookeeper(seen)}",))
    if born_in_kraft(seen):
        return PhaseReading(
            Phase.UNKNOWN, (f"{said}: this cluster was created in KRaft mode, there is nothing to migrate",)
        )
    unread = [
        f"broker {i}'s mode could not be read: {_why(seen.brokers[i].mode)}" for i in seen.brokers_of_unknown_mode()
    ]
    return PhaseReading(Phase.UNKNOWN, (f"{said}: the quorum was formed without the migration flag", *unread))


LEFT_CONTROLLER = "docs/rollback.md, '/controller names a KRaft controller that is gone'"
"""Where to read what to do with it."""


def _way_out_of_a_quorum_beside_zookeeper(seen: ClusterObservation) -> str:
    """What becomes of the data of controllers whose log says that there is no migration. A copy may be in another
    controller's log alone where brokers are in KRaft mode or /controller names a KRaft controller. Not where /migration
    says that no copy ended and every broker is in ZooKeeper mode.
    """
    if not was_read(seen.zookeeper):
        return ". Make ZooKeeper readable first: it shows whether their data may be set aside"
    if not (kept := kept_in_kraft(seen)):
        return ". Stop them, move their data away and provision them again, before a broker registers with them"
    migration = seen.zookeeper.migration
    copied = migration is not None and migration.holds_a_copy
    if not copied and all(each.mode is BrokerMode.ZOOKEEPER for each in seen.brokers.values()):
        return (
            f", and {kept}, though /migration shows no copy. Stop them, move their data away, do as in"
            f" {LEFT_CONTROLLER}, and provision them again, before a broker registers with them"
        )
    told = (
        f", and {kept}: a controller may hold the only copy of the metadata. Set no data aside, and see first whether"
        " 'zookeeper' in the cluster file is this cluster's"
    )
    return told if seen.brokers_in(BrokerMode.KRAFT) else f"{told}. If it is: {LEFT_CONTROLLER}"


def _say(states: dict[int, ZkMigrationState | None], value: ZkMigrationState) -> str:
    ids = [i for i, state in sorted(states.items()) if state == value]
    where = f"on {nodes('controller', ids)}" if ids else "in the metadata log"
    return f"ZkMigrationState is {value.value} ({value.name}) {where}"


def _after_the_copy(seen: ClusterObservation, states: dict[int, ZkMigrationState | None]) -> PhaseReading:
    said = _say(states, ZkMigrationState.MIGRATION)
    in_kraft = seen.brokers_in(BrokerMode.KRAFT)
    if in_kraft:
        return PhaseReading(Phase.DUAL_WRITE, (said, f"{nodes('broker', in_kraft, 'is')} in KRaft mode"))
    unknown = seen.brokers_of_unknown_mode()
    if unknown:
        reasons = [f"broker {i}'s mode could not be read: {_why(seen.brokers[i].mode)}" for i in unknown]
        return PhaseReading(Phase.UNKNOWN, (f"{said}, so it is HYBRID or DUAL_WRITE", *reasons), transient=True)
    return PhaseReading(Phase.HYBRID, (said, "no broker is in KRaft mode"))


def _without_a_migration_state(seen: ClusterObservation) -> PhaseReading:
    """The phase where no controller shows a state: none runs (ZOOKEEPER), they are starting, or they can't be read."""
    unseen = [f"controller {c.id}: {_why(c.running)}" for c in seen.controllers.values() if not was_read(c.running)]
    running = [c for c in seen.controllers.values() if c.running is True]
    if not was_read(seen.zookeeper):
        told = f"ZooKeeper could not be read: {seen.zookeeper.reason}"
        return PhaseReading(Phase.UNKNOWN, (told, *unseen), transient=seen.zookeeper.out_of_time)
    if unseen:
        late = all(c.running.out_of_time for c in seen.controllers.values() if not was_read(c.running))
        return PhaseReading(Phase.UNKNOWN, tuple(unseen), transient=late)
    claimed = _claimed_by_kraft(seen.zookeeper)
    if claimed:
        which = "show no migration state" if running else "do not run"
        told = f"{claimed}, but the declared controllers {which}: start them, or read docs/rollback.md"
        return PhaseReading(Phase.UNKNOWN, (told,), transient=bool(running))
    if running:
        mute = [
            f"controller {c.id}'s port answers, but not like a controller: {_why(c.mode)}"
            for c in running
            if not was_read(c.mode)
        ]
        mute += [
            f"controller {c.id}'s metrics: {_why(c.metrics)}"
            for c in running
            if was_read(c.mode) and not was_read(c.metrics)
        ]
        if mute:
            return PhaseReading(Phase.UNKNOWN, tuple(mute), transient=True)
        if any(c.mode == ControllerMode.KRAFT for c in running):
            unflagged = [c.id for c in running if c.mode == ControllerMode.KRAFT]
            told = nodes("controller", unflagged, "runs")
            if in_kraft := seen.brokers_in(BrokerMode.KRAFT):
                told = f"{told} without the migration flag and {by_number(unflagged, 'shows', 'show')} no state yet"
                why = f"{told}, and {nodes('broker', in_kraft, 'is')} in KRaft mode"
                return PhaseReading(Phase.UNKNOWN, (why,), transient=True)
            stop = by_number(unflagged, "stop it before it leads", "stop them before one leads")
            return PhaseReading(Phase.UNKNOWN, (f"{told} without the migration flag: {stop} a quorum",))
        told = nodes("controller", [c.id for c in running], "runs")
        return PhaseReading(
            Phase.PRE_MIGRATION,
            (f"{told}, the quorum has published nothing yet, and the metadata was not copied",),
        )
    in_kraft = seen.brokers_in(BrokerMode.KRAFT)
    if in_kraft:
        told = nodes("broker", in_kraft, "is")
        return PhaseReading(
            Phase.UNKNOWN, (f"{told} in KRaft mode, but none of the declared controllers runs: start them",)
        )
    return PhaseReading(Phase.ZOOKEEPER, ("no declared controller runs, and /controller names no KRaft controller",))


def _claimed_by_kraft(zookeeper: ZookeeperState) -> str | None:
    if zookeeper.controller is not None and zookeeper.controller.kraft_controller_epoch >= 0:
        return f"/controller names KRaft controller {zookeeper.controller.broker_id}"
    return None


def _a_majority_runs(seen: ClusterObservation) -> bool:
    """Whether a leader may still be elected by itself."""
    return 2 * sum(c.running is True for c in seen.controllers.values()) > len(seen.controllers)


def _copied_by_kraft(seen: ClusterObservation) -> str | None:
    """That the copy has ended, where the quorum tells nothing: a controller that was behind when the others ended goes
    on showing PRE_MIGRATION.
    """
    if was_read(seen.quorum) or not was_read(seen.zookeeper) or seen.zookeeper.migration is None:
        return None
    claimed = _claimed_by_kraft(seen.zookeeper) if seen.zookeeper.migration.holds_a_copy else None
    return f"{claimed}, and /migration has a copy's offset" if claimed else None


def _why(part: object) -> str:
    return part.reason if isinstance(part, Unread) else "unknown"
