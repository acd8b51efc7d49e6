"""Where gates that an earlier version deferred find their trigger. To be removed one release on."""

from kraft_runbook_airflow.base.answers import AnswerTrigger

__all__ = ["AnswerTrigger"]
