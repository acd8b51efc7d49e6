"""Stop or start the application of a consumer group by its owner's playbook."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kraft_runbook.cluster.group_applications import GroupApplication
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.runbook.digests import sha256_of


def play_group(
    spec: ClusterSpec,
    group: str,
    direction: Direction,
    *,
    starts: bool,
    secrets: Secrets,
    tell: Callable[[str], None],
) -> tuple[str, ...]:
    """The hosts on which it changed something. ``starts``: on the side where the group goes; else it is stopped on the
    one that it leaves. Raises as ``io.hosts.group_plays.play_application``.
    """
    from kraft_runbook.io.hosts.group_plays import play_application  # ansible-runner is slow to import

    application = application_of(spec, group)
    assert application is not None, "who asks has looked"
    kafka = starts is (direction is Direction.TO_KAFKA)
    return play_application(
        application,
        application.start if starts else application.stop,
        group=group,
        coordination="kafka" if kafka else "zookeeper",
        tell=tell,
    )


def signed_for(spec: ClusterSpec, groups: Iterable[str], *, secrets: Secrets) -> str | None:
    """A digest of what is played for these groups: how the cluster file names it, and the content of each playbook.
    None: nothing is. Raises as ``io.hosts.group_plays.content_of``.
    """
    from kraft_runbook.io.hosts.group_plays import content_of

    found = {group: each for group in groups if (each := application_of(spec, group)) is not None}
    files = {playbook: content_of(playbook) for each in found.values() for playbook in (each.stop, each.start)}
    played = {group: each.model_dump(mode="json") for group, each in found.items()}
    return sha256_of({"played": played, "files": files}) if found else None


def application_of(spec: ClusterSpec, group: str) -> GroupApplication | None:
    """How the cluster file stops and starts the group's application; None: its owner does."""
    return next((each for each in spec.group_applications if each.means(group)), None)
