"""Which nodes keep the migration from going on, each with its reasons, how far ZooKeeper is behind, and how long its
writes take: what KIP-866 meant by brokers and controllers that are not eligible, and Kafka never shipped as metrics.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kraft_runbook.cluster.kafka_version import release_of
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase

CAN_MIGRATE = (3, 9)
AFTER = frozenset({Phase.FINALIZED, Phase.KRAFT})
WRITES_BOTH = frozenset({Phase.HYBRID, Phase.DUAL_WRITE})


class Reason(StrEnum):
    """DOWN: does not run. UNREAD: its mode is not known. SOFTWARE: a Kafka that can't migrate. NOT_IN_MIGRATION_MODE: a
    broker in ZooKeeper mode. NOT_REGISTERED: with the quorum. WITHOUT_FLAG: a controller without
    zookeeper.metadata.migration.enable.
    """

    DOWN = "down"
    UNREAD = "unread"
    SOFTWARE = "software"
    NOT_IN_MIGRATION_MODE = "not_in_migration_mode"
    NOT_REGISTERED = "not_registered"
    WITHOUT_FLAG = "without_flag"

    @property
    def told(self) -> str:
        """For a person."""
        return TOLD[self]


TOLD = {
    Reason.DOWN: "it does not run",
    Reason.UNREAD: "its mode could not be read",
    Reason.SOFTWARE: f"it does not run Kafka {'.'.join(map(str, CAN_MIGRATE))}",
    Reason.NOT_IN_MIGRATION_MODE: "it is in ZooKeeper mode",
    Reason.NOT_REGISTERED: "it is not registered with the quorum",
    Reason.WITHOUT_FLAG: "it runs without zookeeper.metadata.migration.enable",
}


@dataclass(frozen=True, slots=True)
class NotEligible:
    """``role``: broker or controller."""

    role: str
    node_id: int
    reason: Reason


def not_eligible(seen: ClusterObservation) -> tuple[NotEligible, ...]:
    """The nodes that are not ready for the metadata copy, or not for what follows it. None once it is final."""
    phase = detect_phase(seen).phase
    return () if phase in AFTER else tuple([*_brokers(seen), *_controllers(seen, phase)])


def zookeeper_behind(seen: ClusterObservation) -> int | None:
    """How many committed records /migration does not show as written to ZooKeeper; None outside dual write, or where
    that was not read. Kafka's own ZkWriteBehindLag stays 0 once dual write has stopped (measured).
    """
    quorum, zookeeper = seen.quorum, seen.zookeeper
    if detect_phase(seen).phase not in WRITES_BOTH or not was_read(quorum) or not was_read(zookeeper):
        return None
    written = zookeeper.migration
    return None if written is None else max(0, quorum.high_watermark - 1 - written.kraft_metadata_offset)


def zookeeper_write_ms(seen: ClusterObservation) -> float | None:
    """In dual write 99 % of the changes took the active controller less than this many milliseconds to write to
    ZooKeeper, one after the other (Kafka's ZkWriteDeltaTimeMs, since that process began); None outside dual write, or
    where its exporter does not show it.
    """
    active = seen.active_controller
    if detect_phase(seen).phase not in WRITES_BOTH or active is None or not was_read(active.metrics):
        return None
    return active.metrics.zk_write_delta_p99_ms


def _brokers(seen: ClusterObservation) -> Iterator[NotEligible]:
    registered = seen.quorum.registrations if was_read(seen.quorum) else None
    for broker in seen.brokers.values():
        for reason in _of_mode(broker.running, broker.mode):
            yield NotEligible("broker", broker.id, reason)
        if was_read(broker.software_version) and release_of(broker.software_version) != CAN_MIGRATE:
            yield NotEligible("broker", broker.id, Reason.SOFTWARE)
        if broker.mode is BrokerMode.ZOOKEEPER:
            yield NotEligible("broker", broker.id, Reason.NOT_IN_MIGRATION_MODE)
        elif was_read(broker.mode) and registered is not None and broker.id not in registered:
            yield NotEligible("broker", broker.id, Reason.NOT_REGISTERED)


def _controllers(seen: ClusterObservation, phase: Phase) -> Iterator[NotEligible]:
    for controller in seen.controllers.values():
        if phase is Phase.ZOOKEEPER and controller.running is False:
            continue  # it is provisioned later
        for reason in _of_mode(controller.running, controller.mode):
            yield NotEligible("controller", controller.id, reason)
        if controller.mode is ControllerMode.KRAFT:
            yield NotEligible("controller", controller.id, Reason.WITHOUT_FLAG)


def _of_mode(running: object, mode: object) -> Iterator[Reason]:
    if running is False:
        yield Reason.DOWN
    elif not was_read(running) or not was_read(mode):
        yield Reason.UNREAD
