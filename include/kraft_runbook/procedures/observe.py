"""Observe one cluster: ZooKeeper, brokers, controllers, quorum, metrics and hosts at once, in one pass of bounded time.

Each source has a few seconds. A part that could not be read is ``Unread``, with the reason; no part is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial

from kraft_runbook.cluster.consumer_groups import ConsumerGroups
from kraft_runbook.cluster.feature_levels import FeatureObservation
from kraft_runbook.cluster.observation import (
    NO_ZOOKEEPER,
    ClusterObservation,
    ControllerState,
    HostState,
    QuorumState,
    TopicsApart,
    TopicsState,
    Unread,
    ZkMigrationState,
    ZookeeperState,
    ZookeeperTree,
    was_read,
)
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.replica_directories import ReplicasCompared
from kraft_runbook.cluster.secrets_seen import SecretsSeen
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.stores import THIS_TOOL
from kraft_runbook.io.hosts.stores import SecuredRead
from kraft_runbook.io.kafka.topics_seen import BrokerView, merge_views
from kraft_runbook.io.metrics import MetricsClient
from kraft_runbook.io.node_metrics import NodeMetrics
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.read_state import read_zookeeper
from kraft_runbook.io.zookeeper.read_tree import read_tree
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.migration.leaving import counted_as_down
from kraft_runbook.parity.decoding import decoding_of, password_secrets
from kraft_runbook.procedures.compare_replicas import compare_replicas
from kraft_runbook.procedures.dynamic_classes import with_dynamic_classes
from kraft_runbook.procedures.look_at_nodes import (
    ANSWER_AT_MOST,
    TOPICS_NOT_ASKED,
    BrokerLook,
    answer_seconds,
    broker_state,
    controller_state,
    look_at_broker,
    look_at_controller,
)
from kraft_runbook.procedures.look_at_quorum import look_at_quorum
from kraft_runbook.procedures.look_deadline import SOURCE_SECONDS, Deadline, in_time
from kraft_runbook.procedures.observe_features import observe_features
from kraft_runbook.procedures.part_read import part_read
from kraft_runbook.procedures.scram_login import scram_login
from kraft_runbook.procedures.see_groups import sum_up_groups
from kraft_runbook.procedures.short_together import short_together
from kraft_runbook.procedures.topic_margins import topic_margins
from kraft_runbook.procedures.topics_not_shown import with_topics_not_shown

LIVE_SECONDS = 6.0
"""Seconds after which a source without an answer counts as unread, plus ``SECONDS_A_PARTITION``."""
DEEP_SECONDS = 300.0
HOSTS_SECONDS = 200.0
_answers: dict[str, float] = {}
"""By cluster, the seconds that a broker may take over Metadata, as the looks so far have shown; never fewer again."""
NOT_ASKED = Unread("not asked for: stores, secrets and this tool's own login were not looked at")


class Scope(StrEnum):
    """LIVE: what a wait needs each second; NODES: the same without the topics as brokers show them. FULL: also every
    topic's znodes, and of hosts their stores and secrets.
    """

    NODES = "nodes"
    LIVE = "live"
    FULL = "full"


def _read_hosts(
    spec: ClusterSpec, node_ids: Sequence[int] | None = None, *, secrets: Secrets, replicas: bool = True
) -> Mapping[int, HostState]:
    from kraft_runbook.io.hosts.host_facts import (
        gather_host_facts,
    )  # ansible-runner is slow to import, and only this needs it

    return gather_host_facts(spec, node_ids, replicas=replicas, secrets=secrets)


HostsRead = tuple[Mapping[int, HostState], SecuredRead | Unread]


def _look_at_hosts(spec: ClusterSpec, *, secrets: Secrets, full: bool) -> HostsRead:
    """``full``: with the stores, the secrets, and before the migration is final every replica's topic id, in the same
    run.
    """
    if not full:
        return _read_hosts(spec, secrets=secrets, replicas=False), NOT_ASKED
    from kraft_runbook.io.hosts.host_facts import gather_secured_hosts

    scram = scram_login(spec, secrets=secrets)
    return gather_secured_hosts(spec, replicas=spec.zookeeper is not None, scram=scram, secrets=secrets)


@dataclass(frozen=True)
class Sources:
    """How the parts of a cluster are asked. ``seconds``: that ZooKeeper or a metrics page may take."""

    zookeeper: Callable[..., tuple[ZookeeperState, frozenset[str]]] = read_zookeeper
    quorum: Callable[[ClusterSpec, Secrets], tuple[QuorumState, frozenset[str]]] = look_at_quorum
    broker: Callable[..., BrokerLook] = look_at_broker
    controller: Callable[..., ControllerState] = look_at_controller
    metrics: Callable[..., MetricsClient] = MetricsClient
    hosts: Callable[..., HostsRead] = _look_at_hosts
    features: Callable[..., FeatureObservation] = observe_features
    seconds: float = SOURCE_SECONDS


def observe(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    scope: Scope = Scope.LIVE,
    with_hosts: bool = False,
    gone: Collection[int] = (),
    sources: Sources | None = None,
) -> ClusterObservation:
    """Read everything at once. Raises nothing for a part that can't be reached; raises SecretMissing if a secret can't
    be resolved.

    ``gone``: controllers whose hosts are gone for good, on the operator's word; if nothing answers there, they count as
    not running. If the cluster file names no ZooKeeper, that part is ``NO_ZOOKEEPER``. ``sources``: how each is asked.
    """
    sources = sources or Sources()
    began = time.monotonic()
    live = Deadline(began, LIVE_SECONDS, _answers.get(spec.name, SOURCE_SECONDS))
    observed_at = datetime.now(UTC)
    full = scope is Scope.FULL
    read_topics = full and spec.zookeeper is not None
    topic_ids: dict[str, str] = {}
    groups: list[ConsumerGroups | Unread] = []
    decoding = decoding_of(spec, secrets=secrets) if read_topics else None

    def read_deep(reader: ZookeeperReader) -> ZookeeperTree:
        """The tree, then the groups, in one session."""
        assert decoding is not None
        tree = read_tree(reader, decoding, password_secrets(spec, secrets), topic_ids)
        groups.append(sum_up_groups(reader, spec, secrets=secrets))
        return tree

    deep = read_deep if read_topics else None
    so_far: dict[int, BrokerLook] = {}
    look_at = partial(sources.broker, topics_by=None) if scope is Scope.NODES else sources.broker
    pool = ThreadPoolExecutor(
        max_workers=min(32, 2 * (len(spec.brokers) + len(spec.controllers)) + 4), thread_name_prefix="observe"
    )
    try:
        with sources.metrics(spec.metrics, secrets=secrets, timeout=sources.seconds) as metrics:
            zookeeper = (
                pool.submit(sources.zookeeper, spec.zookeeper, secrets=secrets, deep=deep, timeout=sources.seconds)
                if spec.zookeeper
                else None
            )
            quorum = pool.submit(sources.quorum, spec, secrets)
            # brokers last: a large cluster's take long over their topics, and what is compared is to be of one moment
            controllers = {c.id: pool.submit(sources.controller, spec, c, secrets) for c in spec.controllers}
            gauges = {each.id: pool.submit(metrics.read, each.host, each.metrics_port) for each in spec.nodes}
            brokers = {b.id: pool.submit(look_at, spec, b, secrets, live, so_far) for b in spec.brokers}
            hosts = pool.submit(sources.hosts, spec, secrets=secrets, full=full) if with_hosts else None
            levels = (
                pool.submit(sources.features, spec, secrets=secrets) if with_hosts and spec.is_past_zookeeper else None
            )

            looks: dict[int, BrokerLook | Unread] = {}
            seen_controllers: dict[int, ControllerState | Unread] = {}
            seen_gauges: dict[int, NodeMetrics | Unread] = {}
            for i, broker in brokers.items():
                look = in_time(broker, live, f"broker {i}")
                looks[i] = look if was_read(look) else so_far.get(i, look)
            for i, controller in controllers.items():
                at_controller = in_time(controller, live, f"controller {i}")
                seen_controllers[i] = at_controller
            for i, gauge in gauges.items():
                page = in_time(gauge, live, f"the metrics of node {i}")
                seen_gauges[i] = page
            quorum_read = in_time(quorum, live, "the controller quorum")
            zookeeper_read: tuple[ZookeeperState, frozenset[str]] | Unread = NO_ZOOKEEPER
            if zookeeper:
                zookeeper_read = in_time(zookeeper, Deadline(began, DEEP_SECONDS) if deep else live, "ZooKeeper")
            host_states: Mapping[int, HostState] | Unread = Unread("not asked for: hosts were not examined")
            secured: SecuredRead | Unread = NOT_ASKED
            if hosts:
                hosts_read = in_time(hosts, Deadline(began, HOSTS_SECONDS), "the hosts")
                host_states, secured = hosts_read if was_read(hosts_read) else (hosts_read, hosts_read)
                if full and was_read(host_states):
                    host_states = _with_secured(host_states, secured)
            own_stores = secured.stores.get(THIS_TOOL, ()) if was_read(secured) else secured
            own_login = secured.own_login if was_read(secured) else secured
            features: FeatureObservation | Unread = Unread("not asked for: feature levels were not read")
            if levels:
                features = in_time(levels, Deadline(began, HOSTS_SECONDS), "the feature levels")
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    views = [look.view for look in looks.values() if was_read(look) and was_read(look.view)]
    if scope is not Scope.NODES:
        _keep_patience(spec.name, live.answer, looks)
    shown = _topics(views, looks) if scope is not Scope.NODES else TOPICS_NOT_ASKED
    topics = with_topics_not_shown(spec, secrets, shown, views, zookeeper_read, quorum_read)
    replicas: ReplicasCompared | Unread = Unread("not asked for: replicas on disk were not compared with ZooKeeper")
    if deep and with_hosts:
        replicas, host_states = _replicas(spec, secrets, host_states, zookeeper_read, topic_ids)
    zookeeper_state = zookeeper_read[0] if was_read(zookeeper_read) else zookeeper_read
    quorum_state = quorum_read[0] if was_read(quorum_read) else quorum_read
    undeclared_brokers, undeclared_controllers = undeclared(spec, zookeeper_state, quorum_state, topics)
    seen = ClusterObservation(
        cluster=spec.name,
        observed_at=observed_at,
        took_seconds=round(time.monotonic() - began, 3),
        zookeeper=zookeeper_state,
        controllers=counted_as_down(
            {i: controller_state(i, look, seen_gauges[i]) for i, look in seen_controllers.items()}, gone
        ),
        quorum=quorum_state,
        brokers={i: broker_state(i, look, seen_gauges[i], quorum_state) for i, look in looks.items()},
        topics=topics,
        topics_apart=_apart(zookeeper_read, quorum_read),
        consumer_groups=_groups(groups, zookeeper_state, read_topics=read_topics),
        undeclared_brokers=undeclared_brokers,
        undeclared_controllers=undeclared_controllers,
        hosts=host_states,
        replicas=replicas,
        own_stores=own_stores,
        own_login=own_login,
        features=features,
    )
    if with_hosts and spec.roll:
        seen = replace(seen, short_together=part_read(lambda: short_together(spec, secrets=secrets)))
    if with_hosts and detect_phase(seen).phase in (Phase.FINALIZED, Phase.KRAFT):
        margins = part_read(lambda: topic_margins(spec, secrets=secrets))
        return replace(seen, margins=margins, features=with_dynamic_classes(spec, features, margins, secrets=secrets))
    return seen


def _with_secured(hosts: Mapping[int, HostState], read: SecuredRead | Unread) -> Mapping[int, HostState]:
    """The hosts, each with what was seen of its node's stores and secrets; a host that was not read has its reason."""
    if not was_read(read):
        return {i: replace(each, stores=read, secrets=read) for i, each in hosts.items()}
    return {
        i: replace(each, stores=read.stores.get(i, ()), secrets=read.secrets.get(i, SecretsSeen()))
        for i, each in hosts.items()
    }


def _groups(
    found: Sequence[ConsumerGroups | Unread], zookeeper: ZookeeperState | Unread, *, read_topics: bool
) -> ConsumerGroups | Unread:
    if not read_topics:
        return Unread("not asked for: consumer groups were not read")
    if not was_read(zookeeper):
        return zookeeper
    if not was_read(zookeeper.tree):
        return zookeeper.tree
    return found[0] if found else Unread("consumer groups were not read in time", out_of_time=True)


def expect_partitions(cluster: str, partitions: int) -> None:
    """Let brokers of this cluster have the time for so many partitions, before any of them has told."""
    _answers[cluster] = max(_answers.get(cluster, SOURCE_SECONDS), answer_seconds(partitions))


def _keep_patience(cluster: str, given: float, looks: Mapping[int, BrokerLook | Unread]) -> None:
    """For the next look: by the longest answer, and twice as long where brokers ran out of time and none answered."""
    asked = [look for look in looks.values() if was_read(look) and was_read(look.mode)]
    told = [look.view.state.partition_count for look in asked if was_read(look.view)]
    if told:
        expect_partitions(cluster, max(told))
    elif any(look.view.timed_out or look.view.out_of_time for look in asked if isinstance(look.view, Unread)):
        _answers[cluster] = min(ANSWER_AT_MOST, 2 * given)


def _topics(views: Sequence[BrokerView], looks: Mapping[int, BrokerLook | Unread]) -> TopicsState | Unread:
    if views:
        return merge_views(views)
    reasons = [(look if not was_read(look) else look.view) for look in looks.values()]
    return Unread("no broker answered Metadata: " + "; ".join(r.reason for r in reasons if isinstance(r, Unread)))


def _apart(
    zookeeper: tuple[ZookeeperState, frozenset[str]] | Unread, quorum: tuple[QuorumState, frozenset[str]] | Unread
) -> TopicsApart | Unread:
    """Compared while ZooKeeper is written: not before the copy, nor once the migration is final."""
    if not was_read(quorum):
        return quorum
    if quorum[0].migration_state_record is not ZkMigrationState.MIGRATION:
        return Unread("ZooKeeper is not written by a KRaft controller")
    if not was_read(zookeeper):
        return zookeeper
    there, here = quorum[1], zookeeper[1]
    return TopicsApart(len(there), len(here), there - here, here - there)


def _replicas(
    spec: ClusterSpec,
    secrets: Secrets,
    hosts: Mapping[int, HostState] | Unread,
    zookeeper: tuple[ZookeeperState, frozenset[str]] | Unread,
    topic_ids: Mapping[str, str],
) -> tuple[ReplicasCompared | Unread, Mapping[int, HostState] | Unread]:
    """The comparison of the brokers' replicas with ZooKeeper, and the hosts without the maps that only it needs."""
    if not was_read(hosts):
        return hosts, hosts
    tree = zookeeper[0].tree if was_read(zookeeper) else zookeeper
    if was_read(tree):
        compared = part_read(
            lambda: compare_replicas(
                spec,
                hosts,
                topic_ids,
                secrets=secrets,
                gather=partial(_read_hosts, secrets=secrets),
                assigned=tree.assigned_broker_ids,
            )
        )
    else:
        compared = tree
    kept = {
        i: replace(each, replicas=each.replicas.without_paths()) if was_read(each.replicas) else each
        for i, each in hosts.items()
    }
    return compared, kept


def undeclared(
    spec: ClusterSpec, zookeeper: ZookeeperState | Unread, quorum: QuorumState | Unread, topics: TopicsState | Unread
) -> tuple[frozenset[int], frozenset[int]]:
    """Live ids that the cluster file does not name; it names the stand-ins of a rehearsal too."""
    brokers: set[int] = set()
    voters: set[int] = set()
    if was_read(zookeeper):
        brokers |= set(zookeeper.brokers)
    if was_read(quorum):
        brokers |= {i for i, r in quorum.registrations.items() if not r.fenced}
        voters |= {v.id for v in quorum.voters}
    if was_read(topics):
        brokers |= topics.live_broker_ids
    return frozenset(brokers - {*spec.broker_ids, *spec.stand_in_ids}), frozenset(voters - set(spec.controller_ids))
