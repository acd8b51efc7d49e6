"""Tells whom the deployment names that a gate waits or a run failed (``KRAFT_RUNBOOK_NOTIFIER``)."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow.sdk.bases.notifier import BaseNotifier

from kraft_runbook.runbook.notifier import NOTIFIER, notifier_of

log = logging.getLogger(__name__)
KEY = "kraft_runbook"
"""Where a notifier finds what it tells of, in the context beside Airflow's own: ``cluster`` and ``what``."""


@dataclass(frozen=True, slots=True)
class Tells:
    """Of one cluster. Called with Airflow's context. That nobody can be told is logged, and stops nothing."""

    cluster: str
    what: str

    def __call__(self, context: Mapping[str, Any]) -> None:
        try:
            notifier = notifier_of(os.environ)
            if notifier is None:
                return
            told = {**context, KEY: {"cluster": self.cluster, "what": self.what}}
            found: Any = notifier.found
            if inspect.isclass(found) and issubclass(found, BaseNotifier):
                found(**notifier.arguments)(told)
                return
            answer = found(**notifier.arguments, context=told)
            if inspect.isawaitable(answer):
                asyncio.run(_awaited(answer))
        except Exception as error:
            log.warning("Nobody is told that %s of %s: %s", self.what, self.cluster, error)


async def _awaited(answer: Any) -> None:
    await answer


def tells_of_failure(cluster: str) -> dict[str, Any]:
    """For ``DAG``: a run that fails is told, where the deployment names a notifier. Airflow calls it in the DAG
    processor.
    """
    named = os.environ.get(NOTIFIER, "").strip()
    return {"on_failure_callback": Tells(cluster, "a run failed")} if named else {}
