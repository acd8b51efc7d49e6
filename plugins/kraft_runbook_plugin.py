"""The one file that Airflow executes from plugins/. Another Airflow's plugins folder gets a file of the same line."""

from kraft_runbook_airflow.registration import KraftRunbookPlugin

__all__ = ["KraftRunbookPlugin"]
