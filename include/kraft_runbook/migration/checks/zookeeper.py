"""What ZooKeeper holds, and what the migration would lose or fail on."""

from __future__ import annotations

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import (
    ClusterObservation,
    ControllerMode,
    MigrationZnode,
    was_read,
)
from kraft_runbook.cluster.phases import LEFT_CONTROLLER
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import (
    BEFORE_THE_COPY,
    CHECKS,
    PROVEN_BEFORE_THE_COPY,
    UNTIL_FINALIZED,
    check,
)
from kraft_runbook.migration.controller_epochs import cut_off_by_epoch, why_not_countable
from kraft_runbook.migration.way_back import quorum_is_lost
from kraft_runbook.runbook.check_results import BLOCKING, Finding, failed, passed, sample, unknown
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS

CHECKS.take(*CLUSTER_CHECKS.of("KRB-PRE-029", "KRB-PRE-100"))

START_THE_CONTROLLERS = (
    "start the controllers with the data that they have: it may hold the only copy of what was committed. Set none of"
    " it aside, and do not delete /controller. To leave KRaft, trigger zk_to_kraft_rollback__<cluster>, which proves"
    " what ZooKeeper holds before it deletes anything. Where an earlier try was left by hand, or that data is lost:"
    f" {LEFT_CONTROLLER}"
)
"""The way out where /controller names a KRaft controller, or brokers are in KRaft mode, and none leads."""


@check(
    "KRB-PRE-014",
    severity=BLOCKING,
    fix=(
        "restart the partitions' leaders so that the controller writes their state, or delete the topics. While KRaft"
        " leads, create the missing znodes instead: their versions begin at 0, lower than the partitions' epochs;"
        " leave_kraft corrects that, Kafka's documented rollback does not"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.TREE,
)
def every_partition_has_a_state_znode(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every partition has its state znode.

    A partition without /state makes one write of the controller fail. After that every update of /migration fails:
    dual write stops for good, without an error (measured on 3.9.2).
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    if tree.partitions_without_state_count:
        return failed(
            "partitions without a state znode:"
            f" {sample(tree.partitions_without_state, tree.partitions_without_state_count)}"
        )
    return passed(f"{tree.partitions} partitions of {tree.topics} topics have one")


@check(
    "KRB-PRE-021",
    severity=BLOCKING,
    fix=(
        "trigger zk_to_kraft_rollback__<cluster>, which ends the earlier try. By hand, only while /controller names a"
        " broker: stop the controllers of the earlier try, rename their data directories, restart brokers that are"
        " still in migration mode, then delete /migration with zookeeper-shell. While /controller names a KRaft"
        " controller, the controllers hold a committed copy: start them, and set none of their data aside"
    ),
    stages=PROVEN_BEFORE_THE_COPY,
)
def no_former_migration_is_recorded(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No /migration is left from an earlier try.

    New controllers that find one skip the metadata copy and then erase every topic from ZooKeeper (within 2 s, measured
    on 3.9.2), while the metrics look normal.
    """
    if not was_read(seen.zookeeper):
        return unknown(seen.zookeeper)
    found = seen.zookeeper.migration
    if found is None or found.is_blank:
        return passed("/migration does not exist" if found is None else "/migration is blank: nothing was copied")
    if _is_alive(seen, found):
        return passed(f"/migration is written by controller {found.kraft_controller_id}, which leads the quorum")
    return failed(
        f"/migration says that controller {found.kraft_controller_id} wrote up to offset {found.kraft_metadata_offset}"
    )


def _is_alive(seen: ClusterObservation, found: MigrationZnode) -> bool:
    """Whether the running quorum made the copy: its leader wrote /migration and is named in /controller, and its log
    has the copy.
    """
    if (
        not was_read(seen.quorum)
        or not was_read(seen.zookeeper)
        or seen.zookeeper.controller is None
        or seen.quorum.migration_state_record is None
    ):
        return False
    leads = found.kraft_controller_id == seen.quorum.leader_id == seen.zookeeper.controller.broker_id
    return leads and seen.quorum.migration_state_record.name == "MIGRATION"


@check(
    "KRB-PRE-022",
    severity=BLOCKING,
    fix=START_THE_CONTROLLERS,
    stages=BEFORE_THE_COPY,
)
def a_broker_is_the_controller(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Before the copy, /controller names a live broker.

    Where it names a KRaft controller and none leads, nobody elects leaders. Two things look the same: a migration whose
    controllers are down, and an earlier try that was left by hand.
    """
    if not was_read(seen.zookeeper):
        return unknown(seen.zookeeper)
    holder = seen.zookeeper.controller
    lost = not was_read(seen.quorum) and quorum_is_lost(seen)
    if holder is None:
        return failed(
            "/controller does not exist: no controller is elected",
            START_THE_CONTROLLERS
            if lost
            else "start the brokers, or look in their logs for the reason that none becomes the controller",
        )
    if holder.kraft_controller_epoch >= 0:
        leads = was_read(seen.quorum) and seen.quorum.leader_id == holder.broker_id
        told = f"/controller names KRaft controller {holder.broker_id}"
        return (
            passed(f"{told}, which leads the quorum")
            if leads
            else failed(f"{told}, which does not lead a quorum that can be read")
        )
    if holder.broker_id not in seen.zookeeper.brokers:
        return failed(
            f"/controller names broker {holder.broker_id}, which is not live",
            START_THE_CONTROLLERS if lost else "wait for the session of that broker to end; a new election follows",
        )
    return passed(f"broker {holder.broker_id}")


@check(
    "KRB-PRE-082",
    severity=BLOCKING,
    fix=(
        "trigger zk_to_kraft_rollback__<cluster>: its leave_kraft sets /controller_epoch and lets a broker be elected"
        " again, in one transaction. By hand, with no KRaft controller running: see docs/rollback.md"
    ),
    stages=PROVEN_BEFORE_THE_COPY,
    needs=Needs.TREE,
)
def the_zookeeper_controller_may_elect_leaders(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No partition's state has a greater controller epoch than /controller_epoch.

    A cluster that left KRaft by Kafka's documented order may have such states: a KRaft controller writes its raft epoch
    there, which rises faster (KAFKA-20488). The ZooKeeper controller elects no leader for these partitions and leaves
    dead replicas in their ISR, while the gauges look healthy (measured on 3.9.2: after a kill -9 no leader for 45 s and
    more). And nobody set /controller_epoch after the controller's election: each write of a controller checks that
    znode's version, so it could write nothing.
    """
    if not was_read(seen.zookeeper):
        return unknown(seen.zookeeper)
    cut_off = cut_off_by_epoch(seen)
    if cut_off:
        return failed(
            cut_off,
            f"trigger zk_to_kraft_rollback__{spec.name}: its leave_kraft lets a broker be elected again. By hand, with"
            " no KRaft controller running, in zookeeper-shell below the chroot: 'delete /controller'. Then run this"
            " check again",
        )
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    epochs = tree.controller_epochs
    if not was_read(epochs):
        return unknown(epochs)
    uncountable = why_not_countable(epochs)
    if uncountable:
        return failed(*uncountable)
    if epochs.claimed is None:
        return passed("there is no partition")
    both = f"/controller_epoch is {epochs.claimed}, the greatest epoch of {epochs.states} states is {epochs.greatest}"
    if not epochs.above.count:
        return passed(both)
    if seen.zookeeper.controller is not None and seen.zookeeper.controller.kraft_controller_epoch >= 0:
        return passed(f"{both}; a KRaft controller leads, and leave_kraft sets the number when it goes")
    return failed(
        f"{both}; partitions for which no leader can be elected: {sample(epochs.above.samples, epochs.above.count)}",
        f"trigger zk_to_kraft_rollback__{spec.name}: its leave_kraft sets /controller_epoch and lets a broker be"
        " elected again, in one transaction. By hand, with no KRaft controller running, in zookeeper-shell below the"
        " chroot: 'delete -v 2147483647 /controller' must answer 'version No is not valid', else you may not delete it,"
        f" and must set nothing. Then 'set /controller_epoch {epochs.greatest}', and at once 'delete /controller'. Then"
        " run this check again",
    )


@check(
    "KRB-PRE-026",
    severity=BLOCKING,
    fix=(
        "before the metadata copy only: run the preflight with hosts first. Where replicas already have an id,"
        " KRB-PRE-084 names the topic and that id: write it into the topic's znode, else the topic loses its data in"
        " the migration. Then restart the ZooKeeper controller (delete /controller) on inter.broker.protocol.version"
        " 2.8 or later: it gives every other topic an id"
    ),
    stages=PROVEN_BEFORE_THE_COPY,
    needs=Needs.TREE,
)
def every_topic_has_an_id(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every topic has a topic_id.

    Topics created before Kafka 2.8 got theirs from a later controller. KRaft identifies topics by id (KIP-516). A tool
    older than 2.8 that writes the topic's znode drops it again, while the replicas keep it on disk.
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    return (
        failed(f"topics without topic_id: {sample(tree.topics_without_id)}")
        if tree.topics_without_id
        else passed(f"{tree.topics} topics have one")
    )


@check(
    "KRB-PRE-027",
    severity=BLOCKING,
    fix="look at the znode with zookeeper-shell; correct it or delete the entity with Kafka's own tools",
    stages=UNTIL_FINALIZED,
    needs=Needs.TREE,
)
def every_znode_can_be_parsed(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every znode that is compared holds data as Kafka writes it.

    Topics, partitions, configs, quotas, credentials, ACLs and tokens are decoded as parity decodes them. With a znode
    that can't be decoded, parity would never be MATCH.
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    return (
        failed(f"unreadable znodes: {sample(tree.unreadable, tree.unreadable_count)}")
        if tree.unreadable_count
        else passed("all were parsed")
    )


@check(
    "KRB-PRE-028",
    severity=BLOCKING,
    fix="reassign the replicas to brokers that exist (kafka-reassign-partitions), or bring the broker back",
    stages=UNTIL_FINALIZED,
    needs=Needs.TREE,
)
def no_replica_is_assigned_to_a_ghost(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No partition is assigned to a broker that is not in the cluster file.

    The controllers wait without end until every broker id in an assignment has registered (measured on 3.9.2).
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    ghosts = sorted(tree.assigned_broker_ids - {*spec.broker_ids, *spec.stand_in_ids})
    return (
        failed(f"partitions are assigned to {nodes('broker', ghosts)}, which the cluster file does not name")
        if ghosts
        else passed("every replica has its broker")
    )


@check(
    "KRB-PRE-031",
    severity=BLOCKING,
    fix=(
        "name password.encoder.secret under 'secrets' in the cluster file, with the value that the brokers have, so"
        " that the controllers get it"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.TREE,
)
def controllers_can_decode_stored_passwords(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """If ZooKeeper holds encoded configs, the controllers have password.encoder.secret.

    Without it they copy the encoded text as it is, and brokers in KRaft mode use that text as the password
    (``ControllerServer``: ``PasswordEncoder.NOOP``).
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    if not tree.encoded_broker_configs:
        return passed("no encoded config is stored")
    told = f"encoded configs: {sample(tree.encoded_broker_configs)}"
    without = [
        c.id
        for c in spec.controllers
        if "password.encoder.secret" not in controller_properties(spec, c, ControllerMode.MIGRATION)
    ]
    return (
        failed(f"{told}; {nodes('controller', without, 'gets')} no password.encoder.secret")
        if without
        else passed(f"{told}; the controllers get the secret")
    )


@check(
    "KRB-PRE-032",
    severity=BLOCKING,
    fix="delete these entities' configs with kafka-configs, and set them again once the migration is final",
    stages=BEFORE_THE_COPY,
    needs=Needs.TREE,
)
def every_config_kind_can_be_migrated(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """ZooKeeper holds configs of topics, brokers, users, clients and ips only.

    The copy has no records for CLIENT_METRICS and GROUP configs.
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    other = sorted(tree.config_entity_types - {"topics", "brokers", "users", "clients", "ips"})
    return (
        failed(f"configs below {', '.join('/config/' + o for o in other)}")
        if other
        else passed(", ".join(sorted(tree.config_entity_types)) or "none")
    )
