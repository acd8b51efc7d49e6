"""The picture of a plan in its gate's page. Airflow's page shows no HTML, and its Markdown drops data URIs (3.3.2), but
it shows an image of its own server, 300 pixels wide at most: this is where that image comes from, and the whole picture
behind it.

Who may see the run may see its picture. A server that does not share the state directory has none: the table beside it
says the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kraft_runbook.steps.examine import Shown
from kraft_runbook.steps.reassignment.files import RunFiles, files_of, files_of_all
from kraft_runbook.steps.reassignment.planning import shows_plan
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.environment import state_directory
from kraft_runbook_airflow.base.journal import run_file_name
from kraft_runbook_airflow.base.report_link import airflows_path

if TYPE_CHECKING:
    from fastapi import FastAPI, Response

PREFIX = "/kraft_runbook"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, max-age=3600",
}
Message = MutableMapping[str, Any]


def picture_url(dag_id: str, run_id: str, digest: str) -> str:
    """Where Airflow's API server shows the picture of the plan with this digest, without the host."""
    return f"{airflows_path()}{PREFIX}/reassignments/{quote(dag_id, safe='')}/{quote(run_id, safe='')}/{digest}.svg"


def shows_plan_with_picture(run: Run) -> Shown:
    """The plan of this run, for its gate. Raises Refused where there is none."""
    of, digest = run.journal.records()[0].body, files_of(run).plan().digest
    url = picture_url(of["dag"], of["run"], digest)
    return shows_plan(run, f"[![Each broker before and after]({url}?narrow=true)]({url})\n\n[The whole picture]({url})")


async def pictures(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """What Airflow mounts at ``PREFIX``; made at its first request, since workers load the plugin too."""
    await _application()(scope, receive, send)


@cache
def _application() -> FastAPI:
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
    from airflow.api_fastapi.core_api.security import requires_access_dag
    from fastapi import Depends, FastAPI

    application = FastAPI(title="kraft-runbook", openapi_url=None)
    may_see_the_run = Depends(requires_access_dag("GET", DagAccessEntity.RUN))
    route = "/reassignments/{dag_id}/{run_id}/{digest}.svg"
    application.get(route, dependencies=[may_see_the_run], response_model=None)(_picture)
    return application


def _picture(dag_id: str, run_id: str, digest: str, narrow: bool = False) -> Response:
    from fastapi import HTTPException, Response

    if not (digest.isalnum() and digest.isascii()):
        raise HTTPException(404, "no such picture")
    try:
        drawn = (
            RunFiles(files_of_all(state_directory()) / run_file_name(dag_id, run_id))
            .picture(digest, narrow=narrow)
            .read_bytes()
        )
    except OSError:
        raise HTTPException(404, "this server has no picture of that plan") from None
    return Response(drawn, media_type="image/svg+xml", headers=HEADERS)
