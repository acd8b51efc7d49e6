"""Care of the quorum, step by step: the leader is restarted, or a controller that lost its disk is formatted and
started. One controller a run, and only while every other one is whole and warm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraft_runbook.cluster.feature_levels import KRAFT_VERSION
from kraft_runbook.cluster.kafka_version import release_of
from kraft_runbook.cluster.naming import name_ids
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.errors import Refused
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.migration.plays import bring_back_controller
from kraft_runbook.procedures.observe_features import observe_features
from kraft_runbook.quorum.care import QUORUM_CARE, care_for
from kraft_runbook.quorum.care_rules import Care, CareForm, Step, may_bring_back, may_move, page, whom
from kraft_runbook.restart.plays import restart_node
from kraft_runbook.runbook.check_results import Finding, Verdict
from kraft_runbook.runbook.plays import Play
from kraft_runbook.steps.examine import Examined, Shown, examines_by_checks, require_preflight
from kraft_runbook.steps.node_step import Look, NodeStep, take_step
from kraft_runbook.steps.run import Run

PREFLIGHT = "preflight.checks"
"""The task that says whom the run is about."""
DYNAMIC_SINCE = (4, 1)
"""kraft.version 1 on 3.9 changes nothing but what is shown (KAFKA-18979)."""


# -- what the steps do, and when they may ------------------------------------------------------------------------------


def _require(judge: Callable[[ClusterObservation, ClusterObservation | None], Finding], look: Look) -> None:
    """By the look that the step has, or by a second one after it: a log that grows looks cold to one."""
    finding = judge(look.seen, None)
    if finding.verdict is not Verdict.PASS:
        look.cluster.pause(look.spec.deadlines.poll)
        finding = judge(look.cluster.observe(), look.seen)
    if finding.verdict is not Verdict.PASS:
        raise Refused(
            finding.evidence,
            way_out="wait until kraft-runbook quorum shows every other controller warm, then clear this task;"
            f" controller {look.node} was not touched",
        )


def _leads_no_more(look: Look) -> str | None:
    """It runs, and is no longer the leader that the run is about: by a try of this run, or by itself. One that an
    earlier try stopped and did not start is not done with.
    """
    quorum = look.seen.quorum
    if not was_read(quorum) or quorum.leader_id == look.node or look.seen.controllers[look.node].running is not True:
        return None
    return f"controller {look.node} does not lead any more: controller {quorum.leader_id} does"


def _require_warm_standbys(look: Look) -> None:
    if look.seen.controllers[look.node].running is False:
        return  # it is started, which takes nothing away from anybody
    _require(lambda seen, earlier: may_move(seen, look.spec, earlier), look)


def _runs(look: Look) -> str | None:
    return f"controller {look.node} runs" if look.seen.controllers[look.node].running is True else None


def _require_a_lost_disk(look: Look) -> None:
    _require(lambda seen, earlier: may_bring_back(seen, look.spec, earlier, only=look.node), look)
    host = look.cluster.hosts([look.node])[look.node]
    if not was_read(host.has_metadata_log):
        raise Refused(
            f"whether controller {look.node} has a metadata log could not be read: {host.has_metadata_log.reason}",
            way_out="make its host readable (docs/hosts.md), then clear this task",
        )
    if host.has_metadata_log:
        raise Refused(
            f"controller {look.node} holds a metadata log: it lost nothing",
            way_out=f"start {look.spec.controller(look.node).service} on its host; where its data is broken, move the"
            " directory aside there (do not delete it), then clear this task",
        )
    _require_a_static_quorum(look)


def _require_a_static_quorum(look: Look) -> None:
    seen = look.cluster.ask(observe_features, with_hosts=False)
    level = seen.level(KRAFT_VERSION)
    if not was_read(level):
        raise Refused(
            f"whether the quorum is a dynamic one could not be read: {level.reason}",
            way_out="let the leader answer (kraft-runbook features), then clear this task",
        )
    if level and _may_be_dynamic(look):
        raise Refused(
            f"kraft.version is {level}: in a dynamic quorum the voter is known by its directory's id, which a new disk"
            " has not",
            way_out=f"take voter {look.node} out and put it in again, by kafka-metadata-quorum.sh remove-controller"
            " and add-controller (docs/quorum-care.md)",
        )


def _may_be_dynamic(look: Look) -> bool:
    """By the software that controllers run, not by the cluster file: a roll to another Kafka leaves that as it is. One
    whose software is not known may be.
    """
    running = [each for each in look.seen.controllers.values() if each.running is not False]
    versions = [each.software_version for each in running]
    return any(not was_read(each) or release_of(each) >= DYNAMIC_SINCE for each in versions)


def _bring_back(look: Look) -> Play:
    others = [each for each in look.spec.controller_ids if each != look.node]
    found = {i: host.formatted_cluster_id for i, host in look.cluster.hosts(others).items()}
    ids = {each for each in found.values() if was_read(each) and each}
    if len(ids) != 1:
        told = "; ".join(f"controller {i}: {each if was_read(each) else each.reason}" for i, each in found.items())
        raise Refused(
            f"the directories of controllers {name_ids(others)} do not show one id of the cluster: {told}",
            way_out="make their hosts readable (docs/hosts.md), then clear this task",
        )
    return bring_back_controller(look.spec, look.node, ids.pop())


def _form(look: Look) -> str:
    return CareForm.of(look.params).digest(look.node)


STEPS = {
    Care.LEADERSHIP: NodeStep(
        QUORUM_CARE,
        Step.MOVE_LEADERSHIP,
        play=lambda look: restart_node(look.node, look.phase, older_than=look.began),
        done=_leads_no_more,
        guard=_require_warm_standbys,
        signed=_form,
    ),
    Care.LOST_DISK: NodeStep(
        QUORUM_CARE, Step.BRING_BACK, play=_bring_back, done=_runs, guard=_require_a_lost_disk, signed=_form
    ),
}


# -- the tasks ---------------------------------------------------------------------------------------------------------


def prepare(run: Run) -> dict[str, Any]:
    """Every check of this care, and whom it is about. Raises Refused."""
    form = CareForm.of(run.params)
    answer = require_preflight(run, care_for(form.care))
    node = whom(form, run.cluster.settled(), run.spec)
    run.cluster.tell(page(form, node))
    return {**answer, "node": node}


def examine(run: Run, gate: str) -> Examined:
    """A deep look with every host, by the checks that this care needs."""
    return examines_by_checks(care_for(CareForm.of(run.params).care))(run, gate)


def shows_care(run: Run) -> Shown:
    """What is done to which controller, for the gate."""
    form = CareForm.of(run.params)
    node = _node(run)
    return Shown(exhibits=(Exhibit(PREFLIGHT, form.digest(node), page(form, node)),), by=PREFLIGHT)


def take_care(run: Run) -> dict[str, Any]:
    """What the form asks for, on the controller that was signed for."""
    return take_step(run, STEPS[CareForm.of(run.params).care], _node(run))


def _node(run: Run) -> int:
    """Whom the preflight found. A leader that was elected since is somebody else's affair."""
    answer = run.answer_of(PREFLIGHT) or {}
    node = answer.get("node")
    if node not in run.spec.controller_ids:
        raise Refused("whom this run is about is not known", way_out=f"clear {PREFLIGHT}")
    return int(node)
