"""The checks of the brokers that follow a controller quorum (KRB-QRM)."""

from __future__ import annotations

from kraft_runbook.cluster.observation import was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.quorum.catalogue import OF_QUORUM, check, settle_by_gauge
from kraft_runbook.quorum.look import Mode, Quorum, Series
from kraft_runbook.runbook.check_results import WARNING, Finding, settle, unknown
from kraft_runbook.runbook.warm import APPLY_RULE, Warmth, how_far_applied


@check(
    "KRB-QRM-012",
    severity=WARNING,
    stages=OF_QUORUM,
    fix="start the named broker, or see in its log why it does not fetch the metadata log; it serves with old metadata",
)
def every_broker_follows(seen: Series, spec: ClusterSpec) -> Finding:
    """Every broker fetches the metadata log.

    A broker that has not fetched for quorum_health.silent is named for five minutes; then the leader forgets it. While
    a broker controls the cluster, or may, one in ZooKeeper mode fetches nothing: there only those are judged that the
    leader knows. One that does not fetch still sends heartbeats, and stays unfenced (KAFKA-20514).
    """
    now = seen.now.quorum
    if not was_read(now):
        return unknown(now)
    silent = spec.quorum_health.silent / 1000
    wrong = [
        f"broker {each.id} has not fetched for {each.seconds_since_fetch:.1f} s"
        for each in now.observers
        if each.id in spec.broker_ids and each.seconds_since_fetch is not None and each.seconds_since_fetch > silent
    ]
    if seen.now.mode is Mode.KRAFT and (spec.zookeeper is None or was_read(seen.now.zookeeper)):
        strangers = sorted({*spec.broker_ids} - _fetches(seen.first.quorum, now.leader_epoch) - _fetches(now))
        wrong += [f"controller {now.leader_id}, which leads, knows of no fetch by broker {i}" for i in strangers]
    return settle(wrong, (), f"{len(_fetches(now) & {*spec.broker_ids})} of {len(spec.brokers)} brokers fetch")


def _fetches(quorum: Quorum | Unread, epoch: int | None = None) -> frozenset[int]:
    """Who fetches, as the leader of this epoch knows: a leader that was just elected knows of nobody yet. A node with
    both roles fetches as a voter.
    """
    if not was_read(quorum) or epoch not in (None, quorum.leader_epoch):
        return frozenset()
    return frozenset(each.id for each in (*quorum.voters, *quorum.observers))


@check(
    "KRB-QRM-018",
    severity=WARNING,
    stages=OF_QUORUM,
    fix="give the named broker more CPU, or see in its log what holds up its metadata (MetadataLoader,"
    " BrokerMetadataPublisher); until it has applied the log it serves older metadata: leaders, topics, ACLs, quotas",
)
def every_broker_applies(seen: Series, spec: ClusterSpec) -> Finding:
    """Every broker in KRaft mode has applied the metadata log, not only fetched it.

    By last-applied-record-offset and last-applied-record-lag-ms of its kafka.server:type=broker-metadata-metrics. FAIL
    where it has not applied what was committed at the first look, four seconds before, and its last record is older
    than two seconds. A broker that is down, or runs in ZooKeeper mode, applies none and is not judged.
    """
    now = seen.now.quorum
    end = now.high_watermark - 1 if was_read(now) and now.high_watermark >= 0 else None
    wrong, unread, rule = [], [], None
    for each in seen.now.brokers.values():
        if not was_read(each.current):
            unread.append(f"broker {each.id}: {each.current.reason}")
            rule = each.current.way_out if each.current.way_out == APPLY_RULE else rule
        elif each.current is Warmth.COLD and was_read(each.applied):
            wrong.append(f"broker {each.id}: {how_far_applied(each.applied, end)}")
    judged = len(seen.now.brokers)
    told = f"{judged} of {judged} have" if judged else "no broker runs in KRaft mode"
    return settle_by_gauge(wrong, unread, told, rule)
