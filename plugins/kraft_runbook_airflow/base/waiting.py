"""A condition of the core, awaited: one look at a time, for the triggerer and for the few waits inside a task."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed
from kraft_runbook.parity.standstill import LIVENESS_SECONDS
from kraft_runbook.procedures.observe import observe
from kraft_runbook.runbook.conditions import Condition, Progress
from kraft_runbook_airflow.base.environment import airflow_secrets

HOPELESS_AFTER = 10.0
"""Seconds that a wait must look hopeless without a break: a process that a person has just started takes some to open
its port.
"""

SAY_EVERY = 10.0
"""Seconds after which an unchanged message is said again."""


@dataclass
class Wait:
    """Waits for one condition with a deadline in seconds from ``began`` (epoch seconds).

    ``first``: a condition that comes before it, with its own deadline in seconds, which ``deadline`` goes on from. Both
    must hold at the same looks; where ``first`` has held once, an election that hides it for a moment has until the
    later deadline. ``gone``: as in ``observe``. ``say`` gets the message that names who is missing, when it changes and
    every ten seconds.
    """

    spec: ClusterSpec
    condition: Condition
    deadline: float
    say: Callable[[str], object]
    node_id: int | None = None
    began: float = field(default_factory=lambda: time.time())
    first: tuple[Condition, float] | None = None
    gone: Collection[int] = ()
    first_held: float | None = None
    """Seconds after which ``first`` held at a look; None before."""
    seen: ClusterObservation | None = None
    _before: list[ClusterObservation] = field(default_factory=list)
    _healthy: int = 0
    _hopeless_since: float | None = None
    _said: tuple[str, float] = ("", 0.0)

    def look(self) -> bool:
        """Observe once. True when what is waited for held ``healthy_in_a_row`` times; raises StepFailed past the
        deadline or when waiting can't help.
        """
        self.seen = observe(self.spec, secrets=airflow_secrets(), gone=self.gone)
        condition, deadline, progress = self._judge(self.seen, self._look_before(self.seen))
        self._healthy = self._healthy + 1 if progress.done else 0
        elapsed = time.time() - self.began
        if self._healthy >= self.spec.deadlines.healthy_in_a_row:
            self.say(f"{condition.describe(self.node_id)}: holds after {elapsed:.0f} s")
            return True
        self._hopeless_since = (self._hopeless_since or time.time()) if progress.hopeless else None
        hopeless = self._hopeless_since is not None and time.time() - self._hopeless_since >= HOPELESS_AFTER
        if hopeless or elapsed > deadline:
            why = "waiting can't help" if hopeless else f"the deadline of {deadline:.0f} s has passed"
            raise StepFailed(
                f"{progress.waiting_for or condition.describe(self.node_id)}, {elapsed:.0f} s: {why}",
                way_out=(
                    "nothing further is changed: correct what is named and clear this task (where the node does not"
                    " run: the task that starts it, just before this one), or go back (docs/rollback.md)"
                ),
            )
        message, at = self._said
        if not progress.done and (progress.waiting_for != message or time.time() - at > SAY_EVERY):
            self.say(f"{progress.waiting_for}, {elapsed:.0f} s")
            self._said = (progress.waiting_for, time.time())
        return False

    def _judge(self, seen: ClusterObservation, earlier: ClusterObservation | None) -> tuple[Condition, float, Progress]:
        """What is waited for at this look, its deadline in seconds from ``began``, and how far it is: ``first`` where
        that does not hold.
        """
        if self.first is None:
            return (
                self.condition,
                self.deadline,
                self.condition.progress(seen, self.spec, node_id=self.node_id, earlier=earlier),
            )
        condition, deadline = self.first
        progress = condition.progress(seen, self.spec, node_id=self.node_id, earlier=earlier)
        if progress.done and self.first_held is None:
            self.first_held = time.time() - self.began
            self.say(f"{condition.describe(self.node_id)}: holds after {self.first_held:.0f} s")
        if self.first_held is not None:
            deadline += self.deadline
        if not progress.done:
            return condition, deadline, progress
        return self.condition, deadline, self.condition.progress(seen, self.spec, node_id=self.node_id, earlier=earlier)

    def _look_before(self, seen: ClusterObservation) -> ClusterObservation | None:
        """The last look that lies ``LIVENESS_SECONDS`` back, or the first there is: what was committed then must have
        reached ZooKeeper by now.
        """
        old = [
            each for each in self._before if (seen.observed_at - each.observed_at).total_seconds() >= LIVENESS_SECONDS
        ]
        first = next(iter(self._before), None)
        self._before = [*(each for each in self._before if each not in old[:-1]), seen]
        return old[-1] if old else first


def wait_for(
    spec: ClusterSpec,
    condition: Condition,
    *,
    deadline: float,
    say: Callable[[str], object],
    node_id: int | None = None,
    gone: Collection[int] = (),
) -> ClusterObservation:
    """Wait in this thread; returns the observation that completed the condition."""
    wait = Wait(spec, condition, deadline, say, node_id, gone=gone)
    while not wait.look():
        time.sleep(spec.deadlines.poll)
    assert wait.seen is not None
    return wait.seen
