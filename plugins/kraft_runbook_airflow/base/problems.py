"""What can't be used any more, or not at all, shown where operators look: in the list of DAGs."""

from __future__ import annotations

import re
from typing import Any

from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowFailException


class ShowProblem(BaseOperator):
    """Fails with the text of what is wrong."""

    def __init__(self, *, problem: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.problem = problem

    def execute(self, context: object) -> None:
        raise AirflowFailException(self.problem)


def problem_dag(name: str, problem: str) -> DAG:
    """``cluster_file_problem__<name>``: its documentation and its one task say what is wrong with the file."""
    safe = re.sub(r"[^A-Za-z0-9_.\-]", "_", name)
    with DAG(
        f"cluster_file_problem__{safe}", schedule=None, doc_md=f"```\n{problem}\n```", tags=["kraft-runbook", "problem"]
    ) as dag:
        ShowProblem(task_id="problem", problem=problem)
    return dag
