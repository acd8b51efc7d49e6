"""Care of the quorum, as an operation: leadership moved to another controller, a controller that lost its disk brought
back, and one added to a dynamic quorum or removed from it. All in KRaft mode, where the migration can't become final by
them any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.quorum.care_rules import Care, Step, may_bring_back, may_move
from kraft_runbook.quorum.faults import BY_QUORUM
from kraft_runbook.quorum.voters import follows, may_add, may_remove, voters_whole
from kraft_runbook.runbook import quorum_places
from kraft_runbook.runbook.changes import By, others, the_steps
from kraft_runbook.runbook.check_results import Finding, Severity, failed, passed, settle
from kraft_runbook.runbook.checklist import Checklist, Needs
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS
from kraft_runbook.runbook.conditions import Condition, by_name
from kraft_runbook.runbook.host_checks import HOST_CHECKS
from kraft_runbook.runbook.operation import Operation, judged_by
from kraft_runbook.runbook.read_parts import host_parts, split_read
from kraft_runbook.runbook.running import RUNNING, no_phase, nothing_to_undo, read_running
from kraft_runbook.runbook.secret_checks import CODES as SECRETS
from kraft_runbook.runbook.secret_checks import WRITTEN
from kraft_runbook.runbook.transitions import Edge, GateTerms, Stage, Transitions
from kraft_runbook.runbook.warm import unjudged

CARE = "care"
"""The gate."""


# -- checks ------------------------------------------------------------------------------------------------------------

CHECKS = Checklist()
CHECKS.take(
    *CLUSTER_CHECKS.of(
        "KRB-PRE-004",
        "KRB-PRE-009",
        "KRB-PRE-029",
        "KRB-PRE-100",
        quorum_places.ADDRESSES,
        quorum_places.SAID,
        quorum_places.HELD,
        quorum_places.IN_THE_LOG,
    ),
    *HOST_CHECKS.of("KRB-PRE-045", "KRB-PRE-132", *SECRETS),
)
OF = {
    Care.LEADERSHIP: ("KRB-CARE-002",),
    Care.LOST_DISK: ("KRB-CARE-003", "KRB-CARE-004", *WRITTEN),
    Care.ADD: ("KRB-CARE-005", *WRITTEN),
    Care.REMOVE: ("KRB-CARE-006",),
}
"""The checks that not every care needs."""


@CHECKS.check(
    "KRB-CARE-001",
    severity=Severity.BLOCKING,
    fix="finish the migration or roll it back first; its own runs restart and restore controllers (docs/rollback.md)",
)
def the_quorum_controls_for_good(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The cluster is in KRaft mode for good.

    While a migration is under way, an election can make it final, and a controller's files are others.
    """
    reading = detect_phase(seen)
    told = f"{reading.phase}: {'; '.join(reading.reasons)}"
    return passed(told) if reading.phase in BY_QUORUM else failed(told)


@CHECKS.check(
    "KRB-CARE-002",
    severity=Severity.BLOCKING,
    fix="wait until every controller runs and is warm (kraft-runbook quorum), then look again",
    twice=True,
)
def another_can_lead_at_once(
    seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None = None
) -> Finding:
    """Every controller runs, has caught up and is known to be warm, so that another one serves at once.

    A standby that has fetched the log and not applied it is elected all the same: up to 64 s without a controller were
    measured.
    """
    return may_move(seen, spec, earlier)


@CHECKS.check(
    "KRB-CARE-003",
    severity=Severity.BLOCKING,
    fix="start the others and let them catch up (kraft-runbook quorum), one after the other, then look again",
    twice=True,
)
def the_others_hold_everything(
    seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None = None
) -> Finding:
    """One controller alone is down and fetches no more, and all others run, have caught up and are known to be warm.

    A voter that is formatted again has forgotten what it acknowledged and whom it voted for. While another is missing,
    its vote could elect one that lacks what was committed.
    """
    return may_bring_back(seen, spec, earlier)


@CHECKS.check(
    "KRB-CARE-004",
    severity=Severity.BLOCKING,
    fix=(
        "a directory that holds a metadata log lost nothing: start the controller's service. Where its data is broken,"
        " move the directory aside on its host (do not delete it), then look again"
    ),
    needs=Needs.HOSTS,
)
def its_directory_is_empty(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The controller that is down has no metadata log on its host.

    One that has is not brought back by an empty one: what it holds may be needed.
    """
    down = [each.id for each in seen.controllers.values() if each.running is not True]
    found, unread = split_read("controller {}", host_parts(seen, down, "has_metadata_log"))
    holding = [f"controller {i} holds a metadata log" for i, has in found.items() if has]
    return settle(holding, unread, f"{nodes('controller', down, 'holds')} none" if down else "no controller is down")


@CHECKS.check(
    "KRB-CARE-005",
    severity=Severity.BLOCKING,
    fix="start the voters that are down and let them catch up (kraft-runbook quorum); remove one that is gone for good",
    twice=True,
)
def a_controller_may_be_added(
    seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None = None
) -> Finding:
    """In a dynamic quorum, a controller of the cluster file does not vote yet, and every voter is whole and warm.

    Whole: it runs and has caught up. With one more voter a majority is larger: while a voter is missing, one more that
    is lost would leave none.
    """
    return may_add(seen, spec, earlier)


@CHECKS.check(
    "KRB-CARE-006",
    severity=Severity.BLOCKING,
    fix=(
        "take the controller out of the cluster file and stop its service for good; start the voters that stay and let"
        " them catch up (kraft-runbook quorum)"
    ),
    twice=True,
)
def a_voter_may_be_removed(
    seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None = None
) -> Finding:
    """In a dynamic quorum, a voter that is no longer in the cluster file has stopped, and all others are warm.

    They run, have caught up and are known to be warm. Kafka takes out any voter that it is asked to, also one that the
    majority needs.
    """
    return may_remove(seen, spec, earlier)


# -- the operation -----------------------------------------------------------------------------------------------------

WARM = Condition(
    "quorum_warm",
    "every controller to run, to have caught up and to be warm",
    lambda seen, spec, _, earlier: voters_whole(seen, spec, earlier=earlier),
    keeps=unjudged,
)
FOLLOWS = Condition(
    "controller_follows",
    "controller {id} to follow the metadata log and to be warm",
    lambda seen, spec, node, earlier: follows(seen, spec, node, earlier=earlier),
    keeps=unjudged,
)


def _end(spec: ClusterSpec) -> str:
    return f"Every controller of cluster {spec.name} that votes runs and is warm. kraft-runbook quorum shows who leads."


TABLE = Transitions(
    stages=(Stage(RUNNING, "The cluster runs.", end=_end),),
    outside=(no_phase("Nothing is done to a controller until it does."),),
    at_rest="nothing is undone by it",
    gates=(
        GateTerms(
            CARE,
            asks="do this to its controller?",
            means="Approving lets this run do what is said below, to the one controller that is named there.",
            next="preflight, then the gate",
        ),
    ),
    edges=(
        Edge(
            Step.MOVE_LEADERSHIP,
            RUNNING,
            RUNNING,
            CARE,
            does="restart the controller that leads, so that another is elected",
            waits=(WARM,),
        ),
        Edge(
            Step.BRING_BACK,
            RUNNING,
            RUNNING,
            CARE,
            does="format the controller's empty directory with the cluster's id, and start it",
            waits=(WARM,),
        ),
        Edge(
            Step.CHANGE_VOTERS,
            RUNNING,
            RUNNING,
            CARE,
            does="add the controller to the voters of a dynamic quorum, or remove it",
            waits=(FOLLOWS, WARM),
        ),
    ),
)


def _ahead(gate: str, seen: ClusterObservation, spec: ClusterSpec, back: Sequence[str]) -> tuple[str, ...]:
    return (
        "One controller gets the care named below, if every other one is whole and warm at that moment.",
        "Wait until every controller runs, has caught up and is warm.",
    )


QUORUM_CARE = Operation(
    name="quorum_care",
    table=TABLE,
    checks=CHECKS,
    conditions=by_name(FOLLOWS, WARM),
    read=read_running,
    way_back=nothing_to_undo("a restart and a new directory change nothing; a voter is added again, or removed again"),
    changes=judged_by(others, the_steps, of_phase=By.OTHERS),  # a controller that restarts is this run's own doing
    ahead=_ahead,
)


def care_for(care: Care) -> Operation:
    """The operation as this care needs it checked."""
    unasked = {code for codes in OF.values() for code in codes} - {*OF[care]}
    return replace(QUORUM_CARE, checks=CHECKS.without(unasked))
