"""What Airflow's list of plugins shows of this project, and what its API server serves for it."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

# Airflow loads plugins before it forks the processes that run tasks and parse DAGs: what is imported here, none of them
# imports again.
import kraft_runbook_airflow.migration.words
import kraft_runbook_airflow.rolling_restart.words  # noqa: F401
from kraft_runbook_airflow.reassignment.pictures import PREFIX, pictures


class KraftRunbookPlugin(AirflowPlugin):
    """Names the project in Airflow's list of plugins, and gives its API server the pictures of plans; operators and
    triggers are imported by path.
    """

    name = "kraft_runbook"
    fastapi_apps = [{"app": pictures, "url_prefix": PREFIX, "name": "kraft-runbook"}]  # noqa: RUF012 - as in Airflow
