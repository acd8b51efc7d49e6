"""Look at the quorum: DescribeQuorum and each controller's gauges at once, and ZooKeeper's side where the cluster file
names it. Changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from kraft_runbook.cluster.addresses import split_address
from kraft_runbook.cluster.feature_levels import FeatureObservation
from kraft_runbook.cluster.modes import BrokerMode
from kraft_runbook.cluster.observation import NO_ZOOKEEPER, ZookeeperState
from kraft_runbook.cluster.quorum_gauges import BrokerApplied, QuorumGauges
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.io.kafka.metadata_quorum import NoLeader, QuorumDescription, broker_mode, describe_quorum
from kraft_runbook.io.metrics import MetricsClient
from kraft_runbook.io.node_metrics import NodeMetrics, broker_applied, controller_metrics, quorum_gauges
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.ensemble import ensemble_servers
from kraft_runbook.io.zookeeper.read_state import read_zookeeper
from kraft_runbook.procedures.look_at_nodes import accepts
from kraft_runbook.procedures.part_read import part_read
from kraft_runbook.procedures.see_registrations import see_registrations
from kraft_runbook.quorum.faults import session_timeout_ms
from kraft_runbook.quorum.look import (
    BrokerHealth,
    ControllerHealth,
    KeptEpoch,
    Quorum,
    QuorumLook,
    Series,
    ZookeeperControl,
    replica_of,
)
from kraft_runbook.quorum.quorum_checks import wrong_registrations
from kraft_runbook.runbook.warm import APPLY_RULE, warmth

LOOKS, APART_SECONDS = 3, 2.0
"""Looks of a series, and the seconds between two of them. After an election a voter that runs has fetched within 3 s
(measured), so one that has not at the first and the last look does not.
"""
SOURCE_SECONDS = 4.0
"""Seconds that one source may take."""

T = TypeVar("T")


def see_series(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    before: KeptEpoch | None = None,
    known: FeatureObservation | None = None,
    sleep: Callable[[float], object] = time.sleep,
    look: Callable[..., QuorumLook] | None = None,
    registered: Callable[..., FeatureObservation] = see_registrations,
) -> Series:
    """Three looks, two seconds apart. Raises SecretMissing if a secret can't be resolved; a part that can't be reached
    is ``Unread``. ``before``: what an earlier watch kept.

    Registrations are read once, beside the looks: that reads the whole metadata log. They are read again where one is
    not right. ``known``: what an earlier series has read of them, where that is to do. ``look``, ``registered``: how a
    look is made (``see_quorum``), and how registrations are read.
    """
    looks: list[QuorumLook] = []
    with ThreadPoolExecutor(1, thread_name_prefix="registrations") as pool:
        once = pool.submit(lambda: known or registered(spec, secrets=secrets))
        for n in range(LOOKS):
            if n:
                sleep(APART_SECONDS)
            last = n == LOOKS - 1
            first = looks[0] if looks else None
            looks.append((look or see_quorum)(spec, secrets=secrets, first=first, ask_brokers=last))
        found = once.result()
    series = Series(tuple(looks), before, found)
    for _ in range(LOOKS):
        if not wrong_registrations(series):
            break
        sleep(APART_SECONDS)
        series = replace(series, registrations=registered(spec, secrets=secrets))
    return series


def see_quorum(
    spec: ClusterSpec, *, secrets: Secrets, first: QuorumLook | None = None, ask_brokers: bool = False
) -> QuorumLook:
    """One look. ``first``: an earlier one: whoever has applied what was committed then is warm. ``ask_brokers``: also
    what each broker has applied.
    """
    brokers = spec.brokers if ask_brokers else ()
    with (
        MetricsClient(spec.metrics, secrets=secrets, timeout=SOURCE_SECONDS) as metrics,
        ThreadPoolExecutor(2 * len(spec.controllers) + 2 + len(brokers), thread_name_prefix="quorum") as pool,
    ):
        quorum = pool.submit(describe_quorum, spec, secrets=secrets, timeout=SOURCE_SECONDS)
        zookeeper = pool.submit(_zookeeper, spec, secrets, metrics)
        ports = {c.id: pool.submit(accepts, c.host, c.port) for c in spec.controllers}
        pages = {c.id: pool.submit(metrics.read, c.host, c.metrics_port) for c in spec.controllers}
        following = {each.id: pool.submit(_applied, spec, each, secrets, metrics) for each in brokers}
        described: QuorumDescription | Unread
        say_no: frozenset[int] = frozenset()
        try:
            described = quorum.result()
        except NoLeader as error:
            described, say_no = Unread(error.problem, way_out=error.way_out), error.say_no
        found: dict[int, ControllerHealth] = {}
        for i in spec.controller_ids:
            page = _result(pages[i])
            found[i] = _controller(i, ports[i].result(), page)
        control = _flat(zookeeper)
        applied = {i: _flat(each) for i, each in following.items()}
    committed = described.high_watermark if was_read(described) else None
    before = first.quorum.high_watermark if first is not None and was_read(first.quorum) else None
    return QuorumLook(
        spec.name,
        datetime.now(UTC),
        _quorum(described) if was_read(described) else described,
        {i: replace(each, warm=warmth(each.metrics, committed, before)) for i, each in found.items()},
        control,
        say_no,
        {i: BrokerHealth(i, each, warmth(each, committed, before)) for i, each in applied.items() if each is not None},
    )


def _quorum(found: QuorumDescription) -> Quorum:
    """The leader's own entry has its clock as the time of its last fetch (measured; the schema says -1)."""
    leader = next((each for each in found.voters if each.id == found.leader_id), None)
    end = leader.log_end_offset if leader is not None and leader.log_end_offset >= 0 else None
    clock = leader.last_fetch_ms if leader is not None and leader.last_fetch_ms > 0 else int(time.time() * 1000)
    voters, observers = (
        tuple(
            replica_of(each.id, each.log_end_offset, each.last_fetch_ms, leader_end=end, leader_now_ms=clock)
            for each in part
        )
        for part in (found.voters, found.observers)
    )
    return Quorum(found.leader_id, found.leader_epoch, found.high_watermark, voters, observers)


def _controller(node_id: int, running: bool | Unread, page: NodeMetrics | Unread) -> ControllerHealth:
    if running is False:
        down = Unread(f"controller {node_id} does not run")
        return ControllerHealth(node_id, running, down, down, down)
    metrics = part_read(lambda: controller_metrics(page)) if was_read(page) else page
    gauges = quorum_gauges(page) if was_read(page) else page
    return ControllerHealth(node_id, running, metrics, gauges, Unread("judged with the quorum"))


def _applied(
    spec: ClusterSpec, broker: Broker, secrets: Secrets, metrics: MetricsClient
) -> BrokerApplied | Unread | None:
    """What a broker has applied of the metadata log; None where it is down, or runs in ZooKeeper mode and so applies
    none.
    """
    return applied_by(
        part_read(lambda: metrics.read(broker.host, broker.metrics_port)),
        runs=lambda: accepts(*split_address(spec.broker_address(broker))),
        mode=lambda: part_read(lambda: broker_mode(spec, broker, secrets=secrets, timeout=SOURCE_SECONDS)),
    )


def applied_by(
    page: NodeMetrics | Unread,
    *,
    runs: Callable[[], bool | Unread],
    mode: Callable[[], BrokerMode | Unread],
) -> BrokerApplied | Unread | None:
    """The same of its metrics. Whether it ``runs``, and in which ``mode``, is asked where they do not tell."""
    applied = broker_applied(page) if was_read(page) else None
    if applied is not None:
        return applied
    if runs() is False:
        return None
    found = mode()
    if was_read(found) and found is not BrokerMode.KRAFT:
        return None
    return page if not was_read(page) else Unread("its metrics hold no last-applied-record-offset", way_out=APPLY_RULE)


def _zookeeper(spec: ClusterSpec, secrets: Secrets, metrics: MetricsClient) -> ZookeeperControl | Unread:
    if spec.zookeeper is None:
        return NO_ZOOKEEPER
    state: ZookeeperState = read_zookeeper(spec.zookeeper, secrets=secrets, deep=None, timeout=SOURCE_SECONDS)[0]
    holder = state.controller
    of_kraft = holder is not None and holder.kraft_controller_epoch >= 0
    gauges: QuorumGauges | Unread = Unread("no broker holds /controller")
    if holder is not None and not of_kraft:
        if holder.broker_id in spec.broker_ids:
            broker = spec.broker(holder.broker_id)
            page = part_read(lambda: metrics.read(broker.host, broker.metrics_port))
            gauges = quorum_gauges(page) if was_read(page) else page
        else:
            gauges = Unread(f"broker {holder.broker_id} is not in the cluster file")
    return ZookeeperControl(
        holder.broker_id if holder is not None else None,
        of_kraft,
        state.controller_epoch,
        session_timeout_ms(spec, holder.broker_id if holder is not None else -1),
        gauges,
        ensemble_servers(spec.zookeeper, secrets=secrets),
    )


def _flat(future: Future[T | Unread]) -> T | Unread:
    return part_read(future.result)


def _result(future: Future[T]) -> T | Unread:
    return part_read(future.result)
