"""References to config providers in what would be written on hosts."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.config_providers import undeclared
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.check_results import Finding, Severity, settle
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS

CODES = ("KRB-PRE-103",)


@CLUSTER_CHECKS.check(
    "KRB-PRE-103",
    severity=Severity.BLOCKING,
    fix=(
        "declare the provider as config.providers.<name>.class in the same properties; config.providers follows from"
        " it. Its jar must be on every node's class path. Or refer to a file of the host's own as"
        " ${secrets:/path:key}, or name the secret under 'secrets'"
    ),
)
def every_reference_has_its_provider(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every reference in a node's properties is to a config provider that the same properties declare.

    Kafka asks the providers that config.providers names. Any other reference stays as it is written: the text itself is
    taken for the password.
    """
    found: dict[tuple[str, str, str], dict[int, None]] = {}
    for kind, node_id, properties in _rendered(spec):
        for name, keys in undeclared(properties).items():
            for key in keys:
                found.setdefault((kind, key, name), {})[node_id] = None
    wrong = [
        f"{nodes(kind, ids)}: {key} refers to the provider '{name}', which nobody declares"
        for (kind, key, name), ids in found.items()
    ]
    return settle(wrong, (), "all have")


def _rendered(spec: ClusterSpec) -> Iterator[tuple[str, int, dict[str, str]]]:
    """What each node's file would hold, in each mode that the cluster can be in."""
    on_zookeeper = spec.zookeeper is not None
    for broker in spec.brokers:
        for mode in BrokerMode if on_zookeeper else (BrokerMode.KRAFT,):
            yield "broker", broker.id, broker_properties(spec, broker, mode)
    for controller in spec.controllers_alone:
        for each in ControllerMode if on_zookeeper else (ControllerMode.KRAFT,):
            yield "controller", controller.id, controller_properties(spec, controller, each)
