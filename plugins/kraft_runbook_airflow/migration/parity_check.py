"""The scheduled check of parity: what changed since the last full proof, in seconds and without Spark; everything, now
and then.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk.exceptions import AirflowSkipException

from kraft_runbook.cluster.phases import Phase, PhaseReading
from kraft_runbook.errors import RunbookError
from kraft_runbook.parity.comparison import ParityReport, Verdict
from kraft_runbook.parity.report_file import write_report
from kraft_runbook.parity.since import compare_since
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.migration.parity import ParityOperator, proven_file, report_file


class ParityCheck(ParityOperator):
    """Compare what changed since the last full MATCH. In full, where there is none or it is too old, where that look
    does not end in MATCH (only a full comparison accuses), where the run's parameter ``full`` asks for it, and after
    finalization. Skipped where there are no two stores.
    """

    def nothing_to_compare(self, run: Run, reading: PhaseReading) -> None:
        """Skip; only a phase that can't be told is a failure."""
        if reading.phase is Phase.UNKNOWN:
            super().nothing_to_compare(run, reading)
        raise AirflowSkipException(f"cluster {self.cluster} is in {reading.phase}: there are no two stores to compare")

    def compare(self, context: Any, run: Run, phase: Phase) -> dict[str, Any]:
        """Compare; in full, that leaves the proven state for the next run. Raises AirflowFailException unless it is a
        MATCH.
        """
        if phase is Phase.FINALIZED:
            return super().compare(context, run, phase)
        changed = None if run.params["full"] else self.compare_what_changed(run)
        if changed is not None:
            output = report_file(context)
            write_report(output, changed)
            return self.settle(context, changed, output, phase)
        return super().compare(context, run, phase)

    def compare_what_changed(self, run: Run) -> ParityReport | None:
        """The report, if it is a MATCH; None, with the reason in the log, where a full comparison must decide."""
        try:
            report = run.cluster.ask(compare_since, proven_file(self.cluster))
        except RunbookError as error:
            self.log.info("A full comparison is needed: %s", error.problem)
            return None
        if report.verdict is Verdict.MATCH:
            return report
        self.log.info(
            "A full comparison is needed: the comparison of later changes says %s\n%s",
            report.verdict,
            report.render_text(),
        )
        return None
