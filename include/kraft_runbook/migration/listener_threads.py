"""The threads through which a ZooKeeper-based broker hears of changes in ZooKeeper, and how a dead one is seen. Pure.

Each is the thread of one ``ZkNodeChangeNotificationListener`` (Kafka 3.9.2), named after the znode that it watches.
What ends it is an error that is no exception, an OutOfMemoryError above all; the broker's log then says
``[/config/changes-event-process-thread]: Error due to``, and nothing starts it again. The broker lives on with the
configurations, quotas, credentials, ACLs or tokens that it had: the copy, which reads ZooKeeper, makes KRaft differ
from what that broker enforces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kraft_runbook.cluster.node_properties import ZOOKEEPER_AUTHORIZER
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, HostState, Unread, was_read
from kraft_runbook.cluster.token_key import has_key
from kraft_runbook.migration.thread_names import CUTS

_THREAD = "{}-event-process-thread"
CONFIGS, ACLS, EXTENDED_ACLS, TOKENS = (
    "/config/changes",
    "/kafka-acl-changes",
    "/kafka-acl-extended-changes",
    "/delegation_token/token_changes",
)


def expected(config: Mapping[str, str]) -> tuple[str, ...]:
    """The znodes that a broker with this configuration listens at: those of ACLs with AclAuthorizer, that of tokens
    with a secret for them.
    """
    acls = (ACLS, EXTENDED_ACLS) if config.get("authorizer.class.name", "").strip() == ZOOKEEPER_AUTHORIZER else ()
    tokens = (TOKENS,) if has_key(config) else ()
    return (CONFIGS, *acls, *tokens)


def deaf(seen: ClusterObservation, hosts: Mapping[int, HostState]) -> dict[int, tuple[str, ...] | Unread]:
    """The running ZooKeeper-based brokers that do not hear of everything, with the znodes that nobody listens at;
    Unread where that could not be seen.
    """
    found: dict[int, tuple[str, ...] | Unread] = {}
    for broker in seen.brokers.values():
        if broker.running is not True or broker.mode == BrokerMode.KRAFT:
            continue
        host = hosts.get(broker.id)
        missing = (
            broker.mode
            if not was_read(broker.mode)
            else _missing(host)
            if host
            else Unread(f"node {broker.id}'s host was not examined")
        )
        if missing:
            found[broker.id] = missing
    return found


def _missing(host: HostState) -> tuple[str, ...] | Unread:
    """A host that shows none of the broker's threads by name, neither these nor those that speak to its controller,
    does not show names.
    """
    for part in (host.config, host.listener_threads, host.controller_threads):
        if isinstance(part, Unread):
            return part
    if host.config is None:
        return Unread("its configuration file is not there")
    if not (*host.listener_threads, *host.controller_threads):  # type: ignore[misc]
        return Unread("its host shows none of its threads by name")
    return tuple(missing_threads(expected(host.config), host.listener_threads))  # type: ignore[arg-type]


def missing_threads(paths: Iterable[str], names: Iterable[str]) -> list[str]:
    """Those of the paths that no thread listens for. ``names``: the process's threads as Linux shows them.

    Two paths may look the same there; then the first of them counts as missing.
    """
    seen, missing = Counter(names), []
    for path in reversed(list(paths)):
        thread = _THREAD.format(path)
        short = next((each for cut in CUTS if seen[each := cut(thread)]), None)
        if short is None:
            missing.append(path)
        else:
            seen[short] -= 1
    return missing[::-1]
