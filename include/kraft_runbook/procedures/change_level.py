"""Change one feature's level at the quorum's leader: asked once more with validate-only, applied once, seen on every
node. A request whose answer never came is not sent again before the levels were looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kraft_runbook.cluster.feature_levels import KRAFT_VERSION, Answer, LevelsInLog, NodeFeatures
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Broker, Controller
from kraft_runbook.errors import Refused, RunbookError, StepFailed, Unreachable
from kraft_runbook.io.kafka.feature_calls import node_features, read_levels, update_feature
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.levels.answers import NOT_THE_LEADER, refused
from kraft_runbook.levels.change import Direction, LevelChange
from kraft_runbook.procedures.preview_levels import kind_of

Tell = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Calls:
    """What a level's change asks of the nodes (``io.kafka.feature_calls``)."""

    levels: Callable[..., tuple[int, LevelsInLog]] = read_levels
    shown: Callable[..., NodeFeatures] = node_features
    update: Callable[..., Answer] = update_feature


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds. ``leads_within``: in which a leader has to be found: two to four, once the one before was killed (3.9.2,
    with defaults). ``settles``: after an answer that never came: what the leader had taken is committed by then, or
    lost with it. ``seen_within``: until every node must show the level.
    """

    apart: float = 0.5
    leads_within: float = 60.0
    settles: float = 3.0
    seen_within: float = 60.0


CALLS, PACE = Calls(), Pace()
TRIES = 3
"""How often the leader is looked for again. The level is read before each time, so that none is applied twice."""
LOOKS = 2
"""How many looks in a row must show the level on every node."""


def change_level(
    spec: ClusterSpec, change: LevelChange, *, secrets: Secrets, tell: Tell, calls: Calls = CALLS, pace: Pace = PACE
) -> bool:
    """Bring the feature to the change's target. Whether this call changed it: False where it was there already.

    Raises Refused, with a way out, where the level is neither that of the plan nor its target, or the leader refuses;
    nothing was changed then. Raises StepFailed where no leader could be asked, Unreachable where there is none for a
    minute.
    """
    for _ in range(TRIES):
        leader, now = _level(spec, change.feature, secrets, tell, calls, pace)
        if now == change.target:
            return False
        if now != change.now or change.direction is Direction.NONE:
            raise Refused(
                f"{change.feature} is at {now}, and this change was planned from {change.now} to {change.target}",
                way_out="plan it anew, and let that be signed",
            )
        if _ask(spec, leader, change, secrets, tell, calls, pace):
            return True
    raise StepFailed(
        f"no leader of the quorum took {change.feature} {change.target} in {TRIES} tries",
        way_out="let the quorum settle (kraft-runbook observe), then run this step again: it looks at the level first",
    )


def _level(spec: ClusterSpec, feature: str, secrets: Secrets, tell: Tell, calls: Calls, pace: Pace) -> tuple[int, int]:
    """The leader and the level that holds (as ``FeatureObservation.level``), once a leader is there: the one before may
    just have ended.
    """
    ends, told = time.monotonic() + pace.leads_within, False
    while True:
        try:
            leader, log = calls.levels(spec, secrets=secrets)
            if feature != KRAFT_VERSION:
                return leader, log.levels.get(feature, 0)
            return leader, calls.shown(spec, spec.controller(leader), secrets=secrets).finalized.get(feature, 0)
        except Unreachable as error:
            if time.monotonic() > ends:
                raise
            if not told:
                tell(f"{error.problem}; looking again for {pace.leads_within:g} s: a new one may just be elected")
            told = True
            time.sleep(pace.apart)


def _ask(
    spec: ClusterSpec, leader: int, change: LevelChange, secrets: Secrets, tell: Tell, calls: Calls, pace: Pace
) -> bool:
    """Whether the leader applied it; False where another leads by now, or no answer came."""
    for validate_only in (True, False):
        try:
            answer = calls.update(
                spec,
                leader,
                change.feature,
                change.target,
                kind_of(change),
                validate_only=validate_only,
                secrets=secrets,
            )
        except Unreachable as error:
            tell(f"{error.problem}; whether it was applied is not known: looking at the level")
            time.sleep(pace.settles)
            return False
        if not answer.accepted:
            codes = [answer.code, *(code for code, _ in answer.features.values())]
            if NOT_THE_LEADER in codes:
                tell(f"controller {leader} does not lead any more")
                time.sleep(pace.apart)
                return False
            raise refused(change.feature, change.target, next(code for code in codes if code), answer.refusal)
    tell(f"controller {leader} applied {change.feature} {change.target}")
    return True


def await_level(
    spec: ClusterSpec,
    feature: str,
    level: int,
    *,
    secrets: Secrets,
    tell: Tell,
    calls: Calls = CALLS,
    pace: Pace = PACE,
) -> float:
    """Wait until every node shows the level, two looks in a row. The seconds that it took.

    Raises StepFailed after a minute, naming who does not show it. Levels are compared, not epochs: a broker's epoch
    moves on with the log.
    """
    began, shown, told = time.monotonic(), 0, ""
    while True:
        missing = list(_missing(spec, feature, level, secrets, calls))
        shown = 0 if missing else shown + 1
        took = time.monotonic() - began
        if shown == LOOKS:
            return took
        if missing and took > pace.seen_within:
            raise StepFailed(
                f"{feature} {level} is not shown by every node after {took:.0f} s: {'; '.join(missing)}",
                way_out="look at what is named: a node that has not applied it may not serve. The level itself is set",
            )
        if missing and missing[0] != told:
            told = missing[0]
            tell(f"waiting: {'; '.join(missing)}")
        time.sleep(pace.apart)


def _missing(spec: ClusterSpec, feature: str, level: int, secrets: Secrets, calls: Calls) -> Iterator[str]:
    """A node that has both roles is asked at the listener of each."""

    def ask(node: Broker | Controller) -> NodeFeatures | Unread:
        try:
            return calls.shown(spec, node, secrets=secrets)
        except RunbookError as error:
            return Unread(error.problem)

    asked: tuple[Broker | Controller, ...] = (*spec.brokers, *spec.controllers)
    with ThreadPoolExecutor(len(asked)) as pool:
        for node, seen in zip(asked, pool.map(ask, asked), strict=True):
            role = f" as {'broker' if isinstance(node, Broker) else 'controller'}"
            who = f"node {node.id}{role if spec.has_both_roles(node.id) else ''}"
            if isinstance(seen, Unread):
                yield f"{who}: {seen.reason}"
            elif seen.finalized.get(feature, 0) != level:
                yield f"{who} shows {seen.finalized.get(feature, 0)}"
