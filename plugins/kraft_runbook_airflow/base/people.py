"""The people that a cluster file names, as Airflow knows them.

Airflow compares ids: ``assigned_users`` lets those answer whose id stands there
(``BaseAuthManager.is_authorized_hitl_task``). Under the simple auth manager an id is the user name; under FAB it is a
number (``ab_user.id``), which only the API server can look up. So the file names people, Airflow enforces what can be
said by ids, and the gate itself turns away what Airflow let through.
"""

from __future__ import annotations

from typing import Any

from airflow.configuration import conf
from airflow.sdk.execution_time.hitl import HITLUser

from kraft_runbook.cluster.approvals import Approvals


def triggered_by(context: Any) -> str | None:
    """The name of whoever triggered this run; None where Airflow knows no one (``DagRun.triggering_user_name``).

    In the UI and by the API it is the name that signatures carry too; ``airflow dags trigger`` puts the account of the
    machine there.
    """
    name = getattr(context.get("dag_run"), "triggering_user_name", None)
    return str(name) if name else None


def assigned_users(approvals: Approvals, *, excluded: str | None) -> list[HITLUser] | None:
    """Whom Airflow lets answer; None: whoever may edit the DAG, since not everyone's id is known here. ``excluded``:
    who triggered the run.
    """
    ids_are_names = users_of_simple_auth_manager() is not None
    people = [each for each in approvals.users if not (approvals.exclude_trigger and each.name == excluded)]
    if not people or any(each.id is None and not ids_are_names for each in people):
        return None
    return [HITLUser(id=each.id or each.name, name=each.name) for each in people]


def users_of_simple_auth_manager() -> frozenset[str] | None:
    """The names that the simple auth manager knows; empty where it lets everyone in as an administrator. None: another
    auth manager is in force.
    """
    if not conf.get("core", "auth_manager").endswith(".SimpleAuthManager"):
        return None
    if conf.getboolean("core", "simple_auth_manager_all_admins", fallback=False):
        return frozenset()
    return frozenset(pair.partition(":")[0].strip() for pair in conf.getlist("core", "simple_auth_manager_users"))
