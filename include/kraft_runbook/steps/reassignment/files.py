"""What a run that moves replicas keeps in the state directory: its plan, what was there before, the throttle."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kraft_runbook.cluster.assignment import Assignment, TopicPartition
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.course import CoursePoint, and_then, course_of, course_to_list
from kraft_runbook.io.private_file import write_private
from kraft_runbook.reassignment.concurrency import Pace, pace_from_json
from kraft_runbook.reassignment.disks import DiskPlan, plan_from_json
from kraft_runbook.reassignment.plan import ReassignmentPlan, plan_from_dict, plan_to_dict
from kraft_runbook.reassignment.plan_file import from_json, to_json
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.steps.run import Run

SAVED, THROTTLES, PROGRESS, PAUSED, ORDERS = "saved.json", "throttles.json", "progress.json", "paused", "orders.json"
PLAN, PACE, COURSE, MOST_AT_ONCE = "plan.json", "pace.json", "course.json", "most_at_once.json"
DISKS, DISK_RATE = "disks.json", "disk_rate.json"
RESTS, RESTS_SECONDS = "rests", 1800.0
"""So long after its last word a run is taken for one that rests: its task says it anew at least every 10 minutes."""


@dataclass(frozen=True, slots=True)
class DiskRate:
    """The throttle of copies between disks that a run has set. ``former``: what was there before; None: nothing.
    ``ours``: each rate that was or may have been set, in bytes a second a broker, the latest last.
    """

    former: str | None = None
    ours: tuple[int, ...] = ()

    @property
    def rate(self) -> int | None:
        """The latest; None where nothing was set."""
        return self.ours[-1] if self.ours else None

    def has_set(self, value: str | None) -> bool:
        """Whether this may be the run's."""
        return any(value == str(each) for each in self.ours)

    def and_then(self, rate: int) -> DiskRate:
        """What may be set once this rate was set as well."""
        return replace(self, ours=(*(each for each in self.ours if each != rate), rate))


@dataclass(frozen=True, slots=True)
class HowFar:
    """What a run that moves says of itself, in partitions or, between disks, in replicas. ``at``: in ISO format.
    ``bytes_left`` and the others: None where it is not known. ``throttle``: bytes a second a broker; None: none.
    """

    at: str
    partitions: int
    there: int
    moving: int
    bytes_left: int | None
    bytes_a_second: float | None
    seconds_left: float | None
    throttle: int | None
    stuck: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run, in a directory that has its name."""

    directory: Path

    @property
    def name(self) -> str:
        """Of the run, as ``kraft-runbook evidence`` lists it."""
        return self.directory.name

    @property
    def saved(self) -> Path:
        """The assignment and the throttles before the run (``reassignment.saved_state``)."""
        return self.directory / SAVED

    @property
    def orders(self) -> Path:
        """Of a run that demotes brokers: each partition's order before and after (``reassignment.demotion``)."""
        return self.directory / ORDERS

    def picture(self, digest: str, *, narrow: bool = False) -> Path:
        """Of the plan with this digest: a gate that asked about an earlier plan goes on showing that one. ``narrow``:
        for the gate's page.
        """
        return self.directory / f"preview-{digest[:16]}{'-narrow' if narrow else ''}.svg"

    def preview(self, digest: str) -> Path:
        """What the gate shows of the plan with this digest: a plan is never shown in the words of another."""
        return self.directory / f"preview-{digest[:16]}.md"

    @property
    def planned(self) -> Path:
        """The plan as kafka-reassign-partitions and ``kraft-runbook reassign`` read it."""
        return self.directory / "planned.json"

    @property
    def before(self) -> Path:
        """The whole assignment as the plan found it, in the same JSON."""
        return self.directory / "before.json"

    @property
    def known(self) -> frozenset[TopicPartition]:
        """The partitions that there were when the plan was made. Raises Refused as ``plan`` does."""
        return frozenset(before_in(self.before, way_out="clear the task 'plan' with its downstream tasks"))

    def may_move(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether the plan names one of these partitions, without reading all that the run keeps, which may be large.
        True too where that can't be said.
        """
        if not partitions:
            return False
        try:
            return not from_json(self.planned.read_text(), source=str(self.planned)).keys().isdisjoint(partitions)
        except (OSError, ValueError, Refused):
            return True

    def without_topics(self, these: Collection[str]) -> tuple[Path, Path]:
        """The plan and what was before it, as ``planned`` and ``before`` hold them, without these topics."""
        found = []
        for path in (self.planned, self.before):
            kept = {p: r for p, r in from_json(path.read_text(), source=str(path)).items() if p.topic not in these}
            found.append(path.with_name(f"still-{path.name}"))
            write_private(found[-1], to_json(kept))
        return found[0], found[1]

    def store_plan(self, plan: ReassignmentPlan, before: Assignment) -> None:
        """Keep it; the course of a plan that it takes the place of goes. That plan itself stays where its moves may
        have begun: they are the run's to restore. It is replaced last: killed at any point, the run has a plan.
        """
        (self.directory / COURSE).unlink(missing_ok=True)
        if self.saved.exists():
            _keep_beside(self.directory / PLAN)
        write_private(self.before, to_json(before))
        write_private(self.planned, to_json(plan.target))
        write_private(self.directory / PLAN, json.dumps(plan_to_dict(plan)))

    @property
    def has_plan(self) -> bool:
        """Whether a plan of moves between brokers was kept."""
        return (self.directory / PLAN).exists()

    def plan(self) -> ReassignmentPlan:
        """Raises Refused where it is gone or was changed."""
        return plan_in(self.directory / PLAN, way_out="clear the task 'plan' with its downstream tasks")

    def earlier_plans(self) -> tuple[Path, ...]:
        """Those that the present plan took the place of after the run had saved what was there: the oldest first."""
        return kept_beside(self.directory / PLAN)

    def keep_throttle(self, rate: int | None) -> None:
        """Let ``throttle_mb`` say this rate: one that is asked for; where that was not taken, the one in force."""
        path = self.directory / "throttle_mb"
        if rate is None:
            path.unlink(missing_ok=True)
        else:
            write_private(path, f"{rate / 1e6!r}\n")

    def wanted_throttle(self, given: int | None) -> int | None:
        """Bytes a second a broker: the run's own (None: no throttle), or what was asked for meanwhile (``pace``),
        which ``throttle_mb`` holds in MB/s. Raises Refused for what is no rate.
        """
        path = self.directory / "throttle_mb"
        if not path.exists():
            return given
        text = path.read_text().strip()
        try:
            rate = round(float(text) * 1e6)
        except (ValueError, OverflowError):  # infinity is a number, and no rate
            rate = 0
        if rate <= 0:
            raise Refused(f"{path} holds {text!r}", way_out="write MB/s a broker into it, such as 20")
        return rate

    def asks_for_another(self, given: int | None) -> bool:
        """Whether ``throttle_mb`` says something else than ``given``, also what is no rate."""
        try:
            return self.wanted_throttle(given) != given
        except Refused:
            return True

    @property
    def paused_until(self) -> float | None:
        """How long a person wants no new batch to start, at most, in seconds since the epoch; None: it may start."""
        try:
            return float((self.directory / PAUSED).read_text() or "inf")
        except FileNotFoundError:
            return None

    @property
    def paused(self) -> bool:
        """Whether a person wants no new batch to start."""
        return self.paused_until is not None

    def pause(self, until: float | None) -> None:
        """What moves goes on. None: new batches start again."""
        if until is None:
            (self.directory / PAUSED).unlink(missing_ok=True)
        else:
            write_private(self.directory / PAUSED, f"{until!r}")

    def rest(self, why: str) -> None:
        """Say why no new batch starts though one could; empty: one may."""
        if why:
            write_private(self.directory / RESTS, why, durable=False)
        else:
            (self.directory / RESTS).unlink(missing_ok=True)

    @property
    def resting(self) -> str:
        """Why a run that goes on starts no new batch; empty where it does, or has not said so lately."""
        path = self.directory / RESTS
        try:
            return path.read_text() if time.time() - path.stat().st_mtime < RESTS_SECONDS else ""
        except OSError:
            return ""

    def most_at_once(self, rate: int | None, *, of_disks: bool = False) -> int | None:
        """How many copies at once, at a broker, a throttle of so many bytes a second lets end (``judged_rate``); None:
        as many as the run may have. ``of_disks``: of copies between the disks of a broker.
        """
        kept = self._most_at_once()
        between_brokers = kept.get(str(rate))
        return kept.get(_of_disks(rate), between_brokers) if of_disks else between_brokers

    def keep_most_at_once(self, rate: int, moves: int | None, *, of_disks: bool = False) -> None:
        """By the rate: one that is asked for and not set yet changes nothing for the one in force."""
        kept = {**self._most_at_once(), _of_disks(rate) if of_disks else str(rate): moves}
        write_private(self.directory / MOST_AT_ONCE, json.dumps(kept))

    def _most_at_once(self) -> dict[str, int | None]:
        try:
            return dict(json.loads((self.directory / MOST_AT_ONCE).read_text()))
        except (OSError, ValueError, TypeError):
            return {}

    @property
    def pace(self) -> Pace | None:
        """How many moves go on at once, and by which numbers; None where nothing is kept, or what is no pace."""
        try:
            return pace_from_json((self.directory / PACE).read_text())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def keep_pace(self, pace: Pace) -> None:
        """Raises OSError."""
        write_private(self.directory / PACE, pace.to_json(), durable=False)

    def keep_progress(self, far: HowFar) -> None:
        """Let whoever asks know how far it is. It is no evidence. Raises OSError."""
        write_private(self.directory / PROGRESS, json.dumps(asdict(far)), durable=False)

    def keep_point(self, point: CoursePoint) -> None:
        """The next point of the course. It is no evidence until the run has ended and records it. Raises OSError."""
        course = and_then(self.course, point)
        write_private(self.directory / COURSE, json.dumps(course_to_list(course)), durable=False)

    @property
    def course(self) -> tuple[CoursePoint, ...]:
        """How the run went so far; empty where nothing is kept, or what is no course."""
        try:
            return course_of(json.loads((self.directory / COURSE).read_bytes()))
        except (OSError, ValueError, TypeError, AttributeError):
            return ()

    @property
    def throttles(self) -> RunThrottles:
        """What this run has set and not put back. Raises Refused where the note of it can't be read."""
        path = self.directory / THROTTLES
        return RunThrottles.from_json(path.read_text(), source=str(path)) if path.exists() else RunThrottles()

    def will_throttle(self, more: RunThrottles) -> None:
        """Written before it is set, so that whatever was set is known."""
        write_private(self.directory / THROTTLES, self.throttles.and_then(more).to_json())

    def throttles_list(self, these: RunThrottles) -> None:
        """Forget the entries of topics' lists that are not among these: they were taken off."""
        write_private(self.directory / THROTTLES, replace(self.throttles, lists=these.lists).to_json())

    @property
    def has_disk_plan(self) -> bool:
        """Whether a plan of copies between disks was kept."""
        return (self.directory / DISKS).exists()

    @property
    def disk_plan(self) -> DiskPlan:
        """What moves between disks. Raises Refused where it is gone or was changed."""
        return _disk_plan_in(self.directory / DISKS)

    @property
    def disk_plans(self) -> tuple[DiskPlan, ...]:
        """The same with those by which the run has copied before: the oldest first. Raises as ``disk_plan`` does."""
        path = self.directory / DISKS
        return tuple(map(_disk_plan_in, (*kept_beside(path), path)))

    def store_disk_plan(self, plan: DiskPlan, *, begun: bool) -> None:
        """Keep it. ``begun``: the run may have copied by the plan that it takes the place of. That one stays: its
        copies are the run's to undo.
        """
        if begun:
            _keep_beside(self.directory / DISKS)
        write_private(self.directory / DISKS, plan.to_json())

    @property
    def disk_rate(self) -> DiskRate:
        """What this run has set for copies between disks, and not put back. Raises Refused where the note of it can't
        be read.
        """
        path = self.directory / DISK_RATE
        if not path.exists():
            return DiskRate()
        try:
            body = json.loads(path.read_text())
            return DiskRate(body["former"], tuple(int(each) for each in body["ours"]))
        except (ValueError, KeyError, TypeError) as error:
            raise Refused(
                f"{path} does not say which throttle was set ({type(error).__name__}: {error})",
                way_out="look at what is set (kafka-configs --entity-type brokers --entity-default --describe), remove"
                " by hand what this run left, then remove the file",
            ) from None

    def will_throttle_disks(self, note: DiskRate) -> None:
        """Written before it is set, so that whatever was set is known."""
        write_private(self.directory / DISK_RATE, json.dumps({"former": note.former, "ours": list(note.ours)}))

    def disk_throttle_is_back(self) -> None:
        """Forget it."""
        (self.directory / DISK_RATE).unlink(missing_ok=True)

    def throttles_are_back(self) -> None:
        """Forget them: a task that goes on moving sets them anew."""
        (self.directory / THROTTLES).unlink(missing_ok=True)


def _of_disks(rate: int | None) -> str:
    return f"{rate} between disks"


def _keep_beside(path: Path) -> None:
    """Copy a file that is written anew next to where ``kept_beside`` finds it."""
    if path.exists():
        beside = path.with_name(f"{path.stem}-{len(kept_beside(path)):03}{path.suffix}")
        write_private(beside, path.read_text())


def kept_beside(path: Path) -> tuple[Path, ...]:
    """What this file has held before, and may have been begun: the oldest first."""
    return tuple(sorted(path.parent.glob(f"{path.stem}-[0-9][0-9][0-9]{path.suffix}")))


def files_of_all(state: Path) -> Path:
    """Where the runs that share this state directory keep their files: each in a directory of its name."""
    return state / "reassignments"


def files_of(run: Run) -> RunFiles:
    return RunFiles(files_of_all(run.state) / run.name)


def plan_in(path: Path, *, way_out: str) -> ReassignmentPlan:
    """The plan that a run kept there. Raises Refused where it is gone or was changed."""
    try:
        return plan_from_dict(json.loads(path.read_text()))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise Refused(f"the plan of this run can't be read from {path}: {error}", way_out=way_out) from None


def _disk_plan_in(path: Path) -> DiskPlan:
    try:
        return plan_from_json(path.read_text(), source=str(path))
    except OSError as error:
        raise Refused(
            f"the plan of this run can't be read from {path}: {error}",
            way_out="clear the task 'plan' with its downstream tasks",
        ) from None


def before_in(path: Path, *, way_out: str) -> Assignment:
    """The assignment that a run's plan found, kept there. Raises Refused where it can't be read."""
    try:
        return from_json(path.read_text(), source=str(path))
    except OSError as error:
        raise Refused(f"{path} can't be read: {error}", way_out=way_out) from None
