"""What KRaft mode does otherwise than ZooKeeper mode with the same settings."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_runbook.cluster.controller_settings import decided_for_controllers, declared
from kraft_runbook.cluster.copy_groups import RECORDS_AT_ONCE
from kraft_runbook.cluster.java_values import java_int, trim
from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.cluster.late_configs import lost_in_kraft
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import BEFORE_THE_COPY, UNTIL_FINALIZED, check
from kraft_runbook.migration.faults_of_3_9 import faults_of
from kraft_runbook.runbook.check_results import Finding, Severity, sample, settle, unknown
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.read_parts import broker_versions

QUOTA_CALLBACK = "client.quota.callback.class"
ALTER_POLICY = "alter.config.policy.class.name"
ZK_SESSION, ZK_SESSION_DEFAULT = "zookeeper.session.timeout.ms", 18_000
KRAFT_SESSION = "broker.session.timeout.ms"
POLICY_FAULT = "KAFKA-19026"
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
        f"upgrade every broker to 3.9.2: older ones ignore {AS_KRAFT_ASKS}. Set it to true under broker_properties and"
        " restart the brokers (rolling_restart). They then ask the policy as KRaft mode does, while ZooKeeper still"
        " leads. Correct the policy if it refuses or allows a wrong change"
    ),
    stages=BEFORE_THE_COPY,
)
def the_alter_policy_is_asked_as_in_kraft(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """A policy for altered configs is asked as KRaft mode asks it.

    For SUBTRACT, APPEND and DELETE the two modes give an AlterConfigPolicy other arguments (KAFKA-19026), so a policy
    that worked may refuse what it allowed, or allow what it refused.
    """
    wrong = _set_on(spec, ALTER_POLICY, unless=AS_KRAFT_ASKS)
    asked = {broker.id for broker in spec.brokers if declared(spec, broker).get(ALTER_POLICY, "").strip()}
    versions, unread = broker_versions(seen)
    found = {broker: KafkaVersion.of(version) for broker, version in versions.items() if broker in asked}
    old = [broker for broker, version in found.items() if POLICY_FAULT in {each.issue for each in faults_of(version)}]
    if old:
        wrong.append(f"{nodes('broker', old, 'runs')} a Kafka below 3.9.2, which ignores {AS_KRAFT_ASKS}")
    unknown_ones = [
        f"whether {v.text} of broker {b} knows {AS_KRAFT_ASKS}" for b, v in found.items() if v.patch is None
    ]
    return settle(wrong, [*unread, *unknown_ones] if asked else (), f"none is set, or {AS_KRAFT_ASKS} is true")


@check(
    "KRB-PRE-125",
    severity=Severity.WARNING,
    fix=(
        f"set {KRAFT_SESSION} under broker_properties to what brokers are to have, and the controllers get it. The more"
        " it is, the later a broker that has died is noticed"
    ),
    stages=BEFORE_THE_COPY,
)
def a_long_session_stays_long(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Where brokers have a longer session with ZooKeeper than Kafka's default, the file says how long it is in KRaft.

    zookeeper.session.timeout.ms means nothing there. A broker that sends no heartbeat for broker.session.timeout.ms (9
    s by default, half of ZooKeeper's 18 s) is fenced: a long pause that its session outlived takes its leaders away.
    """
    longer = []
    for broker in spec.brokers:
        properties = declared(spec, broker)
        held, in_kraft = (java_int(trim(properties.get(key, ""))) for key in (ZK_SESSION, KRAFT_SESSION))
        if held is not None and held > ZK_SESSION_DEFAULT and in_kraft is None:
            longer.append((broker.id, held))
    if decided_for_controllers(spec, KRAFT_SESSION):
        longer = []
    told = (
        f"{nodes('broker', [broker for broker, ms in longer if ms == held], 'has')} {ZK_SESSION}={held}, and in KRaft"
        f" mode 9000 ({KRAFT_SESSION} is not set)"
        for held in sorted({ms for _, ms in longer})
    )
    return settle(tuple(told), (), "none is longer, or its length in KRaft mode is set")


@check(
    "KRB-PRE-095",
    severity=Severity.BLOCKING,
    fix=(
        "write the value that is in use into the cluster file (the listener's protocol, broker_properties,"
        " brokers[].properties, or under 'secrets' what is one). A broker in ZooKeeper or migration mode gets it with"
        " the roll into KRaft mode, one that is in KRaft mode with rolling_restart. If the file's is what you want,"
        " delete the dynamic config (kafka-configs --entity-type brokers --alter --delete-config). Keep the stores that"
        " either names until then"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.TREE,
)
def listeners_are_those_of_the_file(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """What a broker's listeners have by its dynamic configuration, they have by its file too.

    A broker in ZooKeeper mode reads its dynamic configuration before it opens its listeners. One in KRaft mode makes
    them by its file alone. What is read later is lost, and nothing tells it: with a dynamic ssl.client.auth=required
    clients without a certificate get in, a principal.builder.class or mechanisms are those of the file, logins do not
    end at connections.max.reauth.ms.

    Key stores and trust stores are loaded again before clients are let in. But a broker exits where the file's store is
    gone (measured on 3.9.2: "Failed to load SSL keystore", KAFKA-17431). And where the file has no such store, or one
    with another subject or other names, KRaft mode refuses all of that broker's dynamic configuration. It does too
    where a dynamic listener.security.protocol.map lacks a listener of the file, the controllers' as well, or has
    another protocol for it; without the controllers' a broker does not start in migration mode.

    Of a secret it is known only whether the file has one too, not whether it is the same.
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    late = tree.late_configs_of_brokers
    if not was_read(late):
        return unknown(late)
    wrong: dict[str, list[int]] = {}
    for broker in spec.brokers:
        for phrase in lost_in_kraft(spec, broker, late.get(str(broker.id), {})):
            wrong.setdefault(phrase, []).append(broker.id)
    told = [f"{nodes('broker', ids, 'has')} {phrase}" for phrase, ids in wrong.items()]
    return settle(told, (), "none differs" if late else "none is dynamic")


@check(
    "KRB-PRE-133",
    severity=Severity.WARNING,
    fix=(
        f"let whoever asks for so much at once ask for less than {RECORDS_AT_ONCE:,} in KRaft mode: make a topic with"
        " fewer partitions and add the others in further requests, elect leaders of some topics at a time"
        " (kafka-leader-election with a file), delete ACLs of some resources or principals at a time"
    ),
    stages=BEFORE_THE_COPY,
    needs=Needs.TREE,
)
def no_request_needs_more_records_than_kraft_makes(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No topic has more partitions, and no cluster more ACLs, than one request may change in KRaft mode.

    There one request makes 10,000 records at most (``QuorumController.MAX_RECORDS_PER_USER_OP``), and what needs more
    is refused as a whole: to make a topic, to add partitions, to elect leaders, to unregister a broker, to delete ACLs.
    ZooKeeper mode has no such number. Partitions that exist are copied all the same.
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    large, acls, wrong = tree.large_topics, f"{tree.acl_count:,} ACLs", list[str]()
    if large.count:
        wrong.append(f"topics with more than {RECORDS_AT_ONCE:,} partitions: {sample(large.samples, large.count)}")
    if tree.acl_count > RECORDS_AT_ONCE:
        wrong.append(acls)
    return settle(wrong, (), f"no topic has more than {RECORDS_AT_ONCE:,} partitions; there are {acls}")


def _set_on(spec: ClusterSpec, key: str, *, unless: str | None = None) -> list[str]:
    """The brokers by the class that they load, in words; without those where the property ``unless`` is true."""
    found: dict[str, list[int]] = {}
    for broker in spec.brokers:
        properties: Mapping[str, str] = declared(spec, broker)
        if properties.get(key, "").strip() and not (unless and properties.get(unless, "").strip().lower() == "true"):
            found.setdefault(properties[key].strip(), []).append(broker.id)
    return [f"{nodes('broker', ids, 'has')} {key}={name}" for name, ids in found.items()]
