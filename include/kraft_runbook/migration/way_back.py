"""Can this cluster still go back to ZooKeeper? Yes or no, why, by which steps, in about what time. Pure.

``rollback_plan`` answers for a phase; this answers for a cluster as it was seen. It turns to no when something would be
lost, which is before anyone needs the way back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, Unread, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.conditions import one_controller
from kraft_runbook.migration.leaving import gone_risk, why_no_fence
from kraft_runbook.migration.never_copied import may_have_died_in_the_copy
from kraft_runbook.migration.transitions import TABLE, Step
from kraft_runbook.runbook.way_back import RollbackPlan

BROKER_SECONDS = 20.0
"""About what one broker's restart takes until it is in every ISR (measured on a lab of 501 partitions; grows with the
partitions).
"""
PARITY_SECONDS = 40.0
LEAVING_SECONDS = 50.0
"""15 for leaving itself, and 35 until every thread of the brokers has noticed its controller and could be looked at."""
CONTROLLER_SECONDS = 5.0
WINDOW_SECONDS = 3.0
"""About the window of a cluster of 501 partitions on two cores (measured 1.3 to 3.3), also right after 300 topics were
created: brokers catch up first.
"""


RESTORE = (
    (
        "restore_quorum: start the controllers as they are configured, all of them proven to be in migration mode, so"
        " that a leader writes the rest to ZooKeeper"
    ),
    "then the way back from the phase that shows",
)
"""The steps where no quorum leads: not yet a way back, but the way to one."""
KRAFT_ONLY_RISK = (
    "configs that ZooKeeper can't hold; the next election of a controller ends dual write and closes the way back:"
    " delete them first (KRB-PRE-067)"
)
DIED_IN_THE_COPY = (
    (
        "restore_quorum: end every controller and read its own log; where the logs prove that the copy was never"
        " committed, nothing was ever acknowledged by the quorum, and it stays down; else it is started as it is"
        " configured, so that a leader writes the rest to ZooKeeper"
    ),
    (
        "leave_kraft: read the logs once more, delete /controller and /migration, see every broker follow ZooKeeper's"
        " controller"
    ),
    (
        "then roll_brokers_to_zookeeper and set_controllers_aside; or, where the copy was committed, the way back from"
        " the phase that shows"
    ),
)
"""The steps where nothing shows that the copy was completed: started again, the controllers would copy again, and die
of what they died of.
"""


REMAINS = (
    "what remains: go forward (brokers that are not in KRaft mode are restarted in it), mirror into a new cluster, or"
    " restore from a backup; ZooKeeper's tree is a frozen copy of the last moment before"
)


def rollback_plan(phase: Phase) -> RollbackPlan:
    """The way back from a phase, along the table (KIP-866, "Reversal in ZK"; order and risks as measured on 3.9.2)."""
    if phase is Phase.ZOOKEEPER:
        return RollbackPlan(True, "ZooKeeper holds the metadata", ())
    if phase is Phase.FINALIZED:
        return RollbackPlan(
            False,
            "a controller without the migration flag has led: ZooKeeper is no longer written and falls behind;"
            f" {REMAINS}",
            (),
        )
    if phase is Phase.KRAFT:
        return RollbackPlan(False, "there is no ZooKeeper to go back to", ())
    if phase is Phase.UNKNOWN:
        return RollbackPlan(False, "the phase is unknown, so no way back can be promised", ())
    steps = tuple(f"{edge.step}: {edge.does}" for edge in TABLE.way_back(phase))
    return RollbackPlan(True, f"until finalization the cluster can leave {phase} for ZooKeeper", steps, RISKS)


RISKS = (
    (
        "while the controllers are fenced no topic, config, ACL or quota can be changed and no partition gets a new"
        " leader; producing and consuming go on"
    ),
    "requests that time out in that window may still be carried out: look before you send one again",
)


def way_back(
    seen: ClusterObservation,
    spec: ClusterSpec,
    *,
    dual_write_stopped: str | None = None,
    gone: Collection[int] = (),
    not_deletable: str | None = None,
    lies_behind: str | None = None,
) -> RollbackPlan:
    """The way back from where the cluster was seen. ``dual_write_stopped``: what shows that ZooKeeper is not written
    any more, where two looks showed it. ``gone``: controllers whose hosts are gone for good, as an operator says.
    ``not_deletable``: why this tool may not delete what KRaft holds in ZooKeeper, where it was asked. ``lies_behind``:
    which state znodes' versions lie behind their partitions' epochs, where that was looked at.

    Not possible, but with steps: the quorum has to be brought back first, which the rollback does.
    """
    phase = detect_phase(seen).phase
    plan = rollback_plan(phase)
    if gone:
        plan = replace(plan, risks=(*plan.risks, gone_risk(gone)))
    if not seen.has_zookeeper:
        final = "the migration is final, and " if phase is Phase.FINALIZED else ""
        return replace(plan, why=f"{final}the cluster file names no ZooKeeper to go back to")
    if phase is Phase.FINALIZED:
        return plan
    if was_read(seen.quorum) and seen.quorum.kraft_only_configs:
        plan = replace(plan, risks=(*plan.risks, f"{', '.join(seen.quorum.kraft_only_configs[:5])}: {KRAFT_ONLY_RISK}"))
    # One that is left without a majority goes on showing PRE_MIGRATION.
    lost = (
        quorum_is_lost(seen)
        if phase in (Phase.UNKNOWN, Phase.HYBRID, Phase.DUAL_WRITE) or may_have_died_in_the_copy(seen)
        else None
    )
    if lost and not_deletable:
        return RollbackPlan(False, f"{lost}, and {not_deletable}", (), plan.risks)
    if lost and may_have_died_in_the_copy(seen):
        why = (
            f"{lost}, and nothing shows that the copy was completed: the controllers' own logs must tell first; the"
            " rollback reads them"
        )
        return RollbackPlan(False, why, DIED_IN_THE_COPY, plan.risks)
    if lost:
        return RollbackPlan(False, f"{lost}: a majority of the controllers must run first", RESTORE, plan.risks)
    if phase is Phase.UNKNOWN:
        return plan
    if phase is Phase.ZOOKEEPER:
        steps = tuple(_settling(seen, spec))
        if not_deletable and was_read(seen.zookeeper) and seen.zookeeper.migration is not None:
            return RollbackPlan(False, not_deletable, (), plan.risks)
        return replace(plan, steps=steps, seconds=_seconds(seen, spec, phase)) if steps else plan
    obstacles = list(_obstacles(seen, spec, phase, dual_write_stopped, gone))
    if not_deletable:
        obstacles.append(not_deletable)
    if obstacles:
        return RollbackPlan(False, "; ".join(obstacles), (), plan.risks)
    named = tuple(_named(text, seen, lies_behind) for text in plan.steps)
    return replace(plan, steps=named, seconds=_seconds(seen, spec, phase), window_seconds=WINDOW_SECONDS)


def quorum_is_lost(seen: ClusterObservation) -> str | None:
    """What shows that controllers of a migration should run and none leads: the office is KRaft's, or brokers are. None
    where nothing does.
    """
    running = sum(c.running is True for c in seen.controllers.values())
    unseen = sum(not was_read(c.running) for c in seen.controllers.values())
    if was_read(seen.quorum):
        if (running + unseen) * 2 > len(seen.controllers):
            return None
        return (
            f"only {running} of {len(seen.controllers)} controllers runs, which is no majority: it leads for a few"
            " seconds more"
        )
    if (
        was_read(seen.zookeeper)
        and seen.zookeeper.controller is not None
        and seen.zookeeper.controller.kraft_controller_epoch >= 0
    ):
        return f"/controller is held by KRaft controller {seen.zookeeper.controller.broker_id}, and no quorum leads"
    in_kraft = seen.brokers_in(BrokerMode.KRAFT)
    return f"broker {_ids(in_kraft)} is in KRaft mode, and no quorum leads" if in_kraft else None


def _obstacles(
    seen: ClusterObservation, spec: ClusterSpec, phase: Phase, dual_write_stopped: str | None, gone: Collection[int]
) -> Iterable[str]:
    """Each reason for a no."""
    if isinstance(seen.zookeeper, Unread):
        yield f"ZooKeeper can't be read ({seen.zookeeper.reason})"
    fence = why_no_fence(seen, spec, gone=gone)
    if fence:
        yield fence
    if phase is not Phase.PRE_MIGRATION and was_read(seen.zookeeper) and was_read(seen.quorum):
        yield from one_controller(seen.zookeeper, seen.quorum)
    unflagged = [c.id for c in seen.controllers.values() if c.mode == ControllerMode.KRAFT]
    if unflagged:
        yield (
            f"controller {_ids(unflagged)} runs without the migration flag: the first time it leads, the migration is"
            " final; restart it with zookeeper.metadata.migration.enable=true"
        )
    if phase is not Phase.PRE_MIGRATION and dual_write_stopped:
        yield f"ZooKeeper is not written any more, so what was acknowledged since would be lost: {dual_write_stopped}"


def _settling(seen: ClusterObservation, spec: ClusterSpec) -> Iterable[str]:
    """What a rollback that was interrupted has left to do once ZooKeeper holds the office."""
    left = [b.id for b in seen.brokers.values() if b.mode == BrokerMode.HYBRID]
    if left:
        yield (
            f"{Step.ROLL_BROKERS_TO_ZOOKEEPER.value}: broker {_ids(left)}:"
            f" {TABLE.edge(Step.ROLL_BROKERS_TO_ZOOKEEPER).does}"
        )
        yield f"{Step.SET_CONTROLLERS_ASIDE.value}: {TABLE.edge(Step.SET_CONTROLLERS_ASIDE).does}"


def _named(step: str, seen: ClusterObservation, lies_behind: str | None) -> str:
    """The step with the brokers that it would restart, or the partitions that it would mend."""
    name, _, does = step.partition(": ")
    match name:
        case Step.ROLL_BROKERS_BACK_TO_HYBRID.value:
            brokers = seen.brokers_in(BrokerMode.KRAFT)
        case Step.ROLL_BROKERS_TO_ZOOKEEPER.value:
            brokers = tuple(b.id for b in seen.brokers.values() if b.mode != BrokerMode.ZOOKEEPER)
        case Step.LEAVE_KRAFT.value if lies_behind:
            return f"{step}. Now: {lies_behind}"
        case _:
            return step
    return f"{name}: broker {_ids(brokers)}: {does}" if brokers else f"{name}: nothing to do"


def _seconds(seen: ClusterObservation, spec: ClusterSpec, phase: Phase) -> float:
    restarts = len(seen.brokers_in(BrokerMode.KRAFT)) + sum(
        b.mode != BrokerMode.ZOOKEEPER for b in seen.brokers.values()
    )
    proof = PARITY_SECONDS if phase in (Phase.HYBRID, Phase.DUAL_WRITE) else 0
    return (
        restarts * BROKER_SECONDS
        + proof
        + (LEAVING_SECONDS if phase is not Phase.ZOOKEEPER else 0)
        + len(spec.controllers) * CONTROLLER_SECONDS
    )


def _ids(ids: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(ids)))
