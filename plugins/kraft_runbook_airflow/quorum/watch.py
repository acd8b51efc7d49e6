"""Asked on a schedule: is the quorum healthy? A failed run is the alarm, and says what is wrong."""

from __future__ import annotations

from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.evidence.kinds import Checked
from kraft_runbook.procedures.see_quorum import see_series
from kraft_runbook.quorum.checks import judge, told
from kraft_runbook.quorum.page import render
from kraft_runbook.quorum.samples import kept_epoch, sample_of, with_sample
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.quorum.files import read_samples, write_samples


class QuorumWatch(ClusterOperator):
    """Looks three times and changes nothing. Keeps one sample a run: of the last week in the state directory, and in
    the run's evidence. Fails on a blocking check that does not pass.
    """

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        samples = read_samples(self.cluster, self.log.warning)
        series = run.cluster.ask(see_series, before=kept_epoch(samples))
        report = judge(series, run.spec)
        sample = sample_of(series.now)
        if not run.cluster.rehearses:
            write_samples(self.cluster, with_sample(samples, sample))
        run.journal.record(Checked(phase=series.now.mode.value, checks={**report.to_dict(), "sample": sample}))
        self.log.info("%s\n\n%s", render(series.now), report.render_text())
        wrong = tuple(told(report))
        if wrong:
            raise AirflowFailException(f"the controller quorum of {self.cluster} is not healthy:\n" + "\n".join(wrong))
        return {"mode": series.now.mode.value, "warnings": sum(r.verdict is not Verdict.PASS for r in report.results)}
