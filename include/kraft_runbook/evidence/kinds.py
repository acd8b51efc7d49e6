"""What a record of each outcome holds: one small value an outcome. ``Kind.body`` writes it, ``kind_of``
reads it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TypeVar

from kraft_runbook.evidence.body import Body, part, texts
from kraft_runbook.evidence.gate_kinds import Answered as Answered
from kraft_runbook.evidence.gate_kinds import Approved as Approved
from kraft_runbook.evidence.gate_kinds import Asked as Asked
from kraft_runbook.evidence.gate_kinds import Begins as Begins
from kraft_runbook.evidence.gate_kinds import Confirmed as Confirmed
from kraft_runbook.evidence.gate_kinds import OfGate as OfGate
from kraft_runbook.evidence.gate_kinds import Proven as Proven
from kraft_runbook.evidence.gate_kinds import Rejected as Rejected
from kraft_runbook.evidence.gate_kinds import TurnedAway as TurnedAway
from kraft_runbook.evidence.kind import Kind, Values
from kraft_runbook.evidence.leaving_kinds import CutOff as CutOff
from kraft_runbook.evidence.leaving_kinds import LeavesKraft as LeavesKraft
from kraft_runbook.evidence.leaving_kinds import LeftKraft as LeftKraft
from kraft_runbook.evidence.leaving_kinds import LogsRead as LogsRead
from kraft_runbook.evidence.outcomes import Outcome, outcome_of
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.parity.parity_report import ParityReport, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Began(Kind):
    """A run begins. ``host``: where its first task runs."""

    outcome = Outcome.BEGAN
    dry_run: bool
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked(Kind):
    """``checks``: a ChecksReport. ``controlled_by``: who controls the cluster (``quorum.look.Mode``), where a look at
    the quorum alone was checked, which shows no phase. Older records of such a look have it as their ``phase``.
    """

    outcome = Outcome.CHECKED
    checks: Body
    phase: str | None = None
    controlled_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Played(Kind):
    """A playbook on one node. ``changed``: the titles of its tasks that changed something.

    ``restarted``: the playbook stopped a running process, and a process runs again. Older records lack it;
    ``was_restart`` works for all.
    """

    outcome = Outcome.PLAYED
    phase: str
    step: str
    node_id: int | None
    changed: tuple[str, ...]
    seconds: float | None
    began_at: datetime | None
    ended_at: datetime | None
    restarted: bool | None = None

    @property
    def was_restart(self) -> bool:
        return STOPPED_OUTDATED in self.changed if self.restarted is None else self.restarted


STOPPED_OUTDATED = "Stop the service if its process is older than its files"
"""In records without ``restarted``: the title of the task that a restart changed and a first start did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyDone(Kind):
    """Nothing was left to do on the node or, without ``node_id``, on any node."""

    outcome = Outcome.ALREADY_DONE
    phase: str
    step: str
    why: str
    node_id: int | None = None


NOT_COMPARED = "not_compared"
"""Where a wait's values name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited(Kind):
    """A wait for a condition. ``values``: what the condition keeps of the observation that fulfilled it."""

    values: Values
    condition: str
    node_id: int | None
    began_at: datetime | None
    seconds: float | None
    error: str

    @property
    def not_compared(self) -> tuple[str, ...]:
        """What no look of the wait could judge, as the time of requests that nobody sent; empty for most waits."""
        return texts(self.values, NOT_COMPARED)

    @property
    def copy(self) -> Body:
        """The metadata copy's begin, end, seconds and records, by the metadata log's time stamps. Empty if they could
        not be read, or this was another wait.
        """
        return part(self.values, "copy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached(Waited):
    """The condition held before the deadline."""

    outcome = Outcome.REACHED


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveUp(Waited):
    """The deadline passed, or the cluster can't fulfil the condition; ``error`` says which."""

    outcome = Outcome.GAVE_UP


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Kind):
    """A comparison. ``values``: its ParityReport. ``report``: the report's file. ``final``: the task ends with it.
    ``verdict`` None: it is unknown.
    """

    outcome = Outcome.COMPARED
    values: Values
    verdict: Verdict | None
    digest: str
    offset: int | None
    report: str
    final: bool
    phase: str

    def parity_report(self) -> ParityReport:
        """The report. Raises KeyError, TypeError, ValueError or AttributeError if the record holds none, or one with a
        wrong digest.
        """
        return ParityReport.from_dict({each.name: self.values[each.name] for each in fields(ParityReport)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Kind):
    """A plan: of a rollback, or of a level's change. ``gone``: controllers whose hosts are gone for good, on the
    operator's word. ``digest``: of the plan's file, where a person signs it with a gate's proof.
    """

    outcome = Outcome.PLANNED
    phase: str
    goal: str
    steps: tuple[str, ...]
    risks: tuple[str, ...]
    gone: tuple[int, ...]
    digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored(Kind):
    """Controllers were ``started`` so that one leads. ``why``: what was wrong with the quorum."""

    outcome = Outcome.RESTORED
    phase: str
    why: str
    started: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WayBack(Kind):
    """Whether the cluster can go back to ZooKeeper. ``threats``: the codes of the checks that fail. ``seconds``,
    ``window_seconds``: the estimate.
    """

    outcome = Outcome.WAY_BACK
    phase: str
    possible: bool
    why: str
    steps: tuple[str, ...]
    threats: tuple[str, ...]
    seconds: float | None
    window_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretsRemoved(Kind):
    """``nodes``: those whose host held some of ZooKeeper's secrets."""

    outcome = Outcome.SECRETS_REMOVED
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed(Kind):
    """``acts``: what the task of a dry run would have done, in its order, each with what it would change. The last such
    record of a task holds; without acts, what an earlier try would have done is not to be done any more.
    """

    outcome = Outcome.REHEARSED
    acts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves(Kind):
    """Of a reassignment: what was done with so many partitions ("planned", "saved", "throttled", "started",
    "cancelled", "ended", "put back", "verified", "compared"; "copies between disks": with so many replicas; "told and
    not started": brokers remember directories for so many replicas), or how many "moves at once" are allowed; of
    consumer groups and drills: the same in words of their own. ``told``: the rest, such as the preview as text.
    ``picture``: the preview as an SVG. ``course``: of a reassignment that "ended", its points (``evidence.course``);
    empty elsewhere, and in older records. ``phase``, ``cluster_id``: of the cluster that a watch of reassignments saw;
    None elsewhere, and in older records.
    """

    outcome = Outcome.MOVES
    what: str
    partitions: int | None
    told: str = ""
    picture: str | None = None
    course: tuple[Body, ...] | None = None
    phase: str | None = None
    cluster_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drilled(Kind):
    """Of a drill. ``what``: "baseline", "fault" and "stall" (a fault that exceeded the budget) were measured, and
    ``values`` hold it (``quorum.silences.Measured``); "measured": so was a fault, whose processor time is read next;
    "stops": the node is stopped next; "started": it runs again; "probes": their topic, ``fault``, is made next.
    ``fault``: its name. ``node_id`` None: no node stops. ``phase``: in which a fault was caused; None elsewhere,
    and in older records.
    """

    outcome = Outcome.DRILLED
    values: Values
    what: str
    fault: str
    node_id: int | None
    phase: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary(Kind):
    """A rehearsal of the migration with the cluster's own metadata, once it has begun (INCONCLUSIVE) and at its end.

    ``verdict``: PASSED, FAILED or INCONCLUSIVE (``rehearsal.verdict``), with every reason; ``rungs``: what was done, in
    its order; ``whole``: also finalized, not only to dual write and back. ``measured``: its numbers. ``cluster_file``:
    the digest of the cluster file, ``kafka``: the version there, ``tool``: this tool's, with a digest of its code,
    ``source``: the cluster's id: what a later gate compares. ``left_out``: settings that it did not have. ``kept``:
    what was copied, so that it can be said what changed since. ``ahead``: records of rehearsals (run and sequence)
    whose time had not come when this one was written: they are older, whatever their time says. None: there was none,
    as in older records.
    """

    outcome = Outcome.CANARY
    verdict: str
    whole: bool
    reasons: tuple[str, ...]
    rungs: tuple[str, ...]
    measured: Body
    cluster_file: str
    kafka: str
    tool: str
    source: str
    left_out: tuple[str, ...]
    kept: Body
    ahead: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRefused(Kind):
    """A task changed nothing, for the reason that ``error`` gives with the way out."""

    outcome = Outcome.REFUSED
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailed(Kind):
    """A task ended in an error."""

    outcome = Outcome.FAILED
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Kind):
    """The closing report. ``failed``: the failed tasks. ``copy``: the account of the metadata copy, if the run waited
    for one.
    """

    outcome = Outcome.CLOSED
    phase: str
    succeeded: bool | None
    failed: tuple[str, ...]
    brokers_in_kraft: int | None
    copy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(Kind):
    """The workload's account of the run. ``values``: the account, or a body that holds it under ``workload``."""

    outcome = Outcome.WORKLOAD
    values: Values


KINDS: Mapping[Outcome, type[Kind]] = {
    kind.outcome: kind
    for kind in (
        *(
            Began,
            Checked,
            Proven,
            Asked,
            Approved,
            Rejected,
            TurnedAway,
            Confirmed,
            Begins,
            Played,
            AlreadyDone,
            Reached,
            GaveUp,
            Compared,
        ),
        *(
            Planned,
            Restored,
            LogsRead,
            LeavesKraft,
            LeftKraft,
            CutOff,
            WayBack,
            SecretsRemoved,
            Rehearsed,
            Moves,
            Drilled,
            Canary,
            TaskRefused,
            TaskFailed,
            Closed,
            Workload,
        ),
    )
}
K = TypeVar("K", bound=Kind)


def kind_of(body: Body) -> Kind | None:
    """The kind and values of a record; None if this version does not know its outcome."""
    outcome = outcome_of(body)
    return None if outcome is None else KINDS[outcome].read(body)


def of_kind(records: Iterable[EvidenceRecord], kind: type[K]) -> Iterator[tuple[EvidenceRecord, K]]:
    """The records of this kind, in order, each with its values."""
    for record in records:
        told = kind_of(record.body)
        if isinstance(told, kind):
            yield record, told
