"""The key for delegation tokens: which properties give a node one, and who would be left without. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kraft_runbook.cluster.modes import BrokerMode, ControllerMode
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.spec import ClusterSpec

SECRET_KEY, FORMER = "delegation.token.secret.key", "delegation.token.master.key"


def has_key(properties: Mapping[str, str]) -> bool:
    """Whether Kafka 3.9 has a key for tokens with these properties: the former name counts only where the present one
    is not set at all (``KafkaConfig.delegationTokenSecretKey``, ``tokenAuthEnabled``).
    """
    return bool(properties.get(SECRET_KEY, properties.get(FORMER, "")).strip())


def without_key(files: Mapping[int, Mapping[str, str]]) -> list[int]:
    """The nodes whose properties give none, by id."""
    return [node for node, properties in files.items() if not has_key(properties)]


def rendered_without_key(spec: ClusterSpec) -> dict[str, list[int]]:
    """The controllers (in migration mode) and the brokers (in KRaft mode) that the cluster file gives none."""
    brokers = {b.id: broker_properties(spec, b, BrokerMode.KRAFT) for b in spec.brokers}
    return {"controller": _controllers_without(spec), "broker": without_key(brokers)}


def only_of_controllers(spec: ClusterSpec, on_zookeeper: Iterable[int]) -> bool:
    """Whether a controller has one by the cluster file, and none of these brokers in ZooKeeper or migration mode:
    such a broker makes /delegation_token/tokens at its start (``DelegationTokenManagerZk``), a controller never.
    """
    if len(_controllers_without(spec)) == len(spec.controllers):
        return False
    return not any(has_key(broker_properties(spec, spec.broker(each), BrokerMode.HYBRID)) for each in on_zookeeper)


def _controllers_without(spec: ClusterSpec) -> list[int]:
    return without_key({c.id: controller_properties(spec, c, ControllerMode.MIGRATION) for c in spec.controllers})
