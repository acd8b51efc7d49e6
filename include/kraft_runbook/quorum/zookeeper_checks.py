"""The checks of ZooKeeper's controller and servers (KRB-QRM). Each judges a series of looks some seconds apart."""

from __future__ import annotations

from kraft_runbook.cluster.observation import was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.quorum.catalogue import check, event_queues
from kraft_runbook.quorum.look import Mode, Series
from kraft_runbook.runbook.check_results import BLOCKING, WARNING, Finding, failed, passed, settle, unknown

OF_ZOOKEEPER = (Mode.ZOOKEEPER, Mode.MIGRATING)


@check(
    "KRB-QRM-013",
    severity=BLOCKING,
    stages=OF_ZOOKEEPER,
    fix="look in the brokers' logs for why none takes /controller; until one does, no leader and no ISR changes",
)
def a_broker_controls(seen: Series, spec: ClusterSpec) -> Finding:
    """A broker of the cluster file is ZooKeeper's controller.

    Its failure goes unnoticed for zookeeper.session.timeout.ms. For that time no leader changes.
    """
    zookeeper = seen.now.zookeeper
    if not was_read(zookeeper):
        return unknown(zookeeper)
    holder = zookeeper.controller_id
    if holder is None:
        return failed("/controller is not there")
    if holder not in spec.broker_ids:
        return failed(f"/controller names {holder}, which is no broker of the cluster file")
    return passed(f"broker {holder}, epoch {zookeeper.controller_epoch}")


@check(
    "KRB-QRM-014",
    severity=WARNING,
    stages=OF_ZOOKEEPER,
    fix="give that broker more CPU, or find what makes the controller so busy",
)
def no_event_waits_long_in_the_broker(seen: Series, spec: ClusterSpec) -> Finding:
    """In ZooKeeper's controller 99 % of the events wait less than quorum_health.event_queue.

    By the same gauge as a KRaft controller's.
    """
    zookeeper = seen.now.zookeeper
    if not was_read(zookeeper):
        return unknown(zookeeper)
    if zookeeper.controller_id is None:
        return unknown("no broker is the controller")
    return event_queues({f"broker {zookeeper.controller_id}": zookeeper.gauges}, spec)


@check(
    "KRB-QRM-015",
    severity=WARNING,
    stages=OF_ZOOKEEPER,
    fix="start the named server, or see in its log why it is in no quorum",
)
def every_server_serves(seen: Series, spec: ClusterSpec) -> Finding:
    """Every ZooKeeper server of the cluster file serves, and one leads.

    By srvr, or by mntr where a server is told not to answer that (4lw.commands.whitelist). FAIL where one refuses
    connections or says that it serves nobody.
    """
    zookeeper = seen.now.zookeeper
    if not was_read(zookeeper):
        return unknown(zookeeper)
    asked = [each for each in zookeeper.servers.values() if was_read(each)]
    unread = [each.reason for each in zookeeper.servers.values() if not was_read(each)]
    modes = [each.mode for each in asked if not each.down]
    leading = sum(mode in ("leader", "standalone") for mode in modes)
    wrong = [each.down for each in asked if each.down]
    wrong += [] if leading == 1 or unread else [f"{leading} servers lead"]
    return settle(wrong, unread, f"{len(modes)}: {', '.join(modes)}")


@check(
    "KRB-QRM-016",
    severity=WARNING,
    stages=OF_ZOOKEEPER,
    fix="see whether the disk of that server's transaction log is slow, or who asks so much of it",
)
def no_server_falls_behind(seen: Series, spec: ClusterSpec) -> Finding:
    """At no look do more than quorum_health.outstanding requests wait in a ZooKeeper server."""
    limit = spec.quorum_health.outstanding
    counts: dict[str, int] = {}
    unread: dict[str, None] = {}
    for look in seen.looks:
        if not was_read(look.zookeeper):
            unread[look.zookeeper.reason] = None
            continue
        for name, each in look.zookeeper.servers.items():
            if was_read(each):
                counts[name] = max(each.outstanding, counts.get(name, 0))
            else:
                unread[each.reason] = None
    return settle(
        [f"{count} wait in server {name}" for name, count in counts.items() if count > limit],
        unread,
        f"{max(counts.values(), default=0)} at most",
    )
