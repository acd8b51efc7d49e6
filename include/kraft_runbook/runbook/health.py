"""Whether a cluster is healthy: the quorum has a leader and all its voters, a broker is registered and in sync. Any
operation waits for that around a restart. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraft_runbook.cluster.naming import name_ids, nodes
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.phases import awaits_the_copy
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.conditions import DONE, Missing, Progress, first_missing
from kraft_runbook.runbook.lag import following, unaware_brokers, voters_behind
from kraft_runbook.runbook.warm import not_warm

STILL_NONE = (
    "If names resolve, ports answer and still none leads, restart the controllers by hand, one by one, with the disks"
    " and files that they have"
)
"""The last way out where all controllers run, as one of 4.2.0 needed after DNS had failed
(strimzi/strimzi-kafka-operator 12760).
"""


def quorum_led(seen: ClusterObservation) -> Progress:
    """A leader answers, so a majority runs."""
    if was_read(seen.quorum):
        return DONE
    down = [c.id for c in seen.controllers.values() if c.running is not True]
    told = f"waiting for a quorum leader: {seen.quorum.reason}"
    return Progress(False, f"{told}; {nodes('controller', down, 'does')} not run" if down else told)


def quorum_whole(seen: ClusterObservation, spec: ClusterSpec, *, earlier: ClusterObservation | None = None) -> Progress:
    """There is a leader, and every declared controller runs, has caught up and is warm."""
    return exited_controllers(seen, earlier) or first_missing(unfinished_quorum(seen, spec, earlier))


def unfinished_quorum(
    seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None, only: int | None = None
) -> Iterator[str | Missing]:
    """What keeps the quorum, or this controller of it, from being whole: running, a voter, caught up in fetching the
    log, and warm (``runbook.warm``).
    """
    ids = spec.controller_ids if only is None else (only,)
    running = [i for i in ids if seen.controllers[i].running is True]
    for i in ids:
        state = seen.controllers[i].running
        if not was_read(state):
            yield f"waiting for controller {i} to answer: {state.reason}"
        elif not state:
            yield f"waiting for controller {i} to accept connections: {len(running)} of {len(ids)} do"
    if not was_read(seen.quorum):
        yield f"waiting for a quorum leader: {seen.quorum.reason}"
        return
    voters = {v.id: v.log_end_offset for v in seen.quorum.voters}
    strangers = [] if only is not None else [i for i in voters if i not in spec.controller_ids]
    if strangers:
        yield (
            f"{nodes('voter', strangers, 'is')} not in the cluster file, so whether a majority would be left nobody can"
            " say: declare or remove it"
        )
    missing = [i for i in ids if i not in voters]
    if missing:
        yield f"{nodes('controller', missing, 'is')} not one of the quorum's voters ({name_ids(voters)})"
    behind = voters_behind(seen, earlier, ids)
    if behind:
        done = len(ids) - len(behind)
        lag = ", ".join(f"{i} at {at}" for i, at in behind.items())
        yield (
            f"waiting for {nodes('voter', behind)} to catch up with offset {seen.quorum.high_watermark} ({lag}): {done}"
            f" of {len(ids)} have"
        )
    yield from not_warm(seen, ids, earlier)


def broker_registered(
    seen: ClusterObservation,
    spec: ClusterSpec,
    node_id: int,
    mode: BrokerMode,
    *,
    earlier: ClusterObservation | None = None,
    kraft_counts: bool = True,
) -> Progress:
    """The broker runs in the mode, and its registration says so and is not fenced. ``kraft_counts``: where HYBRID is
    wanted, KRAFT counts too, since on the way forward it comes after HYBRID.
    """
    lost = exited_broker(seen, earlier, node_id)
    if lost:
        return lost
    wanted = (mode, BrokerMode.KRAFT) if mode is BrokerMode.HYBRID and kraft_counts else (mode,)
    state = seen.brokers[node_id]
    if (
        state.running is True
        and was_read(state.mode)
        and state.mode in wanted
        and is_registered(seen, node_id, state.mode)
    ):
        return DONE
    store_unread = not was_read(seen.zookeeper if mode is BrokerMode.ZOOKEEPER else seen.quorum)
    may_run_in = [each for each in wanted if not was_read(state.mode) or state.mode == each]
    unread = any(store_unread or is_registered(seen, node_id, each) for each in may_run_in)
    there = sum(
        1 for b in seen.brokers.values() if was_read(b.mode) and b.mode in wanted and is_registered(seen, b.id, b.mode)
    )
    now = f"it is in {state.mode} mode" if was_read(state.mode) else state.mode.reason
    if mode is BrokerMode.ZOOKEEPER:
        told = f"waiting for broker {node_id} to run in ZooKeeper mode: {there} of {len(spec.brokers)} do; {now}"
        return Progress(False, told, unread=unread)
    as_what = "as migrating" if mode is BrokerMode.HYBRID else "in KRaft mode"
    if was_read(seen.quorum) and node_id in seen.quorum.registrations and seen.quorum.registrations[node_id].fenced:
        now += ", its registration is fenced (if that lasts, restart this broker by hand: docs/reliability.md)"
    elif not was_read(seen.quorum):
        now += f"; the quorum: {seen.quorum.reason}"
    told = f"waiting for broker {node_id} to register {as_what}: {there} of {len(spec.brokers)} seen; {now}"
    return Progress(False, told, unread=unread)


def is_registered(seen: ClusterObservation, node_id: int, mode: BrokerMode) -> bool:
    """Whether the broker is registered, live, in this mode: in ZooKeeper for ZooKeeper mode, else in the quorum."""
    if mode is BrokerMode.ZOOKEEPER:
        return was_read(seen.zookeeper) and node_id in seen.zookeeper.brokers
    if not was_read(seen.quorum) or node_id not in seen.quorum.registrations:
        return False
    found = seen.quorum.registrations[node_id]
    return not found.fenced and found.is_migrating_zk_broker == (mode is BrokerMode.HYBRID)


def out_of_sync(
    seen: ClusterObservation, earlier: ClusterObservation | None, spec: ClusterSpec, node_id: int
) -> Iterator[str]:
    """What keeps the broker from being in every ISR. One that is restarted together with it may be down: its own wait
    asks for it, and so does the guard of whoever is next.
    """
    topics = seen.topics
    if not was_read(topics):
        yield f"waiting for the partitions' state: {topics.reason}"
        return
    if node_id not in topics.live_broker_ids:
        yield f"waiting for broker {node_id} to be known to all brokers, as {len(topics.live_broker_ids)} others are"
    away = {i for i in spec.batch_of(node_id) if i != node_id and seen.brokers[i].running is False}
    silent = [i for i in spec.broker_ids if i not in topics.topics_known_by_broker and i not in away]
    if silent:
        yield f"waiting for {nodes('broker', silent)} to answer Metadata"
    unaware = list(unaware_brokers(topics, earlier))
    if unaware:
        yield f"waiting for every broker to know all topics ({'; '.join(unaware)})"
    if topics.offline_count and not away:  # else those of one that is restarted together with it
        yield f"waiting for {topics.offline_count} offline partitions: {', '.join(topics.offline[:5])}"
    lagging = topics.out_of_sync_by_broker.get(node_id, 0)
    if lagging:
        yield f"waiting for broker {node_id} to be in sync: out of the ISR of {lagging} partitions"


def serves_unreached(seen: ClusterObservation, spec: ClusterSpec, node_id: int) -> str | None:
    """What shows that a node serves though its port refuses connections from here, as behind a firewall: its broker is
    registered and not fenced, or its controller leads, or has just fetched. None where its port is open, and where
    what would show it can't be read.
    """
    broker, controller = seen.brokers.get(node_id), seen.controllers.get(node_id)
    if broker is not None and broker.running is False and (shown := _serves_as_broker(seen, node_id)):
        return shown
    if not was_read(seen.quorum):
        return None
    if controller is not None and controller.running is False and following(seen, spec, node_id):
        return "it leads the quorum" if node_id == seen.quorum.leader_id else "it fetches from the quorum's leader"
    return None


def unreached_unread(seen: ClusterObservation, node_id: int) -> bool:
    """Whether a node's port refuses connections and what would show that it serves (``serves_unreached``) was not read:
    ZooKeeper for a broker before the copy, else the quorum.
    """
    broker, controller = seen.brokers.get(node_id), seen.controllers.get(node_id)
    if broker is not None and broker.running is False and awaits_the_copy(seen):
        return not was_read(seen.zookeeper)
    closed = any(each is not None and each.running is False for each in (broker, controller))
    return closed and not was_read(seen.quorum)


def _serves_as_broker(seen: ClusterObservation, node_id: int) -> str | None:
    """Before the metadata is copied the quorum fences nobody: rescheduleMaybeFenceStaleBrokers lacks
    RUNS_IN_PREMIGRATION (3.9.2). Only the session with ZooKeeper ends then.
    """
    if awaits_the_copy(seen):
        live = was_read(seen.zookeeper) and node_id in seen.zookeeper.brokers
        return "its session with ZooKeeper lasts" if live else None
    held = seen.quorum.registrations.get(node_id) if was_read(seen.quorum) else None
    if held is None or held.fenced:
        return None
    return "it is registered as a broker, and the controller has not fenced it"


def exited_broker(seen: ClusterObservation, earlier: ClusterObservation | None, node_id: int) -> Progress | None:
    state = seen.brokers[node_id]
    if state.lives:
        return Progress(
            False,
            f"waiting for broker {node_id} to serve: its process runs (its metrics answer) and its port is closed. It"
            " starts or stops, or the quorum refuses its registration: its log says which",
        )
    return _exited(f"broker {node_id}", lambda o: o.brokers[node_id].running, seen, earlier)


def exited_controllers(
    seen: ClusterObservation, earlier: ClusterObservation | None, only: int | None = None
) -> Progress | None:
    for node_id in seen.controllers if only is None else (only,):
        lost = _exited(f"controller {node_id}", lambda o, i=node_id: o.controllers[i].running, seen, earlier)  # type: ignore[misc]
        if lost:
            return lost
    return None


def _exited(
    who: str,
    running: Callable[[ClusterObservation], object],
    seen: ClusterObservation,
    earlier: ClusterObservation | None,
) -> Progress | None:
    """A port that refuses twice in a row means that the process has ended, since the port was open after its start.
    Once may be a restart by hand.
    """
    if running(seen) is not False:
        return None
    hopeless = earlier is not None and running(earlier) is False
    told = (
        f"{who}'s process has ended: its port refuses connections; its log says why"
        if hopeless
        else f"waiting for {who}: its port refuses connections"
    )
    return Progress(False, told, hopeless=hopeless)
