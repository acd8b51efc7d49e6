"""Steps taken twice on one cluster, first in a dry run: what that lists is what the run then does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from kraft_runbook.steps.handle import Act, RehearsedCluster
from kraft_runbook.steps.run import Run


def listed(run: Run, *steps: Callable[[Run], Any]) -> list[str]:
    """The acts that a dry run of these steps lists."""
    here = run.cluster
    dry = replace(run, cluster=RehearsedCluster(here.spec, here.secrets, here.tell, here.gone))
    for step in steps:
        step(dry)
    return names(dry.cluster.acts)


def names(acts: Iterable[Act]) -> list[str]:
    return [each.what for each in acts]
