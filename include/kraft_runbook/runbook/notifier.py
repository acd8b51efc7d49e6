"""Whom a deployment tells that a gate waits, a run failed, or a rehearsal did not pass in time: a notifier, by its name
and with its arguments.

``KRAFT_RUNBOOK_NOTIFIER`` is the dotted path of a notifier class or of a function, and a JSON object in
``KRAFT_RUNBOOK_NOTIFIER_ARGUMENTS`` has its arguments. Airflow keeps these in its database, so a password has no place
there: a notifier takes the name of a connection.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

from kraft_runbook.cluster.sensitive import is_sensitive, looks_secret
from kraft_runbook.errors import RunbookError

log = logging.getLogger(__name__)
KEY = "kraft_runbook"
"""Where a notifier finds what it is told of, in the context beside Airflow's own: ``cluster`` and ``what``."""
NOTIFIER, ARGUMENTS = "KRAFT_RUNBOOK_NOTIFIER", "KRAFT_RUNBOOK_NOTIFIER_ARGUMENTS"


@dataclass(frozen=True, slots=True)
class Notifier:
    """``path``: its dotted name. ``found``: what that names. ``arguments``: what it is called with."""

    path: str
    found: Callable[..., Any]
    arguments: Mapping[str, Any]


def notifier_of(environment: Mapping[str, str]) -> Notifier | None:
    """The notifier that the deployment names; None where it names none. Raises RunbookError for one that can't be
    found, or for arguments that are no JSON object or hold a secret.
    """
    path = environment.get(NOTIFIER, "").strip()
    if not path:
        return None
    arguments = _arguments(environment.get(ARGUMENTS, "").strip())
    return Notifier(path, _found(path), arguments)


@dataclass(frozen=True, slots=True)
class Tells:
    """Tells whom the deployment names, of one cluster. Called with Airflow's context, as its callbacks are. That nobody
    can be told is logged, and stops nothing.
    """

    cluster: str
    what: str

    def __call__(self, context: Mapping[str, Any]) -> None:
        try:
            notifier = notifier_of(os.environ)
            if notifier is None:
                return
            found: Any = notifier.found
            told = {**context, KEY: {"cluster": self.cluster, "what": self.what}}
            if isinstance(found, type):
                instance: Any = found(**notifier.arguments)
                instance(told)
            elif inspect.isawaitable(answer := found(**notifier.arguments, context=told)):
                asyncio.run(_awaited(answer))
        except Exception as error:
            log.warning("Nobody is told that %s of %s: %s", self.what, self.cluster, error)


async def _awaited(answer: Any) -> None:
    await answer


def tells_of_failure(cluster: str) -> dict[str, Any]:
    """For a DAG: a run that fails is told, where the deployment names a notifier. Airflow calls it in the DAG
    processor.
    """
    named = os.environ.get(NOTIFIER, "").strip()
    return {"on_failure_callback": Tells(cluster, "a run failed")} if named else {}


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
