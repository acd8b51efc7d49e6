"""The claim on a consumer group, in the group's own znodes: a run that moves groups claims these and not the cluster,
so that they move while a migration soaks. While the run that holds the cluster acts, no group is claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.io.claim_file import claim_file
from kraft_runbook.io.cluster_claim import (
    SPARE_SECONDS,
    AskRun,
    Claim,
    ClaimPlace,
    RunState,
    hold_claim,
    holder_of,
    lease_end,
    release_claim,
)
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.claim_znode import PATH, claim_znodes

InZookeeper = Callable[..., AbstractContextManager[Callable[[str], ClaimPlace]]]
"""As ``claim_znodes`` is called."""


class Acts(Refused):
    """Another run acts on the cluster at this moment: what waits for it may be done soon."""


ANSWER_SECONDS = 24 * 3600.0
"""How long an owner may take to answer. Nobody renews the claims meanwhile."""
SILENT_SECONDS, STARTED_SECONDS = 3600.0, 3600.0
"""How long a wave waits until its groups are silent, and until they have started."""


def group_lease_end(spec: ClusterSpec, now: datetime) -> datetime:
    """The end of a claim on groups that is taken or renewed now: the longest question, a wave's waits, and an hour."""
    seconds = ANSWER_SECONDS + SILENT_SECONDS + STARTED_SECONDS + SPARE_SECONDS
    return max(lease_end(spec, now), now.astimezone(UTC) + timedelta(seconds=seconds))


def group_path(group: str) -> str:
    """Where a group's claim lies. Consumers do not read it, and the migration does not copy it."""
    return f"/consumers/{group}/kraft_runbook_claim"


def hold_groups(
    spec: ClusterSpec,
    groups: Sequence[str],
    mine: Claim,
    *,
    secrets: Secrets,
    directory: Path,
    ask: AskRun,
    now: datetime,
    waits: bool = False,
    znodes: InZookeeper = claim_znodes,
) -> None:
    """Take or renew the claim on each of these groups for one DAG run, or on none of them. ``waits``: this run only
    waits and looks, so it does not matter whether another run acts on the cluster.

    Raises Acts where the run that holds the cluster acts at this moment; Refused, naming the run that holds a group;
    Unreachable.
    """
    with claim_file(directory, spec.name) as file, znodes(spec.ensemble, secrets=secrets) as at:
        for of_cluster in () if waits else (file, at(PATH)):
            _refuse_while_acting(of_cluster, spec.name, mine, ask, now)
        taken: list[ClaimPlace] = []
        try:
            for group in groups:
                place = at(group_path(group))
                if not hold_claim(place, f"{spec.name}'s group {group}", mine, ask=ask, now=now):
                    taken.append(place)
        except RunbookError:
            for place in taken:
                release_claim(place, mine)
            raise


def release_groups(
    spec: ClusterSpec, groups: Sequence[str], mine: Claim, *, secrets: Secrets, znodes: InZookeeper = claim_znodes
) -> None:
    """Remove this run's claims on these groups. Raises RunbookError."""
    with znodes(spec.ensemble, secrets=secrets) as at:
        for group in groups:
            release_claim(at(group_path(group)), mine)


def _refuse_while_acting(place: ClaimPlace, cluster: str, mine: Claim, ask: AskRun, now: datetime) -> None:
    holder = holder_of(place)
    if holder is None or holder.is_of(mine) or not holder.acting:
        return
    state = ask(holder)
    if state is RunState.ACTIVE or (state is RunState.UNKNOWN and now < holder.until):
        raise Acts(
            f"run {holder.run_id} of {holder.dag_id} acts on cluster {cluster}: its task {holder.acting} goes on, or"
            " was killed",
            way_out="wait until that task has ended, or clear it where it was killed; then clear this one",
        )
