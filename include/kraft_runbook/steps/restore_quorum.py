"""Where controllers should lead and none does: whether they died in the copy, and how a leader comes back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.errors import StepFailed
from kraft_runbook.evidence.kinds import LogsRead, Restored
from kraft_runbook.migration import conditions
from kraft_runbook.migration.never_copied import may_have_died_in_the_copy, why_not_proven
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.migration.unfinished_copy import TELL, UNTOLD, end_untold
from kraft_runbook.migration.way_back import quorum_is_lost
from kraft_runbook.procedures.quorum_logs import read_logs
from kraft_runbook.procedures.start_controllers import start_controllers
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.run import Run

PROOF = "the controllers' logs prove that the metadata copy was never committed"
"""What decides where they may have died in the copy."""


def restore_quorum(run: Run) -> dict[str, Any]:
    """Where controllers should lead and none does, start those that are down, with the files they have, once all are
    proven to be in migration mode. In a rehearsal, tell which; where their own logs decide, whom it would stop to read
    them, and the starts that depend on it.

    Not where their own logs prove that they died in the copy before anything was acknowledged: they would copy again,
    and die again.
    """
    seen = run.cluster.settled()
    lost = quorum_is_lost(seen)
    if lost and not run.cluster.rehearses:
        run.claim.take()
    if not lost:
        run.cluster.tell("already done: the quorum has a leader, or none is needed")
        return {"started": []}
    if run.cluster.rehearses:
        if may_have_died_in_the_copy(seen):
            run.cluster.do(read_logs, would=_stopping(run, seen))
            every = [each for each in run.spec.controller_ids if each not in run.cluster.gone]
            run.cluster.do(start_controllers, would=_starting(every, where=f", unless {PROOF}"))
        else:
            run.cluster.do(start_controllers, would=_starting(_down(run, seen)))
        return {"dry_run": True}
    if died_in_the_copy(run, seen):
        return {"started": [], "died_in_the_copy": True}
    return {"started": restore(run, seen, lost)}


def died_in_the_copy(run: Run, seen: ClusterObservation) -> bool:
    """Whether the controllers' own logs prove that the copy was never committed. Ends those that still run, without
    a leader: acts on consumer groups are waited for before. The claim is this run's.

    Raises Refused without the gate's signature, and as ``await_groups``.
    """
    if not may_have_died_in_the_copy(seen):
        return False
    run.signatures.require(MIGRATION, Gate.ROLLBACK, seen)
    run.claim.await_groups()
    seen = run.cluster.settled()  # the wait may have taken minutes
    if not may_have_died_in_the_copy(seen):
        return False
    run.cluster.tell("nothing shows that the metadata copy was completed: reading the controllers' own logs")
    would = _stopping(run, seen)
    logs = run.cluster.do(read_logs, would=would, stop=True, gone=run.cluster.gone, tell=run.cluster.tell)
    assert logs is not None, "a rehearsal ends before"
    why_not = why_not_proven(logs, run.spec.controller_ids)
    run.journal.record(
        LogsRead(phase=detect_phase(seen).phase.value, logs=tuple(map(str, logs)), why_not=why_not),
    )
    run.cluster.tell("\n".join(map(str, logs)))
    run.cluster.tell(why_not or "the copy was never committed: the quorum acknowledged nothing, and stays down")
    return why_not is None


def restore(run: Run, seen: ClusterObservation, lost: str) -> list[int]:
    """Start what is down and wait for a leader. That takes nothing from an act on a consumer group, so none is waited
    for: a killed one would keep the quorum down for the rest of its lease. The claim is this run's.

    Raises Refused without the gate's signature, StepFailed where no majority comes up, or where its leader never writes
    to ZooKeeper (``end_untold``).
    """
    run.signatures.require(MIGRATION, Gate.ROLLBACK, seen)
    run.signatures.begins(Gate.ROLLBACK)
    run.cluster.tell(f"{lost}: starting the controllers that are down")
    down, gone = _down(run, run.cluster.observe()), run.cluster.gone
    would = _starting(down)
    started = list(run.cluster.do(start_controllers, down, would=would, tell=run.cluster.tell, gone=gone) or ())
    run.journal.record(Restored(phase=detect_phase(seen).phase.value, why=lost, started=tuple(started)))
    led = run.cluster.wait_for(conditions.QUORUM_LED, deadline=run.spec.deadlines.quorum)
    if end_untold(led):
        raise StepFailed(UNTOLD, way_out=f"{TELL}. Then clear this task")
    return started


def _down(run: Run, seen: ClusterObservation) -> list[int]:
    return [c.id for c in seen.controllers.values() if c.running is not True and c.id not in run.cluster.gone]


def _stopping(run: Run, seen: ClusterObservation) -> list[Act]:
    """Those that may run, whose logs are read once they are stopped."""
    those = [c.id for c in seen.controllers.values() if c.running is not False and c.id not in run.cluster.gone]
    return [Act(f"stop controller {each}") for each in those]


def _starting(down: Iterable[int], *, where: str = "") -> list[Act]:
    """``where``: what decides whether they are started."""
    return [Act(f"start controller {each}{where}") for each in down]
