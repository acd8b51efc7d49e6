"""Controllers that run again after KRaft was left: they are stopped, and seen to hold nothing that ZooKeeper lacks."""

from __future__ import annotations

from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import LeavesKraft, LeftKraft, LogsRead, kind_of
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.migration.came_back import came_back, why_they_may_hold_more
from kraft_runbook.migration.resumed_departure import departure_in
from kraft_runbook.procedures.quorum_logs import read_logs
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.node_step import Look
from kraft_runbook.steps.run import Run


def controllers_came_back(look: Look) -> bool:
    """Whether some run, so that the phase shown is theirs and not the cluster's."""
    return bool(came_back(look.seen))


def stop_before(run: Run, look: Look) -> None:
    """As ``stop_those_that_came_back``."""
    stop_those_that_came_back(run, look.seen)


def stop_those_that_came_back(run: Run, seen: ClusterObservation) -> bool:
    """Stop all controllers where some came back, then read their logs. Returns whether there were any.

    The caller has the gate's signature. Brokers follow the ZooKeeper controller, so no controller is needed, and none
    writes to ZooKeeper: their order is no matter. Raises Refused where a log can't be read, or may hold what ZooKeeper
    lacks; they stay stopped, and their data as it is.
    """
    there = came_back(seen)
    if not there:
        return False
    tell = run.cluster.tell
    tell(
        f"{nodes('controller', there, 'runs')} again, though KRaft was left: a ZooKeeper controller leads. Stopping"
        f" {by_number(there, 'it', 'them')} and reading every controller's log"
    )
    would = [Act(f"stop {nodes('controller', there)}, and see in the logs that ZooKeeper lacks nothing of theirs")]
    logs = run.cluster.do(read_logs, would=would, stop=True, gone=run.cluster.gone, tell=tell)
    if logs is None:
        return True
    why_not = why_they_may_hold_more(logs, _left_at(run.journal.records()))
    run.journal.record(LogsRead(phase=detect_phase(seen).phase.value, logs=tuple(map(str, logs)), why_not=why_not))
    if why_not:
        raise Refused(
            f"the controllers that came back are stopped, but they may hold what ZooKeeper lacks: {why_not}",
            way_out=(
                "their data is untouched; keep them stopped (disable their services). Clear this task in the run that"
                " left KRaft, whose record it needs. Where a log holds more, look at it with kafka-dump-log.sh"
                " --cluster-metadata-decoder and make those changes again through a broker; then move the data aside by"
                " hand and clear this task (docs/rollback.md)"
            ),
        )
    tell("their logs hold nothing that ZooKeeper lacks; they stay stopped")
    return True


def _left_at(records: tuple[EvidenceRecord, ...]) -> int | None:
    """The quorum's high watermark when this run left KRaft."""
    told = [each for record in records if isinstance(each := kind_of(record.body), LeavesKraft | LeftKraft)]
    found = [departure_in(each.values) for each in told]
    return next((each.high_watermark for each in reversed(found) if each and each.high_watermark is not None), None)
