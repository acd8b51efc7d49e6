"""Looking again and again at groups that stop, and at such as start, until all are as wanted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.groups.look import GroupLook
from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.groups.silence import Silence, listen
from kraft_runbook.groups.stopped import Started, in_place, started
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.see_groups import look_at_groups

Looks = Callable[..., Iterable[GroupLook]]
"""How groups are looked at: as ``look_at_groups``."""


class Listening:
    """Until nobody is there and nothing was committed for two commit intervals. ``interval``: seconds, that of the
    members that stop (auto.commit.interval.ms). ``clock``: one that only goes forward. ``stopped``: gets each look that
    shows nobody, from the first on. ``waits``: by group, of the last look.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        plans: Sequence[MovePlan],
        interval: float,
        *,
        secrets: Secrets,
        clock: Callable[[], float] = time.monotonic,
        stopped: Callable[[MovePlan, GroupLook], None] = lambda plan, look: None,
        looks: Looks = look_at_groups,
    ) -> None:
        self._looks = looks
        self._spec, self._secrets, self._clock, self._interval = spec, secrets, clock, interval
        self._plans = {each.group: each for each in plans}
        self._heard: dict[str, Silence] = {}
        self._stopped = stopped
        self.waits: dict[str, str] = {}

    def __call__(self) -> tuple[str, ...]:
        """Raises Unreachable: what is silent by then begins anew, since nobody looked meanwhile."""
        try:
            looks = _by_group(self._looks, self._spec, self._plans, self._secrets)
        except Exception:
            self._heard.clear()
            raise
        now = self._clock()
        waits: dict[str, str] = {}
        for group, plan in self._plans.items():
            look = looks.get(group)
            if look is None:
                self._heard.pop(group, None)
                waits[group] = f"{group}: it is not below /consumers any more"
                continue
            silence = listen(self._heard.get(group), look, plan.direction, now)
            self._heard[group] = silence
            if silence.since is not None:
                self._stopped(plan, look)
            if not silence.lasted(now, self._interval):
                told = silence.told(now, self._interval)
                waits[group] = told if told.startswith(f"{group}:") else f"{group}: {told}"
        self.waits = waits
        return tuple(waits.values())


class Starting:
    """Until the members of the new side own every partition and read on. ``lost``: by group, what of the offsets that
    were written is not there any more; ``waits``: what is missing; ``unread``: as of ``Started``. All as of the last
    look.
    """

    def __init__(
        self, spec: ClusterSpec, plans: Sequence[MovePlan], *, secrets: Secrets, looks: Looks = look_at_groups
    ) -> None:
        self._looks = looks
        self._spec, self._secrets = spec, secrets
        self._plans = {each.group: each for each in plans}
        self.seen: dict[str, Started] = {}
        self.lost: dict[str, tuple[str, ...]] = {}
        self.waits: dict[str, str] = {}
        self.unread: dict[str, str] = {}

    def __call__(self) -> tuple[str, ...]:
        """Raises Unreachable."""
        looks = _by_group(self._looks, self._spec, self._plans, self._secrets)
        waits: dict[str, str] = {}
        self.lost = {}
        for group, plan in self._plans.items():
            look = looks.get(group)
            if look is not None and (lost := in_place(plan, look)):
                self.lost[group] = lost
            found = Started(("it is not below /consumers any more",), None) if look is None else started(plan, look)
            self.seen[group] = found
            if found.missing:
                waits[group] = f"{group}: {'; '.join(found.missing)}"
        self.waits = waits
        self.unread = {group: found.unread for group, found in self.seen.items() if found.unread}
        return tuple(waits.values())


def _by_group(
    looks: Looks, spec: ClusterSpec, groups: Mapping[str, MovePlan], secrets: Secrets
) -> dict[str, GroupLook]:
    return {each.name: each for each in looks(spec, secrets=secrets, names=list(groups), plans=groups.values())}
