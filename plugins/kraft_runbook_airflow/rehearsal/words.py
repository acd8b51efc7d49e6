"""The words of the rehearsal's DAG."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.rehearsal.verdict import SHORT_DOES
from kraft_runbook_airflow.base import words
from kraft_runbook_airflow.base.forms import dry_run, flag
from kraft_runbook_airflow.rehearsal.alert import deadline_alert
from kraft_runbook_airflow.rehearsal.tasks import RehearseOperator, RemoveThrowaway

ENDING = timedelta(minutes=15)
"""What a rehearsal has for its own end, beyond its time limit and as long a wait for another one in its place."""
REMOVAL = timedelta(minutes=10)


def clusters_that_are_rehearsed() -> Iterator[tuple[ClusterSpec, Rehearsal]]:
    """Those whose file says where."""
    for cluster in words.clusters_served_by(MIGRATION):
        if cluster.rehearsal is not None:
            yield cluster, cluster.rehearsal


def canary_dag(cluster: ClusterSpec, settings: Rehearsal, *, doc: str | None) -> DAG:
    """``canary_migration__<cluster>``, on the file's schedule, one run at a time, without a person.

    Paused when it is created: Airflow runs the slot that a new DAG has missed at once. Without a ``dagrun_timeout``:
    it would mark the clean-up as skipped, and leave everything running (measured on 3.3.2); each task has a time-out.
    A deadline only tells people, where the deployment names a notifier (``alert``).
    """
    limit = 2 * timedelta(seconds=settings.time_limit) + ENDING
    with DAG(
        **words.of_cluster(
            "canary_migration",
            cluster,
            f"rehearsal of {cluster.name}'s migration with its own metadata, which is only read",
            f"{doc or ''}\n\n**{cluster.name}**: {cluster.description}",
        ),
        schedule=settings.schedule,
        max_active_runs=1,
        is_paused_upon_creation=True,
        deadline=deadline_alert(limit + REMOVAL),
        params={
            **dry_run(cluster, "Say what would be tried, start nothing"),
            "short": flag("To dual write and back only", SHORT_DOES),
        },
    ) as dag:
        given: dict[str, Any] = {"pool": settings.pool} if settings.pool else {}
        rehearsed = RehearseOperator(task_id="rehearse", cluster=cluster.name, execution_timeout=limit, **given)
        removed = RemoveThrowaway(task_id="remove_throwaway", cluster=cluster.name, execution_timeout=REMOVAL)
        # With True, a rehearsal that failed would show as a run that succeeded (measured on 3.3.2).
        removed.as_teardown(on_failure_fail_dagrun=False)
        rehearsed >> removed
    return dag
