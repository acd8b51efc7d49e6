"""Which properties a mode refuses or has no use for, so that they are left out of the file that is rendered for it.
Pure.

Read in Kafka 3.9.2's ``KafkaConfig.validateValues``: a process whose file holds what its mode refuses does not start.
What is only of no use is accepted without a word, but would keep ZooKeeper's secrets on a host that has left ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.observation import BrokerMode, ControllerMode

Mode = BrokerMode | ControllerMode

IN_KRAFT: frozenset[Mode] = frozenset({BrokerMode.KRAFT, ControllerMode.KRAFT})
"""Where nothing of ZooKeeper is left. The two are equal texts, so a rule that names one holds for both."""
ON_ZOOKEEPER: frozenset[Mode] = frozenset({BrokerMode.ZOOKEEPER, BrokerMode.HYBRID})
CONTROLLERS: frozenset[Mode] = frozenset(ControllerMode)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A property, or with a dot at its end all whose names begin so, that is left out in ``modes``.

    ``refused``: whether Kafka does not start with it there; else it is of no use. ``so`` says what follows for the
    operator. ``when``: of which values that holds.
    """

    key: str
    modes: frozenset[Mode]
    refused: bool
    so: str
    when: Callable[[str], bool] | None = None

    def matches(self, key: str, value: str) -> bool:
        named = key.startswith(self.key) if self.key.endswith(".") else key == self.key
        return named and (self.when is None or self.when(value))


def _names_consumer(value: str) -> bool:
    return "CONSUMER" in (each.strip().upper() for each in value.split(","))


LEFT_OUT: tuple[LeftOut, ...] = (
    LeftOut(
        "control.plane.listener.name",
        IN_KRAFT | CONTROLLERS,
        True,
        "brokers fetch metadata from the controllers, so nobody uses the listener that it names, but it stays open to"
        " clients as any other: close its port to them, and take it out of brokers[].listeners once the migration is"
        " final",
    ),
    LeftOut(
        "group.coordinator.rebalance.protocols",
        ON_ZOOKEEPER,
        True,
        "the consumer protocol (KIP-848) exists in KRaft mode alone: groups that use it can't be served after a way"
        " back",
        when=_names_consumer,
    ),
    LeftOut("zookeeper.", IN_KRAFT, False, "nothing there speaks to ZooKeeper"),
    LeftOut(
        "authorizer.zookeeper.", IN_KRAFT | CONTROLLERS, False, "StandardAuthorizer keeps ACLs in the metadata log"
    ),
    LeftOut("password.encoder.", IN_KRAFT, False, "dynamic passwords are in the metadata log, not encoded"),
)

ZOOKEEPER_KEYS = tuple(each.key for each in LEFT_OUT if each.modes >= IN_KRAFT and not each.refused)
"""What the beginning of a property's name shows to be of no use once ZooKeeper is left."""


def fitting(properties: Mapping[str, str], mode: Mode) -> dict[str, str]:
    """The properties without those that the mode refuses or has no use for."""
    return {key: value for key, value in properties.items() if left_out(key, value, mode) is None}


def left_out(key: str, value: str, mode: Mode) -> LeftOut | None:
    """The rule by which a property is left out in a mode; None: it stays."""
    return next((each for each in LEFT_OUT if mode in each.modes and each.matches(key, value)), None)


CALLS_CONTROLLERS = "sasl.mechanism.controller.protocol"


def of_controllers_listener(key: str, name: str) -> bool:
    """Whether a property says how a node calls the controllers' listener of this name: a broker in ZooKeeper mode
    accepts it and has no use for it (measured on 3.9.2).
    """
    return key == CALLS_CONTROLLERS or key.startswith(f"listener.name.{name.lower()}.")


def of_zookeeper_alone(key: str) -> bool:
    """Whether a property is of no use in KRaft mode: no broker and no finalized controller reads it."""
    return key.startswith(ZOOKEEPER_KEYS)
