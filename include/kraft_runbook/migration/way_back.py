"""Can this cluster still go back to ZooKeeper? Yes or no, why, by which steps, in about what time. Pure.

``rollback_plan`` answers for a phase, ``way_back`` for an observed cluster. The answer is no as soon as something would
be lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from kraft_runbook.cluster.naming import by_number, nodes, some
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, Unread, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.controller_epochs import (
    cut_off_by_epoch,
    set_by_leaving,
    too_low_in_zookeeper,
    uncountable_epochs,
    wanted_by_leaving,
)
from kraft_runbook.migration.leaving import gone_risk, why_no_fence
from kraft_runbook.migration.never_copied import may_have_died_in_the_copy, never_elected
from kraft_runbook.migration.transitions import TABLE, Step
from kraft_runbook.migration.unfinished_copy import TELL, UNTOLD, end_untold, one_controller
from kraft_runbook.runbook.way_back import RollbackPlan, not_known

BROKER_SECONDS = 20.0
"""Seconds that one broker's restart takes until the broker is in every ISR (measured on a lab of 501 partitions; grows
with the partitions).
"""
PARITY_SECONDS = 40.0
LEAVING_SECONDS = 50.0
"""15 s for leaving itself, and 35 s until every thread of the brokers has noticed its controller and can be counted."""
CONTROLLER_SECONDS = 5.0
WINDOW_SECONDS = 3.0
"""Seconds without metadata changes on a cluster of 501 partitions on two cores (measured 1.3 to 3.3 s). It is the same
right after 300 topics were created, since the brokers catch up first.
"""


RESTORE = (
    (
        "restore_quorum: start the controllers with their files, once all are proven to be in migration mode. The"
        " leader writes the rest to ZooKeeper, if /migration has an offset"
    ),
    "then the rollback from the phase that the cluster shows",
)
"""The steps where no quorum leads. They make a rollback possible."""
KRAFT_ONLY_RISK = (
    "configs that ZooKeeper can't hold; the next controller election ends dual write, and no rollback is possible"
    " after that: delete them first (KRB-PRE-067)"
)
DIED_IN_THE_COPY = (
    (
        "restore_quorum: stop every controller and read its own log. If the logs prove that the metadata copy was never"
        " committed, the quorum has acknowledged nothing, and it stays down. Else it is started with its files. If the"
        " copy is committed, the leader writes nothing to ZooKeeper before /migration is given an offset by hand, and"
        " the rollback stops there (docs/interruptions.md)"
    ),
    (
        "leave_kraft: read the logs once more, delete /controller and /migration, wait until every broker follows the"
        " ZooKeeper controller"
    ),
    (
        "then roll_brokers_to_zookeeper and set_controllers_aside; or, if the copy was committed, the rollback from the"
        " phase that the cluster shows"
    ),
)
"""The steps where nothing shows that the copy was completed. Controllers that are started would copy again, and die
again of the same error.
"""


NEVER_ELECTED = (
    (
        f"{Step.LEAVE_KRAFT.value}: stop every controller, verify that none took /controller meanwhile, delete"
        " /migration, wait until every broker follows the ZooKeeper controller"
    ),
    f"{Step.ROLL_BROKERS_TO_ZOOKEEPER.value}: {TABLE.edge(Step.ROLL_BROKERS_TO_ZOOKEEPER).does}",
    f"{Step.SET_CONTROLLERS_ASIDE.value}: {TABLE.edge(Step.SET_CONTROLLERS_ASIDE).does}",
)
"""The steps where controllers run without a leader. The phase is unknown then, but nothing can have been copied.
"""


EPOCH_RISK = (
    "if leave_kraft finds a greater epoch by then, it stops with nothing deleted, and the controllers start again;"
    " grant WRITE on it before"
)


REMAINS = (
    "what remains: go forward (restart the brokers that are not in KRaft mode in it), mirror into a new cluster, or"
    " restore from a backup; ZooKeeper's tree holds the metadata of the moment before finalization"
)


def rollback_plan(phase: Phase) -> RollbackPlan:
    """The rollback from a phase, along the table (KIP-866, "Reversal in ZK"; order and risks as measured on 3.9.2)."""
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
        return not_known("no phase is proven")
    steps = tuple(f"{edge.step}: {edge.does}" for edge in TABLE.way_back(phase))
    return RollbackPlan(True, f"until finalization the cluster can leave {phase} for ZooKeeper", steps, RISKS)


RISKS = (
    (
        "while the controllers are fenced, no topic, config, ACL or quota can be changed and no partition gets a new"
        " leader; producing and consuming go on"
    ),
    "a request that times out in that window may still be carried out: check before you send it again",
)


def way_back(
    seen: ClusterObservation,
    spec: ClusterSpec,
    *,
    dual_write_stopped: str | None = None,
    dual_write_unread: str | None = None,
    gone: Collection[int] = (),
    not_deletable: str | None = None,
    epoch_not_writable: str | None = None,
    lies_behind: str | None = None,
) -> RollbackPlan:
    """The rollback of the observed cluster.

    ``dual_write_stopped``: what shows that ZooKeeper is no longer written; None where two looks did not show it.
    ``dual_write_unread``: why whether it is could not be told; None where it was, or the caller looks later.
    ``gone``: controllers whose hosts are gone for good, on the operator's word. ``not_deletable``: why this tool may
    not delete KRaft's znodes in ZooKeeper; None where it may or was not asked. ``epoch_not_writable``: the same of
    writing /controller_epoch, which is a no only where another number must be set. ``lies_behind``: the state znodes
    whose version is lower than their partition's epoch, where that was checked. A plan that is not possible but has
    steps means that a quorum must lead first; the rollback sees to that.
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
        plan = replace(plan, risks=(*plan.risks, f"{some(seen.quorum.kraft_only_configs)}: {KRAFT_ONLY_RISK}"))
    # A controller without a majority goes on showing PRE_MIGRATION.
    lost = (
        quorum_is_lost(seen)
        if phase in (Phase.UNKNOWN, Phase.HYBRID, Phase.DUAL_WRITE) or may_have_died_in_the_copy(seen)
        else None
    )
    if lost and not_deletable:
        return RollbackPlan(False, f"{lost}, and {not_deletable}", (), plan.risks)
    if lost and may_have_died_in_the_copy(seen):
        why = (
            f"{lost}, and nothing shows that the metadata copy was completed: the controllers' own logs decide, and the"
            " rollback reads them"
        )
        return RollbackPlan(False, why, DIED_IN_THE_COPY, plan.risks)
    if lost:
        return RollbackPlan(False, f"{lost}: a majority of the controllers must run first", RESTORE, plan.risks)
    if phase is Phase.UNKNOWN:
        return _of_controllers_never_led(seen, spec, gone, not_deletable) if never_elected(seen) else plan
    uncountable = uncountable_epochs(seen)
    if phase is Phase.ZOOKEEPER:
        if uncountable:
            return RollbackPlan(False, uncountable, (), plan.risks)
        steps = tuple(_settling(seen))
        elects = too_low_in_zookeeper(seen)
        deletes = was_read(seen.zookeeper) and seen.zookeeper.migration is not None
        if not_deletable and (deletes or elects or cut_off_by_epoch(seen)):
            return RollbackPlan(False, not_deletable, (), plan.risks)
        if epoch_not_writable and elects:
            return RollbackPlan(False, f"{epoch_not_writable}, which must be set to {elects.greatest}", (), plan.risks)
        return replace(plan, steps=steps, seconds=_seconds(seen, spec, phase)) if steps else plan
    obstacles = list(_obstacles(seen, spec, phase, dual_write_stopped, gone))
    if not_deletable:
        obstacles.append(not_deletable)
    if uncountable:
        obstacles.append(uncountable)
    if epoch_not_writable:
        wanted = wanted_by_leaving(seen)
        if wanted is not None:
            obstacles.append(f"{epoch_not_writable}, which must be set to {wanted}")
        else:
            plan = replace(plan, risks=(*plan.risks, f"{epoch_not_writable}: {EPOCH_RISK}"))
    if obstacles:
        return RollbackPlan(False, "; ".join(obstacles), (), plan.risks)
    named = tuple(_named(text, seen, lies_behind) for text in plan.steps)
    unread = list(_not_told(seen, phase, dual_write_unread))
    if unread:
        return not_known("; ".join(unread), named, plan.risks)
    return replace(plan, steps=named, seconds=_seconds(seen, spec, phase), window_seconds=WINDOW_SECONDS)


def _of_controllers_never_led(
    seen: ClusterObservation, spec: ClusterSpec, gone: Collection[int], not_deletable: str | None
) -> RollbackPlan:
    risks = (gone_risk(gone),) if gone else ()
    obstacles = [each for each in (why_no_fence(seen, spec, gone=gone), not_deletable) if each]
    if obstacles:
        return RollbackPlan(False, "; ".join(obstacles), (), risks)
    assert was_read(seen.zookeeper) and seen.zookeeper.controller is not None
    why = (
        "the controllers show no leader, and nothing was copied: broker"
        f" {seen.zookeeper.controller.broker_id} holds /controller"
    )
    steps = tuple(_named(text, seen, None) for text in NEVER_ELECTED)
    return RollbackPlan(True, why, steps, risks, seconds=_seconds(seen, spec, Phase.PRE_MIGRATION))


def quorum_is_lost(seen: ClusterObservation) -> str | None:
    """What shows that controllers of a migration should run and none leads: /controller names a KRaft controller, or
    brokers are in KRaft mode. None where nothing shows it, or where one leads (``leads_unread``).
    """
    running = sum(c.running is True for c in seen.controllers.values())
    unseen = sum(not was_read(c.running) for c in seen.controllers.values())
    if was_read(seen.quorum):
        if (running + unseen) * 2 > len(seen.controllers):
            return None
        return (
            f"only {running} of {len(seen.controllers)} controllers run, which is no majority: the leader resigns in a"
            " few seconds"
        )
    if leads_unread(seen) is not None:
        return None
    if (
        was_read(seen.zookeeper)
        and seen.zookeeper.controller is not None
        and seen.zookeeper.controller.kraft_controller_epoch >= 0
    ):
        return f"/controller names KRaft controller {seen.zookeeper.controller.broker_id}, and no quorum has a leader"
    in_kraft = seen.brokers_in(BrokerMode.KRAFT)
    return f"{nodes('broker', in_kraft, 'is')} in KRaft mode, and no quorum has a leader" if in_kraft else None


def leads_unread(seen: ClusterObservation) -> int | None:
    """The controller whose own gauge says that it leads, where the quorum can't be read. None where no majority of the
    controllers runs and answers: a leader resigns a few seconds later, and its gauge shows it until then.
    """
    each = seen.controllers.values()
    answer = sum(c.running is not False and not c.silent for c in each)
    if was_read(seen.quorum) or 2 * answer <= len(each):
        return None
    return next((c.id for c in each if was_read(c.metrics) and c.metrics.active), None)


def _obstacles(
    seen: ClusterObservation, spec: ClusterSpec, phase: Phase, dual_write_stopped: str | None, gone: Collection[int]
) -> Iterable[str]:
    """Each reason for a no."""
    if isinstance(seen.zookeeper, Unread):
        yield f"ZooKeeper can't be read ({seen.zookeeper.reason})"
    if phase is not Phase.PRE_MIGRATION and isinstance(seen.quorum, Unread):
        yield f"the controller quorum can't be read ({seen.quorum.reason})"
    fence = why_no_fence(seen, spec, gone=gone)
    if fence:
        yield fence
    if end_untold(seen):
        yield f"{UNTOLD}. {TELL[0].upper()}{TELL[1:]}"
    elif phase is not Phase.PRE_MIGRATION and was_read(seen.zookeeper) and was_read(seen.quorum):
        yield from one_controller(seen.zookeeper, seen.quorum)
    unflagged = seen.controllers_in(ControllerMode.KRAFT)
    if unflagged:
        yield (
            f"{nodes('controller', unflagged, 'runs')} without the migration flag: the first time"
            f" {by_number(unflagged, 'it leads', 'one of them leads')}, the migration is final; restart"
            f" {by_number(unflagged, 'it', 'them')} with zookeeper.metadata.migration.enable=true"
        )
    if phase is not Phase.PRE_MIGRATION and dual_write_stopped:
        yield f"ZooKeeper is no longer written, so what was acknowledged since then would be lost: {dual_write_stopped}"


def _not_told(seen: ClusterObservation, phase: Phase, dual_write_unread: str | None) -> Iterable[str]:
    """What was not read and could be a no."""
    for each in seen.controllers.values():
        if each.running is True and isinstance(each.mode, Unread):
            yield f"nothing shows whether controller {each.id} runs with the migration flag ({each.mode.reason})"
    if phase is not Phase.PRE_MIGRATION and dual_write_unread:
        yield f"nothing shows whether ZooKeeper is still written: {dual_write_unread}"


def _settling(seen: ClusterObservation) -> Iterable[str]:
    """The steps that an interrupted rollback still has to do once a ZooKeeper controller has the controller role."""
    epochs = too_low_in_zookeeper(seen)
    if epochs:
        yield (
            f"{Step.LEAVE_KRAFT.value}: set /controller_epoch from {epochs.claimed} to {epochs.greatest}, delete"
            f" /controller, let a broker be elected: {epochs.above.count} of {epochs.states} partition states have a"
            " greater controller epoch, and the ZooKeeper controller can elect no leader for them"
        )
    elif cut_off := cut_off_by_epoch(seen):
        yield f"{Step.LEAVE_KRAFT.value}: delete /controller, let a broker be elected: {cut_off}"
    left = [b.id for b in seen.brokers.values() if b.mode == BrokerMode.HYBRID]
    if left:
        yield (
            f"{Step.ROLL_BROKERS_TO_ZOOKEEPER.value}: {nodes('broker', left)}:"
            f" {TABLE.edge(Step.ROLL_BROKERS_TO_ZOOKEEPER).does}"
        )
        yield f"{Step.SET_CONTROLLERS_ASIDE.value}: {TABLE.edge(Step.SET_CONTROLLERS_ASIDE).does}"


def _named(step: str, seen: ClusterObservation, lies_behind: str | None) -> str:
    """The step with the brokers that it would restart, or the partitions whose version it would raise."""
    name, _, does = step.partition(": ")
    match name:
        case Step.ROLL_BROKERS_BACK_TO_HYBRID.value:
            brokers = seen.brokers_in(BrokerMode.KRAFT)
        case Step.ROLL_BROKERS_TO_ZOOKEEPER.value:
            brokers = tuple(b.id for b in seen.brokers.values() if b.mode != BrokerMode.ZOOKEEPER)
        case Step.LEAVE_KRAFT.value:
            epochs = set_by_leaving(seen)
            return ". ".join(
                [step, *([f"Epochs: {epochs}"] if epochs else []), *([f"Now: {lies_behind}"] if lies_behind else [])]
            )
        case _:
            return step
    return f"{name}: {nodes('broker', brokers)}: {does}" if brokers else f"{name}: nothing to do"


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
