"""A broker that is gone, unregistered: named in the form, looked at, signed for, looked at again, asked for once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kraft_runbook.brokers.operation import GATE, UNREGISTERING, Step
from kraft_runbook.brokers.unregistering import (
    Held,
    digest,
    may_know,
    page,
    registration,
    require_gone,
    require_no_voter,
    require_nothing_lost,
    require_registered,
)
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.procedures.see_held import see_held
from kraft_runbook.procedures.unregister_broker import unregister_broker
from kraft_runbook.runbook.one_role import require_one_role
from kraft_runbook.steps.examine import PREFLIGHT, Shown, examines_by_checks, require_preflight
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.run import Run

LOOKS = 10
"""Looks in which the registration has to be gone. The leader answers once it is committed."""

examine = examines_by_checks(UNREGISTERING)


def prepare(run: Run) -> dict[str, Any]:
    """Every check, and whether the form's broker is gone and holds nothing that nobody else has. Raises Refused."""
    _node(run)
    answer = require_preflight(run, UNREGISTERING)
    _require_may(run, run.cluster.settled())
    return answer


def shows_broker(run: Run) -> Shown:
    """What is taken out of the log, and what stays on the broker, for the gate."""
    seen, node = run.cluster.settled(), _node(run)
    found, held = require_registered(node, seen), _held(run, seen)
    text = page(node, found, held, declared=node in run.spec.broker_ids)
    run.cluster.tell(text)
    return Shown(exhibits=(Exhibit(PREFLIGHT, digest(node, found), text),), by=PREFLIGHT)


def unregister(run: Run) -> dict[str, Any]:
    """Look once more, then ask the controller, and see the registration gone. Raises Refused, StepFailed."""
    node = _node(run)
    act = Act(f"unregister broker {node}")
    if run.cluster.rehearses:
        run.cluster.do(unregister_broker, node, would=[act])
        return {"dry_run": True}
    run.claim.take()
    seen = run.cluster.settled()
    reading = UNREGISTERING.read(seen, run.spec)
    found = registration(node, seen)
    if found is None:
        run.already_done(reading.stage, Step.UNREGISTER, f"broker {node} is not registered")
        return {"changed": False}
    UNREGISTERING.table.require(Step.UNREGISTER, reading)
    _require_may(run, seen)
    _require_still(run)
    run.signatures.begins(GATE)
    began = datetime.now(UTC)
    changed = bool(run.cluster.do(unregister_broker, node, would=[act]))
    _see_it_gone(run, node)
    run.acted(reading.stage, Step.UNREGISTER, began, *(["registration"] if changed else []), node=node)
    return {"changed": changed}


def _node(run: Run) -> int:
    named = run.params["broker"]
    if named is None:
        raise Refused("the form names no broker", way_out="name the broker that is gone in a new run")
    require_one_role(run.spec, int(named), "unregistering a broker")
    return int(named)


def _held(run: Run, seen: ClusterObservation) -> Held:
    node = _node(run)
    others = [each for each in run.spec.brokers if each.id != node and may_know(each.id, seen)]
    return run.cluster.ask(see_held, node, others)


def _require_may(run: Run, seen: ClusterObservation) -> None:
    _require_gone(run, seen)
    require_nothing_lost(_node(run), _held(run, seen))


def _require_still(run: Run) -> None:
    """By a new look: the brokers' answers take their time, and the broker may have come back meanwhile."""
    seen, node = run.cluster.settled(), _node(run)
    _require_gone(run, seen)
    run.signatures.require(UNREGISTERING, GATE, seen, exhibit=digest(node, require_registered(node, seen)))


def _require_gone(run: Run, seen: ClusterObservation) -> None:
    require_no_voter(_node(run), seen)
    require_gone(_node(run), seen)


def _see_it_gone(run: Run, node: int) -> None:
    """Look until it is gone. The request was taken, so a look that reads no log is made again. Raises StepFailed."""
    for _ in range(LOOKS):
        quorum = run.cluster.observe().quorum
        if was_read(quorum):
            if node not in quorum.registrations:
                run.cluster.tell(f"broker {node} is registered no more")
                return
        else:
            run.cluster.tell(f"waiting for the metadata log: {quorum.reason}")
        run.cluster.pause(run.spec.deadlines.poll)
    if not was_read(quorum):
        raise StepFailed(
            f"the controller took the request, and whether broker {node} is registered still could not be read:"
            f" {quorum.reason}",
            way_out=f"{quorum.way_out or 'see who leads (kraft-runbook quorum)'}; then clear this task: it asks for"
            " nothing where the broker is registered no more",
        )
    raise StepFailed(
        f"the controller took the request, and broker {node} is registered still or again",
        way_out="its process may have been started again: stop it for good, then trigger a new run",
    )
