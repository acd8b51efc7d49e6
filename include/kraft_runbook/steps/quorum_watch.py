"""Asked on a schedule: is the quorum healthy? A failed run is the alarm, and says what is wrong."""

from __future__ import annotations

from typing import Any

from kraft_runbook.cluster.unread import was_read
from kraft_runbook.evidence.kinds import Checked
from kraft_runbook.procedures.kept_samples import read_samples, write_samples
from kraft_runbook.procedures.see_quorum import see_series
from kraft_runbook.quorum.checks import judge, told
from kraft_runbook.quorum.page import render
from kraft_runbook.quorum.samples import kept_epoch, sample_of, with_sample
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.steps.run import Failed, Run


def watch_quorum(run: Run) -> dict[str, Any]:
    """Look three times and change nothing. Keeps one sample a run: of the last week in the state directory, and in the
    run's evidence. Raises Failed where a blocking check does not pass.
    """
    name = run.spec.name
    kept = read_samples(run.state, name)
    if was_read(kept):
        samples = kept
    else:
        samples = []
        run.cluster.tell(f"No earlier samples: {kept.reason}")
    series = run.cluster.ask(see_series, before=kept_epoch(samples))
    report = judge(series, run.spec)
    sample = sample_of(series.now)
    if not run.cluster.rehearses:
        picture = write_samples(run.state, name, with_sample(samples, sample))
        run.cluster.tell(f"Epoch, lag and latency over days: {picture}")
    run.journal.record(Checked(controlled_by=series.now.mode.value, checks={**report.to_dict(), "sample": sample}))
    run.cluster.tell(f"{render(series.now)}\n\n{report.render_text()}")
    wrong = tuple(told(report))
    if wrong:
        raise Failed(f"the controller quorum of {name} is not healthy:\n" + "\n".join(wrong))
    return {"mode": series.now.mode.value, "warnings": sum(r.verdict is not Verdict.PASS for r in report.results)}
