"""Waiting for a condition, one look at a time, in the triggerer and for the few waits inside a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed
from kraft_runbook.parity.standstill import LIVENESS_SECONDS
from kraft_runbook.procedures.look_at_nodes import TOPICS_NOT_ASKED
from kraft_runbook.runbook.conditions import Condition, Progress, Topics
from kraft_runbook.runbook.operation import FindsWayOut, no_way_out
from kraft_runbook.runbook.warm import NOT_KNOWN

HOPELESS_AFTER = 10.0
"""Seconds that a wait must look hopeless without a break. A process that a person has just started needs some time to
open its port.
"""

UNSEEN = 10.0
"""Seconds: what lies between two looks counts as seen up to this, beside the time of the look itself."""

GO_ON = ". Or, to go on all the same, mark this task as successful"
SAY_EVERY = 10.0
"""Seconds after which an unchanged message is said again."""


class Observed(Protocol):
    """What is waited for: ``steps.handle.Cluster``."""

    @property
    def spec(self) -> ClusterSpec:
        """Its file."""

    def tell(self, line: str, /) -> None:
        """Gets a line at each progress."""

    def observe(self, *, topics: bool = True) -> ClusterObservation:
        """One look; without ``topics`` one that may leave out those as brokers show them."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def pause(self, seconds: float, /) -> None:
        """Let time pass."""


@dataclass
class Wait:
    """Waits for one condition, with a deadline in seconds from ``began`` (epoch seconds; 0: now). A wait that gets on
    (``Progress.far`` rises) has as many seconds again from its last advance: how long a controller takes to apply its
    log depends on the log.

    A condition that must hold for a time (``Condition.holds``) is looked at for all of it, and from its beginning again
    where it did not hold, or where another process goes on with the wait. The deadline is that much later.

    ``first``: a condition that must hold before, with its own deadline in seconds; ``deadline`` counts from the moment
    it held. Both must hold at the same looks. Once ``first`` has held, an election may hide it until the later
    deadline, unless waiting for the condition itself can't help. A look that did not read what tells of ``first``
    adds nothing to the time held, and takes nothing from it, while the condition itself holds. ``advice``: what to do
    where it is in vain (``Operation.way_out``); ``back``: how to go back then, a sentence. ``of_a_sensor``: a task that
    is this wait alone: it fails where another one goes on by its deadline (``Progress.waived``). ``cluster.tell`` gets
    the message that names who is missing, when it changes and every 10 s.
    """

    cluster: Observed
    condition: Condition
    deadline: float
    node_id: int | None = None
    began: float = 0.0
    first: tuple[Condition, float] | None = None
    advice: FindsWayOut = no_way_out
    back: Callable[[ClusterObservation], str] = lambda _: "The closing report says whether and how to go back"
    first_held: float | None = None
    """Seconds from ``began`` until ``first`` held; None before."""
    seen: ClusterObservation | None = None
    untold: frozenset[str] | None = None
    """What no look could judge in all the time that the condition held without a break (``Progress.untold``)."""
    of_a_sensor: bool = False
    _waived_since: float | None = None
    _before: list[ClusterObservation] = field(default_factory=list)
    _healthy: int = 0
    _all_but_topics: bool = False
    _hopeless_since: float | None = None
    _said: tuple[str, float] = ("", 0.0)
    _reached: dict[str, int] = field(default_factory=dict)
    _advanced: float | None = None
    _held: float = 0.0
    _looked: float | None = None

    def __post_init__(self) -> None:
        self.began = self.began or self.cluster.now()

    def look(self) -> bool:
        """Observe once. True when the condition has held ``healthy_in_a_row`` times. Raises StepFailed after the
        deadline where nothing gets on, or when waiting can't help.
        """
        condition, deadline, progress, whole = self._looked_at()
        assert self.seen is not None
        elapsed = self.cluster.now() - self.began
        awaited = condition if self.first_held is None else self.condition
        asked = awaited.holds(self.seen, self.cluster.spec, -1 if self.node_id is None else self.node_id)
        stands = self._stands_still_for(progress)
        late = elapsed > deadline + asked and (stands is None or stands > self.deadline)
        progress = self._waived(progress, late=late)
        self._healthy = self._healthy + 1 if progress.done else 0
        held = self._held_for(progress)
        if progress.done and held < asked:
            said = f"{condition.describe(self.node_id)}: it did for {held - held % SAY_EVERY:.0f} of {asked:.0f} s"
            progress = replace(progress, waiting_for=said)
        elif self._healthy >= self.cluster.spec.deadlines.healthy_in_a_row:
            self.cluster.tell(f"{condition.describe(self.node_id)}: holds after {elapsed:.0f} s")
            for each in sorted(self.untold or ()):
                self.cluster.tell(f"{each}: not compared, since no look could")
            for node, why in condition.keeps(self.seen).get(NOT_KNOWN, {}).items():
                self.cluster.tell(f"whether controller {node} is warm is not known: {why}")
            return True
        self._hopeless_since = (self._hopeless_since or self.cluster.now()) if progress.hopeless else None
        hopeless = self._hopeless_since is not None and self.cluster.now() - self._hopeless_since >= HOPELESS_AFTER
        if hopeless or (late and not progress.done):
            self.seen = self.seen if whole else self.cluster.observe()  # what to do may depend on the topics
            why = "waiting can't help" if hopeless else f"the deadline of {deadline + asked:.0f} s has passed"
            why += "" if hopeless or stands is None else f", and for {stands:.0f} s nothing got on"
            advice = (*filter(None, (progress.way_out,)), *self._advice())
            raise StepFailed(
                f"{progress.waiting_for or condition.describe(self.node_id)}, {elapsed:.0f} s: {why}",
                way_out=(
                    f"nothing more is changed: {'; '.join(advice) or 'correct the cause'}. Then clear this task"
                    f" (if the node does not run: the task before this one, which starts it). {self.back(self.seen)}"
                    f"{GO_ON if self.of_a_sensor and progress.waived else ''}"
                ),
            )
        message, at = self._said
        if progress.waiting_for and (progress.waiting_for != message or self.cluster.now() - at > SAY_EVERY):
            self.cluster.tell(f"{progress.waiting_for}, {elapsed:.0f} s")
            self._said = (progress.waiting_for, self.cluster.now())
        return False

    def _looked_at(self) -> tuple[Condition, float, Progress, bool]:
        """A look, judged (``_judge``), and whether it was a whole one. Where one without topics shows that these count
        by now, a whole one is judged in its place.
        """
        while True:
            self.seen = self.cluster.observe() if self._topics_count() else self.cluster.observe(topics=False)
            whole = self.seen.topics != TOPICS_NOT_ASKED
            judged = self._judge(self.seen, self._look_before(self.seen))
            self._all_but_topics = judged[2].done or judged[2].topics
            if whole or not self._topics_count():
                return *judged, whole

    def _topics_count(self) -> bool:
        """Whether the next look is judged by the topics too: while ``first`` has never held, it alone is awaited."""
        awaited = [self.condition] if self.first is None else [self.first[0]]
        if self.first is not None and self.first_held is not None:
            awaited.append(self.condition)
        wanted = {each.topics for each in awaited}
        return Topics.ALWAYS in wanted or (Topics.LAST in wanted and self._all_but_topics)

    def _waived(self, progress: Progress, *, late: bool) -> Progress:
        """Done, and told, where what is missing was waited for long enough (``Progress.waived``)."""
        if progress.waived is None:
            return progress
        seconds, untold = progress.waived
        if self._waived_since is None:
            self._waived_since = self.cluster.now()
        by_deadline = late and not self.of_a_sensor
        if not (by_deadline if seconds is None else self.cluster.now() - self._waived_since >= seconds):
            return progress
        if self._healthy == 0:
            self.cluster.tell(f"{progress.waiting_for}: not waited for any longer. {progress.way_out}")
        return Progress(True, untold=progress.untold | {untold})

    def _advice(self) -> tuple[str, ...]:
        """Of the last look."""
        assert self.seen is not None
        return self.advice(self.seen, self.cluster.spec, earlier=next(iter(self._before), None))

    def _held_for(self, progress: Progress) -> float:
        """Seconds that the condition held without a break, as far as it was looked at: a long time between two looks
        counts as ``UNSEEN`` seconds (a look that takes long is none), and a look that did not read what would tell as
        none.
        """
        now, before = self.cluster.now(), self._looked
        self._looked = now
        if progress.unread:
            return self._held
        if progress.done:
            self.untold = progress.untold if self.untold is None else self.untold & progress.untold
        else:
            self.untold = None
        took = UNSEEN + (self.seen.took_seconds if self.seen is not None else 0.0)
        self._held = self._held + min(max(0.0, now - before), took) if progress.done and before is not None else 0.0
        return self._held

    def _stands_still_for(self, progress: Progress) -> float | None:
        """Seconds since what is waited for last got on, as far as this wait saw it; None where it saw nothing of it."""
        if progress.far is not None:
            what, value = progress.far
            if value > self._reached.get(what, value - 1):
                self._advanced, self._reached[what] = self.cluster.now(), value
        return None if self._advanced is None else self.cluster.now() - self._advanced

    def _judge(self, seen: ClusterObservation, earlier: ClusterObservation | None) -> tuple[Condition, float, Progress]:
        """The condition of this look (``first`` while that does not hold), its deadline in seconds from ``began``, and
        its progress.
        """
        own = self.condition.progress(seen, self.cluster.spec, node_id=self.node_id, earlier=earlier)
        if self.first is None:
            return self.condition, self.deadline, own
        condition, deadline = self.first
        progress = condition.progress(seen, self.cluster.spec, node_id=self.node_id, earlier=earlier)
        if progress.done and self.first_held is None:
            self.first_held = self.cluster.now() - self.began
            self.cluster.tell(f"{condition.describe(self.node_id)}: holds after {self.first_held:.0f} s")
        if self.first_held is None:
            return condition, deadline, progress
        deadline += self.deadline
        if progress.done or own.hopeless:
            return self.condition, deadline, own
        return condition, deadline, replace(progress, unread=progress.unread and own.done)

    def _look_before(self, seen: ClusterObservation) -> ClusterObservation | None:
        """The last look at least ``LIVENESS_SECONDS`` ago, else the first look. ZooKeeper must now hold what was
        committed then.
        """
        old = [
            each for each in self._before if (seen.observed_at - each.observed_at).total_seconds() >= LIVENESS_SECONDS
        ]
        first = next(iter(self._before), None)
        self._before = [*(each for each in self._before if each not in old[:-1]), seen]
        return old[-1] if old else first


def wait_for(
    cluster: Observed, condition: Condition, *, deadline: float, node_id: int | None = None
) -> ClusterObservation:
    """Wait in this thread. Returns the observation that fulfilled the condition."""
    wait = Wait(cluster, condition, deadline, node_id)
    while not wait.look():
        cluster.pause(cluster.spec.deadlines.poll)
    assert wait.seen is not None
    return wait.seen
