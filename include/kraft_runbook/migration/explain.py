"""An observed cluster in words: its phase, what it waits for, and what an operator can do now, forward and back."""

from __future__ import annotations

from collections.abc import Iterable

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, unread_parts, was_read
from kraft_runbook.cluster.phases import Phase, PhaseReading, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration import without_zookeeper
from kraft_runbook.migration.checks.catalogue import CHECKS, DUAL_WRITING, SOAK
from kraft_runbook.migration.checks.liveness import dual_write_liveness
from kraft_runbook.migration.conditions import BROKER_IN_SYNC, BROKER_REGISTERED_IN_KRAFT, FINALIZED, METADATA_COPIED
from kraft_runbook.migration.never_copied import may_have_died_in_the_copy
from kraft_runbook.migration.silent_nodes import name_silent, silent_controllers
from kraft_runbook.migration.transitions import TABLE
from kraft_runbook.migration.way_back import quorum_is_lost, way_back
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.conditions import Progress
from kraft_runbook.runbook.explanation import Explanation, is_answerable, not_looked_at, told

TOLD_BY_THE_PHASE = frozenset({"KRB-PRE-001", "KRB-PRE-002", "KRB-PRE-080", "KRB-PRE-081"})
"""Checks that would only repeat the phase and its reasons, or that there is nothing to migrate."""


def explain(seen: ClusterObservation, spec: ClusterSpec, *, earlier: ClusterObservation | None = None) -> Explanation:
    """An observation in words; a LIVE one is enough. ``earlier``: an observation some seconds before, without which
    dual write and changing topics can't be judged.
    """
    reading = detect_phase(seen)
    if not seen.has_zookeeper:
        return _without_zookeeper(seen, earlier, spec, reading)
    looked_at = tuple(
        each
        for each in CHECKS.applicable(reading.phase, SOAK if reading.phase in DUAL_WRITING else None)
        if is_answerable(each, seen, earlier)
    )
    blocking = [
        result
        for result in (each.run(seen, spec, earlier) for each in looked_at if each.code not in TOLD_BY_THE_PHASE)
        if result.blocks
    ]
    stopped = unread = None
    if earlier is None:
        unread = "it takes two looks"
    if earlier is not None and reading.phase in DUAL_WRITING and not quorum_is_lost(seen):
        alive = dual_write_liveness(earlier, seen)
        blocking += [alive] if alive.blocks else []
        stopped = alive.evidence if alive.verdict is Verdict.FAIL else None
        unread = alive.evidence if alive.verdict is Verdict.UNKNOWN else None
    rollback = way_back(seen, spec, dual_write_stopped=stopped, dual_write_unread=unread)
    return Explanation(
        cluster=spec.name,
        phase=reading.phase,
        because=reading.reasons,
        means=_means(seen, reading.phase),
        waits_for=_waits(seen, earlier or seen, spec, reading.phase),
        forward=_forward(seen, earlier or seen, spec, reading.phase),
        back=rollback.steps,
        rollback=rollback,
        problems=told(blocking)
        + tuple(_may_be_cut_off(seen, reading.phase))
        + tuple(_may_lack_ids(seen, reading.phase)),
        unread=unread_parts(seen),
        not_looked_at=not_looked_at(CHECKS, reading.phase, seen),
    )


def _without_zookeeper(
    seen: ClusterObservation, earlier: ClusterObservation | None, spec: ClusterSpec, reading: PhaseReading
) -> Explanation:
    """Where there is no ZooKeeper: the cluster's health, and that there is nothing to migrate."""
    phase = reading.phase
    # Where the phase is unknown, the parts that checks of a ZooKeeper cluster need could not be read anyway.
    as_in = Phase.KRAFT if phase is Phase.UNKNOWN else phase
    looked_at = [
        each
        for each in CHECKS.applicable(as_in, None)
        if each.code not in TOLD_BY_THE_PHASE and is_answerable(each, seen, earlier)
    ]
    blocking = [result for result in (each.run(seen, spec, earlier) for each in looked_at) if result.blocks]
    return Explanation(
        cluster=spec.name,
        phase=phase,
        because=(*reading.reasons, *without_zookeeper.health(seen, spec)),
        means=without_zookeeper.means(seen, phase),
        waits_for=without_zookeeper.waits(seen, earlier or seen, spec),
        forward=without_zookeeper.forward(seen, earlier or seen, spec, phase),
        back=(),
        rollback=way_back(seen, spec),
        problems=told(blocking),
        unread=unread_parts(seen),
        not_looked_at=not_looked_at(CHECKS, as_in, seen),
    )


def _means(seen: ClusterObservation, phase: Phase) -> str:
    if may_have_died_in_the_copy(seen):
        return (
            "No controller quorum has a leader, and nothing shows that the metadata copy was completed: no topic,"
            " config, ACL or leader can change."
        )
    if _leaderless(seen, phase):
        return (
            "The metadata was copied, but the controller quorum has no leader: no topic, config, ACL or leader can"
            " change until it has one."
        )
    left = _left_behind(seen, phase)
    if not left:
        return TABLE.stage(phase).means
    return (
        f"A controller without the migration flag finalized the migration too early: broker {left} is not in KRaft"
        " mode. It goes on serving, but ZooKeeper lacks everything created since then. Putting the flag back does not"
        " help."
    )


def _left_behind(seen: ClusterObservation, phase: Phase) -> str:
    """The brokers that are not in KRaft mode though the migration is final; empty: none."""
    return ", ".join(
        str(b.id)
        for b in seen.brokers.values()
        if phase is Phase.FINALIZED and was_read(b.mode) and b.mode is not BrokerMode.KRAFT
    )


def _leaderless(seen: ClusterObservation, phase: Phase) -> str | None:
    """What shows that a KRaft controller should lead and none does; None where nothing shows it."""
    hang, down = len(silent_controllers(seen)), sum(c.running is False for c in seen.controllers.values())
    leads = any(was_read(c.metrics) and c.metrics.active for c in seen.controllers.values())
    # Where hanging controllers leave no majority, they are the reason that the phase is unknown.
    hidden = phase is Phase.UNKNOWN and hang and 2 * (hang + down) >= len(seen.controllers) and not leads
    return quorum_is_lost(seen) if phase in DUAL_WRITING or hidden or may_have_died_in_the_copy(seen) else None


def _may_lack_ids(seen: ClusterObservation, phase: Phase) -> Iterable[str]:
    """After the metadata copy: a broker that is out of sync in most of the partitions may have refused the first
    LeaderAndIsr (KAFKA-21022), which only its host shows.
    """
    if phase is not Phase.HYBRID or not was_read(seen.topics):
        return
    out = [i for i, n in seen.topics.out_of_sync_by_broker.items() if 2 * n > seen.topics.partition_count]
    if out:
        yield (
            f"broker {', '.join(map(str, sorted(out)))} is out of sync in most of the partitions: if that lasts, it may"
            " have a replica without partition.metadata, for which it refuses what the controller sends. What to do:"
            " kraft-runbook preflight examines the hosts and names it (KRB-PRE-085)"
        )


def _may_be_cut_off(seen: ClusterObservation, phase: Phase) -> Iterable[str]:
    """After a rollback: the partitions led by a broker that lost a thread to its controller stay out of sync
    (``kraft_runbook.migration.controller_threads``).
    """
    left = seen.brokers_in(BrokerMode.HYBRID) if phase is Phase.ZOOKEEPER else ()
    if left and was_read(seen.topics) and any(seen.topics.out_of_sync_by_broker.values()):
        yield (
            f"replicas are out of sync, and broker {', '.join(map(str, left))} is in migration mode: if that lasts, the"
            " broker may have lost a thread to its controller. What to do: kraft-runbook preflight examines the hosts"
            " and names it (KRB-PRE-057); clear restart_cut_off_brokers (docs/rollback.md)"
        )


def _down(seen: ClusterObservation) -> str:
    return ", ".join(str(c.id) for c in seen.controllers.values() if c.running is False)


def _unflagged(seen: ClusterObservation) -> str:
    return ", ".join(str(c.id) for c in seen.controllers.values() if c.mode == ControllerMode.KRAFT)


def _waits(seen: ClusterObservation, earlier: ClusterObservation, spec: ClusterSpec, phase: Phase) -> tuple[str, ...]:
    if phase in (Phase.PRE_MIGRATION, Phase.HYBRID) and _unflagged(seen):
        return (
            (
                f"an operator: restart controller {_unflagged(seen)} with the migration flag before it is elected, or"
                " the migration is final"
            ),
        )
    lost = _leaderless(seen, phase)
    if lost:
        return (_without_a_leader(seen, lost),)
    silent = name_silent(seen, earlier)
    if silent and phase is not Phase.UNKNOWN:
        return (
            f"{silent} to answer: the port accepts connections, but no response comes",
            *_waits_of(seen, earlier, spec, phase),
        )
    return _waits_of(seen, earlier, spec, phase)


def _without_a_leader(seen: ClusterObservation, lost: str) -> str:
    silent = ", ".join(map(str, silent_controllers(seen)))
    found = ((_down(seen), "does not run"), (silent, "runs and does not answer"))
    if missing := [f"controller {who} {what}" for who, what in found if who]:
        return f"a majority of the controllers: {', '.join(missing)}; {lost}"
    return f"a leader of the controller quorum: {lost}"


def _waits_of(
    seen: ClusterObservation, earlier: ClusterObservation, spec: ClusterSpec, phase: Phase
) -> tuple[str, ...]:
    """What the cluster waits for in a phase, if every running node answers: the table's conditions and gates. Two
    cases that only a change by hand brings about come first.
    """
    if phase in (Phase.UNKNOWN, Phase.KRAFT):
        return ("an operator: what is named under Seen",)
    if phase is Phase.FINALIZED or (phase is Phase.DUAL_WRITE and _unflagged(seen)):
        left = [BROKER_REGISTERED_IN_KRAFT.progress(seen, spec, node_id=i) for i in spec.broker_ids]
        final = FINALIZED.progress(seen, spec)
        return _missing(*left, final) if phase is Phase.FINALIZED else _missing(*left) or _missing(final)
    for awaited in TABLE.awaited(phase):
        if isinstance(awaited, str):
            return (f"an operator: {awaited}",)
        if awaited is BROKER_IN_SYNC or (awaited.of_a_node and phase is Phase.HYBRID):
            continue  # checks report the first; the copy's own condition asks every broker, dead nodes first
        nodes = spec.broker_ids if awaited.of_a_node else (None,)
        missing = _missing(
            *(
                awaited.progress(seen, spec, node_id=node, earlier=earlier if awaited is METADATA_COPIED else None)
                for node in nodes
            )
        )
        if missing:
            return missing
    return ()


def _missing(*progress: Progress) -> tuple[str, ...]:
    return tuple(p.waiting_for.removeprefix("waiting for ") for p in progress if not p.done)


def _forward(seen: ClusterObservation, earlier: ClusterObservation, spec: ClusterSpec, phase: Phase) -> tuple[str, ...]:
    if _nothing_runs(seen):
        controllers, brokers = ", ".join(map(str, spec.controller_ids)), ", ".join(map(str, spec.broker_ids))
        return (
            (
                f"nothing of the cluster runs: start ZooKeeper first, then controller {controllers} if provisioned,"
                f" then broker {brokers}, each with its present configuration; after finalization leave ZooKeeper out."
                " A broker that ends again with 'node already exists' was started before its old session had ended"
                " (zookeeper.session.timeout.ms, 18 s by default): start it once more. The phase can be observed once"
                " they run"
            ),
        )
    if phase in (Phase.PRE_MIGRATION, Phase.HYBRID) and _unflagged(seen):
        return (
            (
                f"restart controller {_unflagged(seen)} with the migration flag before it is elected, and no other"
                " controller before that: each restart may cause an election (docs/finalization.md)"
            ),
        )
    if may_have_died_in_the_copy(seen) and _down(seen):
        return (
            (
                "nothing shows that the metadata copy was completed: the controllers may have died in it. Look for"
                " 'Aborting the metadata migration' in their logs, correct what it names, then start controller"
                f" {_down(seen)}: it copies again, and ends again if anything is left to correct"
            ),
        )
    if _leaderless(seen, phase):
        return (f"{_bring_back_a_leader(seen, spec)}. No step goes on before the quorum has a leader",)
    ended = ", ".join(str(b.id) for b in seen.brokers.values() if b.running is False)
    left = _left_behind(seen, phase)
    if left:
        return (
            (
                f"restart broker {left} in KRaft mode, one by one (docs/finalization.md): it is the only way left. Do"
                " not restart a broker in migration mode"
            ),
        )
    if ended and phase is Phase.FINALIZED:
        return (f"start broker {ended} in KRaft mode; its log says why it ended",)
    if ended and TABLE.forward_from(phase):
        return (
            f"start broker {ended} first; its log says why it ended. No other broker is restarted while one is down",
        )
    if phase is Phase.PRE_MIGRATION and _down(seen):
        return (
            (
                f"provision_controllers: go on with controller {_down(seen)}; one whose disk is empty is formatted"
                " again and catches up from the others"
            ),
        )
    if phase in DUAL_WRITING and _down(seen):
        return (
            (
                f"start controller {_down(seen)} first. If it lost its disk, clear its provision task"
                " (provision_controllers) in the migration's run: it is formatted again and catches up from the"
                " others, once a majority of the voters without it holds everything committed"
            ),
        )
    if phase is Phase.FINALIZED and _down(seen):
        return (f"start controller {_down(seen)} with its present configuration; its log says why it ended",)
    silent = name_silent(seen, earlier)
    if silent and phase is not Phase.UNKNOWN:
        return (
            (
                f"look at {silent} first: its process hangs or gets no CPU time. If it does not recover, end it and"
                " start it again. No other node is restarted before that"
            ),
        )
    not_yet = [b.id for b in seen.brokers.values() if b.mode != BrokerMode.KRAFT]
    if phase is Phase.DUAL_WRITE and not_yet:
        return (
            (
                f"roll_brokers_to_kraft: go on with broker {', '.join(map(str, not_yet))}; finalize_controllers comes"
                " after that"
            ),
        )
    return tuple(
        f"{edge.step}: {edge.does}" + ("" if edge.reversible else " (can not be undone)")
        for edge in TABLE.forward_from(phase)
    )


def _bring_back_a_leader(seen: ClusterObservation, spec: ClusterSpec) -> str:
    """What an operator does where controllers should lead and none does."""
    if _down(seen):
        return f"start controller {_down(seen)} with its present configuration; its log says why it ended"
    silent = silent_controllers(seen)
    if silent:
        return (
            f"look at controller {', '.join(map(str, silent))}: its process hangs or gets no CPU time. If it does not"
            " recover, end it and start it again"
        )
    addresses = ", ".join(each.address for each in spec.controllers)
    return (
        "every controller runs: an election takes seconds. If there is no leader after that, they can't reach each"
        f" other: look at the network between {addresses}"
    )


def _nothing_runs(seen: ClusterObservation) -> bool:
    """Whether ZooKeeper can't be read and every broker and controller is down, for example after a power cut."""
    down = [b.running is False for b in seen.brokers.values()] + [c.running is False for c in seen.controllers.values()]
    return not was_read(seen.zookeeper) and all(down)
