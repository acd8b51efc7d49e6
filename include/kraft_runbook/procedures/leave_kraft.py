"""Leaving KRaft, as one act: see that it may delete, let the brokers catch up, fence, drain, prove, stop, delete, and
see every broker follow its ZooKeeper controller.

Interrupted anywhere, it is begun again from what is true: before the znodes are deleted, started controllers resume the
dual write; after that, only the waits are left.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from kraft_runbook.cluster.observation import ZkMigrationState
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed, Unreachable
from kraft_runbook.io.kafka.broker_backlog import await_taken_in
from kraft_runbook.io.kafka.metadata_quorum import QuorumConnection, describe_quorum, read_cluster_records
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.handover import (
    NothingDeleted,
    await_election,
    leave_office,
    read_office,
    require_deletable,
)
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.migration.leaving import Departure, FencePlan
from kraft_runbook.migration.never_copied import why_not_proven
from kraft_runbook.parity.final_proof import FinalProof
from kraft_runbook.parity.state_versions import Behind
from kraft_runbook.procedures.known_controller import await_known
from kraft_runbook.procedures.quorum_fence import QuorumFence
from kraft_runbook.procedures.quorum_logs import read_logs

DRAIN_SECONDS = 2.5
"""How long the active controller may take to write the rest to ZooKeeper: it leads on for about 3.2 s without a
majority (its check-quorum time-out).
"""
TAKEN_IN_SECONDS = 60.0
"""How long the fence waits for brokers that still take in what the quorum told them: the window would be that much
longer.
"""
PROMPT_SECONDS = 1.0
"""A broker that knows of the newest change within this time has nothing left to take in."""
POLL = 0.01
LOOK = 0.05
"""Seconds between two looks at the active controller while the proof goes on."""
ELECTIONS = 3
"""How often the leave is begun again around another controller."""
LIFTED = (
    "the fence is lifted: the controllers start again, dual write goes on, nothing is lost. Clear this task to try"
    " again"
)

T = TypeVar("T")
Tell = Callable[[str], None]


class _NotFenced(Exception):
    """The controller that was to stay did not answer as the leader, before anything was stopped."""

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
) -> Departure:
    """Take the office from the quorum and see every broker follow its ZooKeeper controller.

    ``proven_since``: the offset of the last full parity; None where the copy was never made, so that ZooKeeper is still
    the only truth. ``still_mine``: called right before the fence is raised, after all that may take long; where it
    raises, nothing was stopped. Where another controller is elected before the fence, it is begun again around that
    one. Raises Refused, with nothing stopped, where this tool may not delete what it has to; StepFailed with the fence
    lifted where the rest was not written in time or is not what the log says; nothing was deleted then.
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
                raised=raised,
            )
        except _NotFenced as early:
            leader = describe_quorum(spec, secrets=secrets).leader_id
            if leader == plan.active:
                raise early.error from None
            tell(f"controller {leader} was elected before the fence; nothing was stopped: beginning again around it")
            plan = plan.led_by(leader)
    raise StepFailed(
        f"another controller was elected before each of {ELECTIONS} fences; nothing was stopped",
        way_out="find out why the quorum elects so often (the controllers' logs), then clear this task",
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
    raised: list[Behind],
) -> Departure:
    moments = Departure(began_at=_now(), gone=plan.gone)
    with contextlib.ExitStack() as stack:
        zookeeper = stack.enter_context(ZookeeperReader(spec.ensemble, secrets=secrets))
        require_deletable(zookeeper)
        proof = None
        if plan.active is not None and proven_since is not None:
            proof = stack.enter_context(FinalProof(spec, since=proven_since, secrets=secrets, raised=raised))
            proof.raise_epochs(tell)  # as long as it takes: the fence's hosts wait for its words only so long
        fence = stack.enter_context(QuorumFence(spec, plan, secrets=secrets, tell=tell))
        if plan.active is None:
            moments = _without_a_quorum(spec, fence, zookeeper, moments, tell, still_mine)
        else:
            try:
                quorum = stack.enter_context(QuorumConnection(spec, plan.active, secrets=secrets))
            except Unreachable as error:
                raise _NotFenced(error) from None
            fence.ready()
            if proof is not None:
                moments = replace(moments, ready_at=_now())
                _await_brokers(spec, proof, secrets, tell)
                moments = replace(moments, caught_up_at=_now())
            still_mine()
            try:
                quorum.high_watermark()
            except Unreachable as error:
                raise _NotFenced(error) from None
            fence.raise_it()
            moments = replace(moments, fenced_at=_now())
            if proof is None:
                moments = _see_no_copy(spec, fence, quorum, zookeeper, moments, secrets, tell)
            else:
                moments = _drain_and_prove(quorum, proof, zookeeper, moments)
        office = read_office(zookeeper)
        if office.written_to is not None and office.written_to.kraft_metadata_offset != moments.migration_offset:
            raise StepFailed(
                "/migration moved on while the quorum was fenced: another controller writes", way_out=LIFTED
            )
        fence.leave()
        moments = replace(moments, stopped_at=_now())
        tell("the quorum is stopped; deleting its claim on ZooKeeper")
        fence.nobody_may_return()
        try:
            moments = replace(moments, deleted=leave_office(zookeeper, office), deleted_at=_now())
        except NothingDeleted:
            fence.nobody_may_return(settled=False)
            raise
        fence.finish()
        return see_brokers_follow(spec, zookeeper, moments, secrets=secrets, tell=tell, known_within=known_within)


def settle_in_zookeeper(spec: ClusterSpec, *, secrets: Secrets, tell: Tell, known_within: float) -> Departure:
    """Where ZooKeeper holds the office already and no controller runs: remove a /migration that is left, and see every
    broker follow.
    """
    with ZookeeperReader(spec.ensemble, secrets=secrets) as zookeeper:
        office = read_office(zookeeper)
        deleted = () if office.held_by_kraft else leave_office(zookeeper, office)
        return see_brokers_follow(
            spec,
            zookeeper,
            Departure(began_at=_now(), deleted=deleted),
            secrets=secrets,
            tell=tell,
            known_within=known_within,
        )


def see_brokers_follow(
    spec: ClusterSpec,
    zookeeper: ZookeeperReader,
    moments: Departure,
    *,
    secrets: Secrets,
    tell: Tell,
    known_within: float,
) -> Departure:
    """Wait for ZooKeeper's election and for every broker that runs to know who won."""
    elected = await_election(zookeeper, spec, within=30.0)
    moments = replace(moments, elected_at=_now(), controller=elected)
    tell(f"broker {elected} was elected controller")
    ended = await_known(spec, elected, secrets=secrets, within=known_within)
    tell(f"every broker that runs knows controller {elected}" if ended else f"every broker knows controller {elected}")
    if ended:
        tell(
            f"broker {', '.join(map(str, ended))} does not run: nothing of it could hang; it is started in ZooKeeper"
            " mode before another is stopped"
        )
    return replace(moments, known_at=_now())


def _without_a_quorum(
    spec: ClusterSpec,
    fence: QuorumFence,
    zookeeper: ZookeeperReader,
    moments: Departure,
    tell: Tell,
    still_mine: Callable[[], None],
) -> Departure:
    """No leader: nothing can be acknowledged. Only where nothing ever was may the claim go without a drain."""
    office = read_office(zookeeper)
    if office.written_to is not None:
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
    moments = replace(moments, fenced_at=_now())
    return _prove_from_the_logs(spec, moments, tell) if office.held_by_kraft else moments


def _see_no_copy(
    spec: ClusterSpec,
    fence: QuorumFence,
    quorum: QuorumConnection,
    zookeeper: ZookeeperReader,
    moments: Departure,
    secrets: Secrets,
    tell: Tell,
) -> Departure:
    """See in the log of the active controller that the copy was not completed; where that one dies of its copy
    meanwhile, in the logs on the hosts.
    """
    try:
        if read_cluster_records(spec, secrets=secrets).migration_state_record is ZkMigrationState.MIGRATION:
            raise StepFailed(
                "the copy was completed while the quorum was being fenced",
                way_out=f"{LIFTED}: parity is proven first then",
            )
        return replace(
            moments, drained_at=_now(), high_watermark=quorum.high_watermark(), migration_offset=_offset(zookeeper)
        )
    except Unreachable as error:
        tell(f"{error.problem}: stopping it, to read the controllers' logs on their hosts")
    fence.leave()
    return _prove_from_the_logs(spec, replace(moments, migration_offset=_offset(zookeeper)), tell)


def _prove_from_the_logs(spec: ClusterSpec, moments: Departure, tell: Tell) -> Departure:
    logs = read_logs(spec, stop=True, gone=moments.gone, tell=tell)
    why_not = why_not_proven(logs, spec.controller_ids)
    if why_not:
        raise StepFailed(
            f"that the copy was never completed can't be proven: {why_not}",
            way_out=f"{LIFTED}: restore_quorum brings them back first",
        )
    return replace(moments, proven_at=_now(), logs_read=tuple(map(str, logs)))


def _await_brokers(spec: ClusterSpec, proof: FinalProof, secrets: Secrets, tell: Tell) -> None:
    """Let the brokers take in what the quorum told them while metadata can still be changed, rather than while nobody
    can change any.
    """
    behind = await_taken_in(spec, proof.newest_topics, secrets=secrets, within=TAKEN_IN_SECONDS, prompt=PROMPT_SECONDS)
    if behind:
        tell(
            f"broker {', '.join(map(str, behind))} does not know the newest topics after {TAKEN_IN_SECONDS:.0f} s; the"
            " window will be longer for it"
        )


def _drain_and_prove(
    quorum: QuorumConnection, proof: FinalProof, zookeeper: ZookeeperReader, moments: Departure
) -> Departure:
    """Wait until ZooKeeper holds everything that was committed, and prove it of what was touched. Raises StepFailed
    when that does not come about.
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
                    way_out=f"{LIFTED}; if it persists, wait for a quiet hour, or see KRB-DW-001",
                )
            time.sleep(POLL)
        moments = replace(moments, drained_at=_now(), high_watermark=high_watermark, migration_offset=offset)

        def prove() -> int:
            proof.read_on(high_watermark)
            return proof.compare(zookeeper)

        touched = _while_it_leads(quorum, high_watermark, prove)
    except Unreachable as error:
        raise StepFailed(f"the drain could not be proven: {error.problem}", way_out=LIFTED) from None
    return replace(moments, proven_at=_now(), touched_keys=touched, raised=tuple(map(str, proof.raised)))


def _while_it_leads(quorum: QuorumConnection, high_watermark: int, prove: Callable[[], T]) -> T:
    """The proof's result, as long as the active controller leads and commits nothing, to the end of it.

    Raises Unreachable as soon as it does not lead any more, without waiting for the proof, which would run into its
    time-outs while nobody leads; StepFailed as soon as something was committed.
    """
    beside = ThreadPoolExecutor(1, "final-proof")
    try:
        proving = beside.submit(prove)
        while True:
            done, _ = wait([proving], timeout=LOOK)
            if quorum.high_watermark() != high_watermark:
                raise StepFailed(
                    "the high watermark moved though the quorum was fenced: a controller runs that was to be stopped",
                    way_out=LIFTED,
                )
            if done:
                return proving.result()
    finally:
        beside.shutdown(wait=False)


def _nothing() -> None: ...


def _offset(zookeeper: ZookeeperReader) -> int | None:
    written = read_office(zookeeper).written_to
    return written.kraft_metadata_offset if written else None


def _now() -> datetime:
    return datetime.now(UTC)
