"""What the roll plays on one node. Pure."""

from __future__ import annotations

from kraft_runbook.cluster.mode_settings import ZOOKEEPER_KEYS
from kraft_runbook.cluster.node_properties import kraft_properties
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Software
from kraft_runbook.errors import Refused
from kraft_runbook.runbook.plays import Play


def target_of(spec: ClusterSpec) -> Software:
    """The software that the cluster file has the nodes go on to. Raises Refused where it names none."""
    if spec.kafka.upgrade_to is None:
        raise Refused(
            f"the cluster file of {spec.name} names no other Kafka to go on to",
            way_out="name its version and home as kafka.upgrade_to, and a home_link at every node (docs/software.md)",
        )
    return spec.kafka.upgrade_to


def switch_software(spec: ClusterSpec, node_id: int, to: Software) -> Play:
    """Lead the node's link to that Kafka, write its files, and restart it where its process is older than they are."""
    node = spec.broker(node_id) if node_id in spec.broker_ids else spec.controller(node_id)
    link = node.home_link
    if link is None:
        raise Refused(
            f"node {node_id} has no home_link in the cluster file, so its software can't be switched",
            way_out="let its service start Kafka through a link of its own, and name that as home_link",
        )
    given = {
        "home_link": link,
        "home": to.home,
        "version": to.version,
        "properties": kraft_properties(spec, node_id),
        "unread_secrets": list(ZOOKEEPER_KEYS),
    }
    return Play("switch_software", node_id, given)
