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
from urllib.parse import quote, urlsplit

from airflow.configuration import conf

from kraft_runbook_airflow.base.journal import run_file_name
from kraft_runbook_airflow.reassignment.files import RunFiles

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
    base = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
    return f"{base}{PREFIX}/reassignments/{quote(dag_id, safe='')}/{quote(run_id, safe='')}/{digest}.svg"


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
        drawn = RunFiles(run_file_name(dag_id, run_id)).picture(digest, narrow=narrow).read_bytes()
    except OSError:
        raise HTTPException(404, "this server has no picture of that plan") from None
    return Response(drawn, media_type="image/svg+xml", headers=HEADERS)
