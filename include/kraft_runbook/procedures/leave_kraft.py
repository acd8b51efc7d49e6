"""Leaving KRaft as one act: check the right to delete, let the brokers catch up, fence, drain, prove, stop, delete, and
wait until every broker follows the ZooKeeper controller.

It can be interrupted anywhere and begun again. Before the znodes are deleted, started controllers resume dual write.
After that only the waits are left.

The deletion also sets /controller_epoch so that the ZooKeeper controller's epoch is above every partition state's
(``metadata.znodes.state_epochs``). The states are read before the fence, so that they take none of the time without a
controller. KRaft writes further states until the drain is over, but none with more than the raft epoch of the
controller in /controller, which is read inside the fence, or than the quorum's. Nobody can exceed that unseen: a
controller that claimed the role later would change the version of /controller_epoch, which the transaction checks, and
from the stop of the last controller on none is started.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from typing import TypeVar

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ZkMigrationState
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed, Unreachable
from kraft_runbook.io.kafka.broker_backlog import await_taken_in
from kraft_runbook.io.kafka.metadata_quorum import QuorumConnection, describe_quorum, read_cluster_records
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.handover import (
    NothingDeleted,
    read_controller_znodes,
    require_deletable,
    require_epoch_settable,
)
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.znodes.state_epochs import NONE
from kraft_runbook.migration.leaving import Departure, FencePlan
from kraft_runbook.migration.never_copied import why_not_proven
from kraft_runbook.parity.final_proof import FinalProof
from kraft_runbook.parity.state_versions import Behind
from kraft_runbook.procedures.give_back import (
    Departed,
    Tell,
    give_back,
    greatest_state_epoch,
    intend,
    now,
    see_brokers_follow,
    unheard,
)
from kraft_runbook.procedures.quorum_fence import QuorumFence
from kraft_runbook.procedures.quorum_logs import read_logs
from kraft_runbook.procedures.raise_versions import prove_and_raise, raise_all
from kraft_runbook.procedures.resume_departure import Note

DRAIN_SECONDS = 2.5
"""Seconds that the active controller may take to write the rest to ZooKeeper. Without a majority it stays leader for
about 3.2 s (its check-quorum timeout, measured on 3.9.2).
"""
TAKEN_IN_SECONDS = 60.0
"""Seconds that the fence waits for brokers that still apply the quorum's queued updates. Without that wait they would
make the window longer.
"""
PROMPT_SECONDS = 1.0
"""Seconds. A broker that knows the newest change within this time has no update queued."""
POLL = 0.01
LOOK = 0.05
"""Seconds between two looks at the active controller during the proof."""
ELECTIONS = 3
"""How often leaving begins again around another controller."""
LIFTED = (
    "the fence is lifted: the controllers start again, dual write goes on, nothing is lost. Clear this task to try"
    " again"
)

T = TypeVar("T")


class _NotFenced(Exception):
    """The active controller of the plan no longer answers as the leader. Nothing was stopped."""

    def __init__(self, error: Unreachable) -> None:
        self.error = error


def leave_kraft(
    spec: ClusterSpec,
    plan: FencePlan,
    *,
    proven_since: int | None,
    secrets: Secrets,
    tell: Tell,
    known_within: float = 120.0,
    still_mine: Callable[[], None] | None = None,
    departing: Departed | None = None,
    departed: Departed | None = None,
) -> Departure:
    """Take the controller role from the quorum and wait until every broker follows the ZooKeeper controller.

    ``proven_since``: the metadata offset of the last full parity; None if the copy was never made, so that ZooKeeper
    alone holds the metadata. ``still_mine``: called right before the fence is raised, after everything that may take
    long; if it raises, nothing was stopped. ``departing``, ``departed``: as ``Departed`` says. If another controller is
    elected before the fence, leaving begins again around that one. Raises Refused, with nothing stopped, if this tool
    may not delete the znodes. Raises StepFailed, with the fence lifted and nothing deleted, if the rest was not written
    in time or differs from the log.
    """
    raised: list[Behind] = []
    for _ in range(ELECTIONS):
        try:
            return _leave(
                spec,
                plan,
                proven_since=proven_since,
                secrets=secrets,
                tell=tell,
                known_within=known_within,
                still_mine=still_mine or _nothing,
                departing=departing or unheard,
                departed=departed or unheard,
                raised=raised,
            )
        except _NotFenced as early:
            leader = describe_quorum(spec, secrets=secrets).leader_id
            if leader == plan.active:
                raise early.error from None
            tell(f"controller {leader} was elected before the fence; nothing was stopped; beginning again around it")
            plan = plan.led_by(leader)
    raise StepFailed(
        f"another controller was elected before each of {ELECTIONS} fences; nothing was stopped",
        way_out="find the cause of the elections in the controllers' logs, then clear this task",
    )


def _leave(
    spec: ClusterSpec,
    plan: FencePlan,
    *,
    proven_since: int | None,
    secrets: Secrets,
    tell: Tell,
    known_within: float,
    still_mine: Callable[[], None],
    departing: Departed,
    departed: Departed,
    raised: list[Behind],
) -> Departure:
    moments = Departure(began_at=now(), gone=plan.gone)
    with contextlib.ExitStack() as stack:
        zookeeper = stack.enter_context(ZookeeperReader(spec.ensemble, secrets=secrets))
        require_deletable(zookeeper)
        greatest = greatest_state_epoch(spec, secrets=secrets)
        _see_settable(zookeeper, greatest, tell)
        quorum_epoch = NONE
        proof = None
        if plan.active is not None and proven_since is not None:
            proof = stack.enter_context(FinalProof(spec, since=proven_since, secrets=secrets))
            # before the fence, since that may take long and its hosts wait for a limited time
            raised += raise_all(proof, tell=tell)
        fence = stack.enter_context(QuorumFence(spec, plan, secrets=secrets, tell=tell))
        if plan.active is None:
            moments = _without_a_quorum(spec, fence, zookeeper, moments, secrets, tell, still_mine)
        else:
            try:
                quorum = stack.enter_context(QuorumConnection(spec, plan.active, secrets=secrets))
                quorum.high_watermark()
            except Unreachable as error:
                raise _NotFenced(error) from None
            _see_settable(zookeeper, greatest, _silent, quorum_epoch=quorum.leader_epoch)
            fence.ready()
            if proof is not None:
                moments = replace(moments, ready_at=now())
                _await_brokers(spec, proof, secrets, tell)
                moments = replace(moments, caught_up_at=now())
            still_mine()
            try:
                quorum.high_watermark()
            except Unreachable as error:
                raise _NotFenced(error) from None
            fence.raise_it()
            moments = replace(moments, fenced_at=now())
            if proof is None:
                moments = _see_no_copy(spec, fence, quorum, zookeeper, moments, secrets, tell)
            else:
                moments = _drain_and_prove(quorum, proof, zookeeper, moments, raised)
            quorum_epoch = quorum.leader_epoch
        znodes = read_controller_znodes(zookeeper)
        if znodes.written_to is not None and znodes.written_to.kraft_metadata_offset != moments.migration_offset:
            raise StepFailed("/migration moved while the quorum was fenced: another controller writes", way_out=LIFTED)
        moments = intend(znodes, max(greatest, quorum_epoch if znodes.held_by_kraft else NONE), moments)
        note = Note(partial(departing if "/controller" in moments.deleted else unheard, moments))
        stack.callback(note.close)
        fence.leave()
        moments = replace(moments, stopped_at=now())
        if not note.look():
            tell("the record of what was measured so far is not written yet; it goes on beside the deletion")
        tell("the quorum is stopped; deleting /controller and /migration")
        fence.nobody_may_return()
        try:
            moments = give_back(zookeeper, znodes, moments, tell)
        except NothingDeleted:
            fence.nobody_may_return(settled=False)
            raise
        fence.finish()
        note.end()
        departed(moments)
        return see_brokers_follow(
            spec, zookeeper, moments, secrets=secrets, tell=tell, known_within=known_within, departed=departed
        )


def _see_settable(zookeeper: ZookeeperReader, greatest: int, tell: Tell, *, quorum_epoch: int = NONE) -> None:
    """Raise Refused, with nothing stopped, if /controller_epoch must be set and this tool may not write it."""
    znodes = read_controller_znodes(zookeeper)
    of_kraft = max(znodes.kraft_epoch, quorum_epoch) if znodes.held_by_kraft else NONE
    risk = require_epoch_settable(zookeeper, znodes, max(greatest, of_kraft))
    if risk:
        tell(f"{risk}: nothing must be set there now; if that changes, nothing is deleted, and the controllers start")


def _without_a_quorum(
    spec: ClusterSpec,
    fence: QuorumFence,
    zookeeper: ZookeeperReader,
    moments: Departure,
    secrets: Secrets,
    tell: Tell,
    still_mine: Callable[[], None],
) -> Departure:
    """Without a leader nothing can be acknowledged. The znodes may be deleted without a drain only if nothing ever was
    acknowledged.
    """
    znodes = read_controller_znodes(zookeeper)
    if znodes.written_to is not None:
        raise StepFailed(
            "the quorum has no leader, and ZooKeeper may lack what it last acknowledged",
            way_out=(
                "start a majority of the controllers (the rollback's restore_quorum does), so that they write the rest;"
                " then clear this task"
            ),
        )
    fence.ready()
    still_mine()
    fence.raise_it()
    moments = replace(moments, fenced_at=now())
    # Controllers without a leader may have elected one until the fence stood.
    held = znodes.held_by_kraft or read_controller_znodes(zookeeper).held_by_kraft
    return _prove_from_the_logs(spec, moments, secrets, tell) if held else moments


def _see_no_copy(
    spec: ClusterSpec,
    fence: QuorumFence,
    quorum: QuorumConnection,
    zookeeper: ZookeeperReader,
    moments: Departure,
    secrets: Secrets,
    tell: Tell,
) -> Departure:
    """Verify in the active controller's log that the copy was not completed or, if that controller dies of its copy
    first, in the logs on the hosts.
    """
    try:
        if read_cluster_records(spec, secrets=secrets).migration_state_record is ZkMigrationState.MIGRATION:
            raise StepFailed(
                "the copy was completed while the quorum was being fenced",
                way_out=f"{LIFTED}; parity is then proven first",
            )
        return replace(
            moments, drained_at=now(), high_watermark=quorum.high_watermark(), migration_offset=_offset(zookeeper)
        )
    except Unreachable as error:
        tell(f"{error.problem}: stopping it, to read the controllers' logs on their hosts")
    fence.leave()
    return _prove_from_the_logs(spec, replace(moments, migration_offset=_offset(zookeeper)), secrets, tell)


def _prove_from_the_logs(spec: ClusterSpec, moments: Departure, secrets: Secrets, tell: Tell) -> Departure:
    logs = read_logs(spec, stop=True, gone=moments.gone, secrets=secrets, tell=tell)
    why_not = why_not_proven(logs, spec.controller_ids)
    if why_not:
        raise StepFailed(
            f"it can't be proven that the copy was never completed: {why_not}",
            way_out=f"{LIFTED}; restore_quorum then starts them first",
        )
    return replace(moments, proven_at=now(), logs_read=tuple(map(str, logs)))


def _await_brokers(spec: ClusterSpec, proof: FinalProof, secrets: Secrets, tell: Tell) -> None:
    """Let the brokers apply the quorum's queued updates before the fence, while metadata can still be changed."""
    behind = await_taken_in(spec, proof.newest_topics, secrets=secrets, within=TAKEN_IN_SECONDS, prompt=PROMPT_SECONDS)
    if behind:
        tell(
            f"{nodes('broker', behind, 'does')} not know the newest topics after {TAKEN_IN_SECONDS:.0f} s; the"
            " window will be longer"
        )


def _drain_and_prove(
    quorum: QuorumConnection,
    proof: FinalProof,
    zookeeper: ZookeeperReader,
    moments: Departure,
    raised: list[Behind],
) -> Departure:
    """Wait until ZooKeeper holds everything committed, and prove it for every changed key. Raises StepFailed if either
    fails.
    """
    deadline = time.monotonic() + DRAIN_SECONDS
    try:
        while True:
            high_watermark = quorum.high_watermark()
            offset = _offset(zookeeper)
            if offset == high_watermark - 1 == quorum.high_watermark() - 1:
                break
            if time.monotonic() > deadline:
                raise StepFailed(
                    f"ZooKeeper was not written up to offset {high_watermark - 1} within {DRAIN_SECONDS:g} s of the"
                    f" fence: /migration is at {offset}",
                    way_out=f"{LIFTED}; if that fails too, wait for a time with fewer changes, or see KRB-DW-001",
                )
            time.sleep(POLL)
        moments = replace(moments, drained_at=now(), high_watermark=high_watermark, migration_offset=offset)

        def prove() -> int:
            proof.read_on(high_watermark)
            return prove_and_raise(proof, zookeeper, raised)

        touched = _while_it_leads(quorum, high_watermark, prove)
    except Unreachable as error:
        raise StepFailed(f"the drain could not be proven: {error.problem}", way_out=LIFTED) from None
    return replace(moments, proven_at=now(), touched_keys=touched, raised=tuple(map(str, raised)))


def _while_it_leads(quorum: QuorumConnection, high_watermark: int, prove: Callable[[], T]) -> T:
    """The proof's result, if the active controller leads and commits nothing until the proof's end.

    Raises Unreachable as soon as the controller no longer leads, without waiting for the proof, which would run into
    its timeouts without a leader; StepFailed as soon as something is committed.
    """
    beside = ThreadPoolExecutor(1, "final-proof")
    try:
        proving = beside.submit(prove)
        while True:
            done, _ = wait([proving], timeout=LOOK)
            if quorum.high_watermark() != high_watermark:
                raise StepFailed(
                    "the high watermark moved though the quorum was fenced: a controller that should be stopped runs",
                    way_out=LIFTED,
                )
            if done:
                return proving.result()
    finally:
        beside.shutdown(wait=False)


def _nothing() -> None: ...


def _silent(_: str) -> None: ...


def _offset(zookeeper: ZookeeperReader) -> int | None:
    written = read_controller_znodes(zookeeper).written_to
    return written.kraft_metadata_offset if written else None
