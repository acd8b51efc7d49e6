"""The last proof of a run that moves replicas: the whole assignment, planned against found, by a Spark job."""

from __future__ import annotations

import json
from typing import Any

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook_airflow.base.journal import record
from kraft_runbook_airflow.base.spark_job import SparkJobOperator
from kraft_runbook_airflow.reassignment.files import files_of


class CompareAssignment(SparkJobOperator):
    """Every partition of the cluster: those of the plan as planned, all others where the plan found them."""

    def __init__(self, *, cluster: str, **kwargs: Any) -> None:
        super().__init__(
            cluster=cluster,
            job="procedures/assignment_job.py",
            what="assignment",
            by_hand=f"kraft-runbook reassign verify --cluster {cluster} --plan FILE --before FILE --spark",
            **kwargs,
        )

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        files = files_of(context)
        output = files.directory / "compared.json"
        self.run_job(context, ["--plan", str(files.planned), "--before", str(files.before)], output)
        found = json.loads(output.read_text())
        self.log.info("%s", found["told"])
        compared = found["partitions"] + found["others"]
        record(context, self.cluster, Moves(what="compared", partitions=compared, told=found["told"]))
        if not found["holds"]:
            raise StepFailed(
                found["told"],
                way_out=(
                    "find out who moved what the plan does not name; else mend what is named. Then clear this task. By"
                    f" hand, in {files.directory}: kraft-runbook reassign verify --cluster {self.cluster} --plan"
                    f" {files.planned.name} --before {files.before.name} --spark"
                ),
            )
        return {"partitions": compared}

    def rehearse(self, context: Any, spec: ClusterSpec) -> None:
        self.log.info("Dry run: the whole assignment would be compared with the plan, by Spark")
