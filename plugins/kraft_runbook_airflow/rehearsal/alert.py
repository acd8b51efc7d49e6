"""Tells people that no rehearsal passed by the time when it should have, where the deployment names whom it tells."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk.bases.notifier import BaseNotifier
from airflow.sdk.definitions.callback import AsyncCallback, SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from kraft_runbook.runbook.notifier import notifier_of


def deadline_alert(within: timedelta, *, environment: Mapping[str, str] = os.environ) -> DeadlineAlert | None:
    """Calls the notifier where a run has not succeeded in this time after it was queued; None where the deployment
    names no notifier. It runs in the triggerer where it can be awaited, else as a workload of the executor. Raises as
    ``notifier_of``.
    """
    notifier = notifier_of(environment)
    if notifier is None:
        return None
    kind = AsyncCallback if _can_be_awaited(notifier.found) else SyncCallback
    callback = kind(notifier.path, kwargs=dict(notifier.arguments))
    return DeadlineAlert(reference=DeadlineReference.DAGRUN_QUEUED_AT, interval=within, callback=callback)


def _can_be_awaited(notifier: Callable[..., Any]) -> bool:
    if inspect.isclass(notifier) and issubclass(notifier, BaseNotifier):
        return notifier.async_notify is not BaseNotifier.async_notify
    return inspect.iscoroutinefunction(notifier) or hasattr(notifier, "__await__")
