"""One run at a time changes a cluster, whichever DAG it belongs to.

The claim is a small file in the state directory, changed under an exclusive lock. Every task that changes the cluster
takes or renews it, so a task that is cleared after its run had failed can't slip past a newer run. A claim whose run
has ended is free; nothing has to be released, and a crash leaves nothing to clean up.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from pathlib import Path

from kraft_runbook.errors import Refused

IsActive = Callable[[str, str], bool]
"""(dag id, run id) -> whether that DAG run is queued or running. A run that was deleted is not."""


def hold_claim(directory: Path, cluster: str, *, dag_id: str, run_id: str, is_active: IsActive) -> None:
    """Take or renew the claim on a cluster for one DAG run. Raises Refused, naming the run that holds it."""
    claims = directory / "claims"
    claims.mkdir(parents=True, exist_ok=True)
    path = claims / f"{cluster}.json"
    with (claims / f"{cluster}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        holder = json.loads(path.read_text()) if path.exists() else None
        mine = {"dag_id": dag_id, "run_id": run_id}
        if holder == mine:
            return
        if holder and is_active(holder["dag_id"], holder["run_id"]):
            raise Refused(
                f"cluster {cluster} is being changed by run {holder['run_id']} of {holder['dag_id']}",
                way_out="wait until that run has ended, or mark it failed in Airflow; then trigger or clear this one again",
            )
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(mine))
        fresh.replace(path)
