"""The broker that takes what is the controller's: the controller in ZooKeeper mode, any broker in KRaft mode."""

from __future__ import annotations

from kafka.protocol.metadata import MetadataRequest

from kraft_runbook.cluster.addresses import address
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.connection import connect_to
from kraft_runbook.io.secrets import Secrets


def controller_address(spec: ClusterSpec, *, secrets: Secrets, timeout: float = 5.0) -> tuple[str, str]:
    """Where the broker listens that Metadata names as the controller, and how errors call it ("broker 2"). The brokers
    of the cluster file are asked one after the other.

    A KRaft-mode broker names a live broker, which passes requests on to the quorum. Raises Unreachable, which says of
    each broker why it named none.
    """
    reasons = []
    for broker in spec.brokers:
        try:
            with connect_to(spec, broker, secrets=secrets, timeout=timeout) as connection:
                answer = connection.send(MetadataRequest(version=8, topics=[]))
        except Unreachable as error:
            reasons.append(error.problem)
            continue
        for each in answer.brokers:
            if each.node_id == answer.controller_id:
                return address(each.host, each.port), f"broker {each.node_id}"
        reasons.append(f"broker {broker.id} knows no controller")
    raise Unreachable(
        f"no controller was found: {'; '.join(reasons)}",
        way_out="start the brokers, or wait for the controller's election",
    )
