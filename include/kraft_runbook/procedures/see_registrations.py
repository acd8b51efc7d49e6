"""Look at what each controller runs and what the metadata log has of it. Asks no broker. Changes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from kraft_runbook.cluster.feature_levels import FeatureObservation, NodeFeatures
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Controller
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.io.kafka.feature_calls import node_features, read_levels
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.part_read import part_read


def see_registrations(spec: ClusterSpec, *, secrets: Secrets) -> FeatureObservation:
    """The controllers' part of a look at levels, without brokers and hosts. What can't be read is ``Unread``."""
    with ThreadPoolExecutor(len(spec.controllers) + 1, thread_name_prefix="registrations") as pool:
        log = pool.submit(part_read, lambda: read_levels(spec, secrets=secrets))

        def features(node: Controller) -> NodeFeatures | Unread:
            return part_read(lambda: node_features(spec, node, secrets=secrets))

        asked = {each.id: pool.submit(features, each) for each in spec.controllers}
        controllers = {i: each.result() for i, each in asked.items()}
        found = log.result()
    leader, levels = (found, found) if isinstance(found, Unread) else found
    return FeatureObservation(spec.name, {}, controllers, leader, levels, {})
