"""The fields of the runs' forms. Each has a title, and says what it is for and what nothing in it means."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook_airflow.base.report_link import cluster_page


def optional(kind: str, title: str, told: str, **more: Any) -> Param:
    """A field that may be left empty. ``kind``: its type, in JSON Schema's words."""
    return Param(None, type=["null", kind], title=title, description=told, **more)


def flag(title: str, told: str, **more: Any) -> Param:
    """What is off unless somebody turns it on."""
    return Param(False, type="boolean", title=title, description=told, **more)


def dry_run(cluster: ClusterSpec, does: str) -> dict[str, Param]:
    """The first field of each form, which also leads to where the cluster stands."""
    told = f"{does}. [Where {cluster.name} stands now]({cluster_page(cluster.name)})"
    return {"dry_run": Param(False, type="boolean", title="Dry run", description_md=told)}
