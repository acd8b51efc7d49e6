"""Care of the quorum, step by step: the leader is restarted, a controller is formatted and started, the voters of a
dynamic quorum change. One controller a run, and only while every other voter is whole and warm.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from kraft_runbook.cluster.naming import name_ids
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.quorum_seen import QuorumState
from kraft_runbook.cluster.spec_parts import QuorumKind
from kraft_runbook.errors import Refused
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.metadata.canonical_rows import kafka_uuid
from kraft_runbook.metadata.metadata_version import level_name
from kraft_runbook.migration.plays import bring_back_controller
from kraft_runbook.procedures.change_voters import add_voter, await_committed, remove_voter
from kraft_runbook.quorum.care import CARE, FOLLOWS, QUORUM_CARE, care_for
from kraft_runbook.quorum.care_rules import Care, CareForm, Step, may_bring_back, may_move, page, whom
from kraft_runbook.quorum.voters import may_add, may_remove, present, voter
from kraft_runbook.restart.plays import restart_node
from kraft_runbook.runbook.check_results import Finding, Verdict
from kraft_runbook.runbook.lag import following
from kraft_runbook.runbook.plays import Play
from kraft_runbook.runbook.read_parts import needed
from kraft_runbook.runbook.running import RUNNING
from kraft_runbook.steps.examine import PREFLIGHT, Examined, Shown, examines_by_checks, require_preflight
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.node_step import Look, NodeStep, take_step
from kraft_runbook.steps.run import Run

# -- what the steps do, and when they may ------------------------------------------------------------------------------


Judge = Callable[[ClusterObservation, ClusterObservation | None], Finding]
"""Whether a step may begin, by one look, or by two."""


WARM_FIRST = "wait until kraft-runbook quorum shows every other controller warm, then clear this task"
VOTER = "voter {}"
"""What a step leaves alone that was refused right before a request to the leader: its controller may run by then."""
AS_NAMED = "do what is named here, or wait until every other voter is warm (kraft-runbook quorum); then clear this task"


def _require(judge: Judge, look: Look, way_out: str = WARM_FIRST, untouched: str = "controller {}") -> None:
    """By the look that the step has, or by a second one after it: a log that grows looks cold to one."""
    finding = judge(look.seen, None)
    if finding.verdict is not Verdict.PASS:
        look.cluster.pause(look.spec.deadlines.poll)
        finding = judge(look.cluster.observe(), look.seen)
    if finding.verdict is not Verdict.PASS:
        raise Refused(finding.evidence, way_out=f"{way_out}; {untouched.format(look.node)} was not touched")


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


def _require_it_may_join(look: Look) -> None:
    _require(lambda seen, earlier: may_add(seen, look.spec, earlier, only=look.node), look, AS_NAMED)


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
    return bring_back_controller(look.spec, look.node, ids.pop(), _level_in_force(look))


def _level_in_force(look: Look) -> str:
    level = needed(look.seen.quorum).metadata_version
    name = None if level is None else level_name(level)
    if name is None:
        raise Refused(
            "metadata.version could not be read in the metadata log"
            if level is None
            else f"metadata.version is {level}, which this tool does not know: what to format with can't be told",
            way_out=f"see kraft-runbook features, then clear this task; controller {look.node} was not touched",
        )
    return name


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
    Care.ADD: NodeStep(
        QUORUM_CARE, Step.BRING_BACK, play=_bring_back, done=_runs, guard=_require_it_may_join, signed=_form
    ),
}
"""What is played on the controller's host. Nothing is, where one is removed."""


# -- the voters of a dynamic quorum ------------------------------------------------------------------------------------


def _join(run: Run, node: int) -> dict[str, Any]:
    """Make the controller, which runs, a voter with the directory that it has now; one that it had before ceases to be
    one first, since the log holds one voter an id. In a static quorum nothing is to be done.
    """
    cluster, spec = run.cluster, run.spec
    if spec.quorum is QuorumKind.STATIC:
        return {}
    seen = cluster.wait_for(FOLLOWS, deadline=spec.deadlines.quorum, node_id=node)
    if cluster.rehearses:
        before = voter(seen.quorum, node) if was_read(seen.quorum) else None
        if before is not None and before.directory is not None:
            cluster.do(remove_voter, node, would=[_removing(node, before.directory)])
        cluster.do(add_voter, node, would=[_adding(node)])
        return {}
    now = present(seen, spec, node)
    if now is None or now.directory is None:
        raise Refused(
            f"the directory of controller {node} is not known: the leader sees none, or two, with its id",
            way_out="let one process with that id run, then clear this task",
        )
    before = voter(needed(seen.quorum), node)
    if before is not None and before.directory == now.directory:
        cluster.ask(await_committed)
        told = f"controller {node} votes with directory {kafka_uuid(now.directory)}"
        run.already_done(RUNNING, Step.CHANGE_VOTERS, told, node=node)
        return {"voter": kafka_uuid(now.directory)}
    _require_signed(run, node, seen)
    _require_now(run, node, seen, lambda each, earlier: may_add(each, spec, earlier, only=node))
    began, changed = datetime.now(UTC), []
    if before is not None and before.directory is not None:
        removing = _removing(node, before.directory)
        if cluster.do(remove_voter, node, before.directory, would=[removing]):
            changed.append("former voter removed")
    if cluster.do(add_voter, node, now.directory, would=[_adding(node, now.directory)]):
        changed.append("voter added")
    run.acted(RUNNING, Step.CHANGE_VOTERS, began, *changed, node=node)
    return {"voter": kafka_uuid(now.directory)}


def _remove(run: Run, node: int) -> dict[str, Any]:
    """Take the voter out of the quorum. Where it is none any more, nothing is left to do."""
    cluster, spec = run.cluster, run.spec
    if not cluster.rehearses:
        run.claim.take()
    seen = cluster.settled()
    found = voter(needed(seen.quorum), node)
    if found is None or found.directory is None:
        cluster.ask(await_committed)
        told = f"controller {node} is no voter any more" if found is None else "the quorum is a static one"
        run.already_done(RUNNING, Step.CHANGE_VOTERS, told, node=node)
        return {"changed": []}
    act = _removing(node, found.directory)
    if cluster.rehearses:
        cluster.do(remove_voter, node, would=[act])
        return {"dry_run": True}
    QUORUM_CARE.table.require(Step.CHANGE_VOTERS, QUORUM_CARE.read(seen, spec))
    _require_signed(run, node, seen)
    _require_now(run, node, seen, lambda each, earlier: may_remove(each, spec, earlier, only=node))
    _require_silence(run, node, needed(seen.quorum))
    began = datetime.now(UTC)
    changed = ["voter removed"] if cluster.do(remove_voter, node, found.directory, would=[act]) else []
    run.acted(RUNNING, Step.CHANGE_VOTERS, began, *changed, node=node)
    return {"changed": changed}


def _removing(node: int, directory: UUID) -> Act:
    return Act(f"remove voter {node}", (f"its directory: {kafka_uuid(directory)}",))


def _adding(node: int, directory: UUID | None = None) -> Act:
    """``directory``: None where the controller gets it by a step before."""
    told = () if directory is None else (f"its directory: {kafka_uuid(directory)}",)
    return Act(f"add controller {node} to the voters", told)


def _require_signed(run: Run, node: int, seen: ClusterObservation) -> None:
    run.signatures.require(QUORUM_CARE, CARE, seen, turn={node}, exhibit=CareForm.of(run.params).digest(node))


def _require_now(run: Run, node: int, seen: ClusterObservation, judge: Judge) -> None:
    _require(judge, Look(run.cluster, node, seen, QUORUM_CARE.read(seen, run.spec), run.params), AS_NAMED, VOTER)
    run.signatures.begins(CARE)


def _require_silence(run: Run, node: int, before: QuorumState) -> None:
    """Look once more, after as long as a running one would have fetched in: a leader that was just elected knows of no
    fetch by anybody.
    """
    run.cluster.pause(run.spec.quorum_health.silent / 1000)
    seen = run.cluster.observe()
    quorum = needed(seen.quorum)
    if (quorum.leader_id, quorum.leader_epoch) != (before.leader_id, before.leader_epoch):
        raise Refused(
            f"controller {quorum.leader_id} was elected just now, and can't tell yet whether voter {node} fetches",
            way_out=f"clear this task; voter {node} was not touched",
        )
    if following(seen, run.spec, node):
        raise Refused(
            f"voter {node} fetches from the leader: it runs",
            way_out="stop its service on its host for good, then clear this task",
        )


# -- the tasks ---------------------------------------------------------------------------------------------------------


def prepare(run: Run) -> dict[str, Any]:
    """Every check of this care, and whom it is about. Raises Refused."""
    form = CareForm.of(run.params)
    answer = require_preflight(run, care_for(form.care))
    node = whom(form, run.cluster.settled(), run.spec)
    run.cluster.tell(page(form, node, run.spec))
    return {**answer, "node": node}


def examine(run: Run, gate: str) -> Examined:
    """A deep look with every host, by the checks that this care needs."""
    return examines_by_checks(care_for(CareForm.of(run.params).care))(run, gate)


def shows_care(run: Run) -> Shown:
    """What is done to which controller, for the gate."""
    form = CareForm.of(run.params)
    node = _node(run)
    return Shown(exhibits=(Exhibit(PREFLIGHT, form.digest(node), page(form, node, run.spec)),), by=PREFLIGHT)


def take_care(run: Run) -> dict[str, Any]:
    """What the form asks for, on the controller that was signed for."""
    care, node = CareForm.of(run.params).care, _node(run)
    if care is Care.REMOVE:
        return _remove(run, node)
    played = take_step(run, STEPS[care], node)
    return played if care is Care.LEADERSHIP else played | _join(run, node)


def _node(run: Run) -> int:
    """Whom the preflight found. A leader that was elected since is somebody else's affair."""
    answer = run.answer_of(PREFLIGHT) or {}
    node = answer.get("node")
    if node is None:
        raise Refused("whom this run is about is not known", way_out=f"clear {PREFLIGHT}")
    return int(node)
