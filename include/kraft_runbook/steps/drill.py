"""The course of a drill: a baseline, then each fault between probes. What is stopped is started again whatever happens:
the journal says so before anything stops, and a task that is cleared, or comes last, starts it first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import Refused, SecretMissing, StepFailed, Unreachable
from kraft_runbook.evidence.kinds import Drilled, Moves, of_kind
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.gates.signatures import standing
from kraft_runbook.io.kafka.drill_probes import remove_topics, require_partitions
from kraft_runbook.io.kafka.reassignments import Reassignments
from kraft_runbook.io.zookeeper.depose import depose, require_deposable
from kraft_runbook.procedures.short_together import short_without
from kraft_runbook.quorum.before_after import WHAT, KeptFault, draw, pair
from kraft_runbook.quorum.before_after import told as told_of
from kraft_runbook.quorum.drill import DRILL, QUORUM_DRILL, WHOLE, operation_for
from kraft_runbook.quorum.faults import KILL, Aim, Fault, Form, aim, page, start
from kraft_runbook.quorum.silences import Measured, effects, longest_silence
from kraft_runbook.runbook.check_results import sample
from kraft_runbook.steps.drill_window import (
    Answers,
    Before,
    Follows,
    Notices,
    Opens,
    by_their_clock,
    follow_leaders,
    has_probed,
    longest,
    make_own_topic,
    measure,
    notice_loss,
    open_probes,
    settled,
    silent_for,
    topic_of_run,
    watch,
)
from kraft_runbook.steps.examine import PREFLIGHT, Examined, Shown, examines_by_checks, require_preflight
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.kept_drills import keep
from kraft_runbook.steps.run import Run
from kraft_runbook.steps.waiting import Wait

BASELINE, STOPS, STARTED, MEASURED, FAULT, STALL = "baseline", "stops", "started", "measured", "fault", "stall"
ANOTHER_RUN = "find out why it took so long; a drill with a larger budget is a new run"


# -- what is on record -------------------------------------------------------------------------------------------------


def stopped(records: Iterable[EvidenceRecord]) -> list[int]:
    """The nodes that this run stopped, or was about to, and did not see started, in that order."""
    left: dict[int, None] = {}
    for _, told in of_kind(records, Drilled):
        if told.node_id is not None and told.what == STOPS:
            left[told.node_id] = None
        elif told.node_id is not None and told.what == STARTED:
            left.pop(told.node_id, None)
    return list(left)


def baseline_of(records: Iterable[EvidenceRecord]) -> Measured:
    """The run's last baseline. Raises Refused where there is none."""
    for _, told in reversed(list(of_kind(records, Drilled))):
        if told.what == BASELINE:
            if (measured := Measured.from_dict(told.values)) is not None:
                return measured
            break
    raise Refused("no baseline is on record", way_out="clear the task baseline, then this one")


def faults_done(records: Iterable[EvidenceRecord]) -> int:
    """How many faults this run has measured."""
    return sum(told.what == FAULT for _, told in of_kind(records, Drilled))


def without_processors(records: Iterable[EvidenceRecord]) -> Drilled | None:
    """The fault that was caused and measured last, where a try ended before it had read the processor time."""
    last: Drilled | None = None
    for _, told in of_kind(records, Drilled):
        last = told if told.what == MEASURED else None if told.what == FAULT else last
    return last


# -- the tasks ---------------------------------------------------------------------------------------------------------


def prepare(run: Run) -> dict[str, Any]:
    """Every check, nothing moving, and whom the fault would hit. Raises Refused."""
    form = Form.of(run.params)
    answer = require_preflight(run, operation_for(form.fault))
    seen = run.cluster.settled()
    found = aim(form, seen, run.spec)
    _require_still(run, form, found)
    run.cluster.tell(page(form, found, run.spec))
    return answer


def examine(run: Run, gate: str) -> Examined:
    """A deep look with every host, by the checks that this fault needs."""
    return examines_by_checks(operation_for(Form.of(run.params).fault))(run, gate)


def shows_form(run: Run) -> Shown:
    """What will be stopped, and what clients may see, for the gate."""
    form = Form.of(run.params)
    text = page(form, aim(form, run.cluster.settled(), run.spec), run.spec)
    return Shown(exhibits=(Exhibit(PREFLIGHT, form.digest, text),), by=PREFLIGHT)


def measure_baseline(run: Run, opens: Opens = open_probes) -> dict[str, Any]:
    """What clients see without a fault, for as long as the form says."""
    form = Form.of(run.params)
    if run.cluster.rehearses:
        if not form.partitions:
            make_own_topic(run)
        run.cluster.tell(f"Dry run: would watch the probes for {form.seconds:g} s without a fault")
        return {"dry_run": True}
    run.claim.take()
    seen = run.cluster.settled()
    run.signatures.require(QUORUM_DRILL, DRILL, seen, exhibit=form.digest)
    before = Before.look(run)
    with opens(run) as probes:
        began = settled(run, probes)
        watch(run, probes, until=began + form.seconds)
        measured = measure(probes, began, probes.now())
    measured = before.with_processors(run, measured, seen)
    run.journal.record(Drilled(values=measured.to_dict(), what=BASELINE, fault="none", node_id=None))
    run.cluster.tell(f"without a fault: silent for {longest(measured)} at most")
    return measured.to_dict()


def cause_faults(
    run: Run, opens: Opens = open_probes, follows: Follows = follow_leaders, notices: Notices = notice_loss
) -> dict[str, Any]:
    """Each fault that is still to come, once what an earlier try stopped runs again."""
    form = Form.of(run.params)
    if run.cluster.rehearses:
        return _rehearse(run, form)
    mend(run)
    if any(told.what == STALL for _, told in of_kind(run.journal.records(), Drilled)):
        raise Refused("a fault of this run exceeded its budget: no other follows", way_out=ANOTHER_RUN)
    baseline = baseline_of(run.journal.records())
    for number in range(faults_done(run.journal.records()) + 1, form.repeats + 1):
        run.cluster.tell(f"{form.fault.value}: {number} of {form.repeats}")
        _one(run, form, baseline, opens, follows, notices)
    return {"faults": faults_done(run.journal.records())}


def mend(run: Run) -> dict[str, Any]:
    """Start what this run stopped and did not see started, and wait until all is whole; and take a fault for done whose
    processor time a killed try did not read. Nothing to do is fine, and needs no claim. Raises Refused where another
    run holds the cluster by now: nothing is started beside it. Where the claim can't be asked, it is started: this
    run's own records say that it stopped it.
    """
    if run.cluster.rehearses:
        return {"started": []}
    if (unread := without_processors(run.journal.records())) is not None:
        run.journal.record(replace(unread, what=FAULT))
        run.cluster.tell(f"{unread.fault}: measured by an earlier try, which ended before it read the processor time")
    left = stopped(run.journal.records())
    if left:
        what = f"{nodes('node', left, 'was')} stopped by this run and {by_number(left, 'is', 'are')} not started"
        try:
            _claim(run, what)
        except (Unreachable, SecretMissing) as unasked:
            run.cluster.tell(f"{unasked.problem}. Started all the same")
    for node in left:
        _start(run, node, "left by an earlier try")
    if left:
        run.cluster.wait_for(WHOLE, deadline=_deadline(run))
    return {"started": left}


def end(run: Run) -> dict[str, Any]:
    """The last task: mend, delete the probes' topics, and keep what was measured beside earlier drills. Raises as
    ``mend``, and Unreachable or SecretMissing where topics are left and the claim can't be asked.
    """
    answer, topic, removed = mend(run), topic_of_run(run), 0
    if run.cluster.rehearses or has_probed(run):
        if not run.cluster.rehearses:
            _claim(run, f"the probes' topics {topic}* are not deleted")
        removed = run.cluster.do(remove_topics, topic, would=[Act(f"delete the probes' topics {topic}*")]) or 0
    if not run.cluster.rehearses:
        compare(run)
    return {**answer, "topics_deleted": removed}


def _claim(run: Run, left: str) -> None:
    """Raises with what is left so: Refused where another run holds the cluster, Unreachable or SecretMissing where that
    can't be asked.
    """
    try:
        run.claim.take()
    except (Refused, Unreachable, SecretMissing) as held:
        raise type(held)(f"{left}: {held.problem}", way_out=held.way_out) from None


def compare(run: Run) -> None:
    """Keep what this run measured, and put the last such fault in the other mode beside it, on record with a picture.
    Nothing where this run measured none, or there is no other.
    """
    records = run.journal.records()
    faults = [(record.at, told) for record, told in of_kind(records, Drilled) if told.what == FAULT]
    if not faults:
        return
    usual = baseline_of(records)
    now = detect_phase(run.cluster.settled()).phase if any(told.phase is None for _, told in faults) else Phase.UNKNOWN
    new = [
        KeptFault(f"{run.name} {number}", at, Phase(told.phase or now), told.fault, usual, measured)
        for number, (at, told) in enumerate(faults, 1)
        if (measured := Measured.from_dict(told.values)) is not None
    ]
    found = pair(keep(run.state, run.spec.name, new), faults[-1][1].fault)
    if found is not None:
        run.journal.record(Moves(what=WHAT, partitions=None, told=told_of(*found), picture=draw(*found)))
        run.cluster.tell(told_of(*found))


# -- one fault ---------------------------------------------------------------------------------------------------------


def _one(run: Run, form: Form, baseline: Measured, opens: Opens, follows: Follows, notices: Notices) -> None:
    run.claim.take()
    run.claim.await_groups()  # before the look by which somebody is struck: it may take minutes
    seen = run.cluster.wait_for(WHOLE, deadline=_deadline(run))
    found = aim(form, seen, run.spec)
    _require_still(run, form, found)
    run.signatures.require(QUORUM_DRILL, DRILL, seen, exhibit=form.digest)
    if not standing(run.journal.records(), DRILL).begun:
        run.signatures.begins(DRILL)
    before = Before.look(run)
    with opens(run) as probes:
        began = settled(run, probes)
        with follows(run, found) as leaders, notices(run, found) as noticed:
            over, told_at = _strike(run, form, found, probes)
            over = _until_whole(run, form, probes, began, over)
            if not over:
                watch(run, probes, until=began + form.seconds)
        measured = measure(probes, began, probes.now(), leaders=leaders, noticed=noticed, told_at=told_at)
        over = over or max(measured.silences.values(), default=0.0) > form.budget
        done = Drilled(
            values=measured.to_dict(),
            what=STALL if over else MEASURED,
            fault=form.fault.value,
            node_id=found.node,
            phase=detect_phase(seen).phase.value,
        )
        run.journal.record(done)  # before anything else that may take long: nobody causes it again
    for each in effects(baseline, measured):
        run.cluster.tell(f"effect: {each}")
    if over:
        run.cluster.wait_for(WHOLE, deadline=_deadline(run))
        raise StepFailed(
            f"a silence of {longest(measured)} exceeded the budget of {form.budget:g} s; the stopped process runs"
            " again, and the cluster is whole",
            way_out=ANOTHER_RUN,
        )
    measured = before.with_processors(run, measured, run.cluster.settled())
    run.journal.record(replace(done, values=measured.to_dict(), what=FAULT))


def _strike(run: Run, form: Form, found: Aim, probes: Answers) -> tuple[bool, float | None]:
    """Cause the fault, and start what it stopped once every probe was answered since. Returns whether a silence
    exceeded the budget, and when the node was told to end, by the clock of the answers; None where that is not known.
    """
    what = found.stop()
    if what is None or found.node is None:
        holder = run.cluster.do(depose, would=[Act("delete /controller")])
        run.cluster.tell(f"/controller, which named broker {holder}, is deleted")
        return _answered_since(run, form, probes, probes.now()), None
    run.journal.record(Drilled(values={}, what=STOPS, fault=form.fault.value, node_id=found.node))
    try:
        told_at = by_their_clock(run, probes, run.cluster.play(what).ended_at)
        return _answered_since(run, form, probes, probes.now()), told_at
    finally:
        _start(run, found.node, form.fault.value)


def _start(run: Run, node: int, fault: str) -> None:
    run.cluster.play(start(node))
    run.journal.record(Drilled(values={}, what=STARTED, fault=fault, node_id=node))
    run.cluster.tell(f"node {node} runs again")


def _answered_since(run: Run, form: Form, probes: Answers, since: float) -> bool:
    """Wait until every probe was answered after ``since``. Returns whether a silence exceeded the budget first."""
    while not all(each and each[-1] > since for each in probes.answers.values()):
        if silent_for(probes, since) > form.budget:
            return True
        run.cluster.pause(0.1)
    return False


def _until_whole(run: Run, form: Form, probes: Answers, began: float, over: bool) -> bool:
    """Wait until all is whole, unless a silence has exceeded the budget. Returns whether one has."""
    wait = Wait(run.cluster, WHOLE, _deadline(run))
    while not over:
        over = any(longest_silence(each, began, probes.now()) > form.budget for each in probes.answers.values())
        if wait.look():
            break
        run.cluster.pause(run.spec.deadlines.poll)
    return over


def _require_still(run: Run, form: Form, found: Aim) -> None:
    """Nothing moves, what the probes write to is there, and what must be deleted may be. Raises Refused."""
    moving = run.cluster.ask(_moving)
    if moving:
        raise Refused(
            f"{moving} partitions are being reassigned", way_out="wait until that has ended, then clear this task"
        )
    if form.partitions:
        run.cluster.ask(require_partitions, form.partitions, several=found.node in run.spec.broker_ids)
    if found.node is None:
        run.cluster.ask(require_deposable)
    elif found.ends_by == KILL and found.node in run.spec.broker_ids:
        _require_enough_without(run, found.node)


def _require_enough_without(run: Run, broker: int) -> None:
    """No partition has too few replicas in sync while this broker's session lasts on after its end. Raises Refused."""
    short = run.cluster.ask(short_without, broker)
    if short is not None:
        raise Refused(
            f"while broker {broker} is killed partitions would have too few replicas in sync:"
            f" {sample(short.samples, short.count)}",
            way_out="give these topics another replica or lower their min.insync.replicas, then clear this task; or"
            f" drill '{Fault.FAILOVER.value}', which stops no broker in ZooKeeper mode",
        )


def _moving(spec: Any, *, secrets: Any) -> int:
    return len(Reassignments(spec, secrets=secrets).ongoing())


def _deadline(run: Run) -> float:
    deadlines = run.spec.deadlines
    return deadlines.registration + deadlines.in_sync


def _rehearse(run: Run, form: Form) -> dict[str, Any]:
    """Each fault in its turn. Whom one hits that stops the controller is known of the first alone."""
    seen: ClusterObservation = run.cluster.settled()
    found = aim(form, seen, run.spec)
    what = found.stop()
    if what is None or found.node is None:
        run.cluster.do(depose, would=[Act("delete /controller")] * form.repeats)
        return {"dry_run": True}
    follows = form.fault is not Fault.SHUTDOWN
    for _ in range(1 if follows else form.repeats):
        run.cluster.play(what)
        run.cluster.play(start(found.node))
    if follows and form.repeats > 1:
        told = f"play {what.playbook} and {start(found.node).playbook} on whoever is the controller then"
        run.cluster.do(_one, would=[Act(f"{told}, {form.repeats - 1} time(s) more")])
    return {"dry_run": True}
