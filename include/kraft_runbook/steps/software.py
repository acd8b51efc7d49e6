"""The software roll's steps on a node: what is down first, the active controller last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kraft_runbook.cluster.observation import BrokerState, ClusterObservation, ControllerState, Unread, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Software
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.procedures.kept_old_clients import read_old_clients
from kraft_runbook.procedures.require_readable import require_readable
from kraft_runbook.runbook.digests import sha256_of
from kraft_runbook.software import conditions
from kraft_runbook.software.checklist import crosses_into_4
from kraft_runbook.software.defaults import changed_defaults, table_of_defaults
from kraft_runbook.software.old_client_days import table_of_days
from kraft_runbook.software.old_clients import (
    old_clients,
    table_of_logged_clients,
    table_of_old_clients,
)
from kraft_runbook.software.operation import SOFTWARE
from kraft_runbook.software.plays import switch_software, target_of
from kraft_runbook.software.roll import Rolled
from kraft_runbook.software.stages import Gate, Step
from kraft_runbook.steps.both_roles import comes_back
from kraft_runbook.steps.demotions import demotes
from kraft_runbook.steps.examine import Examined, examine_by_checks
from kraft_runbook.steps.guards import (
    require_other_brokers,
    require_other_controllers_up,
    require_the_quorum_to_be_as_declared,
)
from kraft_runbook.steps.node_step import Look, NodeStep, never, passes_over_none, take_step
from kraft_runbook.steps.registrations import register_anew
from kraft_runbook.steps.roll import active_one_last, left_for_last
from kraft_runbook.steps.run import Run

Chooses = Callable[[ClusterSpec], Software]


def _former(spec: ClusterSpec) -> Software:
    return spec.kafka


# -- its gate ----------------------------------------------------------------------------------------------------------


def examine_with_tables(run: Run, gate: str) -> Examined:
    """A gate's look by the checks. Before the roll four tables more: the clients that Kafka 4 will not answer, counted
    between two looks (``old_clients_window``), named by the brokers' request logs, and counted by day; and the defaults
    that change.
    """
    into_4 = gate == Gate.UP and crosses_into_4(run.spec)
    earlier = _look_before(run) if into_4 else None
    found = examine_by_checks(SOFTWARE, run, gate, earlier=earlier)
    if gate != Gate.UP or SOFTWARE.is_behind(gate, found.seen, run.spec):
        return found
    version = conditions.target_version(run.spec)
    tables = (
        table_of_old_clients(old_clients(found.seen, earlier, version), version) if into_4 else None,
        table_of_logged_clients(found.seen, version) if into_4 else None,
        _by_day(run, version) if into_4 else None,
        table_of_defaults(changed_defaults(found.seen, run.spec), version),
    )
    return replace(found, exhibits=tuple(Exhibit("prove", sha256_of(each), each) for each in tables if each))


def _by_day(run: Run, version: str) -> str:
    kept = read_old_clients(run.state, run.spec.name)
    days = kept.reason if isinstance(kept, Unread) else kept
    return table_of_days(days, version, watch=f"cluster_watch__{run.spec.name}")


def _look_before(run: Run) -> ClusterObservation | None:
    """The first of two looks, and the time between them. None where one look is enough."""
    window = run.spec.upgrade_software.old_clients_window
    earlier = run.cluster.observe() if window else None
    if earlier is None or SOFTWARE.is_behind(Gate.UP, earlier, run.spec):
        return None
    run.cluster.tell(f"counting requests that Kafka 4 does not answer for {window:.0f} s")
    run.cluster.pause(window)
    return earlier


# -- one node ----------------------------------------------------------------------------------------------------------


def _runs(look: Look, version: str) -> str | None:
    """Why nothing is left to do on the node. A process that runs on its software and serves nobody is waited for, not
    restarted again.
    """
    runs = all(each.running is True and each.software_version == version for each in _parts(look.seen, look.node))
    return f"node {look.node} runs Kafka {version}" if runs else None


def _parts(seen: ClusterObservation, node: int) -> list[ControllerState | BrokerState]:
    """What was seen of a node: as a controller, as a broker, or as both."""
    found = (seen.controllers.get(node), seen.brokers.get(node))
    return [each for each in found if each is not None]


def _started_before(look: Look) -> str | None:
    """Why a rehearsal lists the node's start once: it would run by its turn."""
    if look.cluster.rehearses and any(each.running is False for each in _parts(look.seen, look.node)):
        return f"node {look.node} does not run: it would have been started ahead of all others"
    return None


def remaining(seen: ClusterObservation, version: str) -> list[int]:
    """The controllers that do not show the version."""
    return [c.id for c in seen.controllers.values() if c.software_version != version]


def _require_what_is_written(look: Look, software: Software) -> None:
    """The file that the step writes, and what the node holds, let it start on that software."""
    require_the_quorum_to_be_as_declared(look)
    is_led = was_read(look.seen.quorum)
    look.cluster.ask(require_readable, look.node, software, tell=look.tell, is_led=is_led)


def _controller(step: Step, software: Chooses) -> NodeStep:
    def done(look: Look) -> str | None:
        version = software(look.spec).version
        return _runs(look, version)

    def passed_over(look: Look) -> str | None:
        return _started_before(look) or left_for_last(look, remaining(look.seen, software(look.spec).version))

    def guard(look: Look) -> None:
        _await_the_quorum(look)
        _require_what_is_written(look, software(look.spec))

    return NodeStep(
        SOFTWARE,
        step,
        play=lambda look: switch_software(look.spec, look.node, software(look.spec)),
        done=done,
        passed_over=passed_over,
        guard=guard,
        excepted=_is_first_of_the_way_back if step is Step.CONTROLLERS_BACK else never,
    )


def _is_first_of_the_way_back(look: Look) -> bool:
    """Where every broker is a controller too, the way back has no brokers to begin with."""
    return look.reading.stage == Rolled.NEW and not look.spec.brokers_alone


def _await_the_quorum(look: Look) -> None:
    """Every other controller runs, is caught up and warm. One that has ended may be started in any case."""
    if look.seen.controllers[look.node].running is not False:
        require_other_controllers_up(look)
        look.cluster.wait_for(conditions.QUORUM_WHOLE, deadline=look.spec.deadlines.quorum)


def _both(controller: NodeStep, software: Chooses) -> NodeStep:
    """The controller's step on one that is a broker too: asked for both, since the one process takes away both."""

    def guard(look: Look) -> None:
        _await_the_quorum(look)
        if look.seen.brokers[look.node].running is not False:
            require_other_brokers(replace(look, seen=look.cluster.settled()))
        _require_what_is_written(look, software(look.spec))

    before = demotes(lambda spec: spec.upgrade_software.demote, awaits=_await_the_quorum)
    return replace(controller, guard=guard, before=before)


def _broker(step: Step, software: Chooses) -> NodeStep:
    def guard(look: Look) -> None:
        if look.seen.brokers[look.node].running is not False:
            require_other_brokers(look)
        _require_what_is_written(look, software(look.spec))

    return NodeStep(
        SOFTWARE,
        step,
        play=lambda look: switch_software(look.spec, look.node, software(look.spec)),
        done=lambda look: _runs(look, software(look.spec).version),
        passed_over=_started_before,
        guard=guard,
        before=demotes(lambda spec: spec.upgrade_software.demote),
        batched=True,
    )


CONTROLLER_UP = _controller(Step.CONTROLLERS_UP, target_of)
BROKER_UP = _broker(Step.BROKERS_UP, target_of)
BROKER_BACK = _broker(Step.BROKERS_BACK, _former)
CONTROLLER_BACK = _controller(Step.CONTROLLERS_BACK, _former)
BOTH_ROLES_UP, BOTH_ROLES_BACK = _both(CONTROLLER_UP, target_of), _both(CONTROLLER_BACK, _former)


def _step_of(spec: ClusterSpec, *, back: bool) -> Callable[[int], NodeStep]:
    """By controller: its step. Whose turn it is, its caller has chosen: one that is elected meanwhile has it too."""
    both, alone = (BOTH_ROLES_BACK, CONTROLLER_BACK) if back else (BOTH_ROLES_UP, CONTROLLER_UP)
    return lambda node: replace(both if spec.has_both_roles(node) else alone, passed_over=passes_over_none)


def start_what_is_down(run: Run, *, back: bool) -> dict[str, Any]:
    """Start the nodes that do not run, on the software that this run leads to, ahead of all others: one that is down
    would keep each of them from being restarted. On the way back that is a node that did not come up on the target; on
    the way up, one that a broken-off way back left stopped. Of the controllers, those that do not run come first: one
    whose broker's port alone is closed is stopped only while all others run.
    """
    step_of, broker = _step_of(run.spec, back=back), BROKER_BACK if back else BROKER_UP
    on = conditions.CONTROLLER_ON_FORMER if back else conditions.CONTROLLER_ON_TARGET
    registered = conditions.BROKER_ON_FORMER if back else conditions.BROKER_ON_TARGET
    within, seen = run.spec.deadlines, run.cluster.observe()
    closed = [b.id for b in seen.brokers.values() if b.running is False]
    down = [c.id for c in seen.controllers.values() if c.running is False]
    down += [i for i in closed if i in seen.controllers and i not in down]
    for node in down:
        take_step(run, step_of(node), node)
        run.cluster.wait_for(on, node_id=node, deadline=within.quorum)
    brokers = [each for each in closed if each not in down]
    for node in brokers:  # all are started first: the wait for one asks for the others
        take_step(run, replace(broker, passed_over=passes_over_none), node)
    for node in (*(each for each in down if each in seen.brokers), *brokers):
        run.cluster.wait_for(registered, node_id=node, deadline=within.registration)
        run.cluster.wait_for(conditions.BROKER_IN_SYNC, node_id=node, deadline=within.in_sync)
    if not down and not brokers:
        run.cluster.tell("already done: every node runs")
    return {"started": [*down, *brokers]}


def roll_active_controller(run: Run, *, back: bool) -> dict[str, Any]:
    """Restart what the first pass left: the active controller, and any that led in the meantime, the active one last.
    Then once more each controller whose registration was lost.

    ``back``: on the version before.
    """
    step_of = _step_of(run.spec, back=back)
    version = (_former if back else target_of)(run.spec).version
    controller = conditions.CONTROLLER_ON_FORMER if back else conditions.CONTROLLER_ON_TARGET
    broker = conditions.BROKER_ON_FORMER if back else conditions.BROKER_ON_TARGET

    def after(node: int) -> None:
        comes_back(run, node, controller=controller, broker=broker, in_sync=conditions.BROKER_IN_SYNC)

    if not run.cluster.rehearses:
        left = remaining(run.cluster.observe(), version)
        for node in run.spec.both_ids:  # a try that was killed may have restarted one and not seen it back
            if node not in left:
                after(node)
    done = active_one_last(run, step_of, lambda seen: remaining(seen, version), after=after)
    if not done and not run.cluster.rehearses:  # another one was elected in the meantime: none was left for last
        stage = SOFTWARE.read(run.cluster.observe(), run.spec).stage
        step = Step.CONTROLLERS_BACK if back else Step.CONTROLLERS_UP
        run.already_done(stage, step, f"every controller runs Kafka {version}")
    again = [] if run.cluster.rehearses else register_anew(run, step_of, after=after)
    return {"restarted": [answer for _, answer in done], **({"registered_anew": again} if again else {})}
