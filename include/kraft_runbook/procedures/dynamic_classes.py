"""Look on the hosts for the classes that dynamic configurations name: they are known once the metadata log is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kraft_runbook.cluster.feature_levels import FeatureObservation, NodeHost
from kraft_runbook.cluster.observation import DynamicConfigs, TopicMargins, Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.hosts.feature_state import read_feature_state
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.metadata.log.dynamic_records import EVERY_BROKER


def with_dynamic_classes(
    spec: ClusterSpec,
    features: FeatureObservation | Unread,
    margins: TopicMargins | Unread,
    *,
    secrets: Secrets,
    read: Callable[..., Mapping[int, NodeHost | Unread]] = read_feature_state,
) -> FeatureObservation | Unread:
    """The same look, the dynamic classes looked for on each host that was read. Few clusters have one; only there are
    hosts read once more.
    """
    if isinstance(features, Unread) or isinstance(margins, Unread) or isinstance(margins.dynamic, Unread):
        return features
    of_each = {
        node_id: found
        for node_id, host in features.hosts.items()
        if isinstance(host, NodeHost) and (found := _of_node(margins.dynamic, node_id))
    }
    if not of_each:
        return features
    again = read(spec, list(of_each), secrets=secrets, dynamic_classes=of_each)
    hosts = dict(features.hosts)
    for node_id, looked in again.items():
        if isinstance(host := hosts[node_id], NodeHost):
            hosts[node_id] = replace(host, classes=looked.classes if isinstance(looked, NodeHost) else looked)
    return replace(features, hosts=hosts)


def _of_node(dynamic: DynamicConfigs, node_id: int) -> list[tuple[str, str]]:
    """Keys and classes that count for a node: of all, controllers too, and its own."""
    return [
        (f"the dynamic {key} of {'all brokers' if whose == EVERY_BROKER else f'broker {whose}'}", name)
        for whose in (EVERY_BROKER, str(node_id))
        for key, names in dynamic.classes.get(whose, {}).items()
        if not isinstance(names, Unread)
        for name in names
    ]
