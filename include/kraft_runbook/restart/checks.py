"""What is checked before a rolling restart, and again at its gate."""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.phases import FOR_GOOD, Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import QuorumKind
from kraft_runbook.restart.files import differs_besides
from kraft_runbook.runbook import quorum_places
from kraft_runbook.runbook.broker_batches import CODE as BATCHES
from kraft_runbook.runbook.broker_files import broker_files, controller_files_in_kraft, told_apart
from kraft_runbook.runbook.canary_check import CODE as CANARY
from kraft_runbook.runbook.check_results import Finding, Severity, failed, passed, settle, unknown
from kraft_runbook.runbook.checklist import Checklist, Needs
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS, phase_known
from kraft_runbook.runbook.health import quorum_whole
from kraft_runbook.runbook.host_checks import HOST_CHECKS
from kraft_runbook.runbook.producers import CODES as PRODUCERS
from kraft_runbook.runbook.reference_checks import CODES as REFERENCES
from kraft_runbook.runbook.secret_checks import CODES as SECRETS
from kraft_runbook.runbook.secret_checks import WRITTEN

BROKER_CONTROLS = frozenset({Phase.ZOOKEEPER, Phase.PRE_MIGRATION})
"""Phases in which one of the brokers is the controller. Brokers that stop beside it ask it for new leaders in vain: it
answers nobody from the moment it stops, and ZooKeeper names it until its logs are closed (``KafkaServer.shutdown`` of
3.9.2). After three tries they stop without having handed anything over (controlled.shutdown.max.retries).
"""
ALONE_WHILE = "no brokers are restarted together while one of them may be the controller"
ONE_BY_ONE = "take 'roll' out of the cluster file until every broker is in migration mode"

WRITABLE = "KRB-ROLL-005"
AS_THEY_ARE, ANEW = ("KRB-PRE-046", quorum_places.ADDRESSES, quorum_places.HELD), (WRITABLE, *WRITTEN)
"""The checks of files that are left as they are; and those of files that a run writes."""

STATIC_FILE = "the quorum is a dynamic one, and the cluster file does not say so: write 'quorum: dynamic' there first"

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
        CANARY,
        BATCHES,
        *PRODUCERS,
        *REFERENCES,
    ),
    *HOST_CHECKS.of("KRB-PRE-045", "KRB-PRE-046", "KRB-PRE-087", "KRB-PRE-113", "KRB-PRE-124"),
    *HOST_CHECKS.of("KRB-PRE-126", "KRB-PRE-132", *SECRETS),
)


@CHECKS.check(
    "KRB-ROLL-001",
    severity=Severity.BLOCKING,
    fix="make readable what is named, or resolve the contradiction; kraft-runbook explain says more",
)
def the_phase_is_known(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The observation shows the cluster's phase.

    Whether a controller's restart could make a migration final depends on it.
    """
    return phase_known(seen)


@CHECKS.check("KRB-ROLL-004", severity=Severity.BLOCKING, fix=ONE_BY_ONE)
def no_brokers_go_together_beside_their_controller(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Brokers are restarted together only where a KRaft controller leads.

    A ZooKeeper controller is one of the brokers. Those that stop beside it would not hand their partitions over first.
    """
    phase = detect_phase(seen).phase
    if spec.roll is None:
        return passed("brokers are restarted one by one")
    return failed(f"{ALONE_WHILE} (phase {phase})") if phase in BROKER_CONTROLS else passed(f"phase {phase}")


@CHECKS.check(
    "KRB-ROLL-002",
    severity=Severity.BLOCKING,
    fix="start what is down and let it catch up (kraft-runbook observe), then look again",
    twice=True,
)
def the_quorum_is_whole(
    seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None = None
) -> Finding:
    """Every controller runs and has caught up.

    A controller that is stopped while another is down can take the majority away. In ZooKeeper mode there is none yet.
    """
    if detect_phase(seen).phase is Phase.ZOOKEEPER:
        return passed("no controller runs, and in ZooKeeper mode none has to")
    if not was_read(seen.quorum):
        return unknown(seen.quorum)
    whole = quorum_whole(seen, spec, earlier=earlier)
    return passed(f"controller {seen.quorum.leader_id} leads") if whole.done else failed(whole.waiting_for)


@CHECKS.check(
    WRITABLE,
    severity=Severity.BLOCKING,
    fix=(
        "bring the named keys into the cluster file, or where it can't have them change the files by hand, one node at"
        " a time (kraft-runbook plan --hosts shows what differs): a restart writes where the quorum is alone"
    ),
    needs=Needs.HOSTS,
)
def files_differ_in_nothing_but_where_the_quorum_is(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every node's file is what the cluster file renders, but for where the quorum is.

    A restart that writes the quorum's addresses writes files whole: what else differs would be changed with them. Asked
    of a run that is to write them, once no migration is under way. Values of secrets are not compared.
    """
    if (phase := detect_phase(seen).phase) not in FOR_GOOD:
        return passed(f"no file is written in phase {phase}")
    if was_read(seen.quorum) and seen.quorum.is_dynamic and spec.quorum is QuorumKind.STATIC:
        return failed(STATIC_FILE)
    files = (*broker_files(seen, spec), *controller_files_in_kraft(seen, spec))
    wrong, unread = told_apart(files, lambda each: differs_besides(each, seen, spec))
    return settle(wrong, unread, "all are")
