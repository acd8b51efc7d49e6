"""The last proof of a run that moves replicas: the whole assignment, planned against found, by a Spark job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from kraft_runbook.errors import StepFailed
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.steps.reassignment.ending import files_to_compare
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.acting import ActsOrRehearses
from kraft_runbook_airflow.base.report_link import ReportLink
from kraft_runbook_airflow.base.spark_job import how_to_submit, run_job, tied


class CompareAssignment(ActsOrRehearses, SparkSubmitOperator):
    """Every partition of the cluster: those of the plan as planned, all others where the plan found them."""

    template_fields: Sequence[str] = ()
    ui_color = "#dff3e3"
    operator_extra_links = (ReportLink(),)

    def __init__(self, *, cluster: str, **kwargs: Any) -> None:
        super().__init__(**how_to_submit(cluster, "procedures/assignment_job.py", "assignment"), **kwargs)
        self.cluster = cluster

    def _get_hook(self) -> SparkSubmitHook:
        return tied(super()._get_hook())

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        files = files_of(run)
        output = files.directory / "compared.json"
        planned, before = files_to_compare(run)
        given = ["--plan", str(planned), "--before", str(before)]
        by_hand = f"kraft-runbook reassign verify --cluster {self.cluster} --plan {planned} --before {before} --spark"
        run_job(self, context, run, given, output, what="assignment", by_hand=by_hand)
        found = json.loads(output.read_text())
        self.log.info("%s", found["told"])
        compared = found["partitions"] + found["others"]
        run.journal.record(Moves(what="compared", partitions=compared, told=found["told"]))
        if not found["holds"]:
            raise StepFailed(
                found["told"],
                way_out=(
                    "find out who moved what the plan does not name; else mend what is named. Then clear this task. By"
                    f" hand: {by_hand}"
                ),
            )
        self.log.info("The assignment is as planned: %d partitions compared", compared)
        return {"partitions": compared}

    def rehearse(self, context: Any, run: Run) -> None:
        self.log.info("Dry run: the whole assignment would be compared with the plan, by Spark")
