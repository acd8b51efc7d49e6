"""Many groups on a schedule: which are toggled now, which wait and why, and when all go back. Nobody signs such a run;
what bounds it is here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.group_toggles import GroupToggles, Relief
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.groups.classify import classify, kafka_mode
from kraft_runbook.groups.look import GroupLook, Mode
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.toggles.toggle import Toggle, plan_toggle, who_is_there
from kraft_runbook.runbook.digests import sha256_of


@dataclass(frozen=True, slots=True)
class Seen:
    """A group as earlier runs saw it. ``who``: the digest of who is there; ``since``: when it was first so, seconds
    since the epoch.
    """

    who: str
    since: float


@dataclass(frozen=True, slots=True)
class Kept:
    """What the runs of a fleet know of those before. ``toggled``: by group, when a run has toggled it to Kafka, seconds
    since the epoch; ``settled``: those of them that had settled. ``failed``: by group, the digest of the members with
    which it was put back (``digest_of_members``): it is not tried again with them. ``halted``: why no group is toggled
    until a person says so; empty: none is held back. ``relief``: why all go back, kept until all have: a run may be
    killed half-way, and the metric falls as soon as the first ones are back; empty: none does.
    """

    seen: Mapping[str, Seen] = field(default_factory=dict)
    toggled: Mapping[str, float] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()
    failed: Mapping[str, str] = field(default_factory=dict)
    halted: str = ""
    relief: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "seen": {group: [each.who, each.since] for group, each in self.seen.items()},
            "toggled": dict(self.toggled),
            "settled": sorted(self.settled),
            "failed": dict(self.failed),
            "halted": self.halted,
            "relief": self.relief,
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Kept:
        """Raises AttributeError, KeyError, TypeError, ValueError."""
        return Kept(
            {str(group): Seen(str(who), float(since)) for group, (who, since) in data["seen"].items()},
            {str(group): float(at) for group, at in data["toggled"].items()},
            frozenset(map(str, data["settled"])),
            {str(group): str(who) for group, who in data["failed"].items()},
            str(data["halted"]),
            str(data["relief"]),
        )

    # -- what a run has done -------------------------------------------------------------------------------------------

    def with_toggled(self, group: str, at: float) -> Kept:
        return replace(self, toggled={**self.toggled, group: at}, settled=self.settled - {group})

    def with_settled(self, groups: Iterable[str]) -> Kept:
        return replace(self, settled=self.settled.union(groups).intersection(self.toggled))

    def with_back(self, group: str, *, failed: str = "") -> Kept:
        """The group is ZooKeeper's again. ``failed``: the members with which it can't stay; empty: nothing failed."""
        toggled = {name: at for name, at in self.toggled.items() if name != group}
        also = {**self.failed, **({group: failed} if failed else {})}
        return replace(self, toggled=toggled, settled=self.settled - {group}, failed=also)


@dataclass(frozen=True)
class FleetPlan:
    """``toggle``: to Kafka, in this run; ``back``: to ZooKeeper; ``stuck``: groups that should go back and can't, with
    the reason. ``waits``: the others, with the reason. ``relief``: why all go back; empty: nothing asks for it.
    ``kept``: for the next run, before anything is done.
    """

    toggle: tuple[Toggle, ...]
    back: tuple[Toggle, ...]
    stuck: Mapping[str, str]
    waits: Mapping[str, str]
    relief: str
    kept: Kept

    def render_text(self) -> str:
        lines = [each.line() for each in (*self.back, *self.toggle)]
        lines += [f"{group} should go back and can't: {why}" for group, why in self.stuck.items()]
        lines += [f"{group} waits: {why}" for group, why in self.waits.items()]
        count = f"{len(self.toggle)} to Kafka, {len(self.back)} back, {len(self.waits)} wait"
        return "\n".join([*([self.relief] if self.relief else []), *lines, count])


def plan_fleet(
    earlier: Sequence[GroupLook],
    looks: Sequence[GroupLook],
    settings: GroupToggles,
    kept: Kept,
    now: float,
    metric: float | Unread | None,
) -> FleetPlan:
    """What a run does. ``earlier``, ``looks``: of all groups with migrating members, some moments apart; ``metric``:
    the worst value of any broker; None: the file names no metric.
    """
    before = {each.name: each for each in earlier}
    mine = [each for each in looks if settings.means(each.name) or each.name in kept.toggled]
    kept = _seen_again(kept, mine, now)
    relief = settings.relief
    passed = relief.passed(metric) if relief is not None and was_read(metric) and metric is not None else ""
    asked_back = passed or (kept.relief if kept.toggled else "")
    kept = replace(kept, relief=asked_back if kept.toggled else "")
    if asked_back:
        back, stuck = _all_back(before, mine, kept)
        halted = replace(kept, halted=asked_back)
        held_back = {each.name: asked_back for each in mine if each.name not in kept.toggled}
        return FleetPlan((), tuple(back), stuck, held_back, asked_back, halted)
    hold = _unreadable(metric, relief) or _under_way(kept)
    ready: list[Toggle] = []
    waits: dict[str, str] = {}
    for look in mine:
        if look.name in kept.toggled:
            continue
        why = kept.halted or _why_not_yet(look, settings, kept, now) or hold
        planned = plan_toggle(before.get(look.name, look), look, Direction.TO_KAFKA) if not why else None
        if isinstance(planned, Toggle) and len(ready) < settings.at_once:
            ready.append(planned)
        elif isinstance(planned, Toggle):
            waits[look.name] = f"{settings.at_once} are toggled at once"
        else:
            waits[look.name] = why or "; ".join(each.why for each in planned or ())
    return FleetPlan(tuple(ready), (), {}, waits, "", kept)


def _seen_again(kept: Kept, looks: Sequence[GroupLook], now: float) -> Kept:
    """Who is where now, and since when. A group that a person has put back, that has new members alone by now, or that
    has gone, is not the fleet's any more.
    """
    seen: dict[str, Seen] = {}
    there = {each.name for each in looks}
    toggled = {group: at for group, at in kept.toggled.items() if group in there}
    for look in looks:
        who = digest_of(look)
        if not who:
            if look.name in kept.seen:
                seen[look.name] = kept.seen[look.name]  # not read at this moment: nothing is known to have changed
            continue
        was = kept.seen.get(look.name)
        seen[look.name] = was if was is not None and was.who == who else Seen(who, now)
        put_back = was_read(look.zookeeper) and look.zookeeper.mode is not Mode.KAFKA
        if put_back or classify(look).group_class is GroupClass.ALL_NEW:
            toggled.pop(look.name, None)
    return replace(kept, seen=seen, toggled=toggled, settled=kept.settled.intersection(toggled))


def digest_of(look: GroupLook) -> str:
    """Of who is there and of the mode; empty where a side was not read."""
    who = who_is_there(look)
    return sha256_of(dict(who)) if who else ""


def digest_of_members(look: GroupLook) -> str:
    """The same without the mode, which a toggle back changes."""
    who = {each: there for each, there in who_is_there(look).items() if each != "migration/mode"}
    return sha256_of(who) if who else ""


def _why_not_yet(look: GroupLook, settings: GroupToggles, kept: Kept, now: float) -> str:
    zookeeper, seen = look.zookeeper, kept.seen.get(look.name)
    if was_read(zookeeper) and kafka_mode(zookeeper):
        return "it follows Kafka by now"
    if seen is not None and now - seen.since < settings.unchanged_for:
        return f"unchanged for {now - seen.since:.0f} of {settings.unchanged_for:.0f} s"
    if kept.failed.get(look.name) == digest_of_members(look):
        return "it was put back with these members: have them looked at, then restart one, or toggle it by hand"
    return ""


def _unreadable(metric: float | Unread | None, relief: Relief | None) -> str:
    if relief is None or was_read(metric):
        return ""
    return f"{relief.metric} could not be read, and nobody would see that the brokers suffer: {metric.reason}"


def _under_way(kept: Kept) -> str:
    """Groups that an earlier run toggled settle first."""
    going = sorted(set(kept.toggled) - kept.settled)
    return f"{some(going)}: not settled yet" if going else ""


def _all_back(
    before: Mapping[str, GroupLook], looks: Sequence[GroupLook], kept: Kept
) -> tuple[list[Toggle], dict[str, str]]:
    """Every group that a run has toggled. What is refused for one keeps no other."""
    back: list[Toggle] = []
    stuck: dict[str, str] = {}
    for look in looks:
        if look.name not in kept.toggled:
            continue
        planned = plan_toggle(before.get(look.name, look), look, Direction.BACK)
        if isinstance(planned, Toggle):
            back.append(planned)
        else:
            stuck[look.name] = "; ".join(f"{each.why}; {each.way_out}" for each in planned)
    return back, stuck
