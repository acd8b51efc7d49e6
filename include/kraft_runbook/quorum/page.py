"""A look at the quorum as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.quorum_gauges import QuorumGauges
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.quorum.look import (
    BrokerHealth,
    ControllerHealth,
    Mode,
    Quorum,
    QuorumLook,
    Replica,
    ZookeeperControl,
)
from kraft_runbook.runbook.warm import Warmth, how_far_applied


def render(look: QuorumLook) -> str:
    """Everything that the look shows, and what it could not read."""
    return "\n".join(_lines(look))


def _lines(look: QuorumLook) -> Iterator[str]:
    if look.mode is not Mode.ZOOKEEPER:
        yield from _of_quorum(look)
    if was_read(look.zookeeper):
        yield from _of_zookeeper(look.zookeeper)
    elif look.mode is not Mode.KRAFT:
        yield f"ZooKeeper: not read: {look.zookeeper.reason}"


def _of_quorum(look: QuorumLook) -> Iterator[str]:
    quorum = look.quorum
    if was_read(quorum):
        mark = "not known yet" if quorum.high_watermark < 0 else f"{quorum.high_watermark}"
        yield f"controller {quorum.leader_id} leads in epoch {quorum.leader_epoch}, high watermark {mark}"
    else:
        yield f"the quorum: not read: {quorum.reason}"
    replicas = {each.id: each for each in quorum.voters} if was_read(quorum) else {}
    for i, controller in look.controllers.items():
        yield f"controller {i}: " + ", ".join(_of_controller(controller, replicas.get(i), quorum))
    for i in sorted(replicas.keys() - look.controllers.keys()):
        yield f"voter {i}, which is not in the cluster file: {_fetching(replicas[i])}"
    observers = {each.id: each for each in quorum.observers} if was_read(quorum) else {}
    for i in sorted(observers.keys() | look.brokers.keys()):
        told = [_fetching(observers[i])] if i in observers else []
        told += _of_broker(look.brokers[i], quorum) if i in look.brokers else ()
        yield f"{'observer' if i in observers else 'broker'} {i}: {', '.join(told)}"


def _of_controller(each: ControllerHealth, replica: Replica | None, quorum: Quorum | Unread) -> Iterator[str]:
    if each.running is False:
        yield "does not run"
    if was_read(quorum):
        if replica is None:
            yield "no voter"
        elif replica.id == quorum.leader_id:
            yield f"log end {replica.log_end_offset}"
        else:
            yield _fetching(replica)
    if each.running is False:
        return
    if not was_read(each.metrics):
        yield f"metrics not read: {each.metrics.reason}"
        return
    applied = how_far_applied(each.metrics, _end(quorum))
    yield each.warm.value if was_read(each.warm) else f"warm or cold is not known ({each.warm.reason})"
    if applied:
        yield applied
    if was_read(each.gauges):
        yield from _gauges(each.gauges)


def _of_broker(each: BrokerHealth, quorum: Quorum | Unread) -> Iterator[str]:
    if not was_read(each.applied):
        yield f"what it has applied was not read: {each.applied.reason}"
        return
    if was_read(each.current):
        yield "has applied what was committed" if each.current is Warmth.WARM else "lags in applying"
    yield how_far_applied(each.applied, _end(quorum))


def _end(quorum: Quorum | Unread) -> int | None:
    """The last committed offset."""
    return quorum.high_watermark - 1 if was_read(quorum) and quorum.high_watermark >= 0 else None


def _fetching(replica: Replica) -> str:
    if replica.seconds_since_fetch is None:
        return "has not fetched since the leader was elected"
    return (
        f"log end {replica.log_end_offset}, lag {replica.lag} records, fetched {replica.seconds_since_fetch:.1f} s ago"
    )


def _gauges(gauges: QuorumGauges) -> Iterator[str]:
    for what, value in (
        ("99 % of events wait less than", gauges.event_queue_p99_ms),
        ("commits in", gauges.commit_latency_ms),
        ("elections took", gauges.election_latency_ms),
    ):
        if value is not None:
            yield f"{what} {value:.1f} ms"
    if gauges.snapshot_age_ms is not None:
        none = gauges.snapshot_bytes == 0
        size = "" if none or gauges.snapshot_bytes is None else f" of {gauges.snapshot_bytes} bytes"
        yield f"{'no snapshot for' if none else f'last snapshot{size}'} {gauges.snapshot_age_ms / 60_000:.0f} min" + (
            "" if none else " ago"
        )


def _of_zookeeper(found: ZookeeperControl) -> Iterator[str]:
    holder = (
        "nobody"
        if found.controller_id is None
        else f"{'controller' if found.of_kraft else 'broker'} {found.controller_id}"
    )
    yield f"ZooKeeper: {holder} holds /controller, controller epoch {found.controller_epoch}"
    if not found.of_kraft and found.controller_id is not None:
        queue = found.gauges.event_queue_p99_ms if was_read(found.gauges) else None
        told = "not known" if queue is None else f"{queue:.1f} ms"
        yield (f"  its session times out after {found.session_timeout_ms} ms; 99 % of events wait less than: {told}")
    for name, server in found.servers.items():
        if was_read(server) and server.down:
            yield f"  server {name}: {server.down}"
        elif was_read(server):
            yield f"  server {name}: {server.mode}, {server.outstanding} outstanding requests"
        else:
            yield f"  server {name}: not read: {server.reason}"
