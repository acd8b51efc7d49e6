"""What a broker tells the controller quorum: that it is there, and that it still is (BrokerRegistration and
BrokerHeartbeat, KIP-631), for brokers that are stood in for.
"""

from __future__ import annotations

from uuid import UUID

from kafka.protocol.api_message import ApiMessage

from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.kafka.leader import PATIENCE, Leader
from kraft_runbook.metadata.metadata_version import LEVELS

CAUGHT_UP = 2**62
"""A metadata offset that is never behind."""
METADATA_VERSION = LEVELS["3.9-IV0"]
STALE_BROKER_EPOCH = 77
PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""``SecurityProtocol``'s ids."""


class BrokerRegistrationRequest(ApiMessage, load_json="kraft_runbook.io.kafka.schemas"):  # type: ignore[misc, call-arg]
    """BrokerRegistration (api 62, KIP-631), version 3."""


class BrokerRegistrationResponse(ApiMessage, load_json="kraft_runbook.io.kafka.schemas"):  # type: ignore[misc, call-arg]
    """The answer: the broker's epoch."""


class BrokerHeartbeatRequest(ApiMessage, load_json="kraft_runbook.io.kafka.schemas"):  # type: ignore[misc, call-arg]
    """BrokerHeartbeat (api 63, KIP-631), version 1."""


class BrokerHeartbeatResponse(ApiMessage, load_json="kraft_runbook.io.kafka.schemas"):  # type: ignore[misc, call-arg]
    """The answer: whether the broker is fenced."""


class UnregisterBrokerRequest(ApiMessage, load_json="kraft_runbook.io.kafka.schemas"):  # type: ignore[misc, call-arg]
    """UnregisterBroker (api 64, KIP-631), version 0."""


class UnregisterBrokerResponse(ApiMessage, load_json="kraft_runbook.io.kafka.schemas"):  # type: ignore[misc, call-arg]
    """The answer: an error's code and message."""


def register(
    leader: Leader,
    broker: Broker,
    *,
    cluster_id: str,
    incarnation: UUID,
    migrating: bool,
    within: float = PATIENCE,
) -> int:
    """Register one broker, with its first listener; its broker epoch. With the same ``incarnation`` it may change
    between migration mode (``migrating``, KIP-866) and KRaft mode without being fenced: no leader moves (measured).
    Raises StepFailed when it is refused, or no controller led for ``within`` seconds.
    """
    listener = broker.listeners[0]
    asked = BrokerRegistrationRequest
    request = asked(
        version=3,
        broker_id=broker.id,
        cluster_id=cluster_id,
        incarnation_id=incarnation,
        listeners=[
            asked.Listener(
                name=listener.name,
                host=broker.host,
                port=listener.port,
                security_protocol=PROTOCOLS[listener.protocol.value],
            )
        ],
        features=[
            asked.Feature(
                name="metadata.version", min_supported_version=METADATA_VERSION, max_supported_version=METADATA_VERSION
            )
        ],
        rack=broker.rack,
        is_migrating_zk_broker=migrating,
        log_dirs=[_log_directory(broker.id)],
        previous_broker_epoch=-1,
    )
    answer = leader.send(request, within=within)
    if answer.error_code:
        raise StepFailed(
            f"the registration of broker {broker.id} was refused with error {answer.error_code}",
            way_out="read the active controller's log",
        )
    return int(answer.broker_epoch)


def _log_directory(broker_id: int) -> UUID:
    """An id above the reserved ones (``DirectoryId``: 0 to 99)."""
    return UUID(int=(broker_id << 64) + 1000)


def beat(leader: Leader, broker_id: int, epoch: int, *, within: float = PATIENCE) -> bool | None:
    """One heartbeat; whether the broker is unfenced. None: it has another epoch by now. Never name a directory as
    offline: each such beat moves leaders. Raises StepFailed.
    """
    request = BrokerHeartbeatRequest(
        version=1,
        broker_id=broker_id,
        broker_epoch=epoch,
        current_metadata_offset=CAUGHT_UP,
        want_fence=False,
        want_shut_down=False,
        offline_log_dirs=[],
    )
    answer = leader.send(request, within=within)
    if answer.error_code == STALE_BROKER_EPOCH:
        return None
    if answer.error_code:
        raise StepFailed(
            f"the heartbeat of broker {broker_id} was refused with error {answer.error_code}",
            way_out="read the active controller's log",
        )
    return not answer.is_fenced
