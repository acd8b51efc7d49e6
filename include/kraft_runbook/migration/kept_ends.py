"""No record is lost on the way: no partition's log ends before the end that was kept before the metadata copy. Pure.

It is the net below all other checks. Whatever makes a partition begin anew (its replicas' directories become strays, a
leader without data is elected), its log end falls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.cluster.log_ends import LogEnds, TopicEnds
from kraft_runbook.cluster.replica_directories import GoneStray, GoneTopic
from kraft_runbook.migration.faults_of_3_9 import LOWER_END
from kraft_runbook.runbook.check_results import CheckResult, Severity, Verdict, sample

CODE = "KRB-GATE-013"
TITLE = "No partition's log ends before the end that was kept before the metadata copy"
_result = partial(CheckResult, CODE, TITLE)


@dataclass(frozen=True, slots=True)
class Compared:
    """``lower``: partitions that end before what was kept, with both numbers; ``begun_anew``: topics that have another
    id now; ``unread``: what nobody tells now, with the reason. ``deleted``: how many topics are gone; ``set_aside``:
    the directories that brokers have set aside of these, with what was kept, ``set_aside_count`` in all.
    ``partitions``: how many were compared.
    """

    lower: tuple[str, ...]
    begun_anew: tuple[str, ...]
    unread: tuple[str, ...]
    deleted: int
    partitions: int
    set_aside: tuple[str, ...] = ()
    set_aside_count: int = 0


def compared(kept: LogEnds, now: LogEnds, gone: Iterable[GoneTopic] = ()) -> Compared:
    """Each partition that was kept with the same one now. A topic that is gone was deleted since; with another id it
    was deleted and made again, so that its old records are gone by somebody's will, or by an accident. Whoever deletes
    a topic has each broker that runs delete its replicas. ``gone``: topics of which brokers have ``-stray`` directories
    instead.
    """
    lower, begun_anew, set_aside = [], [], []
    unread = [f"{name}: {why}" for name, why in now.unread.items()]
    deleted = partitions = set_aside_count = 0
    by_id = {each.topic_id or each.name: each for each in gone}
    for name, before in kept.topics.items():
        after = now.topics.get(name)
        if after is None:
            deleted += name not in now.unread
            if name not in now.unread and (left := by_id.get(before.id) or by_id.get(name)):
                set_aside += [_beside_its_end(each, name, before) for each in left.strays]
                set_aside_count += left.count
        elif after.id != before.id:
            begun_anew.append(f"{name} (id {before.id}, now {after.id})")
        else:
            for number, end in before.ends.items():
                partition = f"{name}-{number}"
                here = after.ends.get(number)
                if here is None:
                    if partition not in now.unread:
                        lower.append(f"{partition} (ended at {end}, now it is gone)")
                    continue
                partitions += 1
                if here < end:
                    lower.append(f"{partition} (ended at {end}, now at {here})")
    return Compared(
        tuple(lower), tuple(begun_anew), tuple(unread), deleted, partitions, tuple(set_aside), set_aside_count
    )


def _beside_its_end(stray: GoneStray, topic: str, kept: TopicEnds) -> str:
    end = None if stray.partition is None else kept.ends.get(stray.partition)
    return f"{stray}" + ("" if end is None else f" ({topic}-{stray.partition} ended at {end})")


def just_kept(ends: LogEnds, where: str, digest: str) -> CheckResult:
    """The answer of the gate that keeps them."""
    told = f"{ends.partitions:,} partitions of {len(ends.topics):,} topics are kept in {where} (SHA-256 {digest})"
    return _result(Severity.BLOCKING, Verdict.PASS, told)


def not_whole(ends: LogEnds) -> CheckResult:
    """The answer of a gate that was to keep them and could not read all: a part is not kept."""
    unread = sample(f"{name}: {why}" for name, why in ends.unread.items())
    return _result(Severity.BLOCKING, Verdict.UNKNOWN, f"nothing is kept; not read: {unread}", _READABLE)


def kept_late(ends: LogEnds, where: str, digest: str) -> CheckResult:
    """The answer of a gate after the copy that finds nothing kept, and keeps what there is now. The person who signs
    decides.
    """
    return _result(
        Severity.WARNING,
        Verdict.UNKNOWN,
        f"no log ends are kept from before the metadata copy, so a loss until now is not seen;"
        f" {just_kept(ends, where, digest).evidence}, for the gates to come",
        "if you removed the file to accept a loss, sign. Else compare the topics' ends with what you know of them"
        " (consumers' positions, your own monitoring) before you sign",
    )


def none_kept(why: str, fix: str, *, blocking: bool) -> CheckResult:
    """Nothing can be kept or compared."""
    return _result(Severity.BLOCKING if blocking else Severity.WARNING, Verdict.UNKNOWN, why, fix)


def judged(
    kept: LogEnds,
    now: LogEnds,
    where: str,
    digest: str,
    *,
    version: str,
    blocking: bool = True,
    gone: Iterable[GoneTopic] = (),
) -> CheckResult:
    """The answer of a gate that compares. ``where``: the file they are kept in. ``version``: of the Kafka that runs.
    ``blocking``: False where an obstacle must not prevent the gate's step (a rollback). ``gone``: as in ``compared``.
    """
    severity = Severity.BLOCKING if blocking else Severity.WARNING
    since = f"kept on {kept.read_at:%Y-%m-%d at %H:%M:%S} UTC in {where}, SHA-256 {digest}"
    if kept.cluster_id != now.cluster_id:
        return _result(
            severity,
            Verdict.UNKNOWN,
            f"the log ends {since} are of cluster {kept.cluster_id}, not of {now.cluster_id}",
            _remove(where),
        )
    found = compared(kept, now, gone)
    if found.lower:
        told = f"{sample(found.lower)} ({since})" + (f"; not read: {sample(found.unread)}" if found.unread else "")
        return _result(severity, Verdict.FAIL, told, f"{_LOST}. {_known(version)}{_remove(where)}")
    if found.unread:
        return _result(severity, Verdict.UNKNOWN, f"{sample(found.unread)} ({since})", _READABLE)
    fine = (
        f"{found.partitions:,} partitions end where they ended or later ({since}); {found.deleted} topics deleted since"
    )
    odd, fixes = [], []
    if found.begun_anew:
        odd.append(f"deleted and made again, under another id: {sample(found.begun_anew)}")
        fixes.append(_ASK)
    if found.set_aside_count:
        odd.append(
            "-stray directories of topics that were there before the copy and are gone:"
            f" {sample(found.set_aside, found.set_aside_count)}"
        )
        fixes.append(_SET_ASIDE)
    if odd:
        return _result(Severity.WARNING, Verdict.FAIL, "; ".join([*odd, fine]), ". ".join(fixes))
    return _result(severity, Verdict.PASS, fine)


_ASK = (
    "ask the owners of these topics whether they deleted them. If they did not, the old records are gone: do not sign"
    " before you know why"
)
_SET_ASIDE = (
    "delete no -stray directory yet: it may hold the only copy of acknowledged records. A topic that was deleted while"
    " a broker was down leaves one there: ask the topic's owner; where it was deleted, move the directory out of the"
    " log directory. If nobody deleted the topic, do not sign: save these directories of all brokers, and find out why"
    " the metadata lost it"
)
_LOST = (
    "records are lost, or about to be: restart nothing more. Look on the brokers' hosts for directories of these"
    " partitions whose names end in -stray, and save them. Then find out why the partition began anew: another topic id"
    " in ZooKeeper than in the replicas' partition.metadata, or an unclean election"
)
_READABLE = (
    "bring these partitions' leaders back, allow this tool's identity Describe on all topics (kafka-acls --topic '*'),"
    " and clear this task"
)


def _known(version: str) -> str:
    """What else it may be in that Kafka."""
    if not LOWER_END.is_in(KafkaVersion.of(version)):
        return ""
    return (
        f"Or, of a compacted partition of which a replica was copied anew: Kafka {version} has {LOWER_END.issue}. That"
        " replica leads then, lacks no record and gives offsets again: let another one lead it. "
    )


def _remove(where: str) -> str:
    return (
        f"If the loss is known and accepted, remove {where} and clear this task: the gate then keeps the ends anew and"
        " says so to the person who signs"
    )
