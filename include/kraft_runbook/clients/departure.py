"""Leaving KRaft, as one act: let the brokers catch up, fence, drain, prove, stop, delete, and see every broker follow its ZooKeeper controller.

Interrupted anywhere, it is begun again from what is true: before the znodes are deleted, started controllers resume the dual write;
after that, only the waits are left.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from kraft_runbook.clients.broker_backlog import await_taken_in
from kraft_runbook.clients.controller_knowledge import await_known
from kraft_runbook.clients.final_proof import FinalProof
from kraft_runbook.clients.metadata_quorum import QuorumConnection, read_cluster_records
from kraft_runbook.clients.quorum_fence import QuorumFence
from kraft_runbook.clients.secrets import Secrets
from kraft_runbook.clients.zookeeper import ZookeeperReader
from kraft_runbook.clients.zookeeper_handover import await_election, leave_office, read_office
from kraft_runbook.cluster import ClusterSpec
from kraft_runbook.errors import StepFailed, Unreachable
from kraft_runbook.leaving import Departure, FencePlan
from kraft_runbook.observation import ZkMigrationState

DRAIN_SECONDS = 2.5
"""How long the active controller may take to write the rest to ZooKeeper: it leads on for about 3.2 s without a majority (its check-quorum time-out)."""
TAKEN_IN_SECONDS = 60.0
"""How long the fence waits for brokers that still take in what the quorum told them: the window would be that much longer."""
PROMPT_SECONDS = 1.0
"""A broker that knows of the newest change within this time has nothing left to take in."""
POLL = 0.01
LIFTED = "the fence is lifted: the controllers start again, dual write goes on, nothing is lost. Clear this task to try again"

Tell = Callable[[str], None]


def leave_kraft(
    spec: ClusterSpec,
    plan: FencePlan,
    *,
    proven_since: int | None,
    secrets: Secrets,
    tell: Tell,
    known_within: float = 120.0,
    just_before: Callable[[], None] | None = None,
) -> Departure:
    """Take the office from the quorum and see every broker follow its ZooKeeper controller.

    ``proven_since``: the offset of the last full parity; None where the copy was never made, so that ZooKeeper is still the only truth.
    ``just_before``: called when all is ready; what it changes, the brokers take in before the fence.
    Raises StepFailed with the fence lifted where the rest was not written in time or is not what the log says; nothing was deleted then.
    """
    moments = Departure(began_at=_now())
    with contextlib.ExitStack() as stack:
        zookeeper = stack.enter_context(ZookeeperReader(spec.zookeeper, secrets=secrets))
        fence = stack.enter_context(QuorumFence(spec, plan, secrets=secrets, tell=tell))
        if plan.active is None:
            moments = _without_a_quorum(fence, zookeeper, moments)
        else:
            quorum = stack.enter_context(QuorumConnection(spec, plan.active, secrets=secrets))
            proof = stack.enter_context(FinalProof(spec, since=proven_since, secrets=secrets)) if proven_since is not None else None
            fence.ready()
            if just_before:
                just_before()
            if proof is not None:
                moments = replace(moments, ready_at=_now())
                _await_brokers(spec, proof, secrets, tell)
                moments = replace(moments, caught_up_at=_now())
            fence.raise_it()
            moments = replace(moments, fenced_at=_now())
            moments = _drain_and_prove(spec, quorum, proof, zookeeper, moments, secrets)
        office = read_office(zookeeper)
        if office.written_to is not None and office.written_to.kraft_metadata_offset != moments.migration_offset:
            raise StepFailed("/migration moved on while the quorum was fenced: another controller writes", way_out=LIFTED)
        fence.leave()
        moments = replace(moments, stopped_at=_now())
        tell("the quorum is stopped; deleting its claim on ZooKeeper")
        moments = replace(moments, deleted=leave_office(zookeeper, office), deleted_at=_now())
        return see_brokers_follow(spec, zookeeper, moments, secrets=secrets, tell=tell, known_within=known_within)


def settle_in_zookeeper(spec: ClusterSpec, *, secrets: Secrets, tell: Tell, known_within: float) -> Departure:
    """Where ZooKeeper holds the office already and no controller runs: remove a /migration that is left, and see every broker follow."""
    with ZookeeperReader(spec.zookeeper, secrets=secrets) as zookeeper:
        office = read_office(zookeeper)
        deleted = () if office.held_by_kraft else leave_office(zookeeper, office)
        return see_brokers_follow(spec, zookeeper, Departure(began_at=_now(), deleted=deleted), secrets=secrets, tell=tell, known_within=known_within)


def see_brokers_follow(spec: ClusterSpec, zookeeper: ZookeeperReader, moments: Departure, *, secrets: Secrets, tell: Tell, known_within: float) -> Departure:
    """Wait for ZooKeeper's election and for every broker to know who won."""
    elected = await_election(zookeeper, spec, within=30.0)
    moments = replace(moments, elected_at=_now(), controller=elected)
    tell(f"broker {elected} was elected controller")
    await_known(spec, elected, secrets=secrets, within=known_within)
    tell(f"every broker knows controller {elected}")
    return replace(moments, known_at=_now())


def _without_a_quorum(fence: QuorumFence, zookeeper: ZookeeperReader, moments: Departure) -> Departure:
    """No leader: nothing can be acknowledged. Only where nothing ever was may the claim go without a drain."""
    office = read_office(zookeeper)
    if office.held_by_kraft or office.written_to is not None:
        raise StepFailed(
            "the quorum has no leader, and ZooKeeper may lack what it last acknowledged",
            way_out="start a majority of the controllers (the rollback's restore_quorum does), so that they write the rest; then clear this task",
        )
    fence.raise_it()
    return moments


def _await_brokers(spec: ClusterSpec, proof: FinalProof, secrets: Secrets, tell: Tell) -> None:
    """Let the brokers take in what the quorum told them while metadata can still be changed, rather than while nobody can change any."""
    behind = await_taken_in(spec, proof.newest_topics, secrets=secrets, within=TAKEN_IN_SECONDS, prompt=PROMPT_SECONDS)
    if behind:
        tell(f"broker {', '.join(map(str, behind))} does not know the newest topics after {TAKEN_IN_SECONDS:.0f} s; the window will be longer for it")


def _drain_and_prove(
    spec: ClusterSpec, quorum: QuorumConnection, proof: FinalProof | None, zookeeper: ZookeeperReader, moments: Departure, secrets: Secrets
) -> Departure:
    """Wait until ZooKeeper holds everything that was committed, and prove it of what was touched. Raises StepFailed when that does not come about."""
    if proof is None:
        if read_cluster_records(spec, secrets=secrets).migration_state_record is ZkMigrationState.MIGRATION:
            raise StepFailed("the copy was completed while the quorum was being fenced", way_out=f"{LIFTED}: parity is proven first then")
        return replace(moments, drained_at=_now(), high_watermark=quorum.high_watermark(), migration_offset=_offset(zookeeper))
    deadline = time.monotonic() + DRAIN_SECONDS
    try:
        while True:
            high_watermark = quorum.high_watermark()
            offset = _offset(zookeeper)
            if offset == high_watermark - 1 == quorum.high_watermark() - 1:
                break
            if time.monotonic() > deadline:
                raise StepFailed(
                    f"ZooKeeper was not written up to offset {high_watermark - 1} within {DRAIN_SECONDS:g} s of the fence: /migration is at {offset}",
                    way_out=f"{LIFTED}; if it persists, wait for a quiet hour, or see KRB-DW-001",
                )
            time.sleep(POLL)
        moments = replace(moments, drained_at=_now(), high_watermark=high_watermark, migration_offset=offset)
        proof.read_on(high_watermark)
        touched = proof.compare(zookeeper)
        if quorum.high_watermark() != high_watermark:
            raise StepFailed("the high watermark moved though the quorum was fenced: a controller runs that was to be stopped", way_out=LIFTED)
    except Unreachable as error:
        raise StepFailed(f"the drain could not be proven: {error.problem}", way_out=LIFTED) from None
    return replace(moments, proven_at=_now(), touched_keys=touched)


def _offset(zookeeper: ZookeeperReader) -> int | None:
    written = read_office(zookeeper).written_to
    return written.kraft_metadata_offset if written else None


def _now() -> datetime:
    return datetime.now(UTC)
