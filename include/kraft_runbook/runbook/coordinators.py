"""Whether groups and transactional producers have their coordinators again after a broker's restart. A broker in every
ISR may still load a partition of __consumer_offsets or __transaction_state, or never end loading it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kraft_runbook.cluster.faults_in_both import NEVER_LOADED_IN
from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.cluster.observation import BrokerState, ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.conditions import Missing, Progress, first_missing
from kraft_runbook.runbook.health import out_of_sync

GROUPS, TRANSACTIONS = "groups", "transactions"
OTHERS_LOAD = 120.0
"""Seconds that other brokers' loads are waited for. One may never end before that broker's own restart: KAFKA-17941, or
partitions of __transaction_state of another number than at its start (``TransactionStateManager``,
``validateTransactionTopicPartitionCountIsStable``).
"""
LOG_NAMES = {
    GROUPS: "GroupMetadataManager, and CoordinatorRuntime from Kafka 4.0 on",
    TRANSACTIONS: "TransactionStateManager, and KafkaScheduler with the task load-txns-for-partition",
}


def in_sync_and_loaded(
    seen: ClusterObservation,
    earlier: ClusterObservation | None,
    spec: ClusterSpec,
    node_id: int,
    *,
    others: bool = True,
) -> Progress:
    """The broker is in every ISR (``out_of_sync``), and no coordinator loads: its own, and those of ``others``, for a
    while. One that could not be asked is ``untold``.
    """
    counted = _counted(seen, node_id) if others else [seen.brokers[node_id]]
    progress = first_missing(out_of_sync(seen, earlier, spec, node_id), still_loading(counted))
    return replace(progress, untold=_untold(counted))


def still_loading(counted: Sequence[BrokerState]) -> Iterator[Missing]:
    """Whose coordinators load: the restarted broker, the first of them, before the others.

    The others count too: they took over what this broker led, and it leads little right after its start. Theirs is not
    waited for without end, since nothing that is done here would end it.
    """
    for some, seconds in ((counted[:1], None), (counted[1:], OTHERS_LOAD)):
        for kind in (GROUPS, TRANSACTIONS):
            load = [each for each in some if getattr(each.loading, kind) is True]
            if load:
                ids = [each.id for each in load]
                who = nodes("broker", ids)
                yield Missing(
                    f"waiting for {who} to load {by_number(ids, 'its', 'their')} {kind}: their clients have no"
                    " coordinator until then",
                    far=("in every ISR", 1),
                    way_out=_way_out(load, kind),
                    waived=(seconds, f"whether {who} still {by_number(ids, 'loads', 'load')} {kind}"),
                )


def _counted(seen: ClusterObservation, node_id: int) -> list[BrokerState]:
    others = (each for each in seen.brokers.values() if each.id != node_id and each.running is True)
    return [seen.brokers[node_id], *others]


def _untold(counted: Sequence[BrokerState]) -> frozenset[str]:
    return frozenset(
        f"whether broker {each.id} still loads {kind}"
        for each in counted
        for kind in (GROUPS, TRANSACTIONS)
        if not was_read(getattr(each.loading, kind))
    )


def _way_out(load: Sequence[BrokerState], kind: str) -> str:
    who = nodes("broker", [each.id for each in load])
    told = f"see in the log of {who} which partition it loads ({LOG_NAMES[kind]})"
    loops = kind == TRANSACTIONS and any(
        was_read(each.software_version) and any(map(KafkaVersion.of(each.software_version).may_be, NEVER_LOADED_IN))
        for each in load
    )
    if loops:
        told += f"; Kafka {' and '.join(NEVER_LOADED_IN)} may load one for ever (KAFKA-17941), 3.9.2 does not"
    return told
