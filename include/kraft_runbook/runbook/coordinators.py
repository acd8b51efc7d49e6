"""Whether groups and transactional producers have their coordinators again after a broker's restart. A broker in every
ISR may still load a partition of __consumer_offsets or __transaction_state, or never end loading it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kraft_runbook.cluster.faults_in_both import NEVER_LOADED_IN
from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.cluster.observation import BrokerState, ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.conditions import Missing, Progress, first_missing
from kraft_runbook.runbook.health import out_of_sync

GROUPS, TRANSACTIONS = "groups", "transactions"
GO_ON = "to go on all the same, mark this task as successful: the next broker's step asks for every ISR again"
LOG_NAMES = {
    GROUPS: "GroupMetadataManager, and CoordinatorRuntime from Kafka 4.0 on",
    TRANSACTIONS: "TransactionStateManager",
}


def in_sync_and_loaded(
    seen: ClusterObservation, earlier: ClusterObservation | None, spec: ClusterSpec, node_id: int
) -> Progress:
    """The broker is in every ISR (``out_of_sync``), and no coordinator loads. One that could not be asked is
    ``untold``.
    """
    progress = first_missing(out_of_sync(seen, earlier, spec, node_id), still_loading(seen, node_id))
    return replace(progress, untold=_untold(seen, node_id))


def still_loading(seen: ClusterObservation, node_id: int) -> Iterator[Missing]:
    """Whose coordinators load, this broker's first.

    The others count too: they took over what this broker led, and it leads little right after its start. Not those on
    other software: a roll to a release with a fix would wait for ever for the brokers that need it.
    """
    counted = _counted(seen, node_id)
    for kind in (GROUPS, TRANSACTIONS):
        load = [each for each in counted if getattr(each.loading, kind) is True]
        if load:
            ids = [each.id for each in load]
            whose = f"{by_number(ids, 'its', 'their')} {kind}"
            yield Missing(
                f"waiting for {nodes('broker', ids)} to load {whose}: their clients have no coordinator until then",
                way_out=_way_out(load, kind),
            )


def _counted(seen: ClusterObservation, node_id: int) -> list[BrokerState]:
    mine = seen.brokers[node_id]
    others = (each for each in seen.brokers.values() if each.id != node_id and each.running is True)
    return [mine, *(each for each in others if not _runs_another(each, mine))]


def _runs_another(one: BrokerState, other: BrokerState) -> bool:
    """Whether the two are known to run different software."""
    known = was_read(one.software_version) and was_read(other.software_version)
    return known and one.software_version != other.software_version


def _untold(seen: ClusterObservation, node_id: int) -> frozenset[str]:
    return frozenset(
        f"whether broker {each.id} still loads {kind}"
        for each in _counted(seen, node_id)
        for kind in (GROUPS, TRANSACTIONS)
        if not was_read(getattr(each.loading, kind))
    )


def _way_out(load: list[BrokerState], kind: str) -> str:
    who = nodes("broker", [each.id for each in load])
    told = f"see in the log of {who} which partition it loads ({LOG_NAMES[kind]})"
    loops = kind == TRANSACTIONS and any(
        was_read(each.software_version) and any(map(KafkaVersion.of(each.software_version).may_be, NEVER_LOADED_IN))
        for each in load
    )
    told += (
        f"; Kafka {' and '.join(NEVER_LOADED_IN)} may load one for ever (KAFKA-17941), 3.9.2 does not" if loops else ""
    )
    return f"{told}; {GO_ON}"
