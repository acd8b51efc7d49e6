"""What Airflow's list of plugins shows of this project, and what its API server serves for it."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

# Airflow loads plugins before it forks the processes that run tasks and parse DAGs: what is imported here, none of them
# imports again.
import kraft_runbook_airflow.migration.words
import kraft_runbook_airflow.restart.words  # noqa: F401
from kraft_runbook_airflow.dashboard import server
from kraft_runbook_airflow.reassignment.pictures import PREFIX, pictures


class KraftRunbookPlugin(AirflowPlugin):
    """Names the project in Airflow's list of plugins, and gives its API server the pictures of plans and the
    pages of the clusters; operators and triggers are imported by path.
    """

    name = "kraft_runbook"
    fastapi_apps = [  # noqa: RUF012 - as in Airflow
        {"app": pictures, "url_prefix": PREFIX, "name": "kraft-runbook"},
        {"app": server.clusters, "url_prefix": server.PREFIX, "name": "kraft-runbook clusters"},
    ]
    react_apps = server.react_apps()
