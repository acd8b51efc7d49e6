"""Asked on a schedule: does a reassignment stand still, or was something of one left behind? A failed run says what."""

from __future__ import annotations

import logging
from typing import Any

from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.evidence.watches import WATCHED
from kraft_runbook.reassignment.checks import CHECKS
from kraft_runbook.reassignment.explain import causes_of, has_rate
from kraft_runbook.reassignment.look import of_hidden
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.throttles import leftovers
from kraft_runbook.runbook.cluster_checks import SHOW_ALL
from kraft_runbook.steps.reassignment.disk_throttle import disk_throttles_left
from kraft_runbook.steps.reassignment.disks import stand_still
from kraft_runbook.steps.reassignment.earlier_runs import still_throttling
from kraft_runbook.steps.reassignment.looks import see, settled_look
from kraft_runbook.steps.run import Failed, Run

log = logging.getLogger(__name__)
APART_SECONDS = 10.0
LEFT_BEHIND = frozenset({"KRB-MOV-004", "KRB-MOV-005"})


def watch_reassignments(run: Run) -> dict[str, Any]:
    """Look twice and change nothing: stuck moves, throttles without a move, legacy znodes, faulty lists. Raises Failed,
    which names them.
    """
    earlier = settled_look(run.cluster, settings=False)
    run.cluster.pause(APART_SECONDS if earlier.placement.ongoing else 0)
    seen = see(run.cluster)
    now = seen.look
    causes = causes_of(earlier, now, throttled=has_rate(seen.throttles))
    found = [f"stuck: {each}" for each in causes if not each.waits]
    found += [f"{of_hidden(now.hidden)}. To see whether they are stuck, {SHOW_ALL}"] if now.hidden else []
    found += [f"stuck: {each}" for each in stand_still(run)]
    set_now = leftovers(seen.throttles)
    if not now.moving:
        left = tuple(each for each in set_now if not each.of_disks)
        for each in still_throttling(run, now.cluster_id):
            if why := each.files.resting:
                run.cluster.tell(f"Run {each.files.name} keeps its throttle for its next batch: {why}")
                mine = each.throttles.among(left, each.saved.throttles)
                left = tuple(throttle for throttle in left if throttle not in mine)
            else:
                found.append(
                    f"run {each.files.name} set them: trigger cancel_reassignments__{run.spec.name}, which puts them"
                    " back"
                )
        found = [*(f"a throttle without a move: {each}" for each in left), *found]
    found += disk_throttles_left(run, [each for each in set_now if each.of_disks])
    results = CHECKS.run(seen, run.spec, REASSIGNMENT.read(seen, run.spec).stage).blocking
    found += [f"{c.code} {c.title}: {c.evidence} {c.fix}" for c in results if c.code in LEFT_BEHIND]
    told = "\n".join(found[:50])
    run.journal.record(
        Moves(
            what=WATCHED,
            partitions=len(now.moving),
            told=told,
            phase=detect_phase(seen.cluster).phase.value,
            cluster_id=now.cluster_id,
        )
    )
    if found:
        log.error("%s", told)
        raise Failed(f"{len(found)} findings about reassignments of {run.spec.name}:\n{told}")
    run.cluster.tell(f"{len(now.placement.ongoing)} partitions are being reassigned, none is stuck, nothing is left")
    return {"moving": len(now.placement.ongoing)}
