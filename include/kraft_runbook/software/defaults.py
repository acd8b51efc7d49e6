"""Defaults that the target has changed: a broker whose configuration does not set the key does otherwise after the
roll, without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.config_tables import DEFAULTS_OF_3_9, config_table
from kraft_runbook.cluster.naming import name_ids
from kraft_runbook.cluster.observation import ClusterObservation, DynamicConfigs, Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.software.checklist import EVERY_BROKER, both

MEANS: Mapping[str, str] = {
    "log.message.timestamp.after.max.ms": "a record whose timestamp lies further ahead is refused (INVALID_TIMESTAMP)",
    "remote.log.manager.thread.pool.size": "threads of followers that ask for the highest remote offset",
    "num.recovery.threads.per.data.dir": "threads a directory at the start and the stop",
}
"""What a default decides, where its name does not say so."""
REMOTE, REMOTE_ON = "remote.", "remote.log.storage.system.enable"


@dataclass(frozen=True, slots=True)
class ChangedDefault:
    """``brokers``: those that do not set the key, neither in the file nor dynamically."""

    key: str
    before: str
    after: str
    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChangedDefaults:
    found: tuple[ChangedDefault, ...]
    unread: tuple[str, ...]


def changed_defaults(seen: ClusterObservation, spec: ClusterSpec) -> ChangedDefaults:
    """Those of brokers that this roll changes, from the version that runs to its target. A key that the target brings
    had no default before, and is not one of them.
    """
    versions = [config_table(each.version) for each in both(spec)]
    known = [each for each in versions if not isinstance(each, Unread)]
    if len(known) < len(versions):
        return ChangedDefaults((), tuple(each.reason for each in versions if isinstance(each, Unread)))
    before, after = ({**DEFAULTS_OF_3_9, **table.defaults} for table in (known[0], known[-1]))
    changes = {
        key: at_last
        for key, at_last in after.items()
        if before.get(key, at_last) != at_last and not known[-1].has_lost(key)
    }
    if not changes:
        return ChangedDefaults((), ())
    unread = []
    dynamic = seen.margins if isinstance(seen.margins, Unread) else seen.margins.dynamic
    if isinstance(dynamic, Unread):
        unread.append(f"dynamic configurations: {dynamic.reason}")
        dynamic = DynamicConfigs()
    files = {}
    for node_id in spec.broker_ids:
        file = _file(seen, node_id)
        if isinstance(file, Unread):
            unread.append(f"broker {node_id}: {file.reason}")
        else:
            files[node_id] = {**file, **dynamic.brokers.get(EVERY_BROKER, {}), **dynamic.brokers.get(str(node_id), {})}
    found = (
        ChangedDefault(key, before[key], at_last, brokers)
        for key, at_last in changes.items()
        if (brokers := tuple(i for i, held in files.items() if _follows(held, key)))
    )
    return ChangedDefaults(tuple(found), tuple(unread))


def _file(seen: ClusterObservation, node_id: int) -> Mapping[str, str] | Unread:
    if isinstance(seen.features, Unread):
        return seen.features
    host = seen.features.hosts.get(node_id, Unread("its host was not looked at"))
    if isinstance(host, Unread):
        return host
    return Unread("it has no file") if host.config is None else host.config


def _follows(held: Mapping[str, str], key: str) -> bool:
    """Whether the default holds there, and decides anything."""
    return key not in held and (not key.startswith(REMOTE) or held.get(REMOTE_ON, "").strip().lower() == "true")


def table_of_defaults(defaults: ChangedDefaults, version: str) -> str | None:
    """Each changed default, as markdown. None: nothing changes."""
    return "\n".join(_table(defaults, version)) if defaults.found or defaults.unread else None


def _table(defaults: ChangedDefaults, version: str) -> Iterator[str]:
    yield f"### Defaults that change with Kafka {version}"
    yield ""
    if defaults.found:
        yield "| key that is not set | default now | afterwards | brokers |"
        yield "|---|---|---|---|"
    for each in defaults.found:
        means = f" ({MEANS[each.key]})" if each.key in MEANS else ""
        yield f"| `{each.key}`{means} | {each.before} | {each.after} | {name_ids(each.brokers)} |"
    if defaults.found:
        yield ""
        yield "To keep what holds now, set the key in the cluster file, and let the nodes have it, before the roll."
    if defaults.unread:
        yield ""
        yield f"Not read: {'; '.join(defaults.unread)}."
