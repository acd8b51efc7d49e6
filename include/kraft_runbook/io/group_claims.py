"""The claim on a consumer group, in the group's own znodes: a run that moves groups claims these and not the cluster,
so that they move while a migration soaks. While the run that holds the cluster acts, such as one that restarts a node,
nobody acts on a group; and while a task acts on groups, none stops a node. Each says first that it acts, then looks for
the other: of two that begin at the same moment, the one with the groups gives way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.io.claim_file import claim_file
from kraft_runbook.io.cluster_claim import (
    SPARE_SECONDS,
    AskRun,
    AskTasks,
    Claim,
    ClaimPlace,
    RunState,
    hold_claim,
    holder_of,
    lease_end,
    release_claim,
    rest,
)
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.claim_znode import PATH, claim_znodes, claims_of_groups, group_path

InZookeeper = Callable[..., AbstractContextManager[Callable[[str], ClaimPlace]]]
"""As ``claim_znodes`` is called."""
OfGroups = Callable[..., AbstractContextManager[Mapping[str, ClaimPlace]]]
"""As ``claims_of_groups`` is called."""


class Acts(Refused):
    """Another run acts on the cluster, or on a group, at this moment: what waits for it may be done soon."""


ANSWER_SECONDS = 24 * 3600.0
"""How long an owner may take to answer. Nobody renews the claims meanwhile."""
SILENT_SECONDS, STARTED_SECONDS = 3600.0, 3600.0
"""How long a wave waits until its groups are silent, and until they have started."""


def group_lease_end(spec: ClusterSpec, now: datetime) -> datetime:
    """The end of a claim on groups that is taken or renewed now: the longest question, a wave's waits, and an hour."""
    seconds = ANSWER_SECONDS + SILENT_SECONDS + STARTED_SECONDS + SPARE_SECONDS
    return max(lease_end(spec, now), now.astimezone(UTC) + timedelta(seconds=seconds))


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
    """Take or renew the claim on each of these groups for one DAG run, or on none of them. That of the first one says
    which task acts (``mine.acting``), until ``rest_group``. ``waits``: this run only waits and looks, so it does not
    matter whether another run acts on the cluster.

    Raises Acts where the run that holds the cluster acts at this moment; Refused, naming the run that holds a group;
    Unreachable.
    """
    with claim_file(directory, spec.name) as file, znodes(spec.ensemble, secrets=secrets) as at:
        of_cluster = () if waits else (file, at(PATH))
        for place in of_cluster:
            _refuse_while_acting(place, f"cluster {spec.name}", mine, ask, now)
        waiting, taken = replace(mine, acting=""), list[ClaimPlace]()
        try:
            for group in groups:
                place, says = at(group_path(group)), mine if of_cluster and group == groups[0] else waiting
                if not hold_claim(place, f"{spec.name}'s group {group}", says, ask=ask, now=now):
                    taken.append(place)
            for place in of_cluster:  # it may have begun to act meanwhile, before it saw that this run acts
                _refuse_while_acting(place, f"cluster {spec.name}", mine, ask, now)
        except RunbookError:
            for place in taken:
                release_claim(place, mine)
            if of_cluster and groups:
                rest(at(group_path(groups[0])), mine)
            raise


def rest_group(
    spec: ClusterSpec, group: str, mine: Claim, *, secrets: Secrets, znodes: InZookeeper = claim_znodes
) -> None:
    """Let the claim on this group say that this task (``mine.acting``) acts no more. Raises RunbookError."""
    with znodes(spec.ensemble, secrets=secrets) as at:
        rest(at(group_path(group)), mine)


def refuse_while_cluster_acts(
    spec: ClusterSpec,
    mine: Claim,
    *,
    secrets: Secrets,
    directory: Path,
    ask: AskRun,
    now: datetime,
    znodes: InZookeeper = claim_znodes,
) -> None:
    """Raise Acts where another run acts on the cluster, or waits for this one's act on a group to do so; Refused where
    a claim can't be understood, Unreachable.
    """
    with claim_file(directory, spec.name) as file, znodes(spec.ensemble, secrets=secrets) as at:
        for place in (file, at(PATH)):
            _refuse_while_acting(place, f"cluster {spec.name}", mine, ask, now)


def refuse_while_groups_act(
    spec: ClusterSpec,
    mine: Claim,
    *,
    secrets: Secrets,
    ask: AskRun,
    over: AskTasks,
    now: datetime,
    znodes: OfGroups = claims_of_groups,
) -> tuple[str, ...]:
    """Raise Acts while a task of another run acts on a consumer group; Refused where a claim can't be understood,
    Unreachable. The answer names the claims that a killed task has left: an act on a group changes no node, so what is
    half-done there is not waited for.
    """
    left = list[str]()
    with znodes(spec.ensemble, secrets=secrets) as claims:
        for group, place in claims.items():
            holder, what = _acting(place, mine, ask, now), f"group {group} of cluster {spec.name}"
            if holder is None:
                continue
            if ask(holder) is not RunState.ACTIVE or not over(holder):
                raise _acts(holder, what, place)
            left.append(
                f"the claim of run {holder.run_id} of {holder.dag_id} says that {holder.acting} acts on {what}; Airflow"
                " says that it runs no more, so it is not waited for"
            )
    return tuple(left)


def release_groups(
    spec: ClusterSpec, groups: Sequence[str], mine: Claim, *, secrets: Secrets, znodes: InZookeeper = claim_znodes
) -> None:
    """Remove this run's claims on these groups. Raises RunbookError."""
    with znodes(spec.ensemble, secrets=secrets) as at:
        for group in groups:
            release_claim(at(group_path(group)), mine)


def _refuse_while_acting(place: ClaimPlace, what: str, mine: Claim, ask: AskRun, now: datetime) -> None:
    if (holder := _acting(place, mine, ask, now)) is not None:
        raise _acts(holder, what, place)


def _acting(place: ClaimPlace, mine: Claim, ask: AskRun, now: datetime) -> Claim | None:
    """The claim of another run that goes on, or may go on, and says that a task acts."""
    holder = holder_of(place)
    if holder is None or holder.is_of(mine) or not holder.acting:
        return None
    state = ask(holder)
    goes_on = state is RunState.ACTIVE or (state is RunState.UNKNOWN and now < holder.until)
    return holder if goes_on else None


def _acts(holder: Claim, what: str, place: ClaimPlace) -> Acts:
    return Acts(
        f"run {holder.run_id} of {holder.dag_id} acts on {what}: its task {holder.acting} goes on, or was killed",
        way_out="wait until that task has ended, or clear it where it was killed; then clear this one. Where its"
        f" run is gone, and will not go on, {place.way_to_delete}",
    )
