"""One case being played: its run under Airflow, the moments of its faults, and a person at the UI who approves and
repairs.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fault_case import Case, Fault, Until, When
from fault_ground import Ground
from fault_invariants import Span
from fault_processes import Components, task_process
from stage import MIGRATION, Stage

from kraft_runbook.errors import RunbookError
from kraft_runbook.io.local import supervision
from lab.airflow_client import SEEN_BY_THEN
from lab.layout import layout

Undo = Callable[[], None]
Injector = Callable[["Scene", Fault], Undo | None]

UNDER_WAY: frozenset[str | None] = frozenset({"scheduled", "queued", "running", "up_for_retry", "restarting"})
ENDED = frozenset({"success", "failed"})


FIRST_STEP_AFTER = "gate_start.confirm"


class Unexpected(Exception):
    """The case did not come out as its file says."""


@dataclass
class Elsewhere:
    """A second Airflow, its state directory, and its runs (DAG, run)."""

    stage: Stage
    state: Path
    runs: list[tuple[str, str]] = field(default_factory=list)


def alternatives(words: str) -> list[str]:
    """What a case file gives as ``this | that``: which of them comes is chance, and each is right."""
    return words.split(" | ")


@dataclass
class Scene:
    """What the injectors see: the lab, Airflow, the run, and where a playbook's private directories lie."""

    case: Case
    ground: Ground
    stage: Stage
    components: Components
    temporary: Path
    run_id: str = ""
    other_runs: list[tuple[str, str]] = field(default_factory=list)
    repairs: list[Undo] = field(default_factory=list)
    granted: Counter[str] = field(default_factory=Counter)
    """Process starts that a repair found to be needed, beside those that the case grants."""
    faults: list[Span] = field(default_factory=list)
    """The faults that are over: undone, or done where nothing undoes them."""
    by_hand: set[str] = field(default_factory=set)
    """The tasks that were marked by hand."""
    active: str = ""
    """The active controller at the time of the fault, in words, where the fault was meant for it."""
    elsewhere: Elsewhere | None = None
    """The second Airflow, in a case that has one."""
    holder: str = ""
    """The run that has the cluster, where two Airflows wanted it."""
    broken: str = ""
    """What the last fault that was meant for services broke, in words: ``controller 103``."""
    _marked: bool = False
    _stops: tuple[str, ...] = ()
    _parked: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def dag(self) -> str:
        return self.case.dag

    def task_states(self) -> dict[str, str | None]:
        return {t["task_id"]: t["state"] for t in self.stage.client.tasks(self.dag, self.run_id)}

    def told(self) -> str:
        """What the failed tasks and the closing report say."""
        failed = [task for task, state in self.task_states().items() if state == "failed"]
        return "\n".join(f"--- {task}\n{self.stage.log(self.dag, self.run_id, task)}" for task in failed)

    # -- the play ------------------------------------------------------------------------------------------------------

    def play(self, inject: Injector, *, within: float = 1500) -> str:
        """Play the case to its expected outcome; returns it in words. Raises Unexpected."""
        pending = list(self.case.faults)
        for fault in [f for f in pending if f.when == When()]:
            self._inject(fault, inject)
            pending.remove(fault)
        short = {"soak_minutes": 0.1} if self.dag == MIGRATION else {}
        self.run_id = self.stage.start(self.dag, **{**short, **self.case.params})
        ends = time.monotonic() + within
        expected = self.case.expected
        while True:
            if time.monotonic() > ends:
                raise Unexpected(f"no outcome within {within:.0f} s; the tasks' states: {self._interesting()}")
            states = self._mark_what_lies_behind(self.task_states())
            for fault in [f for f in pending if self._is_due(f.when, states)]:
                if pending == [fault] and not expected.fails:  # the run goes on while the fault lasts
                    self._let_nothing_begin_behind(expected.until)
                self._inject(fault, inject)
                pending.remove(fault)
                states = self.task_states()
            failed = [
                task
                for task, state in states.items()
                if state == "failed" and task not in ("closing_report", *self._stops)
            ]
            if failed and (not pending or states.get("closing_report") == "failed"):
                if len(failed) > 1 or failed[0] not in alternatives(expected.fails or "") or pending:
                    raise Unexpected(f"{', '.join(failed)} failed: {self.told()[-1500:]}")
                self._wait_for_the_end()
                self._check_the_words()
                if not expected.resumes:
                    return "refused, with the reason"
                self._repair_and_clear(failed[0])
                expected = expected.model_copy(update={"fails": None})
            if not pending and expected.until and states.get(expected.until.task) == expected.until.state:
                if expected.fails:
                    raise Unexpected(f"{expected.fails} did not fail")
                return "resumed after it was cleared" if self.case.expected.fails else "went on by itself"
            if (
                pending
                and self.case.expected.until
                and states.get(self.case.expected.until.task) == self.case.expected.until.state
            ):
                raise Unexpected(f"the moment of fault {pending[0].kind} never came")
            if not pending and not expected.fails:
                self._let_nothing_begin_behind(expected.until)
            self._approve(states)
            time.sleep(0.4)

    def finish(self) -> None:
        """End every run of the case, as a person does: reject an open gate, else mark the run failed, once nothing is
        under way.
        """
        begun = time.monotonic()
        while self.run_id and self.stage.client.run_state(self.dag, self.run_id) not in ENDED:
            waited = time.monotonic() - begun
            if waited > 60 or (waited > 6 and not UNDER_WAY & set(self.task_states().values())):
                break  # what a run that hangs leaves behind is for the invariants to name
            time.sleep(0.5)
        for dag, run in [(self.dag, self.run_id), *self.other_runs]:
            if run and self.stage.client.run_state(dag, run) not in ENDED:
                gate = next(
                    (t["task_id"] for t in self.stage.client.tasks(dag, run) if t["state"] == "awaiting_input"), None
                )
                if gate:
                    self.stage.client.answer(dag, run, gate, "Reject")
                else:
                    self.stage.client.mark_run(dag, run, "failed")
                self._until_ended(dag, run)

    def repair(self) -> None:
        """Undo what was broken, the last first."""
        while self.repairs:
            self.repairs.pop()()

    # -- its parts -----------------------------------------------------------------------------------------------------

    def _inject(self, fault: Fault, inject: Injector) -> None:
        began_at = time.time()
        undo = inject(self, fault)
        broken_at = time.monotonic()
        if undo is None:
            self.faults.append(Span(fault.kind, began_at, time.time()))
            return

        def undone() -> None:
            undo()
            self.faults.append(Span(fault.kind, began_at, time.time()))

        self.repairs.append(undone)
        if fault.seconds is not None:
            if self.case.expected.explain and not self.case.expected.fails:
                self._check_the_explanation()
            time.sleep(max(0.0, fault.seconds - (time.monotonic() - broken_at)))
            self.repairs.remove(undone)
            undone()

    def _is_due(self, when: When, states: dict[str, str | None]) -> bool:
        if when == When():
            return True
        if when.task:
            state = states.get(when.task)
            wanted = UNDER_WAY if when.playbook or when.stopped or when.deleted or when.spark else {when.state}
            if state not in wanted:
                return False
        return True

    def _mark_what_lies_behind(self, states: dict[str, str | None]) -> dict[str, str | None]:
        """Once the run has come to its first step: the tasks whose work is done are marked so, which saves
        their time.
        """
        if self._marked or not self.case.behind or states.get(FIRST_STEP_AFTER) != "success":
            return states
        self._marked = True
        behind = {
            task
            for task, state in states.items()
            if task.startswith(self.case.behind) and state not in ("running", "success")
        }
        for task in self.stage.client.last_first(
            self.dag
        ):  # the other way round the scheduler would start what comes next meanwhile
            if task in behind:
                self.mark(task, "success")
        return self.task_states()

    def _let_nothing_begin_behind(self, until: Until | None) -> None:
        """The tasks right behind the one with which the case is proven are marked failed by hand, so that the run ends
        with it.
        """
        if self._stops or until is None:
            return
        self._stops = self.stage.client.downstream(self.dag, until.task)
        for task in self._stops:
            self.mark(task, "failed")

    def _approve(self, states: dict[str, str | None]) -> None:
        """Approve what waits for it, once the scheduler has seen the end of the process that parked it: Airflow 3.3
        fails a gate that is answered before.
        """
        for task in [task for task, state in states.items() if state == "awaiting_input"]:
            ti = self.stage.task(self.dag, self.run_id, task)
            waited = time.monotonic() - self._parked.setdefault((ti["id"], ti["queued_when"]), time.monotonic())
            if task_process(ti["id"]) is not None or (
                waited < SEEN_BY_THEN and not self.stage.airflow.saw_it_parked(ti)
            ):
                continue
            try:
                self.stage.client.answer(self.dag, self.run_id, task, "Approve")
            except RunbookError as error:
                if " 409 " not in str(error):  # answered already: by the fault of this case
                    raise

    def _check_the_words(self) -> None:
        told = self.told()
        missing = self._missing(self.case.expected.says, told)
        if missing:
            raise Unexpected(f"nothing says {missing}: {told[-2000:]}")
        if self.case.expected.explain:
            self._check_the_explanation()

    def _check_the_explanation(self) -> None:
        said = self.stage.command("explain", "--cluster", "lab")
        missing = self._missing(self.case.expected.explain, said.stdout)
        if missing:
            raise Unexpected(f"explain does not say {missing}: {said.stdout[-2000:]}{said.stderr[-500:]}")

    def _missing(self, words: tuple[str, ...], text: str) -> list[str]:
        known = {"<active>": self.active, "<broken>": self.broken, "<holder>": self.holder}
        named = (functools.reduce(lambda text, name: text.replace(name, known[name]), known, each) for each in words)
        return [word for word in named if not any(one in text for one in alternatives(word))]

    def _repair_and_clear(self, task: str) -> None:
        self.repair()
        self.stage.client.clear(self.dag, self.run_id, [task])

    def _wait_for_the_end(self) -> None:
        self._until_ended(self.dag, self.run_id, approve=True)

    def _until_ended(self, dag: str, run: str, *, approve: bool = False) -> None:
        self.until_ended_in(self.stage, dag, run, approve=approve)

    def until_ended_in(self, stage: Stage, dag: str, run: str, *, within: float = 600, approve: bool = False) -> None:
        """Wait until a run of this Airflow has ended, with all its tasks. ``approve``: gates of the case's own run."""
        ends = time.monotonic() + within
        while stage.client.run_state(dag, run) not in ENDED or any(
            t["state"] in UNDER_WAY for t in stage.client.tasks(dag, run)
        ):
            if time.monotonic() > ends:
                raise Unexpected(f"run {run} has not ended after {within:.0f} s")
            if approve:
                self._approve(self.task_states())
            time.sleep(0.5)

    def _interesting(self) -> dict[str, str | None]:
        return {task: state for task, state in self.task_states().items() if state not in ("success", None)}

    def mark(self, task: str, state: str) -> None:
        """Mark a task by hand; again where SQLite was locked at that moment (Airflow then answers 500). One that is
        there already is left so.
        """
        self.by_hand.add(task)
        for left in (3, 2, 1, 0):
            try:
                return self.stage.client.mark(self.dag, self.run_id, task, state)
            except RunbookError as error:
                if f"already in {state} state" in str(error):
                    return None
                if " 500 " not in str(error) or not left:
                    raise
                time.sleep(1)

    # -- for injectors -------------------------------------------------------------------------------------------------

    def process(self, service: str) -> supervision.Process:
        return supervision.processes(layout(self.ground.lab.spec))[service]

    def pid(self, service: str) -> int:
        """The process of a service. Raises Unexpected where it does not run: pid 0 would mean our own process group to
        ``os.kill``.
        """
        pid = self.process(service).pid
        if not pid:
            raise Unexpected(f"{service} does not run, so it can't be broken")
        return pid

    def start_service(self, service: str) -> None:
        here = layout(self.ground.lab.spec)
        if not supervision.processes(here)[service].runs:
            supervision.start(here, service)

    def kill_service(self, service: str) -> None:
        supervision.begin_stop(layout(self.ground.lab.spec), service, signal="KILL")
        self.until_ended(service)

    def until_ended(self, service: str) -> None:
        """Wait until supervisor has seen that a killed process is gone."""
        ends = time.monotonic() + 15
        while self.process(service).runs:
            assert time.monotonic() < ends, f"{service} outlived SIGKILL"
            time.sleep(0.05)

    def call_quietly(self, act: Callable[[], object]) -> str:
        """What Airflow answers to a person who may not; empty when it let them."""
        with contextlib.suppress(IndexError):
            try:
                act()
            except RunbookError as error:
                return str(error)
        return ""
