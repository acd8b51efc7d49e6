"""Keep groups warm in Kafka while their applications start: a member is in each, so that new ones need not wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.kafka.group_anchor import Anchor
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.play_group import application_of


class WarmGroups:
    """An anchor in each group, from now on until it is let go."""

    def __init__(self, anchors: Iterable[Anchor], clock: Callable[[], float] = time.monotonic) -> None:
        self._stack, self._clock = ExitStack(), clock
        self._anchors = {each.group: self._stack.enter_context(each) for each in anchors}

    def let_go(self, awaited: Collection[str] = (), seconds: float = 0.0) -> dict[str, str]:
        """Wait until members have come to these groups, at most so many seconds in all; then no anchor is in any.
        Returns by group how it ended, in words.
        """
        ends = self._clock() + seconds
        for group in awaited:
            if (anchor := self._anchors.get(group)) is not None:
                anchor.over.wait(max(0.0, ends - self._clock()))
        self._stack.close()
        return {group: each.said for group, each in self._anchors.items()}


def keep_warm(spec: ClusterSpec, groups: Iterable[str], *, secrets: Secrets) -> WarmGroups:
    """Begin to keep these groups warm, each by the assignors that the cluster file names for its application. Whoever
    calls it lets them go. A group that can't be kept warm stays cold, and says why when it is let go.
    """
    found = ((group, application_of(spec, group)) for group in groups)
    return WarmGroups(Anchor(spec, group, each.assignors, secrets) for group, each in found if each is not None)
