"""What Airflow's API server serves of the clusters: HTML for Airflow's own pages, the same as JSON, and the evidence.

Airflow lets anybody call a plugin's app, so every route asks who calls. A person sees of a cluster what the DAGs show
that this person may read. No cluster is asked here: only files are read.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from croniter import croniter

from kraft_runbook.dashboard.clusters_of_dags import ClustersOfDags
from kraft_runbook.dashboard.dag_names import cluster_of
from kraft_runbook.dashboard.facts import ClusterFacts, Clusters
from kraft_runbook.dashboard.out_of_sync import out_of_sync_in
from kraft_runbook.dashboard.page import Links, render_cluster, render_clusters, render_words
from kraft_runbook.dashboard.runs_seen import RunsRead
from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.page import render_page
from kraft_runbook.evidence.run_report import make_report
from kraft_runbook.evidence.store import evidence_directory, inspect_run, run_name
from kraft_runbook_airflow.base.environment import clusters_directory, state_directory
from kraft_runbook_airflow.base.report_link import PAGES, ROUTE, airflows_path

if TYPE_CHECKING:
    from fastapi import FastAPI

PREFIX = PAGES
SCRIPT = Path(__file__).with_name("page.js")
HEADERS = {"Cache-Control": "private, no-store", "X-Content-Type-Options": "nosniff"}
AS_EVIDENCE = HEADERS | {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
}
Message = MutableMapping[str, Any]


async def clusters(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """What Airflow mounts at ``PREFIX``; made at its first request, since workers load the plugin too."""
    await application()(scope, receive, send)


def react_apps() -> list[dict[str, Any]]:
    """Airflow's own pages that show it: in the navigation, on the home page, a tab of each DAG and of each run."""
    script = f"{PREFIX.strip('/')}/page.js"  # relative, since Airflow may be below a path
    return [
        {"name": "Kafka", "bundle_url": script, "destination": "nav", "url_route": ROUTE, "nav_top_level": True},
        {"name": "Kafka clusters", "bundle_url": script, "destination": "dashboard", "url_route": "kafka_clusters"},
        {"name": "Cluster", "bundle_url": script, "destination": "dag", "url_route": "cluster"},
        {"name": "Evidence", "bundle_url": script, "destination": "dag_run", "url_route": "evidence"},
    ]


@cache
def application() -> FastAPI:
    """The app. Each route has the person who calls, or the right to read the run."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
    from airflow.api_fastapi.core_api.security import get_user, requires_access_dag
    from fastapi import Depends, FastAPI, HTTPException, Response

    app = FastAPI(title="kraft-runbook clusters", openapi_url=None)
    runs = RunsRead()

    def here() -> ClustersOfDags:
        directory, evidence = clusters_directory(), evidence_directory(os.environ)
        return ClustersOfDags(directory, os.environ, state_directory, evidence, has_ended, seconds_of_two, runs)

    person = Depends(get_user)
    reads_the_dag = Depends(requires_access_dag("GET", DagAccessEntity.RUN))

    def readable(user: Any = person) -> frozenset[str]:
        """The DAGs that the person may read."""
        return frozenset(get_auth_manager().get_authorized_dag_ids(user=user))

    of_person = Depends(readable)

    def one(cluster: str, dags: frozenset[str]) -> ClusterFacts:
        if cluster not in here().names(dags):
            raise HTTPException(404, "there is no such cluster, or you may read none of its DAGs")
        return here().facts(cluster, dags)

    @app.get("/page.js", dependencies=[person], response_model=None)
    def script() -> Response:
        return Response(SCRIPT.read_bytes(), media_type="text/javascript", headers=HEADERS)

    @app.get("/clusters", response_model=None)
    def all_clusters(dags: frozenset[str] = of_person) -> Response:
        return html(render_clusters(here().everything(dags), links()))

    @app.get("/clusters.json", response_model=None)
    def all_as_json(dags: frozenset[str] = of_person) -> Response:
        return as_json(here().everything(dags))

    @app.get("/clusters/{cluster}.json", response_model=None)
    def cluster_as_json(cluster: str, dags: frozenset[str] = of_person) -> Response:
        return as_json(Clusters(datetime.now(UTC), (one(cluster, dags),)))

    @app.get("/clusters/{cluster}", response_model=None)
    def cluster_page(cluster: str, dags: frozenset[str] = of_person) -> Response:
        return html(render_cluster(one(cluster, dags), links(), now=datetime.now(UTC)))

    @app.get("/dags/{dag_id}", dependencies=[reads_the_dag], response_model=None)
    def cluster_of_dag(dag_id: str, dags: frozenset[str] = of_person) -> Response:
        cluster = cluster_of(dag_id)
        if cluster is None or cluster not in here().names(dags & {dag_id}):
            return html(render_words("This DAG is not one of a Kafka cluster of kraft-runbook."))
        return html(render_cluster(one(cluster, dags), links(), now=datetime.now(UTC)))

    @app.get("/evidence/{dag_id}/{run_id}", dependencies=[reads_the_dag], response_model=None)
    def evidence(dag_id: str, run_id: str, dark: bool = False, on: bool = Depends(goes_on)) -> Response:
        headers = AS_EVIDENCE | {"X-Run-Goes-On": "yes" if on else "no"}
        try:
            found = inspect_run(evidence_directory(os.environ), run_name(dag_id, run_id))
        except RunbookError:
            words = render_words("This run has left no evidence here yet.")
            return Response(words, media_type="text/html", headers=headers)
        report = make_report(found.run, found.records, found.broken)
        synced = out_of_sync_in(state_directory(), report, goes_on=on)
        page = render_page(report, found.records, made_at=datetime.now(UTC), goes_on=on, dark=dark, in_sync=synced)
        return Response(page, media_type="text/html", headers=headers)

    def html(text: str) -> Response:
        return Response(text, media_type="text/html", headers=HEADERS)

    def as_json(value: Clusters) -> Response:
        from pydantic import TypeAdapter

        return Response(TypeAdapter(Clusters).dump_json(value), media_type="application/json", headers=HEADERS)

    return app


def goes_on(dag_id: str, run_id: str) -> bool:
    """Whether Airflow has this run as one that has not ended."""
    return state_of(dag_id, run_id) in ("queued", "running")


def has_ended(dag_id: str, run_id: str) -> bool:
    """Whether Airflow has this run as one that has ended, also where a person marked it so. Not one that it does not
    know: that may be another Airflow's.
    """
    return state_of(dag_id, run_id) in ("success", "failed")


def state_of(dag_id: str, run_id: str) -> str | None:
    """Of the run, as Airflow's database has it; None where it has no such run."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        state = session.scalar(select(DagRun.state).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
    return None if state is None else str(state)


def seconds_of_two(schedule: str | None, now: datetime) -> float | None:
    """From the run before the last one to the next one by this schedule, read as Airflow reads it; None where it names
    no times.
    """
    if schedule is None:
        return None
    try:
        times = croniter(schedule, now)
        following, _, before = (times.get_next(float), times.get_prev(float), times.get_prev(float))
    except ValueError:
        return None
    return float(following - before)


def links() -> Links:
    """Below the path at which this Airflow is."""
    base = airflows_path()
    return Links(base, f"{base}/plugin/{ROUTE}", f"{base}{PREFIX}/evidence")
