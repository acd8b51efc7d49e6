"""Each node's configuration file on its host, and what would be rendered for the mode that it is in. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kraft_runbook.cluster.config_meaning import alike
from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.cluster.mode_settings import of_controllers_listener, of_zookeeper_alone
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    ControllerMode,
    Unread,
    host_part,
    was_read,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.runbook.differing_files import bound_elsewhere


@dataclass(frozen=True, slots=True)
class NodeFile:
    """A node's file. ``held`` and ``wanted``: it and the rendering, a broker's by their meaning. ``unread``: why they
    can't be compared; ``missing``: there is no file. ``mode``, ``bound``: a broker's; ``bound``: by listener, the host
    that the file binds where another is rendered.
    """

    node: Broker | Controller
    mode: BrokerMode | None = None
    unread: str = ""
    missing: bool = False
    held: Mapping[str, str] = field(default_factory=dict)
    wanted: Mapping[str, str] = field(default_factory=dict)
    bound: Mapping[str, str] = field(default_factory=dict)

    @property
    def who(self) -> str:
        """The node, in words."""
        return self.node.named


def told_apart(files: Iterable[NodeFile], differs: Callable[[NodeFile], str]) -> tuple[list[str], list[str]]:
    """Which of these nodes have no file, or one that differs, in words; and why others can't be compared. ``differs``:
    in what; empty: in nothing.
    """
    wrong, unread = [], []
    for each in files:
        if each.unread:
            unread.append(each.unread)
        elif each.missing:
            wrong.append(f"{each.who} has no file {each.node.config_file}")
        elif differing := differs(each):
            wrong.append(f"{each.who}: {differing}")
    return wrong, unread


def broker_files(seen: ClusterObservation, spec: ClusterSpec) -> Iterator[NodeFile]:
    """One a broker, in the cluster file's order; of an observation with the hosts."""
    newest = KafkaVersion.of(spec.kafka.version).minor
    for broker in spec.brokers:
        mode = seen.brokers[broker.id].mode
        config = host_part(seen, broker.id, "config")
        if not was_read(mode):
            yield NodeFile(broker, unread=f"broker {broker.id}'s mode: {mode.reason}")
        elif isinstance(config, Unread):
            yield NodeFile(broker, mode, unread=f"broker {broker.id}: {config.reason}")
        elif not isinstance(config, Mapping):
            yield NodeFile(broker, mode, missing=True)
        else:
            # Properties that KRaft mode does not read need no restart. A broker rendered by an older version of this
            # tool still has some.
            held = {
                key: value
                for key, value in config.items()
                if not (mode is BrokerMode.KRAFT and of_zookeeper_alone(key))
                and not (mode is BrokerMode.ZOOKEEPER and of_controllers_listener(key, spec.controller_listener.name))
            }
            rendered = broker_properties(spec, broker, mode)
            means, wanted = alike(held, rendered, newest_ibp=newest)
            as_said = (held, rendered) if broker.controller is None else (means, wanted)
            bound = bound_elsewhere(*(each.get("listeners", "") for each in as_said))
            yield NodeFile(broker, mode, held=means, wanted=wanted, bound=bound)


def controller_files_in_kraft(seen: ClusterObservation, spec: ClusterSpec) -> Iterator[NodeFile]:
    """One a controller, in the cluster file's order, where no migration is under way; of an observation with the hosts.
    What KRaft mode does not read of a file is left out. One that is a broker too is left out: ``broker_files`` has it.
    """
    for controller in spec.controllers_alone:
        config = host_part(seen, controller.id, "config")
        if isinstance(config, Unread):
            yield NodeFile(controller, unread=f"controller {controller.id}: {config.reason}")
        elif not isinstance(config, Mapping):
            yield NodeFile(controller, missing=True)
        else:
            held = {key: value for key, value in config.items() if not of_zookeeper_alone(key)}
            yield NodeFile(controller, held=held, wanted=controller_properties(spec, controller, ControllerMode.KRAFT))
