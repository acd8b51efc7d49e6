"""Znodes on which the metadata copy, the sync that follows it, or a starting broker would fail
(``metadata.znodes.znode_faults``).
"""

from __future__ import annotations

from collections.abc import Sequence

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    Consequence,
    ControllerMode,
    Unread,
    ZookeeperTree,
    was_read,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.metadata.znodes.topic_config_values import REMOTE_STORAGE, is_true
from kraft_runbook.migration.checks.catalogue import BEFORE_THE_COPY, ROLLBACK, UNTIL_FINALIZED, check
from kraft_runbook.parity.standstill import LAST_QUOTA
from kraft_runbook.runbook.check_results import (
    BLOCKING,
    WARNING,
    Finding,
    failed,
    passed,
    sample,
    settle,
    unknown,
)
from kraft_runbook.runbook.checklist import Needs

SET_RIGHT = (
    "look at the znode (zookeeper-shell: get PATH); set or delete the entity with kafka-configs, kafka-acls or"
    " kafka-topics. If these refuse, write or delete the znode with zookeeper-shell. Then run this check again"
)
_SET_RIGHT_BEFORE_THE_COPY = (
    f"{SET_RIGHT}. A config of more than 32,767 bytes is in no answer to DescribeConfigs, so kafka-configs, which reads"
    " before it deletes, fails: write the znode without it, with zookeeper-shell. (Lists of throttled replicas also go"
    " by kafka-reassign-partitions --verify, with a plan that names the topic, once nothing moves.) But never delete"
    " /latest_producer_id_block: write a block into it that is above every producer id in use:"
    ' {"version":1,"broker":ID,"block_start":"N000","block_end":"N999"} (the brokers\' logs name each block:'
    " 'Acquired new producerId block')"
)
_COMES_OF_IT = {
    Consequence.COPY_FAILS: "every controller dies in the metadata copy",
    Consequence.SYNC_FAILS: "dual write never begins after the copy",
    Consequence.KRAFT_DIFFERS: "ZooKeeper and KRaft would not hold the same",
}


@check(
    "KRB-PRE-058",
    severity=BLOCKING,
    fix=(
        "write the right list into the partition's entry under 'partitions' of /brokers/topics/TOPIC (zookeeper-shell:"
        " get, then set with everything else as it is): the brokers that hold the replica, each once, as ISR and leader"
        " in the partition's state znode say. Before the migration a controller elected afterwards reads it: delete"
        " /controller. Do so before any broker stops"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.TREE,
)
def every_partition_has_replicas_each_once(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every partition in ZooKeeper has a list of replicas, and no list names a broker twice.

    With an empty list no ZooKeeper controller can be elected any more: each one that tries ends its election
    (NoSuchElementException: head of empty list, measured on 3.9.2), so no partition gets a new leader. That also holds
    after a rollback. A list with a broker twice counts one copy as two, and Kafka's own tools refuse to move it. Both
    come from a plan that was written to /admin/reassign_partitions, where nothing is validated.
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    bad = tree.bad_replica_lists
    if not was_read(bad):
        return unknown(bad)
    return failed(sample(bad.samples, bad.count)) if bad.count else passed("every list is")


@check(
    "KRB-PRE-059",
    severity=BLOCKING,
    fix=(
        "save what the topic holds, then delete it while every broker runs. kafka-topics takes a regular expression and"
        " leaves out its blanks, so that 'bad topic' means the topic 'badtopic': write '[^\\w.-]' for each refused"
        " character and '[.]' for each dot. See with kafka-topics --list --topic 'PATTERN' that it matches this topic"
        " alone, then --delete it so. Restart no broker before its directories of the topic are gone (a minute). If it"
        " can't be deleted so, before the metadata copy only: delete /brokers/topics/TOPIC and /config/topics/TOPIC"
        " with zookeeper-shell (deleteall, the path in quotes). Then one broker at a time, first one that no longer"
        " starts: stop it, and, while it is in ZooKeeper mode, remove the topic's directories from its log directories."
        " Remove the topic's lines from the *-offset-checkpoint files there (the second line of each is the number of"
        " those that follow). Then start it"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.TREE,
)
def every_topic_has_a_name_that_kafka_accepts(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every topic in ZooKeeper has a name that Kafka accepts, and none has the name of KRaft's metadata log.

    A name has 1 to 249 letters, digits, '.', '_' and '-' of ASCII, and is neither '.' nor '..' (``Topic.validate``).
    Tools that wrote to ZooKeeper themselves made others, with a blank for example. A broker that restarts on such a
    topic ends at its start: the lines of its checkpoints are split at blanks (``OffsetCheckpointFile``). With a single
    log directory, or in migration mode, it also ends when it is given a further partition. Releases of old let users
    create __cluster_metadata (KAFKA-14358): a broker that starts in migration mode deletes that directory, since the
    metadata log has the same (KAFKA-16463).
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    bad = tree.bad_topic_names
    if not was_read(bad):
        return unknown(bad)
    return failed(sample(bad.samples, bad.count)) if bad.count else passed(f"all of {tree.topics:,} have")


@check("KRB-PRE-060", severity=BLOCKING, fix=_SET_RIGHT_BEFORE_THE_COPY, stages=BEFORE_THE_COPY, needs=Needs.TREE)
def the_copy_can_take_every_znode_over(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Kafka's metadata copy can read every znode as it is.

    Any exception in the copy is a fatal fault: the active controller exits, then the next one. /controller keeps naming
    a KRaft controller that is gone, so nobody elects leaders (one quota "abc", measured on 3.9.2). The check also finds
    values that Kafka reads as empty, can't write back, or writes back under another name. A text of more than 32,767
    bytes ends the copy too ("too long to be serialized"): an APPEND to a config has no limit in ZooKeeper mode, and a
    record has this one.
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    wrong = [
        f"{told}: {sample(tree.faults[each].samples, tree.faults[each].count)}"
        for each, told in _COMES_OF_IT.items()
        if each in tree.faults
    ]
    if tree.shared_topic_ids.count:
        wrong.append(
            "topics that share an id, of which KRaft would keep only one:"
            f" {sample(tree.shared_topic_ids.samples, tree.shared_topic_ids.count)}"
        )
    return failed("; ".join(wrong)) if wrong else passed("nothing was found that would stop it")


@check("KRB-PRE-061", severity=BLOCKING, fix=f"{SET_RIGHT}. But {LAST_QUOTA}", stages=UNTIL_FINALIZED, needs=Needs.TREE)
def a_broker_that_starts_can_read_every_znode(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """A broker that restarts can read every config, quota, credential and ACL as it is.

    A broker parses all of them when it starts, and exits at the first that it can't parse (measured on 3.9.2). So the
    first broker of the roll would not start again. A topic with remote.storage.enable=true ends a broker whose file
    lacks remote.log.storage.system.enable=true (``LogManager.updateTopicConfig``).
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    return _stays_down(tree, spec)


@check(
    "KRB-GATE-012",
    severity=BLOCKING,
    fix=(
        "delete the named entity or config with kafka-configs or kafka-acls while KRaft leads, so that dual write does"
        f" not write it again. But {LAST_QUOTA}. If the znode's name is wrong (an IPv6 address below /config/ips),"
        " delete the znode after that: zookeeper-shell, deleteall PATH below the chroot. If no controller leads, delete"
        " only the znode. Then clear this gate's 'prove' task"
    ),
    stages=UNTIL_FINALIZED,
    gates={ROLLBACK},
    needs=Needs.TREE,
)
def a_broker_on_its_way_back_can_read_every_znode(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """A broker that restarts in a rollback can read every config, quota, credential and ACL as it is.

    Dual write stores in ZooKeeper what KRaft accepts, and a ZooKeeper-based broker accepts less. An IP quota of ::1
    becomes /config/ips/%3A%3A1, which no broker resolves. A ZooKeeper-based broker refuses the topic config
    remote.log.copy.disable. So the first broker that is restarted would stay down, with the roll half done.
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    if all(b.mode == BrokerMode.ZOOKEEPER for b in seen.brokers.values()):
        return passed("every broker is in ZooKeeper mode: none is restarted")
    return _stays_down(tree, spec)


REMOTE_LOG = "remote.log.storage.system.enable"


def _stays_down(tree: ZookeeperTree, spec: ClusterSpec) -> Finding:
    found = tree.faults.get(Consequence.BROKER_STAYS_DOWN)
    wrong = [f"a broker would not start: {sample(found.samples, found.count)}"] if found else []
    without = [
        b.id for b in spec.brokers if not is_true(broker_properties(spec, b, BrokerMode.HYBRID).get(REMOTE_LOG, ""))
    ]
    if tree.tiered_topics.count and without:
        told = f"topics with {REMOTE_STORAGE}=true, but no {REMOTE_LOG}=true in its file"
        topics = sample(tree.tiered_topics.samples, tree.tiered_topics.count)
        wrong.append(f"{nodes('broker', without)} would not start: {told}: {topics}")
    return failed("; ".join(wrong)) if wrong else passed("nothing was found that would stop one")


CIPHER = "password.encoder.cipher.algorithm"
DEFAULT_CIPHER = "AES/CBC/PKCS5Padding"


@check(
    "KRB-PRE-062",
    severity=BLOCKING,
    fix=(
        "name the brokers' present password.encoder.secret under 'secrets' in the cluster file. If a broker's passwords"
        " are still encoded with an old secret, restart it with both secrets in its file. Set other passwords again, or"
        " delete them (kafka-configs --entity-type brokers). Topics have no passwords: delete what has such a name"
        " (kafka-configs --entity-type topics --delete-config)"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.TREE,
)
def controllers_decode_every_stored_password(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """password.encoder.secret decodes every password in ZooKeeper.

    A password that can't be decoded ends every controller in the metadata copy, also a topic's config with such a name
    (sasl.jaas.config), which Kafka does not know. Kafka decodes with the parameters of the cipher in its own
    password.encoder.cipher.algorithm.
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    wrong, unread = [], []
    for stored in tree.stored_passwords:
        where = f"{stored.path} {stored.name}"
        others = [] if stored.problem else _with_another_cipher(spec, stored.cipher)
        if isinstance(stored.problem, Unread):
            unread.append(f"{where}: {stored.problem.reason}")
        elif stored.problem:
            wrong.append(f"{where}: {stored.problem}")
        elif others:
            wrong.append(
                f"{where}: encrypted with {stored.cipher}, but {CIPHER} of controller"
                f" {', '.join(map(str, others))} is another"
            )
    return settle(
        _capped(wrong),
        _capped(unread),
        f"{len(tree.stored_passwords)} were decoded" if tree.stored_passwords else "no password is stored",
    )


def _with_another_cipher(spec: ClusterSpec, cipher: str) -> list[int]:
    """The controllers whose own cipher has other parameters. AES/GCM has its own, all others share theirs
    (``EncryptingPasswordEncoder.cipherParamsInstance``).
    """
    own = {
        c.id: controller_properties(spec, c, ControllerMode.MIGRATION).get(CIPHER, DEFAULT_CIPHER)
        for c in spec.controllers
    }
    return [i for i, each in own.items() if each.startswith("AES/GCM/") != cipher.startswith("AES/GCM/")]


def _capped(items: Sequence[str]) -> list[str]:
    return [sample(items)] if items else []


@check(
    "KRB-PRE-063",
    severity=WARNING,
    fix="correct it, or delete it, with kafka-configs",
    stages=BEFORE_THE_COPY,
    needs=Needs.TREE,
)
def nothing_in_zookeeper_is_only_for_show(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Kafka 3.9 knows and accepts every config in ZooKeeper.

    Brokers ignore the others, and will go on ignoring them. A topic config with an unknown name prevents every change
    of that topic's configs in KRaft. If its name is that of a broker's password, the metadata log holds it decoded.
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    found = tree.faults.get(Consequence.NOTED)
    return failed(sample(found.samples, found.count)) if found else passed("all are")
