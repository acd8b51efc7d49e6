"""Reading offsets.retention.minutes of every broker, since any of them may become a group's coordinator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Unreachable
from kraft_runbook.groups.expiry import Retention
from kraft_runbook.io.kafka.dynamic_configs import Entity, EntityKind, Found, read_configs
from kraft_runbook.io.secrets import Secrets

KEY = "offsets.retention.minutes"


def read_offsets_retention(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    read: Callable[..., Mapping[Entity, Found]] = read_configs,
) -> Retention:
    """The least of the brokers that answer; the others are named. Raises Unreachable where none does, Refused where
    this tool's identity may not describe configurations.
    """
    told: list[int] = []
    unread: list[str] = []
    for broker in spec.brokers:
        entity = Entity(EntityKind.BROKER, str(broker.id))
        try:
            found = read(spec, [entity], [KEY], secrets=secrets, timeout=10.0)[entity].effective.get(KEY)
        except Unreachable as error:
            unread.append(error.problem)
            continue
        if found is None or not found.isdecimal():
            unread.append(f"broker {broker.id} does not say {KEY}")
        else:
            told.append(int(found))
    if not told:
        raise Unreachable(
            f"no broker says {KEY}: {'; '.join(unread) or 'the cluster file names none'}",
            way_out="start a broker; without it nobody knows how long the offsets wait for new members",
        )
    return Retention(min(told), tuple(unread))
