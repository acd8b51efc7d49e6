"""The facts of one cluster, of files: looks, evidence, claim, samples. It asks no cluster and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.dashboard.facts import (
    STALE,
    ClaimFact,
    ClusterFacts,
    ClusterMovesFact,
    ElectionsFact,
    GateFact,
    GateState,
    LookFact,
    MovesFact,
    ParityFact,
    RunFact,
    Stage,
    Standing,
    WayBackFact,
)
from kraft_runbook.dashboard.kept_look import LookKept, moment_of
from kraft_runbook.dashboard.kept_moves import MovesKept
from kraft_runbook.dashboard.last_hour import HOUR, last_hour
from kraft_runbook.dashboard.look_files import AHEAD, read_latest, read_lines, read_moves, written_at
from kraft_runbook.dashboard.runs_seen import RunSeen, RunsRead
from kraft_runbook.evidence.body import moment, number, texts, whole
from kraft_runbook.evidence.course import CoursePoint, course_of
from kraft_runbook.evidence.watches import NOT_CLOSED
from kraft_runbook.io.claim_file import claim_path
from kraft_runbook.io.cluster_claim import Claim
from kraft_runbook.parity.parity_report import Verdict
from kraft_runbook.procedures.kept_samples import read_samples

LINE = (Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED)
NO_WAY_BACK = {
    Phase.FINALIZED: "there is none any more: the migration is final",
    Phase.KRAFT: "there is none: the cluster is in KRaft mode, and no ZooKeeper has its metadata",
}
MOVES_OLD = 150.0
"""Seconds after which what the cluster showed of moves is old: the watch asks once a minute."""
LISTS_OLD = 1000.0
"""The same of topics' lists, for which it asks every 10 minutes, and at the begin of each run."""
LAST_HOUR = 1_000_000
"""Bytes of lines that are read for the last hour: some 3,000 looks."""
RUNS = 20
"""Runs that are shown."""


def cluster_facts(
    name: str,
    spec: ClusterSpec | str,
    *,
    state: Path,
    evidence: Path,
    runs: RunsRead,
    now: datetime,
    two_watches: float | None = None,
    dags: Collection[str] | None = None,
    ended: Callable[[str, str], bool] = lambda dag, run: False,
    hour: bool = True,
) -> ClusterFacts:
    """``spec``: what the cluster file says, or its problem in words. ``state``, ``evidence``: the directories.
    ``two_watches``: seconds in which the way back is looked at twice; None: not known. ``dags``: of whose runs and
    claims something may be shown; None: of all. ``ended``: whether a run is known to have ended, also without a closing
    report. ``hour``: whether what was before is wanted too: the last hour, and a reassignment's course. Raises nothing
    for a file that can't be read.
    """
    usable = spec if isinstance(spec, ClusterSpec) else None
    look = look_fact(read_latest(state, name), now, written_at(state, name))
    seen, unread = runs.of_cluster(evidence, name, dags)
    lines = read_lines(state, name, last=LAST_HOUR)
    samples = read_samples(state, name)
    claim = _claim(claim_path(state, name), now, dags)
    moves = _moves(state, seen, now, ended)
    course = _course(state, moves.run) if hour and was_read(moves) and moves else ()
    parts: tuple[Any, ...] = (lines, samples, claim, moves, course)
    points = [*(samples if was_read(samples) else ()), *(lines if was_read(lines) else ())]
    return ClusterFacts(
        cluster=name,
        description=usable.description if usable else "",
        problem=None if isinstance(spec, ClusterSpec) else spec,
        look=look,
        stages=stages(look, zookeeper=usable is None or usable.zookeeper is not None),
        gates=_gates(seen, ended),
        parity=_parity(seen, usable.approvals.valid_for if usable else None, now),
        way_back=_way_back(seen, look, two_watches, now),
        elections=elections(points, now),
        hour=last_hour(lines, now, every=usable.cluster_watch.every if usable else 0)
        if hour and was_read(lines)
        else None,
        moves=moves and replace(moves, course=course if was_read(course) else ()) if was_read(moves) else None,
        in_cluster=cluster_moves(read_moves(state, name), now),
        targets=_targets(usable),
        claim=claim if was_read(claim) else None,
        runs=tuple(_as_ended(each.fact, ended) for each in _shown(seen)),
        unread=(*unread, *(each.reason for each in parts if isinstance(each, Unread))),
    )


def _shown(seen: Sequence[RunSeen]) -> list[RunSeen]:
    """The newest run of each DAG, and of the others the newest: watches run so often that they would leave no room."""
    newest = {each.fact.dag: each.fact.run for each in reversed(seen)}
    ranked = sorted(seen, key=lambda each: (newest[each.fact.dag] != each.fact.run, each.fact.watch))
    shown = ranked[: max(RUNS, len(newest))]
    return sorted(shown, key=lambda each: each.fact.last, reverse=True)


def _as_ended(run: RunFact, ended: Callable[[str, str], bool]) -> RunFact:
    """Of a run that Airflow has as ended, nobody shall read that it may be under way."""
    if run.good is None and run.outcome.endswith(NOT_CLOSED) and ended(run.dag, run.run_id):
        return replace(run, outcome=run.outcome.replace(NOT_CLOSED, "ended without a closing report"), good=False)
    return run


def look_fact(found: LookKept | Unread | None, now: datetime, written: datetime | None = None) -> LookFact:
    """How old the latest look is, in words. ``written``: when its file was, by that file system's clock."""
    if found is None:
        return LookFact(Standing.NEVER, "Nobody has looked at this cluster yet: unpause its cluster_watch", None, None)
    if not was_read(found):
        return LookFact(Standing.UNREADABLE, found.reason, None, None)
    age = (now - found.at).total_seconds()
    if found.at - now > AHEAD:
        told = f"This look is {in_words(-age)} ahead of this server's clock: the clocks differ, so its age is not known"
        return LookFact(Standing.STALE, told, age, found)
    if written is not None and found.at - written > AHEAD:
        ahead = in_words((found.at - written).total_seconds())
        told = f"This look is {ahead} ahead of the clock of its file: the clocks differ, so its age is not known"
        return LookFact(Standing.STALE, told, age, found)
    if age > STALE:
        told = f"Old: nobody has looked for {in_words(age)}. This look may no longer hold"
        return LookFact(Standing.STALE, told, age, found)
    return LookFact(Standing.FRESH, f"Looked at {in_words(max(0.0, age))} ago", age, found)


def cluster_moves(found: MovesKept | Unread | None, now: datetime) -> ClusterMovesFact:
    """How old that look is, in words."""
    if found is None:
        return ClusterMovesFact("No watch has asked the cluster yet: unpause its cluster_watch", True, None)
    if not was_read(found):
        return ClusterMovesFact(found.reason, True, None)
    lists, lists_old = ("", False) if found.lists is None else _how_old(found.lists.at, now, LISTS_OLD)
    told, old = _how_old(found.at, now, MOVES_OLD)
    words = f"Old, and may no longer hold: in the cluster, {told}" if old else f"In the cluster, {told}"
    return ClusterMovesFact(words, old, found, lists, lists_old)


def _how_old(at: datetime, now: datetime, most: float) -> tuple[str, bool]:
    """In words, and whether it is older than so many seconds, or ahead of this server's clock."""
    age = (now - at).total_seconds()
    told = f"{in_words(max(0.0, age))} ago" if age >= -5 else "ahead of this server's clock"
    return told, not -5 <= age <= most


def stages(look: LookFact, *, zookeeper: bool) -> tuple[Stage, ...]:
    """The line of phases with the present one marked; nothing is marked where that is not known."""
    phase = look.look.phase if look.look else Phase.UNKNOWN
    here = "here" if look.standing is Standing.FRESH else "was here"
    if phase is Phase.KRAFT:
        return (Stage(phase, here),)
    if phase not in LINE:
        return tuple(Stage(each, "not known") for each in (LINE if zookeeper else (Phase.KRAFT,)))
    at = LINE.index(phase)
    return tuple(Stage(each, here if n == at else "done" if n < at else "ahead") for n, each in enumerate(LINE))


def elections(points: Iterable[Mapping[str, Any]], now: datetime) -> ElectionsFact:
    """How far the epoch rose in the last hour. It falls where another quorum, or ZooKeeper's controller, begins."""
    known = sorted(
        (at, epoch)
        for each in points
        if (at := moment_of(each)) and now - HOUR <= at <= now and isinstance(epoch := each.get("epoch"), int)
    )
    if len(known) < 2:
        return ElectionsFact(None, None)
    rises = sum(max(0, after - before) for (_, before), (_, after) in pairwise(known))
    return ElectionsFact(rises, known[0][0])


def in_words(seconds: float) -> str:
    """A time as a person says it: 12 s, 3 min, 2 h 05 min, 4 d. Below 0 is 0: two hosts' clocks differ a little."""
    seconds = max(0.0, seconds)
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes < 48 * 60 else f"{minutes // 1440} d"


def _gates(seen: Sequence[RunSeen], ended: Callable[[str, str], bool]) -> tuple[GateFact, ...]:
    """Those of the latest run of each operation, and any at which a person is asked."""
    latest: dict[str, RunSeen] = {}
    for each in seen:
        latest.setdefault(each.fact.dag, each)
    return tuple(
        replace(gate, state=GateState.ENDED, task=None, map_index=None, since=None)
        if gate.state is GateState.OPEN and ended(gate.dag, gate.run_id)
        else gate
        for each in seen
        for gate in each.gates
        if each is latest[each.fact.dag] or gate.state is GateState.OPEN
    )


def _parity(seen: Sequence[RunSeen], valid_for: float | None, now: datetime) -> ParityFact | None:
    last = max((each.parity for each in seen if each.parity), key=lambda each: each.at, default=None)
    if last is None:
        return None
    age = (now - last.at).total_seconds()
    young = valid_for is not None and -5 <= age <= valid_for
    holds = last.is_match and last.genuine is True and young
    words = (
        "its digest does not fit what the record holds"
        if last.genuine is not True
        else f"a gate would take it for another {in_words(valid_for - age)}"
        if holds and valid_for is not None
        else "it is ahead of this server's clock: the clocks differ"
        if age < -5
        else "too old for a gate: compare again"
        if last.is_match
        else "no gate takes it"
    )
    return ParityFact(
        verdict=last.verdict.value if isinstance(last.verdict, Verdict) else "UNKNOWN",
        offset=last.offset,
        at=last.at,
        age_seconds=age,
        against=last.against,
        counts=last.counts,
        differences=last.differences,
        obstacles=last.obstacles,
        holds=holds,
        words=words,
    )


def _way_back(seen: Sequence[RunSeen], look: LookFact, most: float | None, now: datetime) -> WayBackFact | None:
    phase = look.look.phase if look.look else Phase.UNKNOWN
    found = max((each.way_back for each in seen if each.way_back), key=lambda each: each[0], default=None)
    if look.look and phase in NO_WAY_BACK:
        age = (now - look.look.at).total_seconds()
        threats = found[1].threats if found and found[1].phase == phase else ()
        return WayBackFact(False, True, "", NO_WAY_BACK[phase], look.look.at, age, None, None, threats)
    if found is None:
        return None
    at, told = found
    age = (now - at).total_seconds()
    words = (
        "it is ahead of this server's clock: the clocks differ"
        if age < -5
        else "how often the watch looks is not known, so whether this still holds is not known"
        if most is None
        else f"no watch has looked for longer than {in_words(most)}"
        if age > most
        else "there is no fresh look at the cluster, so whether this still holds is not known"
        if look.standing is not Standing.FRESH
        else "the latest look shows no phase, so whether this still holds is not known"
        if phase is Phase.UNKNOWN
        else f"the watch saw {told.phase}, and the cluster is in {phase} now"
        if told.phase != phase.value
        else ""
    )
    return WayBackFact(
        possible=told.possible,
        holds=not words,
        words=words,
        why=told.why,
        at=at,
        age_seconds=age,
        seconds=told.seconds,
        window_seconds=told.window_seconds,
        threats=told.threats,
    )


def _claim(path: Path, now: datetime, dags: Collection[str] | None) -> ClaimFact | Unread | None:
    try:
        claim = Claim.from_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return Unread(f"the claim ({path.name}) can't be read, so who holds the cluster is not known: {error}")
    ended = claim.until <= now
    if dags is not None and claim.dag_id not in dags:
        return ClaimFact(None, None, None, claim.until, ended)
    return ClaimFact(claim.dag_id, claim.run_id, claim.host, claim.until, ended)


def _moves(
    state: Path, seen: Sequence[RunSeen], now: datetime, ended: Callable[[str, str], bool]
) -> MovesFact | Unread | None:
    """Of the newest run that moves replicas and has neither closed nor ended."""
    for each in seen:
        if each.fact.good is not None or each.fact.watch:
            continue
        path = state / "reassignments" / each.fact.run / "progress.json"
        try:
            told = json.loads(path.read_bytes())
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            return Unread(f"how far the reassignment is can't be read: {error}")
        if ended(each.fact.dag, each.fact.run_id):
            continue
        at = moment(told, "at") if isinstance(told, dict) else None
        if at is None:
            return Unread("how far the reassignment is can't be read: the file does not say when it was written")
        return MovesFact(
            run=each.fact.run,
            at=at,
            age_seconds=(now - at).total_seconds(),
            **{name: whole(told, name) for name in ("partitions", "there", "moving", "bytes_left", "throttle")},
            bytes_a_second=number(told, "bytes_a_second"),
            seconds_left=number(told, "seconds_left"),
            stuck=texts(told, "stuck"),
            course=(),
            between_disks=each.fact.dag.startswith("move_between_disks__"),
        )
    return None


def _course(state: Path, run: str) -> tuple[CoursePoint, ...] | Unread:
    """What this run has kept of its course; empty where it has none."""
    path = state / "reassignments" / run / "course.json"
    try:
        kept = json.loads(path.read_bytes())
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        return Unread(f"the course of the reassignment ({path.name}) can't be read: {error}")
    if not isinstance(kept, list):
        return Unread(f"the course of the reassignment ({path.name}) can't be read: it is no list")
    return course_of(each for each in kept if isinstance(each, dict))


def _targets(spec: ClusterSpec | None) -> dict[str, str]:
    if spec is None:
        return {}
    more = {"upgrade_to": spec.kafka.upgrade_to.version} if spec.kafka.upgrade_to else {}
    return {"version": spec.kafka.version, **more}
