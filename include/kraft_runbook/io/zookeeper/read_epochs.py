"""Reading the controller epochs of all partitions' states, and /controller_epoch after them."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_runbook.cluster.observation import ControllerEpochs
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.zookeeper.read_columns import read_topic_columns
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.metadata.znodes.state_epochs import GREATEST, NONE, StateEpochs
from kraft_runbook.metadata.znodes.znode_json import parse_object
from kraft_runbook.metadata.znodes.znode_values import BadZnode, json_int

CONTROLLER_EPOCH = "/controller_epoch"
TOPICS_AT_ONCE = 2000


def read_controller_epochs(reader: ZookeeperReader) -> ControllerEpochs:
    """Read the state of every partition (in bulk: 200,000 take seconds), then /controller_epoch.

    In that order: while a ZooKeeper controller leads, no state that was read before can say more. Raises what
    ``ZookeeperReader`` raises; RunbookError if /controller_epoch is no number.
    """
    seen = StateEpochs()
    names = reader.children("/brokers/topics") or ()
    for start in range(0, len(names), TOPICS_AT_ONCE):
        _, odd = read_topic_columns(reader, names[start : start + TOPICS_AT_ONCE], epochs=seen)
        see_one_by_one(reader, odd, seen)
    return compared(reader, seen)


def compared(reader: ZookeeperReader, seen: StateEpochs) -> ControllerEpochs:
    """What was seen, beside /controller_epoch as it is now."""
    znode = reader.get(CONTROLLER_EPOCH)
    claimed = None if znode is None else number_in(znode)
    above = seen.above(NONE if claimed is None else claimed)
    return ControllerEpochs(claimed, seen.greatest, seen.partitions, above, seen.above(GREATEST))


def see_one_by_one(reader: ZookeeperReader, topics: Sequence[str], seen: StateEpochs) -> None:
    """The states of topics in which something is unusual, of the partitions that are assigned: Kafka reads no others.
    One that Kafka can't parse counts as none, as it does for Kafka.
    """
    held = reader.get_many([f"/brokers/topics/{topic}" for topic in topics])
    places = [(topic, name) for topic, znode in zip(topics, held, strict=True) for name in _assigned(znode)]
    paths = [f"/brokers/topics/{topic}/partitions/{name}/state" for topic, name in places]
    for (topic, name), znode in zip(places, reader.get_many(paths), strict=True):
        try:
            if znode is not None and znode.data:
                seen.see(topic, int(name), json_int(parse_object(znode.data)["controller_epoch"]))
        except (BadZnode, KeyError, ValueError):
            continue


def _assigned(topic: Znode | None) -> tuple[str, ...]:
    """The partitions that a topic's znode names; none where there is none, or Kafka can't parse it."""
    try:
        found = parse_object(topic.data).get("partitions") if topic is not None and topic.data else None
    except BadZnode:
        return ()
    return tuple(found) if isinstance(found, dict) else ()


def number_in(znode: Znode) -> int:
    """The epoch in /controller_epoch. Raises RunbookError."""
    try:
        return int(znode.data)
    except ValueError:
        raise RunbookError(
            f"the znode {znode.path} does not hold what Kafka writes there",
            way_out=f"look at it with zookeeper-shell: get {znode.path}",
        ) from None
