"""What must not be: two members that may consume one partition, or none that can. Asked on a schedule, and while a
group soaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.groups.classify import classify, cut_off, kafka_mode
from kraft_runbook.groups.fault_kinds import WAY_OUT, WHY_REFUSED, FaultKind
from kraft_runbook.groups.look import GroupLook
from kraft_runbook.groups.partitions import name

_NOW = "stop the new members now, or the registered ones; then look at what was read twice"


class AlarmKind(StrEnum):
    CONTRADICTORY = "CONTRADICTORY"
    NEW_BESIDE_ZOOKEEPER = "new members while the mode is not kafka"
    """Also where the class can't be told, since Kafka's group rebalances just then."""
    FENCED = "fenced beside migrating members"


@dataclass(frozen=True, slots=True)
class Alarm:
    group: str
    kind: AlarmKind
    why: str
    way_out: str

    def line(self) -> str:
        return f"{self.group}: {self.kind}: {self.why}. What to do: {self.way_out}"


def alarms(look: GroupLook) -> Iterator[Alarm]:
    """What of this look is alarming. A member that starts or leaves can look so for a moment: ``lasting``."""
    standing, zookeeper = classify(look), look.zookeeper
    if not was_read(zookeeper):
        return
    # one that has lost its session, or leaves, is in Kafka's group a little longer, and hands out nothing
    new = [each.client_id for each in standing.new if not cut_off(look.name, zookeeper, each)]
    if new and zookeeper.migrating_ids and not kafka_mode(zookeeper):
        others = sorted({each.id for each in zookeeper.members} - zookeeper.migrating_ids)
        because = f"{', '.join(others[:3])} is no migrating member" if others else f"the mode is {zookeeper.mode}"
        yield Alarm(
            look.name,
            AlarmKind.NEW_BESIDE_ZOOKEEPER,
            f"{', '.join(new[:3])} in Kafka's group, and {because}: partitions may be consumed by two",
            _NOW if others else "toggle the group to Kafka (toggle_consumer_group), or stop the new members",
        )
    elif standing.group_class is GroupClass.CONTRADICTORY:
        yield Alarm(look.name, AlarmKind.CONTRADICTORY, standing.why, _NOW)
    if zookeeper.fenced and zookeeper.migrating_ids:
        kind = FaultKind.FENCED_BESIDE_MIGRATING
        fenced = some(map(name, sorted(zookeeper.fenced)))
        yield Alarm(look.name, AlarmKind.FENCED, f"{fenced}: {WHY_REFUSED[kind]}", WAY_OUT[kind])


def lasting(earlier: Iterable[GroupLook], now: Iterable[GroupLook]) -> tuple[Alarm, ...]:
    """The alarms of both looks, as the second one words them."""
    before = {(each.group, each.kind) for look in earlier for each in alarms(look)}
    return tuple(each for look in now for each in alarms(look) if (each.group, each.kind) in before)
