"""What a change of a level would do, asked of the real cluster: the plan, what stands in its way, what would be lost,
and the server's own validate-only answer. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, Answer, FeatureObservation, LevelsInLog
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.io.kafka.feature_calls import UpgradeType, update_feature
from kraft_runbook.io.kafka.metadata_log_reader import MetadataLogReader
from kraft_runbook.io.kafka.metadata_quorum import describe_elected
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.levels.change import Direction, LevelChange, plan_change
from kraft_runbook.levels.losses import Loss, read_held
from kraft_runbook.levels.obstacles import LEADER_FIRST, obstacles, running_software
from kraft_runbook.levels.preview import Preview, shuts_out, voters_written
from kraft_runbook.runbook.obstacle import Obstacle


def losses_in_the_log(spec: ClusterSpec, change: LevelChange, *, secrets: Secrets) -> tuple[Loss, ...]:
    """Counted in the real log, where a step down crosses a level that changed metadata; else nothing is lost, and
    nothing is read.
    """
    if change.feature != METADATA_VERSION or change.direction is not Direction.DOWN or not change.starred:
        return ()
    quorum = describe_elected(spec, secrets=secrets)
    with MetadataLogReader(spec, quorum.leader_id, quorum.leader_epoch, secrets=secrets) as reader:
        return read_held(reader.chunks(end=quorum.high_watermark - 1)).below(change.now, change.target)


def preview_change(
    spec: ClusterSpec,
    seen: FeatureObservation,
    feature: str,
    wanted: str,
    *,
    secrets: Secrets,
    ask: Callable[..., Answer] = update_feature,
    lost: Callable[..., tuple[Loss, ...]] = losses_in_the_log,
) -> Preview:
    """The preview of bringing ``feature`` to ``wanted`` (a level, its name, or a release).

    ``ask``: the leader, validate-only; ``lost``: what a step down would lose.

    Raises Refused where what is needed to plan it could not be read, or the software has no such level; Unreachable.
    """
    software = running_software(_of_those_that_answer(seen))
    if isinstance(software, Obstacle):
        raise Refused(software.problem, way_out=software.way_out)
    if not isinstance(seen.log, LevelsInLog) or isinstance(seen.leader_id, Unread):
        why = seen.log if isinstance(seen.log, Unread) else Unread("no leader")
        raise Refused(f"the metadata log could not be read: {why.reason}", way_out=why.way_out or LEADER_FIRST)
    now = seen.level(feature)
    if isinstance(now, Unread):
        raise Refused(
            f"the level of {feature} could not be read: {now.reason}",
            way_out="bring the quorum's leader to answer, then look again",
        )
    change = plan_change(software, feature, now, wanted)
    losses = lost(spec, change, secrets=secrets)
    answer = None
    if change.direction is not Direction.NONE:
        answer = validate(spec, seen.leader_id, change, secrets=secrets, ask=ask)
    name = spec.controller_listener.name
    at = {each.id: f"{name}://{each.address}" for each in spec.controllers}
    found = obstacles(seen, change, software, losses, voters=at)
    return Preview(change, found, losses, answer, shuts_out(seen, change), voters_written(seen, change))


def _of_those_that_answer(seen: FeatureObservation) -> FeatureObservation:
    """A node that does not answer stands in the way in any case, named with what it registered with (``obstacles``):
    the plan is made by the software of the others. The whole look, where none answers.
    """
    answering = replace(
        seen,
        brokers={i: node for i, node in seen.brokers.items() if not isinstance(node, Unread)},
        controllers={i: node for i, node in seen.controllers.items() if not isinstance(node, Unread)},
    )
    return answering if answering.nodes else seen


def validate(
    spec: ClusterSpec,
    leader_id: int,
    change: LevelChange,
    *,
    secrets: Secrets,
    ask: Callable[..., Answer] = update_feature,
) -> Answer:
    """The leader's answer to the change, validate-only."""
    return ask(spec, leader_id, change.feature, change.target, kind_of(change), validate_only=True, secrets=secrets)


def kind_of(change: LevelChange) -> UpgradeType:
    """How the server is asked. Never unsafe."""
    return UpgradeType.SAFE_DOWNGRADE if change.direction is Direction.DOWN else UpgradeType.UPGRADE
