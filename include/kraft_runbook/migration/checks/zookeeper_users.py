"""Who else uses ZooKeeper, and whether the controllers may write there."""

from __future__ import annotations

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import (
    ClusterObservation,
    was_read,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import (
    UNTIL_FINALIZED,
    check,
)
from kraft_runbook.migration.consumer_groups import SCAN, groups_that_need_zookeeper
from kraft_runbook.runbook.check_results import Finding, Severity, failed, passed, sample, settle, unknown
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.read_parts import host_parts, split_read


@check(
    "KRB-PRE-033",
    severity=Severity.BLOCKING,
    fix=(
        "move these groups to Kafka's coordination (docs/consumer-groups.md): the migration does not copy their offsets"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.TREE,
)
def no_consumer_coordinates_through_zookeeper(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No consumer group has live members in ZooKeeper.

    Such consumers keep members and offsets below /consumers, which is not migrated. Once the last broker has left
    migration mode, /brokers/ids is empty: one that starts reads nothing, one that runs stops at the next change of
    leaders, without an error (measured on 3.9.2).
    """
    return groups_that_need_zookeeper(seen.consumer_groups, spec)


@check(
    "KRB-PRE-099",
    severity=Severity.WARNING,
    fix=(
        "find who commits these offsets to ZooKeeper, and have it commit to Kafka before the first broker is restarted"
        " in KRaft mode; end a move that stopped half-way: move_consumer_group"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.TREE,
)
def nobody_commits_to_zookeeper_unregistered(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No consumer group without members had an offset written in the last hour, or has a move that ended half-way.

    Somebody stores offsets in ZooKeeper without registering there (Storm, Spark, OffsetCommit version 0), or a group
    was stopped just now; the hour is by ZooKeeper's clock. A broker in KRaft mode refuses OffsetCommit version 0
    (``KafkaApis.commitOffsetsToZookeeper`` of 3.9.2). A group that is fenced, and whose offsets Kafka has not had, is
    consumed by nobody.
    """
    groups = seen.consumer_groups
    if not was_read(groups):
        return unknown(groups)
    sorts = ((groups.offsets_only, "OFFSETS_ONLY"), (groups.half_moved, "FENCED, and Kafka has not had their offsets"))
    found = [f"groups {sample(some.names, some.count)} ({what})" for some, what in sorts if some.count]
    if found:
        return failed(f"{'; '.join(found)}; {SCAN} {spec.name} shows them")
    if groups.unknown.count:
        return unknown(f"of these groups it can't be told: {sample(groups.unknown.names, groups.unknown.count)}")
    return passed(f"none of {groups.total}")


@check(
    "KRB-PRE-034",
    severity=Severity.WARNING,
    fix=(
        "find the other clients (four-letter word cons) and move tools that use --zookeeper to --bootstrap-server; keep"
        " ZooKeeper for other systems that need it"
    ),
    needs=Needs.TREE,
    stages=UNTIL_FINALIZED,
)
def nothing_else_uses_zookeeper(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """ZooKeeper has no clients except the brokers, the controllers and this tool.

    KRaft ignores what other tools write to ZooKeeper, and they overwrite what KRaft wrote.
    """
    if not was_read(seen.zookeeper):
        return unknown(seen.zookeeper)
    if not was_read(seen.zookeeper.connections):
        return unknown(
            seen.zookeeper.connections,
            "allow srvr or mntr in 4lw.commands.whitelist, or look with your own tools for other clients",
        )
    # A broker has one session, and a second one if its authorizer has its own. So has a controller in migration mode.
    most = (
        2
        * (
            sum(b.running is True for b in seen.brokers.values())
            + sum(c.running is True for c in seen.controllers.values())
        )
        + 1
    )
    told = f"{seen.zookeeper.connections} connections; brokers, controllers and this tool explain up to {most}"
    return failed(told) if seen.zookeeper.connections > most else passed(told)


@check(
    "KRB-PRE-035",
    severity=Severity.BLOCKING,
    fix=(
        "put zookeeper.set.acl: true and the brokers' ZooKeeper identity under zookeeper.properties in the cluster"
        " file: controllers must be allowed to write the same znodes"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def controllers_may_write_restricted_znodes(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """If znodes have ACLs, the controllers have the brokers' ZooKeeper settings.

    Otherwise the controllers can't write, or they create znodes without ACLs.
    """
    declared = spec.ensemble.properties.get("zookeeper.set.acl", "false").lower() == "true"
    tree = seen.tree
    restricted = tree.znode_acl_restricted if was_read(tree) else tree
    found, unread = split_read("broker {}", host_parts(seen, spec.broker_ids, "config"))
    unread = ([] if was_read(restricted) else [restricted.reason]) + unread
    on_disk = [i for i, config in found.items() if config and config.get("zookeeper.set.acl", "").lower() == "true"]
    if declared:
        return passed("the cluster file declares zookeeper.set.acl for brokers and controllers")
    wrong = ["Kafka's znodes have ACLs"] if restricted is True else []
    wrong += [f"{nodes('broker', on_disk, 'has')} zookeeper.set.acl=true"] if on_disk else []
    return settle(
        [f"{'; '.join(wrong)}, and the cluster file does not declare it"] if wrong else [],
        unread,
        "znodes are open to everyone",
    )
