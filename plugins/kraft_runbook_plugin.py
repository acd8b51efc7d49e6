"""The one file that Airflow executes from plugins/: registration. Everything else is in kraft_runbook_airflow."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin


class KraftRunbookPlugin(AirflowPlugin):
    """Names the project in Airflow's list of plugins; operators and triggers are imported by path."""

    name = "kraft_runbook"
