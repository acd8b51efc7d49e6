"""The pages that this project has in Airflow's own server, and the link of a comparison to the page of its run, which
shows the report.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlsplit

from airflow.configuration import conf
from airflow.sdk import BaseOperatorLink

PAGES = "/kafka_clusters"
"""Where Airflow's server has the pages of clusters and of runs (``dashboard.server``)."""
ROUTE = "kafka"
"""Of Airflow's page that shows them: /plugin/kafka."""


def airflows_path() -> str:
    """The path at which this Airflow is, without the host; empty for the root."""
    return urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")


def cluster_page(cluster: str) -> str:
    """Where Airflow shows how the cluster stands."""
    return f"{airflows_path()}/plugin/{ROUTE}?cluster={quote(cluster, safe='')}"


class ReportLink(BaseOperatorLink):
    """From the task of a comparison to the evidence of its run."""

    name = "Report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return f"{airflows_path()}{PAGES}/evidence/{quote(ti_key.dag_id, safe='')}/{quote(ti_key.run_id, safe='')}"
