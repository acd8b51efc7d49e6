"""Asked on a schedule: does any consumer group have two members that may consume one partition, or a partition that no
member can own? A failed run is the alarm.
"""

from __future__ import annotations

from typing import Any

from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.evidence.watches import WATCHED
from kraft_runbook.groups.toggles.alarms import alarms, lasting
from kraft_runbook.steps.run import Failed, Run
from kraft_runbook.steps.toggles.toggling import see_twice


def watch_the_groups(run: Run) -> dict[str, Any]:
    """Look at every group, and again at those that look wrong. Raises Failed with what both looks show."""
    earlier, now = see_twice(run.cluster, None, lambda look: any(alarms(look)))
    found = lasting(earlier, now)
    told = f"{len(earlier)} groups, {len(found)} alarms"
    lines = [each.line() for each in found]
    run.journal.record(Moves(what=WATCHED, partitions=None, told="\n".join([told, *lines])))
    run.cluster.tell(told)
    if found:
        raise Failed(f"consumer groups of {run.spec.name} may be read twice, or by nobody:\n" + "\n".join(lines))
    return {"groups": len(earlier), "alarms": 0}
