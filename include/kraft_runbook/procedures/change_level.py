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
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.errors import Refused, RunbookError, StepFailed, Unreachable
from kraft_runbook.io.kafka.feature_calls import node_features, read_levels, update_feature
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.levels.answers import NOT_THE_LEADER, TIMED_OUT, refused
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
    """Bring the feature to the change's target. Whether this call changed it: False where it was there already. True
    also where its answer was lost and the level is there afterwards.

    Raises Refused, with a way out, where the level is neither that of the plan nor its target, or the leader refuses;
    nothing was changed then. Raises StepFailed where no leader could be asked, or where it is not known whether the
    level is changed, which it says; Unreachable where there was no leader for a minute, and nothing was sent.
    """
    lost = ""
    for left in reversed(range(TRIES + 1)):
        try:
            leader, now = _level(spec, change.feature, secrets, tell, calls, pace)
        except Unreachable as error:
            if lost:
                raise _not_known(change, f"{lost}, and since then {error.problem}") from error
            raise
        if now == change.target:
            if lost:
                tell(
                    f"{change.feature} is at {change.target}: the request whose answer was lost is in the metadata log"
                )
            return bool(lost)
        if now != change.now or change.direction is Direction.NONE:
            raise Refused(
                f"{change.feature} is at {now}, and this change was planned from {change.now} to {change.target}",
                way_out="plan it anew, and let that be signed",
            )
        if not left:
            break
        try:
            if _ask(spec, leader, change, secrets, tell, calls, pace):
                return True
        except _AnswerLost as error:
            lost = str(error)
            tell(f"{lost}: whether {change.feature} {change.target} was applied is not known, looking at the level")
            time.sleep(pace.settles)
    if lost:
        raise _not_known(change, f"{lost}, and the metadata log shows {change.feature} {change.now} so far")
    raise StepFailed(
        f"no leader of the quorum took {change.feature} {change.target} in {TRIES} tries",
        way_out="let the quorum settle (kraft-runbook observe), then run this step again: it looks at the level first",
    )


class _AnswerLost(Exception):
    """The request that changes the level was sent, and no answer says what became of it."""


def _not_known(change: LevelChange, why: str) -> StepFailed:
    return StepFailed(
        f"whether {change.feature} {change.target} was applied is not known: {why}",
        way_out="let the quorum settle (kraft-runbook observe), then run this step again: it looks first, and"
        " changes nothing where it is there",
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
    """Whether the leader applied it; False where it was not asked to, since another leads by now or it did not answer.
    Raises _AnswerLost.

    NOT_CONTROLLER to the request itself says nothing: a leader that resigns answers so to every request whose record
    is not committed yet, and the next leader may commit it (``QuorumController.renounce``).
    """
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
            if not validate_only:
                raise _AnswerLost(error.problem) from error
            tell(f"{error.problem}; nothing was changed: looking for the leader again")
            time.sleep(pace.settles)
            return False
        if answer.accepted:
            continue
        codes = [code for code in (answer.code, *(code for code, _ in answer.features.values())) if code]
        if not {NOT_THE_LEADER, TIMED_OUT} & set(codes):
            raise refused(change.feature, change.target, codes[0], answer.refusal)
        said = f"controller {leader} {'does not lead any more' if NOT_THE_LEADER in codes else 'ran out of time'}"
        if not validate_only:
            raise _AnswerLost(said)
        tell(said)
        time.sleep(pace.apart)
        return False
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
