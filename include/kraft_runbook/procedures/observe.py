"""Observe one cluster: ZooKeeper, brokers, controllers, quorum, metrics and hosts at once, in one pass of bounded time.

Each source has a few seconds. A part that could not be read is ``Unread``, with the reason; no part is left out.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as OutOfTime
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import TypeVar

from kraft_runbook.cluster.addresses import address, split_address
from kraft_runbook.cluster.consumer_groups import ConsumerGroups
from kraft_runbook.cluster.feature_levels import FeatureObservation
from kraft_runbook.cluster.observation import (
    LIVES,
    NO_ZOOKEEPER,
    BrokerMode,
    BrokerState,
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
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Broker, Controller
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.kafka.metadata_quorum import (
    ClusterRecords,
    broker_mode,
    controller_mode,
    describe_committed,
    read_cluster_records,
)
from kraft_runbook.io.kafka.topics_seen import BrokerView, merge_views, topics_seen_by
from kraft_runbook.io.metrics import MetricsClient, NodeMetrics, broker_metrics, controller_metrics
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.read_state import read_zookeeper
from kraft_runbook.io.zookeeper.read_tree import read_tree
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.migration.leaving import counted_as_down
from kraft_runbook.parity.decoding import decoding_of, password_secrets
from kraft_runbook.procedures.compare_replicas import compare_replicas
from kraft_runbook.procedures.dynamic_classes import with_dynamic_classes
from kraft_runbook.procedures.observe_features import has_levels, observe_features
from kraft_runbook.procedures.part_read import part_read, unread_for
from kraft_runbook.procedures.see_groups import sum_up_groups
from kraft_runbook.procedures.topic_margins import topic_margins
from kraft_runbook.procedures.topics_not_shown import with_topics_not_shown

SOURCE_SECONDS = 4.0
"""Seconds that one source may take."""
LIVE_SECONDS = 6.0
"""Seconds after which a source without an answer counts as unread, plus ``SECONDS_A_PARTITION``."""
SECONDS_A_PARTITION = 1e-5
"""Seconds that this tool itself may take for one partition in one broker's answer, added for all of them: 40 answers of
200,000 partitions each took 11 s, one thread after the other (3.5e-6 s a partition on a machine with other work).
"""
DEEP_SECONDS = 300.0
HOSTS_SECONDS = 120.0
RECORDS_KEPT_SECONDS = 30.0
"""Seconds during which a look continues the log's last read. No quorum can be removed and created again in that time.
"""

T = TypeVar("T")


class Scope(StrEnum):
    """LIVE: what a wait needs each second. FULL: also every topic's znodes."""

    LIVE = "live"
    FULL = "full"


def observe(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    scope: Scope = Scope.LIVE,
    with_hosts: bool = False,
    gone: Collection[int] = (),
) -> ClusterObservation:
    """Read everything at once. Raises nothing for a part that can't be reached; raises SecretMissing if a secret can't
    be resolved.

    ``gone``: controllers whose hosts are gone for good, on the operator's word; if nothing answers there, they count as
    not running. If the cluster file names no ZooKeeper, that part is ``NO_ZOOKEEPER``.
    """
    began = time.monotonic()
    live = _Deadline(began, LIVE_SECONDS)
    observed_at = datetime.now(UTC)
    read_topics = scope is Scope.FULL and spec.zookeeper is not None
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
    so_far: dict[int, _Look] = {}
    pool = ThreadPoolExecutor(
        max_workers=min(32, 2 * (len(spec.brokers) + len(spec.controllers)) + 4), thread_name_prefix="observe"
    )
    try:
        with MetricsClient(spec.metrics, secrets=secrets, timeout=SOURCE_SECONDS) as metrics:
            zookeeper = (
                pool.submit(read_zookeeper, spec.zookeeper, secrets=secrets, deep=deep, timeout=SOURCE_SECONDS)
                if spec.zookeeper
                else None
            )
            quorum = pool.submit(_read_quorum, spec, secrets)
            brokers = {b.id: pool.submit(_look_at_broker, spec, b, secrets, live, so_far) for b in spec.brokers}
            controllers = {c.id: pool.submit(_look_at_controller, spec, c, secrets) for c in spec.controllers}
            endpoints = [(b.id, b.host, b.metrics_port) for b in spec.brokers] + [
                (c.id, c.host, c.metrics_port) for c in spec.controllers
            ]
            gauges = {node_id: pool.submit(metrics.read, host, port) for node_id, host, port in endpoints}
            hosts = pool.submit(_read_hosts, spec, replicas=read_topics) if with_hosts else None
            levels = pool.submit(observe_features, spec, secrets=secrets) if with_hosts and has_levels(spec) else None

            looks: dict[int, _Look | Unread] = {}
            seen_controllers: dict[int, ControllerState | Unread] = {}
            seen_gauges: dict[int, NodeMetrics | Unread] = {}
            for i, broker in brokers.items():
                look = _get(broker, live, f"broker {i}")
                looks[i] = look if was_read(look) else so_far.get(i, look)
            for i, controller in controllers.items():
                at_controller = _get(controller, live, f"controller {i}")
                seen_controllers[i] = at_controller
            for i, gauge in gauges.items():
                page = _get(gauge, live, f"the metrics of node {i}")
                seen_gauges[i] = page
            quorum_read = _get(quorum, live, "the controller quorum")
            zookeeper_read: tuple[ZookeeperState, frozenset[str]] | Unread = NO_ZOOKEEPER
            if zookeeper:
                zookeeper_read = _get(zookeeper, _Deadline(began, DEEP_SECONDS) if deep else live, "ZooKeeper")
            host_states: Mapping[int, HostState] | Unread = Unread("not asked for: hosts were not examined")
            if hosts:
                host_states = _get(hosts, _Deadline(began, HOSTS_SECONDS), "the hosts")
            features: FeatureObservation | Unread = Unread("not asked for: feature levels were not read")
            if levels:
                features = _get(levels, _Deadline(began, HOSTS_SECONDS), "the feature levels")
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    views = [look.view for look in looks.values() if was_read(look) and was_read(look.view)]
    topics = with_topics_not_shown(spec, secrets, _topics(views, looks), views, zookeeper_read, quorum_read)
    replicas: ReplicasCompared | Unread = Unread("not asked for: replicas on disk were not compared with ZooKeeper")
    if deep and with_hosts:
        replicas, host_states = _replicas(spec, secrets, host_states, zookeeper_read, topic_ids)
    zookeeper_state = zookeeper_read[0] if was_read(zookeeper_read) else zookeeper_read
    quorum_state = quorum_read[0] if was_read(quorum_read) else quorum_read
    undeclared_brokers, undeclared_controllers = _undeclared(spec, zookeeper_state, quorum_state, topics)
    seen = ClusterObservation(
        cluster=spec.name,
        observed_at=observed_at,
        took_seconds=round(time.monotonic() - began, 3),
        zookeeper=zookeeper_state,
        controllers=counted_as_down(
            {i: _controller_state(i, look, seen_gauges[i]) for i, look in seen_controllers.items()}, gone
        ),
        quorum=quorum_state,
        brokers={i: _broker_state(i, look, seen_gauges[i], quorum_state) for i, look in looks.items()},
        topics=topics,
        topics_apart=_apart(zookeeper_read, quorum_read),
        consumer_groups=_groups(groups, zookeeper_state, read_topics=read_topics),
        undeclared_brokers=undeclared_brokers,
        undeclared_controllers=undeclared_controllers,
        hosts=host_states,
        replicas=replicas,
        features=features,
    )
    if with_hosts and detect_phase(seen).phase in (Phase.FINALIZED, Phase.KRAFT):
        margins = part_read(lambda: topic_margins(spec, secrets=secrets))
        return replace(seen, margins=margins, features=with_dynamic_classes(spec, features, margins))
    return seen


@dataclass(slots=True)
class _Deadline:
    """``seconds`` after the look ``began``, plus the time for this tool's own work."""

    began: float
    seconds: float
    own: float = 0.0

    @property
    def at(self) -> float:
        return self.began + self.seconds + self.own

    def grow(self, own: float) -> None:
        self.own = max(self.own, own)


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


def _get(future: Future[T], deadline: _Deadline, what: str) -> T | Unread:
    """The answer, or why there is none. The deadline may move while this waits."""
    while True:
        at = deadline.at
        try:
            return future.result(timeout=max(0.0, at - time.monotonic()))
        except OutOfTime:
            if deadline.at == at:
                return Unread(
                    f"{what} was not read in the {at - deadline.began:.0f} s that a look has", out_of_time=True
                )
        except RunbookError as error:
            return unread_for(error)


# -- one node ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Look:
    """What one thread found out about one broker."""

    running: bool | Unread
    mode: BrokerMode | Unread
    view: BrokerView | Unread


def accepts(host: str, port: int, *, timeout: float = 2.0) -> bool | Unread:
    """Whether something listens: True; refused: False; no answer either way: Unread."""
    try:
        with socket.create_connection((host, port), timeout=timeout):
            return True
    except ConnectionRefusedError:
        return False
    except TimeoutError:
        return Unread(f"{address(host, port)} did not answer in {timeout:g} s")
    except OSError as error:
        reason = errno.errorcode.get(error.errno or 0, "") or type(error).__name__
        return Unread(f"{address(host, port)} could not be reached: {reason}")


def _is_silent(running: bool | Unread, mode: object, gauges: object) -> bool:
    """Whether a node hangs: its port accepts (the kernel does that for the process), but neither of two requests was
    answered in time.
    """
    return running is True and all(isinstance(part, Unread) and part.timed_out for part in (mode, gauges))


def _look_at_broker(
    spec: ClusterSpec, broker: Broker, secrets: Secrets, deadline: _Deadline, so_far: dict[int, _Look]
) -> _Look:
    """``so_far`` gets what is known before Metadata is asked, since a broker that hangs takes all the time of a look,
    and more on a busy machine.
    """
    running = accepts(*split_address(spec.broker_address(broker)))
    if running is not True:
        why = _why_down(running, f"broker {broker.id}", spec.broker_address(broker))
        return _Look(running, why, why)
    mode = part_read(lambda: broker_mode(spec, broker, secrets=secrets, timeout=SOURCE_SECONDS))
    so_far[broker.id] = _Look(
        running,
        mode,
        Unread(f"broker {broker.id} did not answer Metadata in the time that a look has", out_of_time=True),
    )

    def answered(partitions: int) -> None:
        deadline.grow(partitions * len(spec.brokers) * SECONDS_A_PARTITION)

    # A broker that hangs has had its time above, and is to be told from one that was not asked. Where answers are
    # large, the deadline moves.
    left = SOURCE_SECONDS if deadline.own else max(0.5, min(SOURCE_SECONDS, deadline.at - time.monotonic() - 0.5))
    return _Look(
        running, mode, part_read(lambda: topics_seen_by(spec, broker, secrets=secrets, timeout=left, answered=answered))
    )


def _why_down(running: bool | Unread, node: str, address: str) -> Unread:
    """Why nothing more is asked of a node."""
    return running if isinstance(running, Unread) else Unread(f"{node} does not run: {address} refuses connections")


def _look_at_controller(spec: ClusterSpec, controller: Controller, secrets: Secrets) -> ControllerState:
    running = accepts(controller.host, controller.port)
    if running is not True:
        why = _why_down(running, f"controller {controller.id}", controller.address)
        return ControllerState(controller.id, running, why, why)
    mode = part_read(lambda: controller_mode(spec, controller, secrets=secrets, timeout=SOURCE_SECONDS))
    return ControllerState(controller.id, running, mode, Unread("replaced by its gauges"))


def _broker_state(
    broker_id: int, look: _Look | Unread, gauges: NodeMetrics | Unread, quorum: QuorumState | Unread
) -> BrokerState:
    if not was_read(look):
        look = _Look(look, look, look)
    mode = look.mode
    if not was_read(mode) and was_read(quorum) and broker_id in quorum.registrations:
        mode = BrokerMode.HYBRID if quorum.registrations[broker_id].is_migrating_zk_broker else BrokerMode.KRAFT
    metrics = part_read(partial(broker_metrics, gauges)) if was_read(gauges) else gauges
    version = _version(gauges)
    cluster_id = look.view.state.cluster_id if was_read(look.view) else look.view
    silent = _is_silent(look.running, look.mode, gauges) and not was_read(look.view)
    lives = look.running is False and was_read(gauges)
    if lives and not was_read(mode):
        mode = Unread(f"broker {broker_id} {LIVES}")
    return BrokerState(broker_id, look.running, mode, metrics, version, cluster_id, silent, lives)


def _version(gauges: NodeMetrics | Unread) -> str | Unread:
    if not was_read(gauges):
        return gauges
    return gauges.software_version or Unread("its metrics do not name it")


def _controller_state(
    controller_id: int, look: ControllerState | Unread, gauges: NodeMetrics | Unread
) -> ControllerState:
    if not was_read(look):
        look = ControllerState(controller_id, look, look, look)
    metrics = part_read(partial(controller_metrics, gauges)) if was_read(gauges) else gauges
    if look.running is False and not was_read(metrics):
        metrics = Unread(f"controller {controller_id} does not run")
    silent = _is_silent(look.running, look.mode, gauges)
    return ControllerState(controller_id, look.running, look.mode, metrics, silent, _version(gauges))


# -- the whole ---------------------------------------------------------------------------------------------------------


def _topics(views: Sequence[BrokerView], looks: Mapping[int, _Look | Unread]) -> TopicsState | Unread:
    if views:
        return merge_views(views)
    reasons = [(look if not was_read(look) else look.view) for look in looks.values()]
    return Unread("no broker answered Metadata: " + "; ".join(r.reason for r in reasons if isinstance(r, Unread)))


_kept: dict[tuple[str, str], tuple[float, ClusterRecords]] = {}
"""The last read of each cluster's log, so that a wait reads only what is new. After 30 s everything is read again."""


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


def _read_quorum(spec: ClusterSpec, secrets: Secrets) -> tuple[QuorumState, frozenset[str]]:
    description = describe_committed(spec, secrets=secrets, timeout=SOURCE_SECONDS)
    key = (spec.name, spec.quorum_voters)
    at, records = _kept.get(key, (0.0, None))
    since = records if time.monotonic() - at < RECORDS_KEPT_SECONDS else None
    found = read_cluster_records(spec, secrets=secrets, timeout=SOURCE_SECONDS, since=since)
    _kept[key] = (time.monotonic(), found)
    state = QuorumState(
        leader_id=description.leader_id,
        leader_epoch=description.leader_epoch,
        high_watermark=description.high_watermark,
        voters=description.voters,
        registrations=found.registrations,
        metadata_version=found.metadata_version,
        migration_state_record=found.migration_state_record,
        copy=found.copy,
        kraft_only_configs=found.kraft_only,
    )
    return state, found.topics


def _read_hosts(
    spec: ClusterSpec, node_ids: Sequence[int] | None = None, *, replicas: bool = True
) -> Mapping[int, HostState]:
    from kraft_runbook.io.hosts.playbooks import (
        gather_host_facts,
    )  # ansible-runner is slow to import, and only this needs it

    return gather_host_facts(spec, node_ids, replicas=replicas)


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
                spec, hosts, topic_ids, secrets=secrets, gather=_read_hosts, assigned=tree.assigned_broker_ids
            )
        )
    else:
        compared = tree
    kept = {
        i: replace(each, replicas=each.replicas.without_paths()) if was_read(each.replicas) else each
        for i, each in hosts.items()
    }
    return compared, kept


def _undeclared(
    spec: ClusterSpec, zookeeper: ZookeeperState | Unread, quorum: QuorumState | Unread, topics: TopicsState | Unread
) -> tuple[frozenset[int], frozenset[int]]:
    """Live ids that the cluster file does not name."""
    brokers: set[int] = set()
    voters: set[int] = set()
    if was_read(zookeeper):
        brokers |= set(zookeeper.brokers)
    if was_read(quorum):
        brokers |= {i for i, r in quorum.registrations.items() if not r.fenced}
        voters |= {v.id for v in quorum.voters}
    if was_read(topics):
        brokers |= topics.live_broker_ids
    return frozenset(brokers - set(spec.broker_ids)), frozenset(voters - set(spec.controller_ids))
