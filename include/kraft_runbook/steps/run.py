"""What a step needs of the run that it belongs to. Airflow's tasks hand it in; a test hands in what it likes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kind import Kind
from kraft_runbook.evidence.kinds import AlreadyDone, Played, Rehearsed, of_kind
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.steps.handle import Cluster


class NothingToDo(Exception):
    """All is as it should be, which is on record: the task ends, and what follows it is left out. Its text says why."""


class Failed(Exception):
    """The task has failed, for a reason that is on record already."""


class Journal(Protocol):
    """The run's evidence."""

    def record(self, what: Kind) -> None:
        """Append one record."""

    def records(self) -> tuple[EvidenceRecord, ...]:
        """All of them so far. Raises RunbookError where the chain is broken."""

    def require_mirrored(self) -> None:
        """Raise RunbookError unless all of them are in the object store, where one is set."""


class Signatures(Protocol):
    """What people signed in this run."""

    def require(
        self,
        operation: Operation,
        gate: str,
        seen: ClusterObservation,
        *,
        turn: Collection[int] = (),
        exhibit: str | None = None,
        under_way: bool = False,
    ) -> None:
        """Raise Refused unless the gate was confirmed on a signed proof that still fits the cluster. ``turn``: the
        nodes whose turn it is. ``exhibit``: the digest of what the run would carry out, which the proof must show.
        ``under_way``: the cluster shows the steps' own work where an observation does not (replicas that move).
        """

    def begins(self, gate: str) -> None:
        """A step behind the gate begins to act now. Once it changed something the proof's age stops nobody."""


class Claim(Protocol):
    """The right to be the only run that changes this cluster."""

    def take(self) -> None:
        """Take or renew it, and clear away what a killed try left here. Raises Refused, naming who has it."""

    def await_groups(self) -> None:
        """Before a node stops, and after ``take``: wait until no task acts on a consumer group. Raises Acts, which
        names one that takes too long.
        """

    def renew(self) -> None:
        """Renew it in the middle of a step, or raise Refused."""

    def rest(self) -> None:
        """At a task's end: where it took the claim, the claim says from now on that the run waits."""

    def give_back(self) -> None:
        """Release it at the run's end. What can't be released is said and left: its lease ends."""

    def take_groups(self, groups: Sequence[str], *, waits: bool = False) -> None:
        """Take or renew the claims on these consumer groups, or none of them. ``waits``: this run only waits and looks.
        Raises Acts while the run that holds the cluster acts, unless this one waits; Refused, naming who has a group.
        """

    def refuse_while_cluster_acts(self) -> None:
        """Between two groups: raise Acts where a task of another run acts on the cluster, or waits until it may."""

    def give_back_groups(self, groups: Sequence[str]) -> None:
        """Release them at the run's end, as ``give_back``."""


def listed_by_task(records: Iterable[EvidenceRecord]) -> dict[str, tuple[str, ...]]:
    """The acts that each task of a dry run has listed; of one that was cleared, those of its last try."""
    return {record.body["task"]: told.acts for record, told in of_kind(records, Rehearsed)}


@dataclass(frozen=True, slots=True)
class Run:
    """``params``: what the run's form says. ``name``: of its files. ``state``: the directory that all workers share.
    ``answer_of``: what an earlier task of the run answered, by its id, or None. It only points: whoever may edit runs
    can write it by hand.
    """

    cluster: Cluster
    params: Mapping[str, Any]
    journal: Journal
    signatures: Signatures
    claim: Claim
    name: str
    state: Path
    answer_of: Callable[[str], Any]

    @property
    def spec(self) -> ClusterSpec:
        """The cluster file as it was when the task began."""
        return self.cluster.spec

    def listed(self) -> tuple[str, ...]:
        """In a rehearsal: the acts that the tasks before this one and itself have listed, in their order."""
        before = [act for acts in listed_by_task(self.journal.records()).values() for act in acts]
        return (*before, *map(str, self.cluster.acts))

    def lists(self, task: str, *left_out: str) -> dict[str, tuple[str, ...]]:
        """In a rehearsal: what is to go on record when ``task`` has ended, by task. Its acts; and nothing where an
        earlier try has listed some: of its own, or of a task that is ``left_out`` now.
        """
        if not self.cluster.rehearses:
            return {}
        earlier = listed_by_task(self.journal.records())
        now = {task: tuple(map(str, self.cluster.acts)), **dict.fromkeys(left_out, ())}
        return {each: acts for each, acts in now.items() if acts or earlier.get(each)}

    def already_done(self, phase: str, step: str, why: str, *, node: int | None = None) -> None:
        """Tell, and put on record, that nothing is left to do on the node; on any, without one."""
        self.cluster.tell(f"already done: {why}")
        self.journal.record(AlreadyDone(phase=phase, step=step, node_id=node, why=why))

    def acted(self, phase: str, step: str, began: datetime, *changed: str, node: int | None = None) -> None:
        """Put on record what an act changed that was no playbook's, from ``began`` until now; nothing is such too."""
        ended = datetime.now(UTC)
        self.journal.record(
            Played(
                phase=phase,
                step=step,
                node_id=node,
                changed=changed,
                seconds=round((ended - began).total_seconds(), 1),
                began_at=began,
                ended_at=ended,
                restarted=False,
            )
        )
