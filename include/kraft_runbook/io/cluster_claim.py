"""The claim on a cluster: a lease, so that one DAG run at a time changes it. Airflow knows the state of its own runs;
of another Airflow's run only the lease is known.

The claim is in the cluster's own ZooKeeper, where every Airflow sees it, and in a file of the state directory, which
only Airflows that share the directory see (``claim_file``). For a cluster file without ``zookeeper`` the file is the
only place. A run takes both, so that a cluster file that drops or gains ``zookeeper`` during a run does not hide that
run from an Airflow that shares the directory.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.io.claim_file import ClaimFile, claim_file, claim_path
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.claim_znode import claim_znode

SPARE_SECONDS = 3600.0
"""Seconds that a lease lasts beyond the longest step and wait. Each task that changes the cluster renews it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The run that may change a cluster. ``run_after``: Airflow's time of the run, by which two Airflows' runs with one
    name differ.
    """

    dag_id: str
    run_id: str
    run_after: str
    host: str
    until: datetime
    acting: str = ""
    """The tasks that act now, or were killed while they acted, separated by blanks; empty: the run waits."""

    def is_of(self, other: Claim) -> bool:
        """Whether both are of one DAG run."""
        return (self.dag_id, self.run_id, self.run_after) == (other.dag_id, other.run_id, other.run_after)

    def beside(self, held: Claim | None) -> Claim:
        """This claim of a task, where other tasks of its run act too."""
        if held is None or not held.is_of(self):
            return self
        return replace(self, acting=" ".join(sorted({*held.acting.split(), *self.acting.split()})))

    def without(self, resting: Claim) -> Claim:
        """The same once that task acts no more."""
        return replace(self, acting=" ".join(each for each in self.acting.split() if each != resting.acting))

    def to_json(self) -> bytes:
        return json.dumps({**asdict(self), "until": self.until.isoformat()}).encode()

    @staticmethod
    def from_json(data: bytes) -> Claim:
        """The claim in these bytes, without fields that a newer version of this tool added. Raises ValueError if they
        are no claim.
        """
        found: Any = json.loads(data)
        try:
            known = {each.name: found[each.name] for each in fields(Claim) if each.name != "acting"}
            known["acting"] = found.get("acting", "")
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
AskTasks = Callable[[Claim], bool]
"""Whether none of the tasks that act by a claim of a run of this Airflow runs any more."""


def lease_end(spec: ClusterSpec, now: datetime) -> datetime:
    """The end of a claim that is taken or renewed now: the longest wait and stop, plus an hour."""
    d = spec.deadlines
    longest = max(d.quorum, d.registration, d.in_sync, d.metadata_copy) + spec.service_manager.stop_timeout
    return now.astimezone(UTC) + timedelta(seconds=longest + SPARE_SECONDS)


class ClaimPlace(Protocol):
    """One place of a cluster's claim. ``name`` and ``way_to_delete``: for a person who must look at it, or remove it by
    hand.
    """

    @property
    def name(self) -> str: ...

    @property
    def way_to_delete(self) -> str: ...

    def read(self) -> bytes | None:
        """The stored bytes; None if there are none."""

    def write(self, data: bytes) -> bool:
        """Replace what was read. False if another run was quicker."""

    def delete(self) -> bool:
        """Remove what was read. False if another run was quicker."""


InZookeeper = Callable[..., AbstractContextManager[ClaimPlace]]
"""As ``claim_znode`` is called: the claim's place in a cluster's ZooKeeper, while a session lasts."""


def hold_claim(place: ClaimPlace, cluster: str, mine: Claim, *, ask: AskRun, now: datetime) -> bool:
    """Take or renew the claim for one DAG run. True where that run held it already.

    Raises Refused, naming the run that holds it, or if the stored bytes can't be understood; RunbookError if the place
    does not let this tool write.
    """
    while True:
        holder = holder_of(place)
        if holder is not None and not holder.is_of(mine):
            _refuse_unless_free(cluster, holder, ask(holder), now)
        if place.write(mine.beside(holder).to_json()):
            return holder is not None and holder.is_of(mine)
        # another run was quicker


def release_claim(place: ClaimPlace, mine: Claim) -> bool:
    """Remove the claim if this run holds it; False if it does not. A claim that is not removed is free once the run or
    its lease has ended.

    Raises Refused if the stored bytes can't be understood.
    """
    holder = holder_of(place)
    if holder is None or not holder.is_of(mine):
        return False
    return place.delete()


def hold_cluster(
    spec: ClusterSpec,
    mine: Claim,
    *,
    secrets: Secrets,
    directory: Path,
    ask: AskRun,
    now: datetime,
    znode: InZookeeper = claim_znode,
) -> None:
    """Take or renew the claim for one DAG run in both places: below ``directory``, and in ZooKeeper where the cluster
    file names one.

    Raises Refused as ``hold_claim`` does, and where the file can't be used; Unreachable where ZooKeeper can't be asked:
    the file is held then.
    """
    with claim_file(directory, spec.name) as file:
        had_it = hold_claim(file, spec.name, mine, ask=ask, now=now)
        if spec.zookeeper is None:
            return
        try:
            with znode(spec.zookeeper, secrets=secrets) as place:
                hold_claim(place, spec.name, mine, ask=ask, now=now)
        except Refused:
            if not had_it:  # the run that holds ZooKeeper's would meet this one in the file
                release_claim(file, mine)
            raise


def rest_cluster(
    spec: ClusterSpec, mine: Claim, *, secrets: Secrets, directory: Path, znode: InZookeeper = claim_znode
) -> None:
    """Let the claim say, in both places, that this task (``mine.acting``) acts no more. Where another run holds it,
    nothing is written. Raises Refused, Unreachable, as ``hold_cluster``.
    """
    with claim_file(directory, spec.name) as file:
        rest(file, mine)
        if spec.zookeeper is not None:
            with znode(spec.zookeeper, secrets=secrets) as place:
                rest(place, mine)


def rest(place: ClaimPlace, mine: Claim) -> None:
    """Let the claim say that this task (``mine.acting``) acts no more. Where another run holds it, nothing is written.
    Raises Refused, as ``holder_of``.
    """
    while True:
        holder = holder_of(place)
        if holder is None or not holder.is_of(mine) or mine.acting not in holder.acting.split():
            return
        if place.write(holder.without(mine).to_json()):
            return
        # another task was quicker


def told_of_claim(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    now: datetime,
    directory: Path | None = None,
    znode: InZookeeper = claim_znode,
) -> str:
    """The run that the claim names, in words; empty if there is no claim, or it can't be read. It is that of the
    cluster's ZooKeeper, where there is one, else that of the state ``directory``.

    Only that run's own Airflow knows whether it still goes on.
    """
    try:
        holder = _told_by_zookeeper(spec, secrets, znode) or (_told_by_file(spec, directory) if directory else None)
    except Refused as unknown:
        return unknown.problem
    if holder is None:
        return ""
    until = f"{holder.until:%Y-%m-%d %H:%M} UTC"
    holds = (
        f"until {until}. While that run goes on, no other changes the cluster"
        if now < holder.until
        else f"which ended at {until}: the next run takes it"
    )
    return f"run {holder.run_id} of {holder.dag_id} has a claim on it, {holds}. Its last task ran on {holder.host}"


def _told_by_zookeeper(spec: ClusterSpec, secrets: Secrets, znode: InZookeeper) -> Claim | None:
    if spec.zookeeper is None:
        return None
    try:
        with znode(spec.zookeeper, secrets=secrets) as place:
            return holder_of(place)
    except Refused:
        raise
    except RunbookError:
        return None


def _told_by_file(spec: ClusterSpec, directory: Path) -> Claim | None:
    """Read without the lock, which only whoever writes needs: a file is replaced whole."""
    try:
        return holder_of(ClaimFile(claim_path(directory, spec.name)))
    except Refused:
        raise
    except RunbookError:
        return None


def release_cluster(
    spec: ClusterSpec, mine: Claim, *, secrets: Secrets, directory: Path, znode: InZookeeper = claim_znode
) -> None:
    """Remove this run's claim from both places. Raises RunbookError if one of them can't be reached; the claim in the
    other is still removed.
    """
    with claim_file(directory, spec.name) as file:
        try:
            if spec.zookeeper is not None:
                with znode(spec.zookeeper, secrets=secrets) as place:
                    release_claim(place, mine)
        finally:
            release_claim(file, mine)


def holder_of(place: ClaimPlace) -> Claim | None:
    """The claim there. None if there is nothing, or no JSON: no version of this tool writes that, so it is no claim.

    Raises Refused if it is JSON that this version does not recognize as a claim: another version's run may hold the
    cluster.
    """
    data = place.read()
    try:
        json.loads(data or b"")
    except ValueError:
        return None
    try:
        return Claim.from_json(data or b"")
    except ValueError as error:
        raise Refused(
            f"{place.name} holds a claim that this version can't read ({error})",
            way_out=(
                f"end the run that holds it with the version that wrote it; where none goes on, {place.way_to_delete}."
                " Then clear this task"
            ),
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
            f"cluster {cluster} is claimed until {until} by {who}, which this Airflow does not know (its last task ran"
            f" on {holder.host})",
            way_out=(
                "end that run in its own Airflow: its closing report gives the claim back. If it is gone, the claim is"
                f" free at {until}. Then trigger or clear this one again"
            ),
        )
