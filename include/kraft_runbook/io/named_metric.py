"""The metric that a cluster file names, of every broker: whether the brokers suffer from what was toggled."""

from __future__ import annotations

from collections.abc import Callable

from kraft_runbook.cluster.group_toggles import Relief
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.metrics import MetricsClient
from kraft_runbook.io.secrets import Secrets


def worst_of_brokers(
    spec: ClusterSpec, relief: Relief, *, secrets: Secrets, client_of: Callable[..., MetricsClient] = MetricsClient
) -> float | Unread:
    """The value of the broker that is worst off. Unread where a broker did not say, unless another one's has passed the
    threshold. Raises SecretMissing.
    """
    values: dict[int, float] = {}
    unread: list[str] = []
    with client_of(spec.metrics, secrets=secrets) as client:
        for broker in spec.brokers:
            try:
                found = client.numbers(broker.host, broker.metrics_port, relief.metric, relief.labels)
            except Unreachable as error:
                unread.append(f"broker {broker.id}: {error.problem}")
                continue
            if found:
                values[broker.id] = relief.worst(dict(enumerate(found)))
            else:
                unread.append(f"broker {broker.id} shows no {relief.metric}")
    if values and (not unread or relief.passed(relief.worst(values))):
        return relief.worst(values)
    return Unread("; ".join(unread), way_out="correct group_toggles.relief.metric, or let the exporter's rules pass it")
