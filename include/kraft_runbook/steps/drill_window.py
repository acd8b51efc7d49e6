"""A window of a drill: probes from its begin to its end, the leaders of a broker that is stopped, and the processor
time that it took.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.processor_time import Spent, used_between
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import StepFailed
from kraft_runbook.evidence.kinds import Drilled, of_kind
from kraft_runbook.io.kafka.drill_probes import Probes, make_topic, own_partitions, topic_of
from kraft_runbook.io.kafka.leaders_moved import LeadersMoved
from kraft_runbook.io.zookeeper.holder_gone import HolderGone
from kraft_runbook.quorum.faults import KILL, PROBE_KEY, Aim, Form, control_names
from kraft_runbook.quorum.handover import handover, loss
from kraft_runbook.quorum.silences import CHANGES, Measured, longest_silence
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.run import Run

PROBES = "probes"
SETTLE_SECONDS = 60.0
"""How long the probes may take to be answered everywhere before a window begins."""


class Answers(Protocol):
    """What the rules here need of the probes (``io.kafka.drill_probes.Probes``)."""

    answers: dict[str, list[float]]
    failed: int
    why: str

    def now(self) -> float:
        """By the clock of the answers."""


class Leaders(Protocol):
    """What they need of a broker's leaders (``io.kafka.leaders_moved.LeadersMoved``), by the clock of the answers."""

    led: int | None
    looks: list[tuple[float, int]]


class Noticed(Protocol):
    """What they need of a look at /controller (``io.zookeeper.holder_gone.HolderGone``), by the same clock."""

    gone_at: float | None


Opens = Callable[[Run], AbstractContextManager[Answers]]
Follows = Callable[[Run, Aim], AbstractContextManager[Leaders | None]]
Notices = Callable[[Run, Aim], AbstractContextManager[Noticed | None]]


def open_probes(run: Run) -> Probes:
    """The run's probes: on the partitions that its form names, or on a topic of their own, which is made."""
    topic, named = topic_of_run(run), Form.of(run.params).partitions
    first = not has_probed(run)
    if first:
        run.journal.record(Drilled(values={}, what=PROBES, fault=topic, node_id=None))
    if not named:
        make_own_topic(run, first=first)
    partitions = named or own_partitions(run.spec, topic)
    return Probes(run.spec, topic, CHANGES, partitions=partitions, key=PROBE_KEY, secrets=run.cluster.secrets)


def make_own_topic(run: Run, *, first: bool = True) -> None:
    """Make the run's topic of probes, where it is not there. ``first``: nothing of this run has made it yet."""
    topic = topic_of_run(run)
    run.cluster.do(make_topic, topic, would=[Act(f"create the probes' topic {topic}")] if first else ())


def follow_leaders(run: Run, found: Aim) -> AbstractContextManager[Leaders | None]:
    """Of the broker that is stopped; of a controller, or where nothing stops, there are none."""
    if found.node not in run.spec.broker_ids:
        return nullcontext()
    return LeadersMoved(run.spec, found.node, secrets=run.cluster.secrets)


def notice_loss(run: Run, found: Aim) -> AbstractContextManager[Noticed | None]:
    """Of a broker that is killed while it is ZooKeeper's controller; a controller of a quorum has no session there."""
    if found.ends_by != KILL or found.node not in run.spec.broker_ids:
        return nullcontext()
    return HolderGone(run.spec, found.node, secrets=run.cluster.secrets)


def has_probed(run: Run) -> bool:
    """Whether this run was about to make topics."""
    return any(told.what == PROBES for _, told in of_kind(run.journal.records(), Drilled))


def topic_of_run(run: Run) -> str:
    """The topic of this run's probes."""
    return topic_of(hashlib.sha256(run.name.encode()).hexdigest()[:8])


# -- from its begin to its end -----------------------------------------------------------------------------------------


def settled(run: Run, probes: Answers) -> float:
    """Wait until each probe was answered twice; returns that moment. Raises StepFailed."""
    ends = probes.now() + SETTLE_SECONDS
    while silent := [name for name, each in probes.answers.items() if len(each) < 2]:
        if probes.now() > ends:
            because = f" ({probes.why})" if probes.why else ""
            raise StepFailed(
                f"{some(silent)} did not answer the probes in {SETTLE_SECONDS:g} s, without a fault{because}",
                way_out="see whether the cluster serves producers and CreateTopics, then clear this task",
            )
        run.cluster.pause(0.1)
    return probes.now()


def watch(run: Run, probes: Answers, *, until: float) -> None:
    """Let the probes go on until that moment."""
    while probes.now() < until:
        run.cluster.pause(min(0.5, max(0.0, until - probes.now())))


def silent_for(probes: Answers, since: float) -> float:
    """The longest silence that is still open, in seconds."""
    now = probes.now()
    return max(now - (each[-1] if each else since) for each in probes.answers.values())


def by_their_clock(run: Run, probes: Answers, at: float | None) -> float | None:
    """A moment, in seconds since the epoch, by the clock of the answers."""
    return None if at is None else probes.now() - (run.cluster.now() - at)


@dataclass(frozen=True, slots=True)
class Before:
    """When a window was about to begin, and what the processes had spent by then."""

    at: float
    spent: Mapping[str, Spent | Unread]

    @classmethod
    def look(cls, run: Run) -> Before:
        spent = run.cluster.ask(spent_so_far)
        return cls(run.cluster.now(), spent)

    def with_processors(self, run: Run, measured: Measured, seen: ClusterObservation) -> Measured:
        """What was measured, with what they have used since, and who controls."""
        seconds = run.cluster.now() - self.at
        used = used_between(self.spent, run.cluster.ask(spent_so_far), seconds)
        return replace(measured, processors=used, control=control_names(seen, run.spec))


def spent_so_far(spec: ClusterSpec, *, secrets: Any) -> Mapping[str, Spent | Unread]:
    """The processor time of every process that the hosts show."""
    from kraft_runbook.io.hosts.processor_time import read_processor_time  # ansible-runner is slow to import

    return read_processor_time(spec, secrets=secrets)


def measure(
    probes: Answers,
    began: float,
    ended: float,
    *,
    leaders: Leaders | None = None,
    noticed: Noticed | None = None,
    told_at: float | None = None,
) -> Measured:
    """What the probes saw from ``began`` to ``ended``, how a broker's partitions moved that was told to end at
    ``told_at``, and when its loss was noticed.
    """
    return Measured(
        ended - began,
        {name: longest_silence(sorted(each), began, ended) for name, each in probes.answers.items()},
        sum(began <= moment <= ended for each in probes.answers.values() for moment in each),
        probes.failed,
        handover(leaders.led, told_at, leaders.looks) if leaders else None,
        loss=loss(told_at, noticed.gone_at, sorted(probes.answers[CHANGES])) if noticed else None,
    )


def longest(measured: Measured) -> str:
    """The longest silence, and whose it is."""
    name, seconds = max(measured.silences.items(), key=lambda each: each[1], default=("nothing", 0.0))
    return f"{seconds:.1f} s ({name})"
