"""The claim on a cluster: a lease in the cluster's own ZooKeeper, so that it holds wherever a task runs.

Two Airflows, or two workers on two hosts, share no file; what both can see is the cluster that both would change. The claim
is one znode, written only at the version that was read. A run of the same Airflow is asked for by its state; of another
Airflow's run only the lease is known.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.io.zookeeper.reader import Znode, ZookeeperReader

PATH = "/kraft_runbook_claim"
"""Below the chroot. Kafka does not know it, and nothing of it is migrated."""
SPARE_SECONDS = 3600.0
"""How much longer a lease lasts than the longest step and wait: it is renewed by each task that changes the cluster."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Who may change a cluster. ``run_after``: Airflow's time of the run, which tells two Airflows' runs of one name apart."""

    dag_id: str
    run_id: str
    run_after: str
    host: str
    until: datetime

    def is_of(self, other: Claim) -> bool:
        """Whether both are of one DAG run."""
        return (self.dag_id, self.run_id, self.run_after) == (other.dag_id, other.run_id, other.run_after)

    def to_json(self) -> bytes:
        return json.dumps({**asdict(self), "until": self.until.isoformat()}).encode()

    @staticmethod
    def from_json(data: bytes) -> Claim:
        """The claim in these bytes; what a newer version of this tool wrote besides is left out. Raises ValueError where they are no claim."""
        found: Any = json.loads(data)
        try:
            known = {each.name: found[each.name] for each in fields(Claim)}
            until = datetime.fromisoformat(known.pop("until"))
        except (KeyError, TypeError) as error:
            raise ValueError(f"no claim: {error}") from None
        if until.tzinfo is None or not all(isinstance(each, str) for each in known.values()):
            raise ValueError("no claim: its fields are of other types")
        return Claim(**known, until=until)


class RunState(StrEnum):
    """What this Airflow knows of a run that holds a claim."""

    ACTIVE = "active"
    ENDED = "ended"
    UNKNOWN = "unknown"
    """Another Airflow's run, or one that was deleted here."""


AskRun = Callable[[Claim], RunState]


def lease_end(spec: ClusterSpec, now: datetime) -> datetime:
    """Until when a claim holds that is taken or renewed now: past the longest wait and stop, and an hour to spare."""
    d = spec.deadlines
    longest = max(d.quorum, d.registration, d.in_sync, d.metadata_copy) + spec.service_manager.stop_timeout
    return now.astimezone(UTC) + timedelta(seconds=longest + SPARE_SECONDS)


def hold_claim(zookeeper: ZookeeperReader, cluster: str, mine: Claim, *, ask: AskRun, now: datetime) -> bool:
    """Take or renew the claim for one DAG run. True where that run held it already.

    Raises Refused, naming the run that holds it, and where what is there can't be understood; RunbookError where ZooKeeper does not let this tool write.
    """
    while True:
        znode = zookeeper.get(PATH)
        if znode is None:
            if zookeeper.create(PATH, mine.to_json()):
                return False
            continue  # another run was quicker
        holder = _holder(znode)
        if holder is not None and not holder.is_of(mine):
            _refuse_unless_free(cluster, holder, ask(holder), now)
        if zookeeper.replace(znode, mine.to_json()):
            return holder is not None and holder.is_of(mine)


def release_claim(zookeeper: ZookeeperReader, mine: Claim) -> bool:
    """Remove the claim where this run holds it; False where it does not. Left alone, it is free once the run or its lease has ended.

    Raises Refused where what is there can't be understood.
    """
    znode = zookeeper.get(PATH)
    holder = _holder(znode) if znode is not None else None
    if znode is None or holder is None or not holder.is_of(mine):
        return False
    return zookeeper.delete(znode)


def _holder(znode: Znode) -> Claim | None:
    """None where the znode holds no JSON: no version of this tool writes that, so nobody holds the cluster by it.

    Raises Refused where it holds JSON that is no claim as this version knows one: another version's run may hold the cluster.
    """
    try:
        json.loads(znode.data)
    except ValueError:
        return None
    try:
        return Claim.from_json(znode.data)
    except ValueError as error:
        raise Refused(
            f"{PATH} in ZooKeeper holds a claim that this version can't read ({error})",
            way_out=f"end the run that holds it with the version that wrote it; where none goes on, delete {PATH} with zookeeper-shell. Then clear this task",
        ) from None


def _refuse_unless_free(cluster: str, holder: Claim, state: RunState, now: datetime) -> None:
    who = f"run {holder.run_id} of {holder.dag_id}"
    if state is RunState.ACTIVE:
        raise Refused(
            f"cluster {cluster} is being changed by {who}",
            way_out="wait until that run has ended, or mark it failed in Airflow; then trigger or clear this one again",
        )
    if state is RunState.UNKNOWN and now < holder.until:
        until = f"{holder.until:%Y-%m-%d %H:%M} UTC"
        raise Refused(
            f"cluster {cluster} is claimed until {until} by {who}, which this Airflow does not know (its last task ran on {holder.host})",
            way_out=f"end that run in its own Airflow: its closing report gives the claim back. If it is gone, the claim is free at {until}. "
            "Then trigger or clear this one again",
        )
