"""What the brokers keep on disk of replicas, which decides what the metadata copy makes of them
(``cluster.replica_directories``).
"""

from __future__ import annotations

from collections.abc import Mapping

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.replica_directories import IdsApart
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import (
    PROVEN_BEFORE_THE_COPY,
    UNTIL_FINALIZED,
    check,
)
from kraft_runbook.runbook.check_results import BLOCKING, SAMPLE, Finding, sample, settle
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.read_parts import needed


@check(
    "KRB-PRE-084",
    severity=BLOCKING,
    fix=(
        "before the metadata copy only (/controller has no kraftControllerEpoch of 0 or more): give each named topic"
        " in ZooKeeper the id that its replicas have. With zookeeper-shell: 'get"
        " /brokers/topics/TOPIC', then 'set' the same JSON with the replicas' id as \"topic_id\". When all are set,"
        " 'delete /controller': the next controller reads the ids, and every partition takes writes again. If each id"
        " is on other brokers, write the id of those that hold the data; stop each other broker, move its"
        " directories of the topic out of its log directory, and start it: it replicates them anew. If the ids"
        " differ by partition (those that were added later have the newer id), move nothing away. Take the id that most"
        " of the partitions have. Set it in ZooKeeper, and as topic_id in the partition.metadata of each other"
        " partition, on each broker that is named with it. Then 'delete /controller', and restart these brokers one by"
        " one: once the last has read its files, these partitions are in sync and take writes again, with their data"
    ),
    stages=PROVEN_BEFORE_THE_COPY,
    needs=Needs.HOSTS,
)
def replicas_have_the_topics_ids(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every replica's partition.metadata holds the topic_id that ZooKeeper has.

    A tool older than Kafka 2.8 that writes /brokers/topics/TOPIC drops topic_id; the next controller makes another one
    (KAFKA-14190). The replicas keep theirs, and partitions whose leader changes take no writes any more. After the copy
    every broker renames these replicas '-stray' and begins at offset 0: all data of the topic is lost (measured on
    3.9.2). A broker whose host can't be read is asked by Fetch, with ZooKeeper's id, for one replica of each topic that
    it shows: that finds another id in its log, and none that is missing.
    """
    found = needed(seen.replicas)
    wrong = [_apart(each) for each in found.apart[:SAMPLE]]
    if found.apart_count > len(wrong):
        wrong.append(f"{found.apart_count - len(wrong)} further topics")
    wrong += found.otherwise[:SAMPLE]
    if found.otherwise_count > SAMPLE:
        wrong.append(f"{found.otherwise_count - SAMPLE} further topics on brokers whose hosts were not read")
    return settle(wrong, found.unread, f"{found.directories} replicas were read")


def _apart(each: IdsApart) -> str:
    there = f"id {each.in_zookeeper}" if each.in_zookeeper else "no topic_id"
    if not each.partitions:
        return f"topic {each.topic}: {there} in ZooKeeper, {_held(each.on_disk)}"
    alike: dict[str, list[int]] = {}
    for partition, ids in each.partitions.items():
        alike.setdefault(_held(ids), []).append(partition)
    here = "; ".join(f"partition {_in_ranges(partitions)}: {held}" for held, partitions in alike.items())
    return f"topic {each.topic}: {there} in ZooKeeper; {here}"


def _held(ids: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{topic_id} on {nodes('broker', brokers)}" for topic_id, brokers in ids.items())


def _in_ranges(numbers: list[int]) -> str:
    """Ascending numbers in words, all of them: somebody has to act on each. ``0 to 3, 7``."""
    ranges: list[list[int]] = []
    for each in numbers:
        if ranges and each == ranges[-1][-1] + 1:
            ranges[-1][1:] = [each]
        else:
            ranges.append([each])
    return ", ".join(" to ".join(map(str, each)) for each in ranges)


@check(
    "KRB-PRE-085",
    severity=BLOCKING,
    fix=(
        "one broker at a time, with the others in sync but for those named here: stop the broker. If a directory is no"
        " replica of this cluster, move it out of the log directory. If ZooKeeper assigns the replica to the broker,"
        " give it a partition.metadata of two lines, 'version: 0' and 'topic_id: ID', with the topic_id in"
        " /brokers/topics/TOPIC, that Kafka's user can read. Start the broker with its present configuration. Once all"
        " replicas are in sync, run this check again"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def every_replica_directory_has_an_id(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every replica's directory has its partition.metadata, with an id in it.

    One without it, whose topic may be long gone, makes each full LeaderAndIsr from KRaft fail as a whole ("does not
    have a topic ID", KAFKA-21022), at the copy and whenever a controller becomes active. A broker that had none since
    its start follows no leader then, and nearly every partition loses it from the ISR. A broker that starts in KRaft
    mode renames such a replica '-stray'. A '-future' directory does the same harm, of a topic that is gone or of one
    that is there (all measured on 3.9.2); '-delete' and '-stray' ones do none. A file that is empty or torn ends a
    broker at its next start in any mode (measured on 3.9.2), or takes the whole log directory offline where it has
    several.
    """
    found = needed(seen.replicas)
    wrong = []
    for assigned, told in (
        (False, "no replica of this cluster, and without partition.metadata"),
        (True, "replicas without partition.metadata"),
    ):
        paths = [f"broker {each.broker_id}: {each.path}" for each in found.without_id if each.assigned is assigned]
        if paths:
            wrong.append(f"{told}: {sample(paths)}")
    if found.without_id_count > len(found.without_id):
        wrong.append(f"{found.without_id_count} in all")
    if found.torn_count:
        wrong.append(f"partition.metadata without a topic_id: {sample(found.torn, found.torn_count)}")
    return settle(wrong, found.unread, f"{found.directories} replicas have it")


@check(
    "KRB-PRE-086",
    severity=BLOCKING,
    fix=(
        "delete nothing: the named directories may hold the only copies of acknowledged records. One that was there"
        " before the migration, or whose topic was deleted and created again under its name: move it out of the log"
        " directory (Kafka does not use it). Leftovers of a move are not named here. Otherwise brokers have set live"
        " replicas aside since the metadata copy: do not go on, compare the topic_id in their partition.metadata with"
        " the topic's (kafka-topics --describe), and find out first what the topic lacks"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def no_broker_has_set_a_live_replica_aside(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No broker has a -stray directory of a topic that exists.

    A broker renames a replica '-stray' if KRaft's metadata does not have it with the topic id on disk, and begins anew
    at offset 0. Nothing else tells of it: every replica is in sync again. None may lie there before the copy, so that
    every later one is new. Those of topics that are gone are named and do not fail here: where the topic was there
    before the copy, KRB-GATE-013 tells. Leftovers with the topic's present id of a partition that is not assigned to
    the broker, as a cancelled move leaves them, are named too and do not fail: they take disk space, and can be moved
    out of the log directory.
    """
    found = needed(seen.replicas)
    wrong = [sample(found.strays, found.strays_count)] if found.strays_count else []
    paths = [stray for topic in found.gone for stray in topic.strays]
    gone = f"; of topics that are gone {sample(paths, found.strays_of_gone)}" if found.strays_of_gone else ""
    left = ""
    if found.strays_left_over:
        left = f"; of partitions that the broker does not have {sample(found.left_over, found.strays_left_over)}"
    return settle(wrong, found.unread, f"none of {found.directories} replicas{gone}{left}")
