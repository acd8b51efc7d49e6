"""Whether partitions are whole after replicas of theirs were copied between disks."""

from __future__ import annotations

from collections.abc import Collection

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.naming import nodes, some
from kraft_runbook.errors import StepFailed
from kraft_runbook.procedures.move_between_disks import lag_seconds
from kraft_runbook.steps.reassignment.ending import LOOKS
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.reassignment.looks import patiently, settled_look
from kraft_runbook.steps.run import Run

SAMPLE = 5
SOON_SECONDS = 5.0
"""Until a look shows what a controller has just decided."""


def require_whole(run: Run, partitions: Collection[TopicPartition]) -> None:
    """Raise StepFailed where one of these partitions has no leader, or a replica out of sync; looked at again until it
    holds, since that takes a moment. One that does not exist any more counts as none.

    Where this run has copied a leader's own replica, it is looked at once more when its followers would have left the
    ISR: the log that takes the place of another has no leader epochs but those of its records, and a leader that does
    not know the epoch of a follower's last record lets it fetch in vain, until something is produced (KAFKA-20961).
    """
    files = files_of(run)
    copied = {(m.broker, m.partition) for each in (files.disk_plans if files.has_disk_plan else ()) for m in each.moves}

    def look() -> tuple[list[TopicPartition], set[int]]:
        """Those that are not whole, and the leaders whose replica was copied."""
        seen = settled_look(run.cluster, sizes_of=(), settings=False).seen
        led = {p: seen[p].leader for p in sorted(partitions) if p in seen}
        bad = [p for p, leader in led.items() if leader is None or {*seen[p].isr} != {*seen[p].replicas}]
        return bad, {leader for p, leader in led.items() if leader is not None and (leader, p) in copied}

    def settled() -> tuple[list[TopicPartition], set[int]]:
        found = patiently(run, look)
        for _ in range(LOOKS):
            if not found[0]:
                break
            run.cluster.pause(1)
            found = patiently(run, look)
        return found

    bad, leaders = settled()
    if not bad and leaders:
        # a leader looks at its followers twice in that time (ReplicaManager.startup)
        wait = 1.5 * run.cluster.ask(lag_seconds, leaders) + SOON_SECONDS
        run.cluster.tell(f"{nodes('broker', leaders, 'leads')} replicas that were copied: looking again in {wait:g} s")
        run.cluster.pause(wait)
        bad, _ = settled()
    if bad:
        raise StepFailed(
            f"{len(bad)} partitions that the plan wants in certain directories have no leader, or replicas that are not"
            f" in sync: {some(bad, SAMPLE)}",
            way_out="let them catch up, then clear this task. Where one does not, and nothing is produced to it, its"
            " leader's log may have lost leader epochs as it was copied (KAFKA-20961): produce a record to it",
        )
