"""The checks of a controller quorum (KRB-QRM). Each judges a series of looks some seconds apart."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from kraft_runbook.cluster.feature_levels import METADATA_VERSION
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.quorum.catalogue import OF_QUORUM, check, event_queues, settle_by_gauge
from kraft_runbook.quorum.look import Mode, Quorum, Replica, Series
from kraft_runbook.runbook.check_results import BLOCKING, WARNING, Finding, failed, passed, settle, unknown
from kraft_runbook.runbook.health import STILL_NONE
from kraft_runbook.runbook.registrations import CONTROLLERS_REGISTER, RESTART, not_their_own, way_out
from kraft_runbook.runbook.warm import WARM_FIX, Warmth, how_far_applied

RAFT_RULE = "let the exporter's rules pass kafka.server:type=raft-metrics (docs/hosts.md)"
SNAPSHOT_RULE = "let the exporter's rules pass kafka.server:type=SnapshotEmitter,* (docs/hosts.md)"
SNAPSHOT_INTERVAL = "metadata.log.max.snapshot.interval.ms"
SNAPSHOT_INTERVAL_MS = 3_600_000
"""Kafka's default (``MetadataLogConfig`` of 3.9)."""


@check(
    "KRB-QRM-001",
    severity=BLOCKING,
    stages=OF_QUORUM,
    fix=(
        "start the controllers that are down, or wait for the election; a majority must run and reach each other."
        f" {STILL_NONE}"
    ),
)
def a_controller_leads(seen: Series, spec: ClusterSpec) -> Finding:
    """A controller leads the quorum.

    Without one no metadata changes: no topic, no leader, no ISR, and a broker that restarts does not come back. FAIL
    where each controller is down or says that it does not lead.
    """
    now = seen.now.quorum
    if was_read(now):
        return passed(f"controller {now.leader_id} leads in epoch {now.leader_epoch}")
    asked = seen.now.controllers.values()
    proven = all(each.running is False or each.id in seen.now.say_no for each in asked)
    return failed(now.reason) if proven else unknown(now)


@check(
    "KRB-QRM-002",
    severity=BLOCKING,
    stages=OF_QUORUM,
    fix="start the named controller, or see in its log why it does not fetch; until then one more failure may be one"
    " too many",
)
def every_voter_follows(seen: Series, spec: ClusterSpec) -> Finding:
    """Every voter fetches the log, and gets on.

    One that has not fetched for quorum_health.silent, that has never fetched from a leader of several seconds, or that
    has not yet what was committed at the first look, does not follow.
    """
    now = _quorum(seen)
    if not was_read(now):
        return unknown(now)
    first = seen.first.quorum
    steady = was_read(first) and first.leader_epoch == now.leader_epoch
    wrong: list[str] = []
    unread: list[str] = []
    for voter in now.voters:
        if voter.id == now.leader_id:
            continue
        if voter.seconds_since_fetch is None or voter.log_end_offset is None:
            told = f"voter {voter.id} has not fetched since controller {now.leader_id} was elected"
            (wrong if steady and _silent_before(first, voter) else unread).append(told)
        elif voter.seconds_since_fetch * 1000 > spec.quorum_health.silent:
            wrong.append(f"voter {voter.id} has not fetched for {voter.seconds_since_fetch:.1f} s")
        elif steady and was_read(first) and voter.log_end_offset < first.high_watermark:
            wrong.append(
                f"voter {voter.id} is at offset {voter.log_end_offset}, {first.high_watermark} was committed at the"
                f" first of {len(seen.looks)} looks (it lags {voter.lag} records)"
            )
    return settle(wrong, unread, f"{len(now.voters)} of {len(now.voters)} do")


def _silent_before(first: Quorum | Unread, voter: Replica) -> bool:
    before = next((each for each in first.voters if each.id == voter.id), None) if was_read(first) else None
    return before is not None and before.seconds_since_fetch is None


@check("KRB-QRM-003", severity=BLOCKING, stages=OF_QUORUM, fix=WARM_FIX)
def every_controller_is_warm(seen: Series, spec: ClusterSpec) -> Finding:
    """Every controller is warm: it has applied the metadata log, not only fetched it.

    DescribeQuorum's lag 0 is no proof. A restarted controller was elected 300,374 records behind in applying, and
    nobody led for up to 64 s (measured on 3.9.2 with 200,000 partitions). docs/quorum.md says when one is warm.
    """
    wrong, unread, fix = [], [], None
    for each in seen.now.controllers.values():
        if each.running is False:
            unread.append(f"controller {each.id} does not run")
        elif not was_read(each.warm):
            unread.append(f"controller {each.id}: {each.warm.reason}")
            fix = each.warm.way_out or fix
        elif each.warm is Warmth.COLD and was_read(each.metrics):
            now = seen.now.quorum
            end = now.high_watermark - 1 if was_read(now) else None
            wrong.append(f"controller {each.id} is cold: {how_far_applied(each.metrics, end)}")
    return settle_by_gauge(wrong, unread, f"{len(spec.controllers)} of {len(spec.controllers)} are", fix)


@check(
    "KRB-QRM-004",
    severity=WARNING,
    stages=OF_QUORUM,
    fix="look in the controllers' logs for who began the elections and why: starved CPU, a slow disk or a network that"
    " loses packets brings them about",
)
def elections_are_rare(seen: Series, spec: ClusterSpec) -> Finding:
    """The epoch rose by at most one between two looks, and by at most one from the first look to the last.

    Each attempt at an election raises it. A controller that is killed costs two or more (18 of 20 kills, measured), a
    clean restart one. The looks are seconds apart: a leader that is elected anew at each of them serves nobody.
    """
    here = [(each.quorum.leader_epoch, each.looked_at) for each in seen.looks if was_read(each.quorum)]
    known = [*([(seen.before.epoch, seen.before.at)] if seen.before is not None else []), *here]
    if len(known) < 2:
        return unknown("two looks with a leader are needed")
    spans = [
        (now - then, f"epoch {then} at {at:%H:%M:%S}, {now} at {later:%H:%M:%S}")
        for (then, at), (now, later) in pairwise(known)
    ]
    wrong = [told for rise, told in spans if rise > 1]
    if not wrong and (fell := [told for rise, told in spans if rise < 0]):
        return unknown(f"{'; '.join(fell)}: a quorum's epoch never falls, so one of these is another quorum's")
    these = [epoch for epoch, _ in here]
    if not wrong and these and these[-1] - these[0] > 1:
        wrong = [f"a leader was elected at look after look: epochs {', '.join(map(str, these))}"]
    return settle(wrong, (), f"epoch {known[0][0]}, then {known[-1][0]}")


@check(
    "KRB-QRM-005",
    severity=WARNING,
    stages=OF_QUORUM,
    fix="see whether the disk of the metadata log or the network between the controllers is slow",
)
def records_are_committed_soon(seen: Series, spec: ClusterSpec) -> Finding:
    """The leader commits its records within quorum_health.commit_latency.

    By commit-latency-avg of its kafka.server:type=raft-metrics: from the append until a majority has it.
    """
    leader = seen.now.leader
    if leader is None:
        return unknown("nobody leads whom the cluster file names")
    if not was_read(leader.gauges):
        return unknown(leader.gauges)
    latency = leader.gauges.commit_latency_ms
    if latency is None:
        missing = f"controller {leader.id}'s metrics hold no commit-latency-avg"
        return unknown(missing, "look again: it has just begun to lead" if leader.gauges.has_raft else RAFT_RULE)
    told = f"{latency:.1f} ms on average on controller {leader.id}"
    return passed(told) if latency <= spec.quorum_health.commit_latency else failed(told)


@check(
    "KRB-QRM-006",
    severity=WARNING,
    stages=OF_QUORUM,
    fix="give the controllers more CPU, or find who asks so much of them; an event that waits delays every metadata"
    " change behind it",
)
def no_event_waits_long(seen: Series, spec: ClusterSpec) -> Finding:
    """In each controller 99 % of the events wait less than quorum_health.event_queue.

    By the 99th percentile of kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs.
    """
    found = {f"controller {i}": each.gauges for i, each in seen.now.controllers.items() if each.running is not False}
    return event_queues(found, spec)


@check(
    "KRB-QRM-007",
    severity=WARNING,
    stages=OF_QUORUM,
    fix="see in the controller's log why it makes no snapshot (a full disk, a fault in the metadata); without one its"
    " next start applies the whole log",
)
def snapshots_are_made(seen: Series, spec: ClusterSpec) -> Finding:
    """Each controller's last snapshot is younger than twice metadata.log.max.snapshot.interval.ms.

    One that has made none since its start is judged by the age of its process.
    """
    wrong, unread, fix = [], [], None
    for i, each in seen.now.controllers.items():
        interval = _snapshot_interval(spec, i)
        if each.running is False or interval == 0:  # 0: by the size of the log alone
            continue
        age = each.gauges.snapshot_age_ms if was_read(each.gauges) else None
        if age is None:
            unread.append(
                f"controller {i}: {'no LatestSnapshotGeneratedAgeMs' if was_read(each.gauges) else each.gauges.reason}"
            )
            fix = SNAPSHOT_RULE if was_read(each.gauges) else fix
        elif age > 2 * interval:
            none = was_read(each.gauges) and each.gauges.snapshot_bytes == 0
            wrong.append(f"controller {i}: {'none for' if none else 'the last one was made'} {age / 60_000:.0f} min")
    return settle_by_gauge(wrong, unread, "all are", fix)


def _snapshot_interval(spec: ClusterSpec, controller: int) -> int:
    properties = {**spec.controller_properties, **spec.controller(controller).properties}
    value = properties.get(SNAPSHOT_INTERVAL, "")
    return int(value) if value.isdecimal() else SNAPSHOT_INTERVAL_MS


@check(
    "KRB-QRM-008",
    severity=WARNING,
    stages=OF_QUORUM,
    fix="run three or five controllers; how many a static quorum has is decided before it is formed, a dynamic one is"
    " changed by quorum_care (docs/dynamic-quorum.md)",
)
def the_number_of_voters_is_odd(seen: Series, spec: ClusterSpec) -> Finding:
    """The quorum has three voters or more, and an odd number of them.

    One voter alone survives nothing. Of an even number as many may fail as of one less.
    """
    now = _quorum(seen)
    if not was_read(now):
        return unknown(now)
    number = len(now.voters)
    told = f"{number} voters: {(number - 1) // 2} may fail"
    return passed(told) if number >= 3 and number % 2 else failed(told)


@check(
    "KRB-QRM-009",
    severity=BLOCKING,
    stages=OF_QUORUM,
    fix="make the cluster file name the controllers that vote; of a static quorum they are in controller.quorum.voters"
    " of every node, to a dynamic one they are added by quorum_care, or removed from it",
)
def the_voters_are_those_of_the_cluster_file(seen: Series, spec: ClusterSpec) -> Finding:
    """The voters are the controllers of the cluster file.

    A voter that no file names is restarted by no roll, and watched by nobody.
    """
    now = _quorum(seen)
    if not was_read(now):
        return unknown(now)
    voters = {each.id for each in now.voters}
    declared = set(spec.controller_ids)
    wrong = [f"{nodes('voter', voters - declared, 'is')} not in the cluster file"] if voters - declared else []
    wrong += [f"{nodes('controller', declared - voters, 'does')} not vote"] if declared - voters else []
    return settle(wrong, (), f"{nodes('controller', voters)}")


@check(
    "KRB-QRM-010",
    severity=WARNING,
    stages=OF_QUORUM,
    fix="trust DescribeQuorum, and correct alarms that rest on ActiveControllerCount: a leader that lost its majority"
    " still shows 1",
)
def who_calls_itself_active_leads(seen: Series, spec: ClusterSpec) -> Finding:
    """No controller that does not lead shows ActiveControllerCount 1, at the first look and at the last.

    When the majority was lost, the old leader's JMX still said 1 (measured).
    """
    wrong, unread = [], []
    for i, each in seen.now.controllers.items():
        if not was_read(each.metrics):
            if each.running is not False:
                unread.append(f"controller {i}: {each.metrics.reason}")
        elif all(_claims(look.controllers[i].metrics) and _leads(look.quorum) != i for look in (seen.first, seen.now)):
            leader = _leads(seen.now.quorum)
            wrong.append(f"controller {i} does; {'nobody' if leader is None else f'controller {leader}'} leads")
    return settle(wrong, unread, "none does")


def _claims(metrics: object) -> bool:
    return bool(getattr(metrics, "active", False))


def _leads(quorum: Quorum | Unread) -> int | None:
    return quorum.leader_id if was_read(quorum) else None


@check(
    "KRB-QRM-017",
    severity=WARNING,
    stages=OF_QUORUM,
    fix=f"restart the named controller: {RESTART}; it registers anew",
)
def every_controller_is_registered(seen: Series, spec: ClusterSpec) -> Finding:
    """Every controller is registered in the metadata log as it runs.

    From metadata.version 3.7-IV0 on. A controller registers once, when it has started. Where that request finds no
    leader for five seconds it is never sent again (KAFKA-18874), and only that controller's log says so. The quorum
    then raises no level and begins no copy. While a broker controls the cluster, the migration flag is part of it.
    """
    found = seen.registrations
    if not was_read(found):
        return unknown(found)
    if not was_read(found.log):
        return unknown(found.log, found.log.way_out)
    level = found.log.levels.get(METADATA_VERSION, 0)
    if level < CONTROLLERS_REGISTER:
        return passed(f"controllers register from metadata.version {CONTROLLERS_REGISTER} on; it is at {level}")
    wrong = wrong_registrations(seen)
    unread = [f"controller {i}: {each.reason}" for i, each in found.controllers.items() if not was_read(each)]
    told = settle(
        (f"controller {i} {each}" for i, each in wrong.items()),
        unread,
        f"{len(found.controllers)} of {len(found.controllers)} are",
    )
    return failed(told.evidence, way_out(wrong)) if wrong else told


def wrong_registrations(seen: Series) -> Mapping[int, str]:
    """By controller, what is wrong with its registration, as far as it was read."""
    found = seen.registrations
    if not was_read(found) or not was_read(found.log):
        return {}
    return not_their_own(found, found.log, migrating=seen.now.mode is Mode.MIGRATING)


def _quorum(seen: Series) -> Quorum | Unread:
    return seen.now.quorum
