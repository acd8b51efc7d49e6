"""Classes of the operator's own that KRaft mode calls otherwise than ZooKeeper mode."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_runbook.cluster.controller_settings import declared
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import BEFORE_THE_COPY, check
from kraft_runbook.runbook.check_results import Finding, Severity, settle

QUOTA_CALLBACK = "client.quota.callback.class"
ALTER_POLICY = "alter.config.policy.class.name"
AS_KRAFT_ASKS = "alter.config.policy.kraft.compatibility.enable"
"""Of 3.9.2 alone, read by brokers in ZooKeeper mode (``ServerLogConfigs``; KIP-1252)."""


@check(
    "KRB-PRE-092",
    severity=Severity.WARNING,
    fix=(
        "ask whoever wrote the class whether it needs updateClusterMetadata: in KRaft mode Kafka calls it from 4.0 on."
        " Until then it must answer without"
    ),
    stages=BEFORE_THE_COPY,
)
def no_quota_callback_waits_for_the_clusters_metadata(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No quota callback waits to be told of the cluster's topics and leaders.

    ClientQuotaCallback.updateClusterMetadata is called in ZooKeeper mode by each UpdateMetadata request, in KRaft mode
    never (KAFKA-18225; in 3.9.2 only KafkaApis calls it). A callback that shares a quota out by leaders then
    goes on with what it was told before its restart: nothing.
    """
    return settle(_set_on(spec, QUOTA_CALLBACK), (), "none is set")


@check(
    "KRB-PRE-093",
    severity=Severity.WARNING,
    fix=(
        f"set {AS_KRAFT_ASKS}=true under broker_properties and restart the brokers (rolling_restart), so that the"
        " policy is asked as KRaft mode asks while ZooKeeper still leads; correct the policy where that refuses or"
        " allows what it should not"
    ),
    stages=BEFORE_THE_COPY,
)
def the_alter_policy_is_asked_as_in_kraft(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """A policy for altered configs is asked as KRaft mode asks it.

    For SUBTRACT, APPEND and DELETE the two modes give an AlterConfigPolicy other arguments (KAFKA-19026), so a policy
    that worked may refuse what it allowed, or allow what it refused.
    """
    wrong = _set_on(spec, ALTER_POLICY, unless=AS_KRAFT_ASKS)
    return settle(wrong, (), f"none is set, or {AS_KRAFT_ASKS} is true")


def _set_on(spec: ClusterSpec, key: str, *, unless: str | None = None) -> list[str]:
    """The brokers by the class that they load, in words; without those where the property ``unless`` is true."""
    found: dict[str, list[int]] = {}
    for broker in spec.brokers:
        properties: Mapping[str, str] = declared(spec, broker)
        if properties.get(key, "").strip() and not (unless and properties.get(unless, "").strip().lower() == "true"):
            found.setdefault(properties[key].strip(), []).append(broker.id)
    return [f"broker {', '.join(map(str, ids))} has {key}={name}" for name, ids in found.items()]
