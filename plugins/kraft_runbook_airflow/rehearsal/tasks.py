"""The tasks of a rehearsal: the whole of it, and its clean-up."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.evidence.rehearsals import still_ahead, that_passed
from kraft_runbook.evidence.store import evidence_directory
from kraft_runbook.procedures.throwaway_place import remove_when_free
from kraft_runbook.rehearsal.page import render
from kraft_runbook.rehearsal.verdict import Verdict
from kraft_runbook.steps.rehearse import Ask, SourceAtWork, rehearse
from kraft_runbook.steps.run import NothingToDo, Run
from kraft_runbook_airflow.base.operators import ClusterOperator

Rehearses = Callable[..., Canary]
"""As ``steps.rehearse.rehearse``."""


class RehearseOperator(ClusterOperator):
    """Rehearse, and put the verdict on record. The task fails unless it is PASSED, and is skipped while the cluster is
    changed. A later gate reads the record, never this task's answer, which anyone with Airflow's API can write.
    """

    custom_operator_name = "rehearse"

    def __init__(self, *, rehearses: Rehearses = rehearse, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rehearses = rehearses

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        evidence = evidence_directory(os.environ)
        ask = Ask(
            whole=not context["params"].get("short"),
            waits=True,
            passed=that_passed(evidence, self.cluster, now=datetime.now(UTC)),
            ahead=lambda: still_ahead(evidence, self.cluster, now=datetime.now(UTC)),
            record=run.journal.record,
        )
        try:
            told = self.rehearses(run.spec, secrets=run.cluster.secrets, tell=self.log.info, ask=ask)
        except SourceAtWork as why:
            raise NothingToDo(why.problem) from None
        self.log.info("%s", render(run.spec, told))
        if told.verdict != Verdict.PASSED:
            raise AirflowFailException(f"{told.verdict}: {'; '.join(told.reasons)}")
        return {"verdict": told.verdict}

    def rehearse(self, context: Any, run: Run) -> None:
        self.log.info("Dry run: would rehearse the migration of %s in a throwaway cluster", self.cluster)


class RemoveThrowaway(ClusterOperator):
    """End and remove what a rehearsal left that could not do so itself: its worker was killed, or its time was over.
    Looks on its own worker alone. Where another one is under way by now, that one's is left alone, and the task fails.
    """

    custom_operator_name = "remove the throwaway"

    def follows_a_record(self, context: Any) -> bool:
        return False

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        settings = run.spec.rehearsal
        ended = remove_when_free(settings, run.spec.name, tell=self.log.info) if settings else ()
        return {"ended": len(ended)}

    def rehearse(self, context: Any, run: Run) -> None:
        self.log.info("Dry run: nothing was started, so nothing is left")
