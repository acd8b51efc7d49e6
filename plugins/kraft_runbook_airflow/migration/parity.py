"""Parity under Airflow: a Spark job, its report kept in the state directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.cluster.phases import Phase, PhaseReading, detect_phase
from kraft_runbook.evidence.kinds import Compared
from kraft_runbook.parity.comparison import ParityReport, Verdict
from kraft_runbook.parity.report_file import read_report
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.acting import ActsOrRehearses
from kraft_runbook_airflow.base.environment import state_directory
from kraft_runbook_airflow.base.journal import record, run_file_name
from kraft_runbook_airflow.base.report_link import ReportLink
from kraft_runbook_airflow.base.spark_job import how_to_submit, run_job, tied

COMPARABLE = frozenset({Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED})
"""Phases in which both stores hold the metadata, or a proven earlier state can stand in for ZooKeeper (FINALIZED)."""


class ParityOperator(ActsOrRehearses, SparkSubmitOperator):
    """Prove that ZooKeeper and KRaft hold the same metadata. Any verdict but MATCH fails the task, and the report says
    what differs.
    """

    template_fields: Sequence[str] = ()
    ui_color = "#dff3e3"
    operator_extra_links = (ReportLink(),)

    def __init__(self, *, cluster: str, **kwargs: Any) -> None:
        super().__init__(**how_to_submit(cluster, "parity/spark/job.py", "parity"), **kwargs)
        self.cluster = cluster

    def _get_hook(self) -> SparkSubmitHook:
        return tied(super()._get_hook())

    def act(self, context: Any, run: Run) -> Any:
        reading = detect_phase(run.cluster.settled())
        if reading.phase not in COMPARABLE:
            return self.nothing_to_compare(run, reading)
        return self.compare(context, run, reading.phase)

    def rehearse(self, context: Any, run: Run) -> Any:
        self.log.info("Dry run: would compare ZooKeeper with the metadata log of %s", self.cluster)

    def nothing_to_compare(self, run: Run, reading: PhaseReading) -> None:
        """End the task where there are no two stores: a runbook relies on the proof."""
        raise AirflowFailException(
            f"cluster {self.cluster} is in {reading.phase} ({'; '.join(reading.reasons)}): there are no two stores to"
            " compare"
        )

    def compare(self, context: Any, run: Run, phase: Phase) -> dict[str, Any]:
        """Run the Spark job once and return verdict, digest and the report's file. Raises AirflowFailException unless
        it is a MATCH.
        """
        output = report_file(context)
        proven = proven_file(self.cluster)
        proven.parent.mkdir(parents=True, exist_ok=True)
        kept = "--baseline" if phase is Phase.FINALIZED else "--save-proven"
        by_hand = f"kraft-runbook parity --cluster {self.cluster}"
        run_job(self, context, run, [kept, str(proven)], output, what="parity", by_hand=by_hand)
        return self.settle(context, read_report(output), output, phase)

    def is_final(self) -> bool:
        """Whether what is compared now is what the task ends with: only that may stand at a gate."""
        return True

    def settle(self, context: Any, report: ParityReport, output: Path, phase: Phase) -> dict[str, Any]:
        """Put the report, kept in ``output``, on record and return what ``compare`` returns."""
        self.log.info("%s", report.render_text())
        compared = Compared(
            values=report.to_dict(),
            verdict=report.verdict,
            digest=report.digest,
            offset=report.migration_offset,
            report=output.name,
            final=self.is_final(),
            phase=phase.value,
        )
        record(context, self.cluster, compared)
        if report.verdict is not Verdict.MATCH:
            raise AirflowFailException(f"parity is {report.summary}")
        self.log.info("Parity is %s", report.summary)
        told = {
            "verdict": report.verdict.value,
            "digest": report.digest,
            "offset": report.migration_offset,
            "final": compared.final,
        }
        return {**told, "report": os.fspath(output)}


def proven_file(cluster: str) -> Path:
    """What the last MATCH in dual write proved: what the scheduled check and a finalized cluster are compared with."""
    return state_directory() / "baselines" / cluster


def report_file(context: Any) -> Path:
    """Where this task's report goes; the one of an earlier try is removed."""
    ti = context["ti"]
    output = state_directory() / "parity" / run_file_name(ti.dag_id, ti.run_id) / f"{ti.task_id}.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.unlink(missing_ok=True)
    return output
