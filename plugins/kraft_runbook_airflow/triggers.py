"""Where tasks that an earlier version deferred find their triggers. To be removed one release on."""

from kraft_runbook_airflow.base.triggers import ClusterConditionTrigger
from kraft_runbook_airflow.migration.health_watch import HealthWatchTrigger

__all__ = ["ClusterConditionTrigger", "HealthWatchTrigger"]
