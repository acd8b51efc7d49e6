"""The steps of a rolling restart on a node, and the active controller's restart, which is the last of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kraft_runbook.cluster.node_properties import kraft_properties
from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Played, of_kind
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.restart.checks import ALONE_WHILE, BROKER_CONTROLS, ONE_BY_ONE
from kraft_runbook.restart.conditions import BROKER_BACK, BROKER_IN_SYNC, CONTROLLER_BACK, QUORUM_LED, QUORUM_WHOLE
from kraft_runbook.restart.files import Files, differs_besides, digest, page, require_for_good
from kraft_runbook.restart.operation import RESTARTS, Step, restarts_with
from kraft_runbook.restart.plays import restart_node
from kraft_runbook.runbook.broker_files import broker_files, controller_files_in_kraft
from kraft_runbook.runbook.health import quorum_led
from kraft_runbook.runbook.plays import Play
from kraft_runbook.steps.both_roles import comes_back
from kraft_runbook.steps.demotions import demotes
from kraft_runbook.steps.examine import PREFLIGHT, Examined, Shown, examines_by_checks, require_preflight
from kraft_runbook.steps.guards import require_other_brokers, require_the_quorum_to_be_as_declared
from kraft_runbook.steps.node_step import Look, NodeStep, passes_over_none
from kraft_runbook.steps.roll import active_one_last, left_for_last
from kraft_runbook.steps.run import Run


def prepare(run: Run) -> dict[str, Any]:
    """Every check that the form's files need. Raises Refused."""
    files = Files.asked(run.params)
    if files is Files.ADDRESSES and not run.spec.rolling_restart.gate:
        raise Refused(
            "files are written behind a signature alone, and the cluster file asks for none (rolling_restart.gate)",
            way_out="take 'gate: false' out of the cluster file for this run, or restart with the files as they are",
        )
    answer = require_preflight(run, restarts_with(files))
    if files is Files.ADDRESSES:
        require_for_good(Phase(answer["phase"]))
    return answer


def examine(run: Run, gate: str) -> Examined:
    """A deep look with every host, by the same checks."""
    return examines_by_checks(restarts_with(Files.asked(run.params)))(run, gate)


def shows_files(run: Run) -> Shown:
    """What is written to the nodes' files, for the gate; nothing where they stay as they are."""
    if Files.asked(run.params) is Files.AS_THEY_ARE:
        return Shown()
    return Shown(exhibits=(Exhibit(PREFLIGHT, digest(run.spec), page(run.spec)),), by=PREFLIGHT)


def _signed(look: Look) -> str | None:
    return digest(look.spec) if Files.asked(look.params) is Files.ADDRESSES else None


def _restart(look: Look) -> Play:
    properties = None
    if Files.asked(look.params) is Files.ADDRESSES:
        require_for_good(look.phase)
        properties = kraft_properties(look.spec, look.node)
    return restart_node(look.node, look.phase, older_than=look.began, properties=properties)


def _require_its_file(look: Look) -> None:
    """The file that is to be written is looked at once more. Raises Refused where it differs in anything else now."""
    if Files.asked(look.params) is Files.AS_THEY_ARE:
        return
    require_the_quorum_to_be_as_declared(look)
    node = look.node
    seen = replace(look.seen, hosts=look.cluster.hosts([node]))
    files = (*broker_files(seen, look.spec), *controller_files_in_kraft(seen, look.spec))
    file = next(each for each in files if each.node.id == node)
    problem = file.unread or ("it has none" if file.missing else differs_besides(file, seen, look.spec))
    if problem:
        raise Refused(
            f"the file of node {node} is not what the cluster file renders but for where the quorum is: {problem}",
            way_out="correct the cluster file or that file, then clear this task; nothing was changed on this node",
        )


def _not_provisioned(look: Look) -> str | None:
    """Why there is nothing to restart where no controller runs. Its host must say so too: an only controller that was
    stopped before the copy, as by a killed try of its own restart, shows the same phase.
    """
    if look.phase is not Phase.ZOOKEEPER:
        return None
    host = look.cluster.hosts([look.node])[look.node]
    unread = [part.reason for part in (host.config, host.formatted_cluster_id) if isinstance(part, Unread)]
    if unread:
        raise Refused(
            f"no controller runs, and whether controller {look.node} is provisioned could not be read: {unread[0]}",
            way_out="make its host readable (docs/hosts.md), or restart brokers only",
        )
    if host.config is not None and host.formatted_cluster_id is not None:
        raise Refused(
            f"no controller runs, though controller {look.node} is provisioned",
            way_out=f"start {look.spec.controller(look.node).service} on its host, then clear this task",
        )
    return "no controller is provisioned yet"


def _has_a_turn(run_or_look: Run | Look) -> list[int]:
    """The controllers that this run restarts; those that are brokers too in any case."""
    spec, params = run_or_look.spec, run_or_look.params
    without = RESTARTS.left_out(Step.RESTART_CONTROLLERS, params)
    return [i for i in spec.controller_ids if spec.has_both_roles(i) or not without]


def _passed_over(look: Look) -> str | None:
    return left_for_last(look, _has_a_turn(look)) or _not_provisioned(look)


def _require_the_quorum(look: Look) -> None:
    """Wait until every controller runs and has caught up. One that has ended may be started in any case."""
    _require_its_file(look)
    _await_the_quorum(look)


def _await_the_quorum(look: Look) -> None:
    if look.seen.controllers[look.node].running is not False:
        look.cluster.wait_for(QUORUM_WHOLE, deadline=look.spec.deadlines.quorum)


def _require_the_other_brokers(look: Look) -> None:
    """They run and are in sync, and a controller leads: without one a restarted broker can't register. One that has
    ended may be started in any case: that takes nothing away.
    """
    _require_its_file(look)
    _ask_for_the_other_brokers(look)


def _ask_for_the_other_brokers(look: Look) -> None:
    if look.seen.brokers[look.node].running is False:
        return
    if look.companions and look.phase in BROKER_CONTROLS:
        raise Refused(f"{ALONE_WHILE} (phase {look.phase})", way_out=f"{ONE_BY_ONE}, then trigger a new run")
    if look.phase is not Phase.ZOOKEEPER and not quorum_led(look.seen).done:
        look = replace(look, seen=look.cluster.wait_for(QUORUM_LED, deadline=look.spec.deadlines.quorum))
    require_other_brokers(look)


def _require_both(look: Look) -> None:
    """What is asked before a controller's restart, then what is asked before a broker's, by a look after that wait: the
    one process takes away both.
    """
    _require_its_file(look)
    _await_the_quorum(look)
    _ask_for_the_other_brokers(replace(look, seen=look.cluster.settled()))


CONTROLLER = NodeStep(
    RESTARTS,
    Step.RESTART_CONTROLLERS,
    play=_restart,
    passed_over=_passed_over,
    guard=_require_the_quorum,
    signed=_signed,
)
"""Restart a controller that is not the active one."""
ACTIVE_CONTROLLER = NodeStep(
    RESTARTS,
    Step.RESTART_CONTROLLERS,
    play=_restart,
    passed_over=_not_provisioned,
    guard=_require_the_quorum,
    signed=_signed,
)
BOTH_ROLES = NodeStep(
    RESTARTS,
    Step.RESTART_BOTH_ROLES,
    play=_restart,
    passed_over=lambda look: left_for_last(look, _has_a_turn(look)),
    guard=_require_both,
    signed=_signed,
    before=demotes(lambda spec: spec.rolling_restart.demote, awaits=_await_the_quorum),
)
"""Restart a node that is controller and broker in one process, and not the active controller."""
ACTIVE_OF_BOTH_ROLES = replace(BOTH_ROLES, passed_over=passes_over_none)
BROKER = NodeStep(
    RESTARTS,
    Step.RESTART_BROKERS,
    play=_restart,
    guard=_require_the_other_brokers,
    signed=_signed,
    before=demotes(lambda spec: spec.rolling_restart.demote),
    batched=True,
)


def restarts_no_brokers(run: Run) -> str | None:
    """Why, where this run was not asked for them."""
    return RESTARTS.left_out(Step.RESTART_BROKERS, run.params)


def restart_active_controller(run: Run) -> dict[str, Any]:
    """Restart the controllers that had no turn yet, the active one last: it was left out, and another may have been
    elected meanwhile. One that is a broker too is back in every ISR before the next.
    """
    turns = _has_a_turn(run)
    if not turns:
        run.cluster.tell(RESTARTS.left_out(Step.RESTART_CONTROLLERS, run.params) or "no controller has a turn")
        return {"restarted": []}

    def left(_: ClusterObservation) -> list[int]:
        return [i for i in turns if i not in played(run)]

    def back(node: int) -> None:
        if run.spec.has_both_roles(node):
            comes_back(run, node, controller=CONTROLLER_BACK, broker=BROKER_BACK, in_sync=BROKER_IN_SYNC)

    for node in sorted(played(run)):  # also by a try that was killed before it saw it back
        back(node)

    def step_of(node: int) -> NodeStep:
        return ACTIVE_OF_BOTH_ROLES if run.spec.has_both_roles(node) else ACTIVE_CONTROLLER

    done = active_one_last(run, step_of, left, once=True, after=back)
    if played(run):
        run.cluster.wait_for(QUORUM_WHOLE, deadline=run.spec.deadlines.quorum)
    return {"restarted": [node for node, answer in done if answer.get("changed")]}


def played(run: Run) -> set[int]:
    """The controllers that tasks of this run have restarted, by its evidence."""
    found = of_kind(run.journal.records(), Played)
    steps = (Step.RESTART_CONTROLLERS, Step.RESTART_BOTH_ROLES)
    return {told.node_id for _, told in found if told.step in steps and told.node_id is not None}
