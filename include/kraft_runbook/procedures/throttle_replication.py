"""Set a plan's throttles, take them away again, and prove that none is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kraft_runbook.cluster.assignment import Move
from kraft_runbook.cluster.config_changes import LONGEST_TEXT, ConfigChange, Subtract
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed, Unreachable
from kraft_runbook.io.kafka.dynamic_configs import (
    ALL_BROKERS,
    Entity,
    EntityKind,
    Found,
    NotDescribed,
    alter_configs,
    read_configs,
)
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.slices import slices
from kraft_runbook.reassignment.run_throttles import Lists, RunThrottles
from kraft_runbook.reassignment.throttles import (
    LISTS,
    RATES,
    UNREADABLE,
    Former,
    Leftover,
    Values,
    entries_of,
    leftovers,
    put_back,
    rates_put_back,
    throttled_lists,
    too_long,
    with_ours,
)

MOST_UNREADABLE = 20
"""Lists that are looked for one by one."""
ENTRIES_A_REQUEST = 1_000
"""Of a list: these have fewer bytes than a request takes."""
SEEN_WITHIN = 10.0
"""Seconds in which what was written must be readable: 1.5 s were seen on 3.9.2."""


@dataclass(frozen=True, slots=True)
class Configs:
    """How dynamic configurations are read and changed. ``within``: seconds in which a change must be readable."""

    read: Callable[..., Mapping[Entity, Found]] = read_configs
    alter: Callable[..., Collection[Entity]] = alter_configs
    within: float = SEEN_WITHIN


KAFKAS = Configs()


def read_throttles(
    spec: ClusterSpec,
    topics: Collection[str],
    *,
    secrets: Secrets,
    live: Collection[int] | None = None,
    keys: Sequence[str] = RATES,
    configs: Configs = KAFKAS,
) -> Former:
    """The throttles that are set on the brokers' default, on each live broker (all that answer by default) and on these
    topics. ``keys``: of which rates. Raises Unreachable.
    """
    rates = configs.read(spec, [ALL_BROKERS], keys, secrets=secrets)[ALL_BROKERS].own
    of_brokers: dict[int, Mapping[str, str]] = {}
    for broker in spec.broker_ids if live is None else live:
        try:
            entity = Entity(EntityKind.BROKER, str(broker))
            of_brokers[broker] = configs.read(spec, [entity], keys, secrets=secrets)[entity].own
        except Unreachable:
            if live is not None:
                raise
    lists = _lists(partial(configs.read, spec, secrets=secrets), sorted(topics))
    return Former(
        dict(rates),
        {broker: values for broker, values in of_brokers.items() if values},
        {topic: each for topic, each in lists.items() if each},
    )


def _lists(read: Callable[..., Mapping[Entity, Found]], topics: Sequence[str]) -> Mapping[str, Values]:
    """By topic. A list that can't be read keeps all that is asked for with it from being shown, so it is looked for by
    halves; ``UNREADABLE`` stands for it. Raises NotDescribed where that is not what ails them: it is so of many.
    """
    found: dict[str, dict[str, str]] = {}
    left: list[tuple[Sequence[str], Sequence[str]]] = [(topics, LISTS)]
    unread = 0
    while left:
        asked, keys = left.pop()
        try:
            shown = read([Entity(EntityKind.TOPIC, topic) for topic in asked], keys)
        except NotDescribed:
            middle = len(asked) // 2
            if middle:
                left += [(asked[:middle], keys), (asked[middle:], keys)]
            elif len(keys) > 1:
                left += [(asked, [key]) for key in keys]
            elif (unread := unread + 1) <= MOST_UNREADABLE:
                found.setdefault(asked[0], {})[keys[0]] = UNREADABLE
            else:
                raise
        else:
            for entity, each in shown.items():
                found.setdefault(entity.name, {}).update(each.own)
    return found


def set_rate(spec: ClusterSpec, rate: int, *, secrets: Secrets, configs: Configs = KAFKAS) -> None:
    """Allow moves ``rate`` bytes a second a broker, in each direction, and wait until every broker that answers shows
    it: until then it would copy as fast as it can. To be done again it needs no memory. The caller has saved the former
    values.

    Raises Unreachable; StepFailed where a broker does not show it in time.
    """
    now = configs.read(spec, [ALL_BROKERS], RATES, secrets=secrets)[ALL_BROKERS].own
    changes = {ALL_BROKERS: {key: str(rate) for key in RATES if now.get(key) != str(rate)}}
    configs.alter(spec, changes, secrets=secrets)
    _await(lambda: _without_rate(spec, rate, secrets, configs), configs)


def list_moves(spec: ClusterSpec, moves: Iterable[Move], *, secrets: Secrets, configs: Configs = KAFKAS) -> None:
    """Let the rate count for these moves, and wait until that can be read. What is listed already stays. A topic that
    was deleted meanwhile is left out. Raises as ``set_rate``; StepFailed too, before anything is sent, where a list
    would be longer than anybody can read.
    """
    lists = throttled_lists(moves)
    if not lists:
        return
    now = read_throttles(spec, lists, secrets=secrets, live=(), configs=configs)
    if full := [f"{key} of topic {t}" for t in lists for key in too_long(now.lists.get(t, {}), lists[t])]:
        raise StepFailed(
            f"lists of throttled replicas would have more than {LONGEST_TEXT:,} bytes, which nobody can read any more:"
            f" {some(full)}",
            way_out="remove what another tool has listed there (kafka-reassign-partitions --verify, with a plan that"
            " names the topic, once nothing of it moves), then clear this task",
        )
    changes = {Entity(EntityKind.TOPIC, topic): with_ours(now.lists.get(topic, {}), lists[topic]) for topic in lists}
    gone = {entity.name for entity in configs.alter(spec, changes, secrets=secrets)}
    lists = {topic: ours for topic, ours in lists.items() if topic not in gone}
    _await(lambda: _not_listed(spec, lists, secrets, configs), configs)


def unlist(spec: ClusterSpec, ended: Lists, former: Former, *, secrets: Secrets, configs: Configs = KAFKAS) -> None:
    """Take these entries off the topics' lists, but for those that were there before. Raises Unreachable."""
    now = _readable(spec, ended, former, secrets, configs)
    configs.alter(spec, _lists_put_back(now, ended, former), secrets=secrets)


def _readable(spec: ClusterSpec, ours: Lists, former: Former, secrets: Secrets, configs: Configs) -> Former:
    """What is set now. Of a list that can't be read our own entries are taken off first, without a look: they are
    known.
    """
    now = read_throttles(spec, ours, secrets=secrets, live=(), configs=configs)
    unread = [
        (topic, key) for topic, keys in ours.items() for key in keys if now.lists.get(topic, {}).get(key) == UNREADABLE
    ]
    for topic, key in unread:
        mine = ours[topic][key] - entries_of(former.lists.get(topic, {}).get(key))
        for part in slices(sorted(mine), ENTRIES_A_REQUEST):
            configs.alter(spec, {Entity(EntityKind.TOPIC, topic): {key: Subtract(",".join(part))}}, secrets=secrets)
    return read_throttles(spec, ours, secrets=secrets, live=(), configs=configs) if unread else now


def _await(missing: Callable[[], Iterator[str]], configs: Configs) -> None:
    deadline = time.monotonic() + configs.within
    while found := list(missing()):
        if time.monotonic() > deadline:
            raise StepFailed(
                f"the throttle is not in force after {configs.within:g} s: {some(found, between='; ')}",
                way_out="look at the logs of the brokers that are named, then do this step again",
            )
        time.sleep(0.3)


def _without_rate(spec: ClusterSpec, rate: int, secrets: Secrets, configs: Configs) -> Iterator[str]:
    """A broker's own rate counts more than the default, and is not ours to change."""
    for broker in spec.broker_ids:
        entity = Entity(EntityKind.BROKER, str(broker))
        try:
            found = configs.read(spec, [entity], RATES, secrets=secrets)[entity]
        except Unreachable:
            continue
        for key in RATES:
            if key not in found.own and found.effective.get(key) != str(rate):
                yield f"broker {broker}: {key}={found.effective.get(key)}"


def _not_listed(spec: ClusterSpec, lists: Lists, secrets: Secrets, configs: Configs) -> Iterator[str]:
    now = read_throttles(spec, lists, secrets=secrets, live=(), configs=configs)
    yield from (f"topic {topic}" for topic, ours in lists.items() if with_ours(now.lists.get(topic, {}), ours))


def _lists_put_back(now: Former, ours: Lists, former: Former) -> dict[Entity, Mapping[str, ConfigChange]]:
    return {
        Entity(EntityKind.TOPIC, topic): put_back(now.lists.get(topic, {}), entries, former.lists.get(topic, {}))
        for topic, entries in ours.items()
    }


def remove_throttles(
    spec: ClusterSpec, ours: RunThrottles, former: Former, *, secrets: Secrets, configs: Configs = KAFKAS
) -> tuple[Leftover, ...]:
    """Put everything back to what it was before ``ours`` was set, and look until that can be read. Returns what is left
    of throttles on these topics, on the brokers and on their default that was not there before: none where all is
    well. A topic that no longer exists has none.
    """
    now = _readable(spec, ours.lists, former, secrets, configs)
    changes = _lists_put_back(now, ours.lists, former)
    changes[ALL_BROKERS] = rates_put_back(now.rates, ours.rates, former.rates)
    configs.alter(spec, changes, secrets=secrets)
    return sweep(spec, ours.lists, former, secrets=secrets, configs=configs)


def sweep(
    spec: ClusterSpec,
    topics: Collection[str],
    former: Former,
    *,
    secrets: Secrets,
    within: float | None = None,
    configs: Configs = KAFKAS,
) -> tuple[Leftover, ...]:
    """What differs from the former throttles: looked at until nothing does, or ``within`` seconds (SEEN_WITHIN by
    default) are over.
    """
    deadline = time.monotonic() + (configs.within if within is None else within)
    while found := leftovers(read_throttles(spec, topics, secrets=secrets, configs=configs), former):
        if time.monotonic() > deadline:
            break
        time.sleep(0.5)
    return found


def require_swept(found: Collection[Leftover]) -> None:
    """Raise StepFailed, which names what is left, where anything is."""
    if found:
        raise StepFailed(
            f"{len(found)} throttles are left: {some(found, between='; ')}",
            way_out="remove them (kafka-configs --alter --delete-config), or do this step again",
        )
