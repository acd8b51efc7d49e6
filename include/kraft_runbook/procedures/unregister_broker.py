"""Take a broker's registration out of the metadata log (UnregisterBroker, KIP-631)."""

from __future__ import annotations

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.kafka.leader import Leader
from kraft_runbook.io.kafka.registrations import UnregisterBrokerRequest
from kraft_runbook.io.secrets import Secrets

NOT_ALLOWED, NOT_REGISTERED = 31, 102
WITHIN = 60.0
"""Seconds in which a leader has to take it."""


def unregister_broker(spec: ClusterSpec, broker: int, *, secrets: Secrets) -> bool:
    """Ask the quorum's leader; it answers once the record is committed. Whether this call changed it: False where the
    broker is not registered, as where an earlier request's answer was lost. Raises Refused, StepFailed.
    """
    leader = Leader(spec, secrets)
    try:
        answer = leader.send(UnregisterBrokerRequest(version=0, broker_id=broker), within=WITHIN)
    finally:
        leader.close()
    if answer.error_code == NOT_REGISTERED:
        return False
    if answer.error_code == NOT_ALLOWED:
        raise Refused(
            "UnregisterBroker is not allowed to this tool's identity at the controllers",
            way_out="allow it: Alter on the cluster (kafka-acls --cluster), then clear this task",
        )
    if answer.error_code:
        raise StepFailed(
            f"the controller answered error {answer.error_code} {answer.error_message or ''}".rstrip(),
            way_out="read the active controller's log, then clear this task",
        )
    return True
