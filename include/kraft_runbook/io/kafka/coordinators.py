"""Whether a broker's group coordinator and transaction coordinator still load a partition, asked of that broker."""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin import ListGroupsRequest, ListTransactionsRequest

from kraft_runbook.cluster.observation import Loading
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import TimedOut, Unreachable
from kraft_runbook.io.kafka.connection import Connect, KafkaConnection, connect_to
from kraft_runbook.io.secrets import Secrets

LOADS, NOT_ACTIVE = 14, 15
"""COORDINATOR_LOAD_IN_PROGRESS; COORDINATOR_NOT_AVAILABLE: the coordinator has not started, so it has loaded nothing.
"""
NO_GROUPS = "Dead"
"""A state in which a group is for a moment alone, so the answer names next to none."""
NOBODY = -2
"""No producer's id: they begin at 0, and -1 is Kafka's word for none."""


def coordinators_of(
    spec: ClusterSpec, broker: Broker, *, secrets: Secrets, timeout: float = 2.0, connect: Connect = connect_to
) -> Loading:
    """Both coordinators, over one connection. ``timeout``: seconds a request. Raises Unreachable where the broker can't
    be reached; an answer that says nothing of it makes that coordinator Unread.

    Each answers LOADS for the whole request while it loads any partition, before it looks at rights or filters
    (``GroupCoordinator.handleListGroups``, ``GroupCoordinatorService.listGroups``,
    ``TransactionStateManager.listTransactionStates``). A partition of groups that failed to load is not told: until 3.9
    it counts as loaded then, and from 4.0 on it is left out of the answer (``CoordinatorRuntime``, FAILED). One of
    transactions may be told for ever (``loadTransactionsForTxnTopicPartition`` throws before it takes the mark off).
    """
    with connect(spec, broker, secrets=secrets, timeout=timeout) as connection:
        groups = _loads(connection, ListGroupsRequest(states_filter=[NO_GROUPS], types_filter=[]))
        if isinstance(groups, Unread) and groups.timed_out:
            return Loading(groups, groups)
        transactions = _loads(connection, ListTransactionsRequest(state_filters=[], producer_id_filters=[NOBODY]))
    return Loading(groups, transactions)


def _loads(connection: KafkaConnection, request: Any) -> bool | Unread:
    try:
        code = connection.send(request).error_code
    except Unreachable as error:
        return Unread(error.problem, timed_out=isinstance(error, TimedOut), way_out=error.way_out)
    if code and code not in (LOADS, NOT_ACTIVE):
        return Unread(f"{type(request).__name__.removesuffix('Request')} failed with error {code}")
    return bool(code)
