"""One look at a cluster's feature levels: every node, the metadata log and the hosts at once. What can't be read is
Unread, never left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from kraft_runbook.cluster.feature_levels import (
    FeatureObservation,
    NodeFeatures,
    NodeHost,
)
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.io.kafka.feature_calls import node_features, read_levels
from kraft_runbook.io.metrics import MetricsClient
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.node_hosts import node_hosts
from kraft_runbook.procedures.part_read import part_read

NOT_ASKED = Unread("not asked for: hosts were not examined")
T = TypeVar("T")


def observe_features(spec: ClusterSpec, *, secrets: Secrets, with_hosts: bool = True) -> FeatureObservation:
    """Ask every declared node, the quorum and (``with_hosts``) every host. Raises nothing for what does not answer."""
    with (
        MetricsClient(spec.metrics, secrets=secrets) as metrics,
        ThreadPoolExecutor(len(spec.brokers) + len(spec.controllers) + 2, thread_name_prefix="features") as pool,
    ):
        hosts = pool.submit(node_hosts, spec, secrets=secrets) if with_hosts else None
        log = pool.submit(read_levels, spec, secrets=secrets)
        brokers = {each.id: pool.submit(_look, spec, each, metrics, secrets) for each in spec.brokers}
        controllers = {each.id: pool.submit(_look, spec, each, metrics, secrets) for each in spec.controllers}
        answer = _answer(log)
        leader, levels = answer if not isinstance(answer, Unread) else (answer, answer)
        return FeatureObservation(
            spec.name,
            {i: found.result() for i, found in brokers.items()},
            {i: found.result() for i, found in controllers.items()},
            leader,
            levels,
            _hosts(spec, hosts),
        )


def _look(
    spec: ClusterSpec, node: Broker | Controller, metrics: MetricsClient, secrets: Secrets
) -> NodeFeatures | Unread:
    """At the listener of this role: one that has both is asked at each."""
    found = part_read(lambda: node_features(spec, node, secrets=secrets))
    if isinstance(found, Unread):
        return found
    page = part_read(lambda: metrics.read(node.host, node.metrics_port))
    if isinstance(page, Unread):
        return replace(found, software_version=page)
    return replace(found, software_version=page.software_version or Unread("its metrics do not name it"))


def _hosts(spec: ClusterSpec, asked: Future[Mapping[int, NodeHost | Unread]] | None) -> Mapping[int, NodeHost | Unread]:
    if asked is None:
        return dict.fromkeys(spec.node_ids, NOT_ASKED)
    found = _answer(asked)
    return dict.fromkeys(spec.node_ids, found) if isinstance(found, Unread) else found


def _answer(asked: Future[T]) -> T | Unread:
    return part_read(lambda: asked.result())
