"""What the deep read takes of everything that is not of one topic: configs, quotas, credentials, ACLs, tokens.

Every znode of every kind that the copy or a starting broker reads is judged; the configs of topics that are gone too,
for a starting broker reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from kraft_runbook.cluster.java_values import java_long
from kraft_runbook.cluster.late_configs import is_late, without_secret
from kraft_runbook.cluster.observation import ChildList, Consequence, ZnodeFault
from kraft_runbook.io.zookeeper.read_rows import TOKENS, Reader, acl_paths
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.znodes.copied_records import CopiedRecords
from kraft_runbook.metadata.znodes.min_isr_groups import min_isr_in
from kraft_runbook.metadata.znodes.znode_findings import ZnodeFindings
from kraft_runbook.metadata.znodes.znode_json import parse_object

NOTIFICATIONS = {
    "/config/changes": "config_change_",
    "/kafka-acl-changes": "acl_changes_",
    "/kafka-acl-extended-changes": "acl_changes_",
    "/delegation_token/token_changes": "token_change_",
}
"""The znodes of change notifications, and the beginning of the names there. After it
``ZkNodeChangeNotificationListener`` expects a number, or stops its round.
"""
_Judge = Callable[[str, bytes | None], bool]
"""Whether the znode can be read."""
SINGLE = ("/latest_producer_id_block", "/feature")


REPLY_HEADER = 88
"""What a reply of getChildren2 has beside the names: its header (16), their number (4), the znode's stat (68)."""


class _Measuring:
    """Reads as ``reader`` does, and knows the longest list of children that it was asked for."""

    def __init__(self, reader: ZookeeperReader, topics: Collection[str]) -> None:
        self._reader = reader
        self.get_many = reader.get_many
        self.longest = _measured("/brokers/topics", topics)

    def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
        found = self._reader.children_many(paths)
        lists = [_measured(path, names or ()) for path, names in zip(paths, found, strict=True)]
        self.longest = max([self.longest, *lists], key=lambda each: each.bytes)
        return found


def _measured(path: str, names: Collection[str]) -> ChildList:
    return ChildList(path, len(names), REPLY_HEADER + sum(4 + len(name.encode()) for name in names))


@dataclass(frozen=True, slots=True)
class Entities:
    """See ``ZookeeperTree``."""

    longest_list: ChildList
    acl_count: int
    delegation_tokens: int | None
    config_entity_types: frozenset[str]
    encoded_broker_configs: tuple[str, ...]
    min_isr_of_brokers: Mapping[str, int]
    late_configs_of_brokers: Mapping[str, Mapping[str, str]]


def read_entities(
    reader: ZookeeperReader, findings: ZnodeFindings, *, topics: Collection[str], copied: CopiedRecords
) -> Entities:
    """Read, judge and weigh (``copied``) them all. ``topics``: those that exist, whose configs are judged with them.
    Raises Unreachable.
    """

    def see(path: str, data: bytes | None) -> bool:
        copied.see_znode(path, data or b"")
        return findings.see(path, data)

    lists = _Measuring(reader, topics)  # of what the copy lists too (``ZkMigrationClient.readAllMetadata``)
    types = [name for name in reader.children("/config") or () if name != "changes"]
    entities = dict(zip(types, lists.children_many([f"/config/{each}" for each in types]), strict=True))
    existing = frozenset(topics)
    gone = [name for name in entities.get("topics") or () if name not in existing]
    users = [f"/config/users/{name}" for name in entities.get("users") or ()]
    quotas = [*users, *(f"/config/{each}/{name}" for each in ("clients", "ips") for name in entities.get(each) or ())]
    others = [
        *(f"/config/topics/{name}" for name in gone),
        *quotas,
        *children_of(lists, [f"{user}/clients" for user in users]),
    ]
    (tokens,) = lists.children_many([TOKENS])
    for path, znode in _read(reader, [*others, *(f"{TOKENS}/{token}" for token in tokens or ()), *SINGLE]):
        see(path, znode)
    for root, beginning in NOTIFICATIONS.items():
        for name in reader.children(root) or ():
            if java_long(name[len(beginning) :]) is None:
                findings.add(
                    ZnodeFault(
                        f"{root}/{name}",
                        Consequence.KRAFT_DIFFERS,
                        "brokers stop at this name, and hear of no change that stands behind it",
                    )
                )
    brokers = {
        path.rpartition("/")[2]: config
        for path, config in _configs(reader, see, [f"/config/brokers/{b}" for b in entities.get("brokers") or ()])
    }
    acls = _acl_count(lists, see)
    return Entities(
        longest_list=lists.longest,
        acl_count=acls,
        delegation_tokens=None if tokens is None else len(tokens),
        config_entity_types=frozenset(each for each, names in entities.items() if names),
        encoded_broker_configs=tuple(
            f"{broker}:{key}"
            for broker, config in brokers.items()
            for key, value in config.items()
            if "encryptedPassword:" in value
        ),
        min_isr_of_brokers={
            broker: least for broker, config in brokers.items() if (least := min_isr_in(config)) is not None
        },
        late_configs_of_brokers={
            broker: late
            for broker, config in brokers.items()
            if (late := {key: without_secret(key, value) for key, value in config.items() if is_late(key)})
        },
    )


def children_of(reader: Reader, parents: Sequence[str]) -> list[str]:
    """The paths of all children of all parents."""
    return [
        f"{parent}/{name}"
        for parent, names in zip(parents, reader.children_many(parents), strict=True)
        for name in names or ()
    ]


def _read(reader: Reader, paths: Sequence[str]) -> list[tuple[str, bytes | None]]:
    """The data of those that are there; None where one holds none at all (null)."""
    return [
        (path, None if znode.is_null else znode.data)
        for path, znode in zip(paths, reader.get_many(paths), strict=True)
        if znode is not None
    ]


def _configs(reader: ZookeeperReader, see: _Judge, paths: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    """The configs of entities that can be read."""
    return [
        (path, parse_object(data).get("config", {})) for path, data in _read(reader, paths) if see(path, data) and data
    ]


def _acl_count(reader: Reader, see: _Judge) -> int:
    """How many ACL entries there are that can be read."""
    return sum(
        len(parse_object(data).get("acls", []))
        for path, data in _read(reader, list(acl_paths(reader)))
        if see(path, data) and data
    )
