"""Tells people that no rehearsal passed by the time when it should have, where the deployment names whom it tells.

``KRAFT_RUNBOOK_NOTIFIER`` is the dotted path of a notifier class or of a function, and a JSON object in
``KRAFT_RUNBOOK_NOTIFIER_ARGUMENTS`` has its arguments. Airflow keeps these in its database, so a password has no place
there: a notifier takes the name of a connection.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pkgutil import resolve_name
from typing import Any

from airflow.sdk.bases.notifier import BaseNotifier
from airflow.sdk.definitions.callback import AsyncCallback, SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from kraft_runbook.cluster.sensitive import is_sensitive, looks_secret
from kraft_runbook.errors import RunbookError

NOTIFIER, ARGUMENTS = "KRAFT_RUNBOOK_NOTIFIER", "KRAFT_RUNBOOK_NOTIFIER_ARGUMENTS"


def deadline_alert(within: timedelta, *, environment: Mapping[str, str] = os.environ) -> DeadlineAlert | None:
    """Calls the notifier where a run has not succeeded in this time after it was queued; None where the deployment
    names no notifier. It runs in the triggerer where it can be awaited, else as a workload of the executor. Raises
    RunbookError for a notifier that can't be found, or for arguments that are no JSON object or hold a secret.
    """
    path = environment.get(NOTIFIER, "").strip()
    if not path:
        return None
    arguments = _arguments(environment.get(ARGUMENTS, "").strip())
    kind = AsyncCallback if _can_be_awaited(_found(path)) else SyncCallback
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT, interval=within, callback=kind(path, kwargs=arguments)
    )


def _found(path: str) -> Callable[..., Any]:
    try:
        found = resolve_name(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise RunbookError(
            f"{NOTIFIER} is {path}, which can't be imported: {error}",
            way_out="name a notifier that is installed where Airflow reads DAGs, in the triggerer and on the workers:"
            " airflow.providers.smtp.notifications.smtp.SmtpNotifier",
        ) from error
    if not callable(found):
        raise RunbookError(f"{NOTIFIER} is {path}, which can't be called", way_out="name a notifier's class")
    return found  # type: ignore[no-any-return]


def _can_be_awaited(notifier: Callable[..., Any]) -> bool:
    if inspect.isclass(notifier) and issubclass(notifier, BaseNotifier):
        return notifier.async_notify is not BaseNotifier.async_notify
    return inspect.iscoroutinefunction(notifier) or hasattr(notifier, "__await__")


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict) or "context" in found:
        raise RunbookError(
            f"{ARGUMENTS} is no JSON object of arguments, without a 'context'",
            way_out='write them as {"to": "kafka@example.org", "subject": "…"}',
        )
    if secrets := sorted(_secrets_in(found)):
        raise RunbookError(
            f"{ARGUMENTS} holds {', '.join(secrets)}: Airflow keeps a deadline's arguments in its database",
            way_out="name an Airflow connection that has it instead",
        )
    return found


def _secrets_in(given: Any, name: str = "") -> Iterator[str]:
    """The names of arguments, at any depth, that hold a secret by their name or by their value."""
    if isinstance(given, dict):
        for key, value in given.items():
            yield from _secrets_in(value, f"{name}.{key}" if name else str(key))
    elif isinstance(given, list):
        for each in given:
            yield from _secrets_in(each, name)
    elif given and (any(map(is_sensitive, name.split("."))) or looks_secret(str(given))):
        yield name
