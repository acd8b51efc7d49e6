"""What a node's configuration file may not hold for a version of Kafka, newer or older than the one that runs: keys
that make it exit, and keys that it reads over in silence, so that what they asked for is off without a word.

Which ones is in ``config_tables``, release by release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.class_keys import of_any_listener
from kraft_runbook.cluster.config_meaning import listed
from kraft_runbook.cluster.config_tables import ConfigTable, config_table, knows_is_unknown
from kraft_runbook.cluster.java_values import java_int, trim
from kraft_runbook.cluster.kafka_version import release_of
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.runbook.obstacle import Obstacle

ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
INSTEAD: Mapping[str, str] = {
    "delegation.token.master.key": "delegation.token.secret.key; without it tokens are off",
    "log.message.timestamp.difference.max.ms": (
        "log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms"
    ),
    "inter.broker.protocol.version": "metadata.version, a feature level (upgrade_features)",
    "control.plane.listener.name": "nothing: brokers hear of metadata from the controllers' log",
    "group.coordinator.new.enable": "group.version, a feature level (upgrade_features)",
    "eligible.leader.replicas.enable": "eligible.leader.replicas.version, a feature level (upgrade_features)",
}
"""What takes the place of a key that is gone."""


@dataclass(frozen=True, slots=True)
class FileFinding(Obstacle):
    """One ``key`` of a node's file. ``refused``: the process exits; else it starts, and the key means nothing.
    ``unknown``: or it does, nobody knows.
    """

    key: str = ""
    refused: bool = True


def file_findings(properties: Mapping[str, str], version: str, *, now: str = "") -> tuple[FileFinding, ...]:
    """What Kafka of that version refuses in a node's file, and what it ignores. Of 3.9, only what it refuses and a
    later one takes; of earlier ones nothing. For a release without a table (``config_table``) only what every Kafka 4
    refuses. ``now``: the version that reads the file until then; keys that it ignores too are left out.
    """
    table = config_table(version)
    if isinstance(table, Unread):
        table = ConfigTable()
    before = config_table(now)
    changed = table if isinstance(before, Unread) else table.beyond(before)
    of_zookeeper = _of_zookeeper(properties, version) if release_of(version) >= (4, 0) else ()
    return (*of_zookeeper, *_refused(properties, version, table), *_ignored(properties, version, changed))


def _of_zookeeper(properties: Mapping[str, str], version: str) -> Iterator[FileFinding]:
    if not properties.get("process.roles"):
        yield FileFinding(
            f"without process.roles it is a broker of ZooKeeper, which {version} does not know",
            "end the migration from ZooKeeper first",
            key="process.roles",
        )
    if properties.get("authorizer.class.name") == ACL_AUTHORIZER:
        yield FileFinding(
            f"{ACL_AUTHORIZER} is not in {version} any more (ClassNotFoundException)",
            "use org.apache.kafka.metadata.authorizer.StandardAuthorizer, as the migration's end writes it",
            key="authorizer.class.name",
        )


def _refused(properties: Mapping[str, str], version: str, table: ConfigTable) -> Iterator[FileFinding]:
    for key, smallest in table.least.items():
        given = java_int(trim(properties.get(key, "")))
        if given is not None and given < smallest:
            yield FileFinding(
                f"{key}={given} is below the smallest that {version} takes ({smallest})",
                "raise it, or leave it out",
                key=key,
            )
    for key, greatest in table.greatest.items():
        given = java_int(trim(properties.get(key, "")))
        if given is not None and given > greatest:
            yield FileFinding(
                f"{key}={given} is above the greatest that {version} takes ({greatest})",
                "lower it, or leave it out",
                key=key,
            )
    for key, words in table.words.items():
        for word in listed(properties.get(key, "")):
            if word in words:
                yield FileFinding(f"{key} holds {word}, which {version} does not take", "take it out", key=key)
    yield from refused_lists(properties, version, table)


def refused_lists(properties: Mapping[str, str], version: str, table: ConfigTable) -> Iterator[FileFinding]:
    """Lists with an empty entry, for one listener too; from 4.2 on Kafka ends on them in a file, and leaves them out of
    the dynamic configurations (``ConfigDef.ValidList``).
    """
    for key, value in properties.items():
        name = of_any_listener(key)
        entries = [each.strip() for each in value.strip().split(",")]
        if entries == [""]:
            if name in table.filled:
                yield FileFinding(f"{key} is empty, and {version} takes no empty list", "leave it out", key=key)
        elif "" in entries and name in table.entries:
            yield FileFinding(
                f"{key}={value.strip()} has an empty entry, which {version} does not take",
                "take the comma out that is too many",
                key=key,
            )


def _ignored(properties: Mapping[str, str], version: str, table: ConfigTable) -> Iterator[FileFinding]:
    for key in sorted(properties):
        if table.has_lost(key):
            yield FileFinding(
                f"{version} reads over {key} in silence",
                f"its place is taken by {INSTEAD[key]}" if key in INSTEAD else "take it out of the cluster file",
                key=key,
                refused=False,
            )
        elif key in table.unsure:
            yield FileFinding(
                knows_is_unknown(key, version),
                "ask that release's documentation, or take it out of the cluster file",
                unknown=True,
                key=key,
                refused=False,
            )
