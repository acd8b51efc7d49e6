"""Which nodes keep the migration from going on, each with its reasons: what KIP-866 meant by brokers and controllers
that are not eligible, and Kafka never shipped as metrics. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.runbook.versions import version_parts

CAN_MIGRATE = (3, 9)
AFTER = frozenset({Phase.FINALIZED, Phase.KRAFT})


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


def _brokers(seen: ClusterObservation) -> Iterator[NotEligible]:
    registered = seen.quorum.registrations if was_read(seen.quorum) else None
    for broker in seen.brokers.values():
        for reason in _of_mode(broker.running, broker.mode):
            yield NotEligible("broker", broker.id, reason)
        if was_read(broker.software_version) and version_parts(broker.software_version)[:2] != CAN_MIGRATE:
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
