"""The throttles that one run has set, as it writes them down before it sets them. JSON.

A plan can be made anew, a rate can be changed, and a worker can be killed between the note and the change. So this
holds everything that may be set, and what is put back does not depend on the run's present plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kraft_runbook.cluster.assignment import Move, TopicPartition
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.throttles import (
    EVERYWHERE,
    FOLLOWER_LIST,
    RATES,
    Former,
    Leftover,
    entries_of,
    throttled_lists,
)

Lists = Mapping[str, Mapping[str, frozenset[str]]]
"""By topic and key, the entries ``partition:broker``."""


@dataclass(frozen=True, slots=True)
class RunThrottles:
    """``rates``: bytes a second, each that was or may have been set on the brokers' default, the latest last.
    ``lists``: the entries that were or may have been added to topics' lists.
    """

    rates: tuple[int, ...] = ()
    lists: Lists = field(default_factory=dict)

    @staticmethod
    def of(moves: Iterable[Move], rate: int) -> RunThrottles:
        """Of these moves at this rate."""
        return RunThrottles((rate,), throttled_lists(moves))

    @property
    def rate(self) -> int | None:
        """The latest; None where nothing was set."""
        return self.rates[-1] if self.rates else None

    def and_then(self, later: RunThrottles) -> RunThrottles:
        """What may be set once ``later`` was set as well."""
        lists = {topic: dict(entries) for topic, entries in self.lists.items()}
        for topic, entries in later.lists.items():
            mine = lists.setdefault(topic, {})
            for key, added in entries.items():
                mine[key] = mine.get(key, frozenset()) | added
        return RunThrottles((*(each for each in self.rates if each not in later.rates), *later.rates), lists)

    def beyond(self, needed: RunThrottles) -> Lists:
        """The entries of topics' lists that ``needed`` does not have."""
        found: dict[str, dict[str, frozenset[str]]] = {}
        for topic, entries in self.lists.items():
            kept = needed.lists.get(topic, {})
            left = {key: each - kept.get(key, frozenset()) for key, each in entries.items()}
            if any(left.values()):
                found[topic] = left
        return found

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """Those whose copies the lists name."""
        return frozenset(
            TopicPartition(topic, int(each.partition(":")[0]))
            for topic, lists in self.lists.items()
            for each in lists.get(FOLLOWER_LIST, ())
        )

    def among(self, left: Iterable[Leftover], former: Former) -> tuple[Leftover, ...]:
        """Those that this run may have set. A broker's own rate is none of them, nor is what somebody set meanwhile."""

        def is_mine(each: Leftover) -> bool:
            if each.where == EVERYWHERE:
                return each.value in map(str, self.rates)
            topic = each.where.removeprefix("topic ")
            before = entries_of(former.lists.get(topic, {}).get(each.key))
            mine = self.lists.get(topic, {}).get(each.key, frozenset()) - before
            return bool(mine & entries_of(each.value))

        return tuple(each for each in left if is_mine(each))

    def to_json(self) -> str:
        lists = {topic: {key: sorted(each) for key, each in keys.items()} for topic, keys in self.lists.items()}
        return json.dumps({"rates": list(self.rates), "lists": lists})

    @staticmethod
    def from_json(text: str, *, source: str) -> RunThrottles:
        """``source`` names the file in errors. Raises Refused where it holds something else."""
        try:
            body: Mapping[str, Any] = json.loads(text)
            return RunThrottles(
                tuple(int(each) for each in body["rates"]),
                {topic: {key: frozenset(each) for key, each in keys.items()} for topic, keys in body["lists"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Refused(
                f"{source} does not say which throttles were set ({type(error).__name__}: {error})",
                way_out="look at what is set (kraft-runbook reassign status), and remove by hand what this run left",
            ) from None


Earlier = tuple[RunThrottles, Former]
"""What a run has set and not put back, and what it will put back."""


def before_all_runs(found: Former, others: Iterable[Earlier]) -> Former:
    """What of ``found`` none of these runs has set: what a run that finds it must put back. What another run has set is
    never given back as if it had been there: that one may put its own back first, and forgets it then. ``others``: the
    latest first.
    """
    rates, lists = dict(found.rates), {topic: dict(values) for topic, values in found.lists.items()}
    for ours, former in others:
        for key in RATES:
            if key in rates and rates[key] in [str(each) for each in ours.rates]:
                del rates[key]
                rates |= {key: former.rates[key]} if key in former.rates else {}
        for topic, keys in ours.lists.items():
            for key, entries in keys.items():
                before = entries_of(former.lists.get(topic, {}).get(key))
                left = entries_of(lists.get(topic, {}).get(key)) - (entries - before)
                if key in lists.get(topic, {}):
                    lists[topic] |= {key: ",".join(sorted(left))}
    kept = {topic: {key: value for key, value in values.items() if value} for topic, values in lists.items()}
    return Former(rates, found.of_brokers, {topic: values for topic, values in kept.items() if values})
