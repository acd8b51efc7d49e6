"""The wait of one task, from its first look to its record, whichever process looks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.kind import Kind
from kraft_runbook.evidence.kinds import NOT_COMPARED, GaveUp, Reached, Waited
from kraft_runbook.evidence.unwritten import said_where_unwritten
from kraft_runbook.operations import OPERATIONS
from kraft_runbook.runbook.canary import watches_a_canary
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.waiting import Wait


class Waiter(Protocol):
    """The try of a task that waits."""

    @property
    def file(self) -> Path:
        """Holds when this try began to wait; of this try alone."""

    def record(self, what: Kind) -> None:
        """Append one record to the run's evidence."""

    def require_shared(self) -> None:
        """Raise Refused where this host does not see what the run has left."""


class RecordedWait:
    """Waits for one condition of one cluster, or for two that must hold together, on behalf of a task.

    ``operation``: whose the conditions are, which have these names. ``node_id``: the broker or controller that the
    condition is about, where it is about one. ``deadline``: seconds since the task began to wait, whoever has looked
    since. ``first``: the condition that comes before, if any, and its deadline, which ``deadline`` goes on from.
    ``hand``: the cluster as its file is now. ``waiter``: None where there is none, and nothing is recorded. ``log``:
    the task's.
    """

    def __init__(
        self,
        operation: str,
        condition: str,
        node_id: int | None,
        deadline: float,
        first: Sequence[Any] | None,
        *,
        hand: Callable[[], Cluster],
        waiter: Waiter | None,
        log: Any,
    ) -> None:
        self.operation = OPERATIONS[operation]
        conditions = self.operation.conditions
        self.condition = conditions[condition]
        self.node_id = node_id
        self.deadline = deadline
        self.first = (conditions[first[0]], float(first[1])) if first else None
        self.hand = hand
        self.waiter = waiter
        self.log = log
        self._began = time.time()
        self._wait: Wait | None = None

    def say_it_is_left_out(self) -> None:
        """What would be waited for, in a dry run or a step that the run leaves out."""
        for condition, deadline in (*([self.first] if self.first else []), (self.condition, self.deadline)):
            self.log.info(
                "Not waiting (a dry run, or a step that this run leaves out): up to %.0f s for %s",
                deadline,
                condition.describe(self.node_id),
            )

    def begin(self) -> ClusterSpec:
        """To be called before the first look; returns the cluster file as it is now. Raises RunbookError, which is on
        record then.
        """
        with self._given_up_on_record():
            self._began = self._first_look_at()
            if self.waiter is not None:
                self.waiter.require_shared()
            cluster = self.hand()
            self._wait = Wait(
                cluster,
                self.condition,
                self.deadline,
                self.node_id,
                self._began,
                self.first,
                self.operation.way_out,
                of_a_sensor=True,
            )
            if watches_a_canary(self.condition.name):
                back = self.operation.way_back_in_words
                self._wait.back = lambda seen: back(seen, cluster.spec, gone=cluster.gone)
            return cluster.spec

    def look(self) -> bool:
        """Observe once. True when the wait has ended well, and that is on record. Raises RunbookError after the
        deadline, or when waiting can't help; that is on record then.
        """
        wait = self._wait
        assert wait is not None
        with self._given_up_on_record():
            if not wait.look():
                return False
        if self.first and wait.first_held is not None:
            self._record(Reached, self.first[0], "", seconds=wait.first_held)
        self._record(Reached, self.condition, "", seen=wait.seen)
        return True

    @contextmanager
    def _given_up_on_record(self) -> Iterator[None]:
        try:
            yield
        except RunbookError as error:
            with said_where_unwritten(self.log):
                self._record(GaveUp, self.condition, str(error))
            raise

    def _first_look_at(self) -> float:
        """When this try of the task began to wait, in seconds since the epoch. Kept in a file, so that the triggerer,
        and one that is restarted, goes on with what is left. The file's own time stamp is by the clock of whoever
        serves it, so it counts alone where the file says nothing: one that a version before left.
        """
        if self.waiter is None:
            return time.time()
        file = self.waiter.file
        file.parent.mkdir(exist_ok=True)
        if not file.exists():
            file.write_text(f"{time.time()!r}")
        return float(file.read_text() or file.stat().st_mtime)

    def _record(
        self,
        kind: type[Waited],
        condition: Condition,
        error: str,
        *,
        seen: ClusterObservation | None = None,
        seconds: float | None = None,
    ) -> None:
        """``seconds``: how long it took; None where it ends now."""
        if self.waiter is not None:
            values = dict(condition.keeps(seen)) if seen is not None else {}
            if seen is not None and self._wait is not None and self._wait.untold:
                values[NOT_COMPARED] = sorted(self._wait.untold)
            what = kind(
                values=values,
                condition=condition.name,
                node_id=self.node_id,
                began_at=datetime.fromtimestamp(self._began, UTC),
                seconds=round(time.time() - self._began if seconds is None else seconds, 1),
                error=error,
            )
            self.waiter.record(what)
            self.waiter.file.unlink(missing_ok=True)
