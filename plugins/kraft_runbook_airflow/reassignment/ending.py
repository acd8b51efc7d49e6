"""The tasks that end a run: preferred leaders, the comparison with the plan, the report."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NoReturn

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError, StepFailed
from kraft_runbook.evidence.kinds import Closed, Moves, of_kind
from kraft_runbook.procedures.move_replicas import prefer_first_replicas
from kraft_runbook.reassignment.goals import not_drained
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.stages import PlanStage, read_plan
from kraft_runbook.reassignment.verifying import verify
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.journal import record, records_of, require_mirrored
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.base.report import BAD, give_back_unless_going_on, states_of, why_they_failed, would_be_done
from kraft_runbook_airflow.reassignment.checks import settled_look
from kraft_runbook_airflow.reassignment.files import files_of
from kraft_runbook_airflow.reassignment.signed import require_signed
from kraft_runbook_airflow.reassignment.wanted import Asks


def elections(plan: ReassignmentPlan) -> tuple[Act, ...]:
    """The act of electing the first replicas of what the plan names."""
    return (Act(f"elect the first replica of {len(plan.target)} partitions"),)


class PreferLeaders(ClusterOperator):
    """Make the first replica of each moved partition its leader. It asks for the signature as every task that changes
    the cluster does: a task before it may have been marked successful by hand.
    """

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        require_signed(context, run)
        look, plan = settled_look(run.cluster, settings=False), files_of(context).plan()
        refused = run.cluster.do(prefer_first_replicas, look, list(plan.target), would=elections(plan)) or {}
        for partition, why in sorted(refused.items())[:20]:
            self.log.warning("%s was not elected: %s", partition, why)
        return {"refused": len(refused)}

    def rehearse(self, context: Any, run: Run) -> None:
        run.cluster.do(prefer_first_replicas, would=elections(files_of(context).plan()))


class VerifyPlan(ClusterOperator):
    """Compare what is with what was planned; looked at again until it holds, since leaders and ISRs take a moment.
    Partitions that came after the plan was made are named; on a broker that was to be drained they fail the task.
    """

    def __init__(self, *, asks: Asks, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asks = asks

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        files = files_of(context)
        plan = files.plan()
        for _ in range(30):
            look = settled_look(run.cluster, settings=False, deletions=True)
            reading = read_plan(plan, look.placement, known=files.known)
            target = {p: replicas for p, replicas in plan.target.items() if p not in reading.gone}
            found = verify(target, look.seen, look.placement.ongoing)
            if found.holds or not target:
                break
            time.sleep(1)
        told = "\n".join([found.render_text(), *reading.because[1:]])
        self.log.info("%s", told)
        run.journal.record(Moves(what="verified", partitions=found.partitions, told=told))
        if target and not found.holds:
            raise StepFailed(found.render_text(), way_out="mend what is named, then clear this task")
        wanted = self.asks(context)
        if left := not_drained(wanted.goal, wanted.topics, look.placement.present):
            raise StepFailed(
                f"all is as planned, and {len(left)} partitions that came since lie on a broker that was to be"
                f" drained: {', '.join(map(str, left[:5]))}",
                way_out="clear the task 'plan' with its downstream tasks: what is left is planned anew and signed for",
            )
        return {"partitions": found.partitions, "added_since": len(reading.added)}

    def rehearse(self, context: Any, run: Run) -> None:
        self.log.info("Dry run: the plan would be verified")


Ends = Callable[[ClusterSpec], str]
"""The last words of a run that did all that it was asked for."""


class ReassignmentReport(ClusterOperator):
    """The end of a run: what became of it, and the way on or back. Succeeds only where the whole run did.

    It is a teardown, so that it also comes where a person marked the run as failed. Airflow then skips what has not
    begun, without a reason: what was skipped counts as not done, unless the run itself found nothing to do. A task may
    also have been marked successful by hand, so the report looks for itself (``not_done``).
    """

    def __init__(self, *, ends: Ends, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ends = ends

    def follows_a_record(self, context: Any) -> bool:
        """It comes in any case, also where the first task failed before its first line."""
        return False

    def rehearse(self, context: Any, run: Run) -> Any:
        if any(state in BAD for state in states_of(context).values()):
            return self.act(context, run)
        self.log.info("Dry run: nothing was changed. What would be done, in its order:\n%s", would_be_done(run))
        return {"dry_run": True}

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        states = states_of(context)
        failed = sorted(task for task, state in states.items() if state == "failed")
        skipped = any(state == "skipped" for state in states.values()) and not nothing_to_do(context)
        undone = not_done(context, run)
        succeeded = not skipped and not undone and not any(state in BAD for state in states.values())
        seen = run.cluster.settled()
        phase = detect_phase(seen).phase
        if succeeded:
            text = self.ends(run.spec)
        else:
            lines = ["The run stopped.", *why_they_failed(context, failed), *(f"- {each}" for each in undone)]
            lines += ["To go on: correct what is named above and clear the failed task. To go back:"]
            text = "\n".join([*lines, *REASSIGNMENT.way_back(seen, run.spec).steps])
        name = files_of(context).name
        self.log.info("%s\nThis run's name, for the way back: %s", text, name)
        run.journal.record(
            Closed(
                phase=phase.value,
                succeeded=succeeded,
                failed=tuple(failed),
                brokers_in_kraft=len(seen.brokers_in(BrokerMode.KRAFT)),
            ),
        )
        give_back_unless_going_on(context, run, states, self.log.warning)
        require_mirrored(context)
        if not succeeded:
            raise AirflowFailException("the run stopped; this task's log says where, and the way on and back")
        return {"report": text, "run": name}


PLANNED, TO_BE_CANCELLED, NOTHING_TO_DO = "planned", "to be cancelled", "nothing to do"
BEGINNINGS = frozenset({PLANNED, TO_BE_CANCELLED, NOTHING_TO_DO})


def leave_with_nothing_to_do(context: Any, cluster: str, why: str) -> NoReturn:
    """End the run well at this task: the cluster is as wanted. What follows is skipped."""
    record(context, cluster, Moves(what=NOTHING_TO_DO, partitions=0, told=why))
    raise AirflowSkipException(why)


def nothing_to_do(context: Any) -> bool:
    """Whether the run's last beginning ended there."""
    return _since_it_began(context)[:1] == [NOTHING_TO_DO]


def not_done(context: Any, run: Run) -> tuple[str, ...]:
    """What the run's own records and the cluster show to be undone, whatever the states of its tasks say."""
    did, files = _since_it_began(context), files_of(context)
    if not did:
        return ("nothing was planned or listed",)
    found = []
    try:
        if files.throttles.rate is not None:
            found.append("throttles that this run has set are not put back")
        if did[0] == PLANNED:
            reading = read_plan(files.plan(), settled_look(run.cluster, settings=False, deletions=True).placement)
            if reading.stage is not PlanStage.AS_PLANNED:
                found.append(f"the plan is not carried out: {'; '.join(reading.because)}")
    except RunbookError as error:
        found.append(error.problem)
    if did[0] == TO_BE_CANCELLED and "cancelled" not in did:
        found.append("what was listed is not cancelled")
    return tuple(found)


def _since_it_began(context: Any) -> list[str]:
    """What the run did, from its last beginning on."""
    did = [told.what for _, told in of_kind(records_of(context), Moves)]
    last = max((at for at, what in enumerate(did) if what in BEGINNINGS), default=len(did))
    return did[last:]
