"""What the dashboard shows of a cluster, as values. ``read_facts`` makes them of files; no cluster is asked.

What is not known is None or says so in words; it is never 0 and never good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.dashboard.kept_look import LookKept
from kraft_runbook.dashboard.kept_moves import MovesKept
from kraft_runbook.evidence.course import CoursePoint
from kraft_runbook.evidence.sync_chart import SyncPoint
from kraft_runbook.parity.parity_report import KindCount

STALE = 60.0
"""Seconds after which a look is old: the watch looks every 15 s, and a new run of it begins every 15 minutes."""


class Standing(StrEnum):
    """Of the latest look. NEVER: nobody has looked. UNREADABLE: its file holds no look."""

    FRESH = "fresh"
    STALE = "stale"
    NEVER = "never"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Stage:
    """A phase in the line of phases. ``mark``: "done", "here", "was here" (by an old look), "ahead" or "not known"."""

    phase: Phase
    mark: str


@dataclass(frozen=True, slots=True)
class LookFact:
    """The latest look. ``look``: None where there is none. ``words``: its age or what is wrong, for a person.
    ``age_seconds``: negative where the clocks of two hosts differ.
    """

    standing: Standing
    words: str
    age_seconds: float | None
    look: LookKept | None


@dataclass(frozen=True, slots=True)
class SignatureFact:
    """Who signed, when, and the digest of the proof that was signed."""

    who: str
    at: datetime
    digest: str


class GateState(StrEnum):
    """OPEN: a person is asked now. SIGNED: all have signed, and it is not confirmed yet. ENDED: the run ended before
    anybody answered.
    """

    PROVEN = "proven"
    OPEN = "open"
    SIGNED = "signed"
    CONFIRMED = "confirmed"
    PASSED = "passed"
    REFUSED = "refused"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class GateFact:
    """A gate of a run. ``digest``: of its latest proof. ``task``, ``map_index``: the task instance that asks, where one
    does; ``since``: since when. ``refused_by``: empty where nobody refused.
    """

    dag: str
    run_id: str
    gate: str
    state: GateState
    digest: str
    proven_at: datetime
    signatures: tuple[SignatureFact, ...]
    needed: int | None
    task: str | None
    map_index: int | None
    since: datetime | None
    refused_by: str


@dataclass(frozen=True, slots=True)
class ParityFact:
    """The last comparison. ``holds``: whether a gate would still take it by its age (``approvals.valid_for``); only a
    MATCH can.
    """

    verdict: str
    offset: int | None
    at: datetime
    age_seconds: float
    against: str
    counts: tuple[KindCount, ...]
    differences: tuple[str, ...]
    obstacles: tuple[str, ...]
    holds: bool
    words: str


@dataclass(frozen=True, slots=True)
class WayBackFact:
    """What the last watch of the way back found; in FINALIZED and KRAFT what the phase alone says. ``holds``: whether
    that is still so by its age and the latest look; ``words``: why not, else empty. ``seconds``, ``window_seconds``:
    the estimate. ``threats``: codes.
    """

    possible: bool
    holds: bool
    words: str
    why: str
    at: datetime
    age_seconds: float
    seconds: float | None
    window_seconds: float | None
    threats: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ElectionsFact:
    """By the epochs of kept looks and samples. ``count``: None where fewer than two of the last hour have an epoch.
    ``since``: the first of them.
    """

    count: int | None
    since: datetime | None


@dataclass(frozen=True, slots=True)
class SpanFact:
    """How long looks showed a state. ``most``: the most replicas out of sync meanwhile; None where that is not told."""

    began: datetime
    ended: datetime
    state: str
    most: int | None


@dataclass(frozen=True, slots=True)
class LaneFact:
    """``name``: "phase", "leader" (of the quorum), or a broker, whose spans are those in which it was not in sync."""

    name: str
    spans: tuple[SpanFact, ...]


@dataclass(frozen=True, slots=True)
class HourFact:
    """The last hour by the kept looks. ``since``, ``until``: the first and the last of them. ``others``: brokers that
    were not in sync either and have no lane, in words. ``in_sync``: how many replicas were not, over time.
    """

    since: datetime
    until: datetime
    lanes: tuple[LaneFact, ...]
    others: str
    in_sync: tuple[SyncPoint, ...]


@dataclass(frozen=True, slots=True)
class MovesFact:
    """A reassignment that is under way, as its run last told. ``seconds_left``: None where it is not known. ``course``:
    what was left over time; empty where that was not kept, and in the list of all clusters. ``between_disks``: it
    copies between disks of brokers, which is no reassignment, and has no replication throttle.
    """

    run: str
    at: datetime
    age_seconds: float
    partitions: int | None
    there: int | None
    moving: int | None
    bytes_left: int | None
    bytes_a_second: float | None
    seconds_left: float | None
    throttle: int | None
    stuck: tuple[str, ...]
    course: tuple[CoursePoint, ...]
    between_disks: bool = False


@dataclass(frozen=True, slots=True)
class ClusterMovesFact:
    """What the cluster itself shows of moves and throttles, whoever asked for them. ``old``: nobody has looked for
    longer than two looks of the watch take. ``seen``: None where no look is kept or it can't be read. ``lists``: when
    topics' lists were read, in words; ``lists_old``: that is long ago.
    """

    words: str
    old: bool
    seen: MovesKept | None
    lists: str = ""
    lists_old: bool = False


@dataclass(frozen=True, slots=True)
class ClaimFact:
    """The claim in the state directory; the cluster's own ZooKeeper may hold another Airflow's. ``ended``: its lease
    has. ``dag``, ``run_id``, ``host``: None where the reader may not read that DAG.
    """

    dag: str | None
    run_id: str | None
    host: str | None
    until: datetime
    ended: bool


@dataclass(frozen=True, slots=True)
class RunFact:
    """A run that left evidence. ``watch``: it only looks on a schedule. ``good``: None while that is open."""

    run: str
    dag: str
    run_id: str
    began: datetime
    last: datetime
    outcome: str
    good: bool | None
    watch: bool


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """All that is shown of a cluster. ``problem``: of its file; None where that is usable. A part that could not be
    read is a text in ``unread``, and None here. ``hour``: None too where it has fewer than two looks, and in the list
    of all clusters. ``moves``: of a run that is known here; ``in_cluster``: of any. ``targets``: version that the file
    declares, and the one to come.
    """

    cluster: str
    description: str
    problem: str | None
    look: LookFact
    stages: tuple[Stage, ...]
    gates: tuple[GateFact, ...]
    parity: ParityFact | None
    way_back: WayBackFact | None
    elections: ElectionsFact
    hour: HourFact | None
    moves: MovesFact | None
    in_cluster: ClusterMovesFact
    targets: Mapping[str, str]
    claim: ClaimFact | None
    runs: tuple[RunFact, ...]
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Clusters:
    """Every cluster that may be seen."""

    made_at: datetime
    clusters: tuple[ClusterFacts, ...]
