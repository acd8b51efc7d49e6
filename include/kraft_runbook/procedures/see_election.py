"""Whether the ZooKeeper controller can elect leaders, proven before a broker is stopped: one partition's state changes.

Its epoch is compared with every state's, since a state with a greater one stops each election of that partition
(``metadata.znodes.state_epochs``). Then one partition is led by another than its preferred replica, and is given that
one: what Kafka's own leader rebalance does every five minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.observation import ControllerEpochs
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, RunbookError, StepFailed, TimedOut
from kraft_runbook.io.kafka.leader_elections import elect_preferred_leaders
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.read_columns import read_topic_columns
from kraft_runbook.io.zookeeper.read_epochs import TOPICS_AT_ONCE, read_controller_epochs
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.topic_columns import TopicColumns
from kraft_runbook.metadata.znodes.znode_json import parse_object

TRIES = 3
"""How many partitions are asked for before it counts as failed, of different brokers where that can be: a replica may
leave the ISR between look and election, and a broker may be ill.
"""
ANSWER_SECONDS = 120.0
"""Seconds that the controller may take. It handles its events one after the other, so it answers once it has taken over
every partition.
"""
Tell = Callable[[str], None]


def led_by_another(
    zookeeper: ZookeeperReader, ended: Collection[int], *, read: Callable[..., Any] = read_topic_columns
) -> Iterator[tuple[TopicPartition, int]]:
    """Partitions that another replica leads than the first, with that one, which is live and in sync."""
    live = {int(name) for name in zookeeper.children("/brokers/ids") or () if name.isdigit()} - {*ended}
    doomed = frozenset(zookeeper.children("/admin/delete_topics") or ())
    names = [name for name in zookeeper.children("/brokers/topics") or () if name not in doomed]
    for start in range(0, len(names), TOPICS_AT_ONCE):
        columns, _ = read(zookeeper, names[start : start + TOPICS_AT_ONCE])
        yield from not_led_by_their_first(columns, live)


def not_led_by_their_first(columns: TopicColumns, live: Collection[int]) -> Iterator[tuple[TopicPartition, int]]:
    """The same among these topics. A partition that is being reassigned is left alone."""
    held = columns.partitions
    quiet = (held.replicas.lengths > 0) & (held.adding.lengths == 0) & (held.removing.lengths == 0)
    places = np.flatnonzero(quiet)
    first = held.replicas.values[held.replicas.offsets[:-1][places]]
    for at, preferred in zip(places.tolist(), first.tolist(), strict=True):
        if held.leader[at] == preferred or preferred not in live:
            continue
        if preferred in held.isr.values[held.isr.offsets[at] : held.isr.offsets[at + 1]]:
            yield TopicPartition(columns.names[held.topic[at]], int(held.partition[at])), preferred


def see_election(
    spec: ClusterSpec,
    zookeeper: ZookeeperReader,
    *,
    secrets: Secrets,
    tell: Tell,
    ended: Collection[int] = (),
    epochs_of: Callable[[ZookeeperReader], ControllerEpochs] = read_controller_epochs,
    candidates: Callable[..., Iterator[tuple[TopicPartition, int]]] = led_by_another,
    elect: Callable[..., Mapping[TopicPartition, str]] = elect_preferred_leaders,
) -> str:
    """What was proven of the elected controller's elections, in words.

    A partition that its first replica does not lead, though that one is live and in sync, is given to it, and its state
    is seen with the controller's epoch. Without such a partition the numbers alone are compared, and the text says so.
    ``ended``: brokers whose process has ended. ZooKeeper has them as live until their session ends, and the controller
    would make them leaders.
    Raises StepFailed if a state has a greater epoch, or if no election came about; Unreachable.
    """
    epochs = epochs_of(zookeeper)
    if epochs.above.count:
        raise StepFailed(
            f"{epochs.above.count} of {epochs.states} partition states have a controller epoch above /controller_epoch"
            f" ({epochs.greatest}, {epochs.claimed}): the ZooKeeper controller can elect no leader for them",
            way_out="stop no broker; clear this task: it sets /controller_epoch and lets a broker be elected again",
        )
    numbers = (
        f"/controller_epoch is {epochs.claimed}, and no state of {epochs.states} partitions has a greater controller"
        " epoch"
    )
    refused: list[str] = []
    silent = False
    for partition, preferred in of_different_brokers(candidates(zookeeper, ended)):
        try:
            why_not = elect(spec, [partition], secrets=secrets, timeout=ANSWER_SECONDS)
        except Refused as error:
            return f"{numbers}. No election was tried: {error.problem}"
        except TimedOut as error:
            why_not, silent = {partition: error.problem}, True
        found = _state(zookeeper, partition)
        if found is not None and found[0] == preferred and found[1] >= (epochs.claimed or 0):
            told = (
                f"{partition} was given its first replica, broker {preferred}, as leader, with controller epoch"
                f" {found[1]}"
            )
            tell(f"the ZooKeeper controller elects leaders: {told}")
            return f"{told}; {numbers}"
        refused.append(f"{partition}: {why_not.get(partition, 'its state did not change')}")
        if silent:  # it would not answer for another partition either: it handles one event after the other
            break
    if refused:
        raise StepFailed(
            f"the ZooKeeper controller elected none of {len(refused)} leaders that it was asked for:"
            f" {'; '.join(refused)}",
            way_out=(
                "stop no broker: its partitions might get no leader. Look in the elected broker's controller.log and"
                " state-change.log, then clear this task: it tries again"
            ),
        )
    written = "at least one was written by the elected controller" if epochs.greatest == epochs.claimed else "none yet"
    return (
        f"{numbers}. No election was seen, since every partition is led by its first replica, or that one is not in"
        f" sync; states with the elected controller's epoch: {written}"
    )


def of_different_brokers(found: Iterable[tuple[TopicPartition, int]]) -> Iterator[tuple[TopicPartition, int]]:
    """At most ``TRIES`` of these partitions: the first of each broker, then others of the same brokers. What is not
    asked for is not read.
    """
    asked: set[int] = set()
    others: list[tuple[TopicPartition, int]] = []
    for partition, preferred in found:
        if preferred not in asked:
            asked.add(preferred)
            yield partition, preferred
            if len(asked) == TRIES:
                return
        elif len(others) < TRIES:
            others.append((partition, preferred))
    yield from others[: TRIES - len(asked)]


def _state(zookeeper: ZookeeperReader, partition: TopicPartition) -> tuple[int, int] | None:
    """A partition's leader and controller epoch by its state; None where that can't be read."""
    znode = zookeeper.get(f"/brokers/topics/{partition.topic}/partitions/{partition.partition}/state")
    try:
        state = parse_object(znode.data) if znode is not None else {}
        return int(state["leader"]), int(state["controller_epoch"])
    except (RunbookError, ValueError, KeyError, TypeError):
        return None
