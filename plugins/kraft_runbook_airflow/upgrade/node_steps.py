"""The software roll's steps on a node, and what is looked at before its gates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Software
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import AlreadyDone
from kraft_runbook.procedures.require_readable import require_readable
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.steps.guards import require_other_brokers_in_sync, require_other_brokers_up
from kraft_runbook.steps.node_step import Look, NodeStep, take_step
from kraft_runbook.steps.run import Run
from kraft_runbook.upgrade import conditions
from kraft_runbook.upgrade.operation import UPGRADE
from kraft_runbook.upgrade.plays import switch_software, target_of
from kraft_runbook.upgrade.stages import Step
from kraft_runbook_airflow.base.gates import examines_by_checks
from kraft_runbook_airflow.base.operators import ClusterOperator

Chooses = Callable[[ClusterSpec], Software]


def _former(spec: ClusterSpec) -> Software:
    return spec.kafka


examine = examines_by_checks(UPGRADE)


# -- one node ----------------------------------------------------------------------------------------------------------


def _runs(look: Look, version: str) -> str | None:
    """Why nothing is left to do on the node. A process that runs on its software and serves nobody is waited for, not
    restarted again.
    """
    states = look.seen.controllers if look.node in look.seen.controllers else look.seen.brokers
    state = states[look.node]
    return (
        f"node {look.node} runs Kafka {version}"
        if state.running is True and state.software_version == version
        else None
    )


def remaining(seen: ClusterObservation, version: str) -> list[int]:
    """The controllers that do not show the version."""
    return [c.id for c in seen.controllers.values() if c.software_version != version]


def _require_readable(look: Look, software: Software) -> None:
    is_led = was_read(look.seen.quorum)
    look.cluster.ask(require_readable, look.node, software, tell=look.tell, is_led=is_led)


def _controller(step: Step, software: Chooses) -> NodeStep:
    def done(look: Look) -> str | None:
        version = software(look.spec).version
        if why := _runs(look, version):
            return why
        if len(remaining(look.seen, version)) > 1 and look.seen.is_active(look.node):
            return f"left for last: controller {look.node} is the active one"
        return None

    def guard(look: Look) -> None:
        if look.seen.controllers[look.node].running is not False:  # one that has ended may be started in any case
            down = [c.id for c in look.seen.controllers.values() if c.id != look.node and c.running is not True]
            if down or not was_read(look.seen.quorum):
                raise Refused(
                    f"the quorum is not whole: controller {', '.join(map(str, down)) or 'leader'} does not answer",
                    way_out=f"bring it back, then clear this task; controller {look.node} was not touched",
                )
            look.cluster.wait_for(conditions.QUORUM_WHOLE, deadline=look.spec.deadlines.quorum)
        _require_readable(look, software(look.spec))

    return NodeStep(
        UPGRADE,
        step,
        play=lambda look: switch_software(look.spec, look.node, software(look.spec)),
        done=done,
        guard=guard,
    )


def _broker(step: Step, software: Chooses) -> NodeStep:
    def guard(look: Look) -> None:
        if look.seen.brokers[look.node].running is not False:
            require_other_brokers_up(look)
            require_other_brokers_in_sync(look)
        _require_readable(look, software(look.spec))

    return NodeStep(
        UPGRADE,
        step,
        play=lambda look: switch_software(look.spec, look.node, software(look.spec)),
        done=lambda look: _runs(look, software(look.spec).version),
        guard=guard,
    )


CONTROLLER_UP = _controller(Step.CONTROLLERS_UP, target_of)
BROKER_UP = _broker(Step.BROKERS_UP, target_of)
BROKER_BACK = _broker(Step.BROKERS_BACK, _former)
CONTROLLER_BACK = _controller(Step.CONTROLLERS_BACK, _former)


class StartWhatIsDown(ClusterOperator):
    """Start the nodes that do not run, on the software that this run leads to, ahead of all others: one that is down
    would keep each of them from being restarted. On the way back that is a node that did not come up on the target; on
    the way up, one that a broken-off way back left stopped.
    """

    ui_color = "#fde8c8"

    def __init__(self, *, back: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.controller, self.broker = (CONTROLLER_BACK, BROKER_BACK) if back else (CONTROLLER_UP, BROKER_UP)
        self.waits: tuple[Condition, Condition] = (
            (conditions.CONTROLLER_ON_FORMER, conditions.BROKER_ON_FORMER)
            if back
            else (conditions.CONTROLLER_ON_TARGET, conditions.BROKER_ON_TARGET)
        )

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        seen = run.cluster.observe()
        down = [c.id for c in seen.controllers.values() if c.running is False]
        for node in down:
            take_step(run, self.controller, node)
            run.cluster.wait_for(self.waits[0], node_id=node, deadline=run.spec.deadlines.quorum)
        brokers = [b.id for b in seen.brokers.values() if b.running is False]
        for node in brokers:
            take_step(run, self.broker, node)
            for condition, within in (
                (self.waits[1], run.spec.deadlines.registration),
                (conditions.BROKER_IN_SYNC, run.spec.deadlines.in_sync),
            ):
                run.cluster.wait_for(condition, node_id=node, deadline=within)
        if not down and not brokers:
            self.log.info("already done: every node runs")
        return {"started": [*down, *brokers]}

    def rehearse(self, context: Any, run: Run) -> dict[str, Any]:
        self.log.info("Dry run: what is down would be started first, on the software that this run leads to")
        return {"dry_run": True}


class RollActiveController(ClusterOperator):
    """Restart what the first pass left: the active controller, and any that led in the meantime, the active one last.

    ``back``: on the version before.
    """

    ui_color = "#fde8c8"

    def __init__(self, *, back: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.step = CONTROLLER_BACK if back else CONTROLLER_UP
        self.condition: Condition = conditions.CONTROLLER_ON_FORMER if back else conditions.CONTROLLER_ON_TARGET
        self.software: Chooses = _former if back else target_of

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        done = []
        version = self.software(run.spec).version
        while left := remaining(seen := run.cluster.observe(), version):
            node = seen.next_controller(left)
            done.append(take_step(run, self.step, node))
            run.cluster.wait_for(self.condition, node_id=node, deadline=run.spec.deadlines.quorum)
        if not done:  # another one was elected in the meantime, so that none was left for last
            why = f"every controller runs Kafka {version}"
            self.log.info("already done: %s", why)
            stage = UPGRADE.read(run.cluster.observe(), run.spec).stage
            run.journal.record(AlreadyDone(phase=stage, step=self.step.step, why=why))
        return {"restarted": done}

    def rehearse(self, context: Any, run: Run) -> dict[str, Any]:
        self.log.info("Dry run: the controller that is active then would be restarted last, in the same way")
        return {"dry_run": True}
