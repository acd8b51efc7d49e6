"""Schedules in a cluster file: what no scheduler reads is refused there, not as a DAG that is missing."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from kraft_runbook.cluster.spans import Schedule

SCHEDULE: TypeAdapter[str] = TypeAdapter(Schedule)


@pytest.mark.parametrize(
    "text",
    ["*/10 * * * *", "0 3 * * 0", "0,30 1-5/2 L JAN-MAR MON#2", "0 0 ? * *", "@daily", "@continuous", "0 0 * * * 30"],
)
def test_what_airflow_reads_is_taken(text: str) -> None:
    assert SCHEDULE.validate_python(text) == text


@pytest.mark.parametrize("text", ["", "nonsense", "every ten minutes", "* * * *", "* * * * * * *", "10 min; * * *"])
def test_what_no_scheduler_reads_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(
        ValidationError, match=r"is no schedule: write five fields of cron, such as '\*/10 \* \* \* \*'"
    ):
        SCHEDULE.validate_python(text)
