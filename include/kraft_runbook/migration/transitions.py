"""The one table of the migration: the phases, the steps that lead from one to the next, and the gates (KIP-866)."""

from __future__ import annotations

from enum import StrEnum

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration import without_zookeeper
from kraft_runbook.migration.conditions import (
    BROKER_BACK_IN_MIGRATION_MODE,
    BROKER_IN_SYNC,
    BROKER_IN_ZOOKEEPER_MODE,
    BROKER_REGISTERED_AS_MIGRATING,
    BROKER_REGISTERED_IN_KRAFT,
    CONTROLLER_CAUGHT_UP,
    FINALIZED,
    METADATA_COPIED,
    QUORUM_READY,
)
from kraft_runbook.migration.ends import back_in_hybrid, back_in_zookeeper, finished
from kraft_runbook.runbook.transitions import Edge, GateTerms, Stage, Transitions


class Step(StrEnum):
    """A step that changes the cluster. The value is also the playbook's name."""

    PROVISION_CONTROLLERS = "provision_controllers"
    ROLL_BROKERS_TO_HYBRID = "roll_brokers_to_hybrid"
    ROLL_BROKERS_TO_KRAFT = "roll_brokers_to_kraft"
    FINALIZE_CONTROLLERS = "finalize_controllers"
    DEPROVISION_CONTROLLERS = "deprovision_controllers"
    ROLL_BROKERS_BACK_TO_HYBRID = "roll_brokers_back_to_hybrid"
    LEAVE_KRAFT = "leave_kraft"
    ROLL_BROKERS_TO_ZOOKEEPER = "roll_brokers_to_zookeeper"
    SET_CONTROLLERS_ASIDE = "set_controllers_aside"


class Gate(StrEnum):
    """The points where a person decides: three on the way forward, one before the way back."""

    START = "start"
    DUAL_WRITE = "dual_write"
    FINALIZE = "finalize"
    ROLLBACK = "rollback"


TABLE = Transitions(
    stages=(
        Stage(
            Phase.ZOOKEEPER,
            "ZooKeeper holds the metadata and a broker is the controller. The migration has not begun.",
            end=back_in_zookeeper,
        ),
        Stage(
            Phase.PRE_MIGRATION,
            "Migration controllers run and wait until every broker has registered; then the metadata is copied."
            " Until then ZooKeeper alone holds the metadata.",
        ),
        Stage(
            Phase.HYBRID,
            "The metadata was copied. A KRaft controller leads and also writes every change to ZooKeeper. No broker is"
            " in KRaft mode.",
            end=back_in_hybrid,
            also_reached_in=frozenset({Phase.PRE_MIGRATION, Phase.ZOOKEEPER}),
        ),
        Stage(
            Phase.DUAL_WRITE,
            "As in HYBRID, and at least one broker is in KRaft mode. ZooKeeper is still written, so a rollback is"
            " possible.",
        ),
        Stage(
            Phase.FINALIZED,
            "The migration is final. ZooKeeper is no longer written and may be decommissioned once nothing else"
            " uses it.",
            end=finished,
            refuses="nothing is left to migrate; rollback is impossible after finalization (KIP-866)",
        ),
    ),
    outside=(
        Stage(
            Phase.KRAFT,
            without_zookeeper.MEANS[Phase.KRAFT],
            refuses="there is nothing to migrate, and no ZooKeeper to go back to",
        ),
        Stage(
            Phase.UNKNOWN,
            "The observation proves no phase. Every step is refused until one does.",
            refuses=(
                "make the parts named above readable (kraft-runbook explain says what is missing), then run the step"
                " again"
            ),
        ),
    ),
    at_rest="ZooKeeper holds the metadata",
    gates=(
        GateTerms(
            Gate.START,
            without_parity="nothing to compare yet",
            asks="start the migration to KRaft?",
            means="Approving starts the migration. A rollback stays possible.",
            next="preflight, then the start gate",
        ),
        GateTerms(
            Gate.DUAL_WRITE,
            without_parity="nothing to compare yet",
            asks="restart the brokers in KRaft mode?",
            means=(
                "Approving restarts the brokers in KRaft mode. ZooKeeper is still written, and a rollback stays"
                " possible."
            ),
            next="the dual_write gate, then the brokers' roll into KRaft mode",
            needs_parity=True,
        ),
        GateTerms(
            Gate.FINALIZE,
            without_parity="nothing to compare yet",
            asks="finalize? This can't be undone",
            means="Approving finalizes: ZooKeeper is no longer written. **This can't be undone.**",
            next="the finalize gate, after the soak",
            needs_parity=True,
            proven_again="parity_again",
            irreversible=True,
        ),
        GateTerms(
            Gate.ROLLBACK,
            without_parity="nothing to compare yet",
            asks="go back to ZooKeeper?",
            means=(
                "Approving takes the cluster back towards ZooKeeper. If it can't be proven that nothing acknowledged"
                " is lost, the run stops."
            ),
            checked=False,
            goes_back=True,
            loses=(
                "Nothing that ZooKeeper can hold is lost. Configs of client metrics and of groups are in KRaft alone:"
                " they stay behind in the controllers' data, which is set aside."
            ),
        ),
    ),
    edges=(
        Edge(
            Step.PROVISION_CONTROLLERS,
            Phase.ZOOKEEPER,
            Phase.PRE_MIGRATION,
            Gate.START,
            does="format and start the migration controllers with the cluster's own id and the migration flag",
            waits=(QUORUM_READY,),
            before=("preflight: every check", "gate start: a person approves the proof"),
            after=("wait: quorum leader elected, every voter caught up, ZkMigrationState 2 on all",),
        ),
        Edge(
            Step.ROLL_BROKERS_TO_HYBRID,
            Phase.PRE_MIGRATION,
            Phase.HYBRID,
            Gate.START,
            does="restart each broker in migration mode; the last registration starts the copy of the metadata",
            waits=(BROKER_REGISTERED_AS_MIGRATING, BROKER_IN_SYNC, METADATA_COPIED),
            after=(
                "wait: metadata copied, ZkMigrationState 1 on all, dual write runs",
                "parity of ZooKeeper and KRaft by Spark",
            ),
        ),
        Edge(
            Step.ROLL_BROKERS_TO_KRAFT,
            Phase.HYBRID,
            Phase.DUAL_WRITE,
            Gate.DUAL_WRITE,
            does="restart each broker in KRaft mode; ZooKeeper is still written",
            waits=(BROKER_REGISTERED_IN_KRAFT, BROKER_IN_SYNC),
            before=("gate dual_write: a person approves the parity and the checks",),
            after=("parity of ZooKeeper and KRaft by Spark", "soak: health and parity again and again"),
        ),
        Edge(
            Step.FINALIZE_CONTROLLERS,
            Phase.DUAL_WRITE,
            Phase.FINALIZED,
            Gate.FINALIZE,
            does=(
                "restart each controller without the migration flag, the active one last; ZooKeeper is no longer"
                " written"
            ),
            waits=(CONTROLLER_CAUGHT_UP, FINALIZED),
            before=("gate finalize: a person approves; parity is proven again after the last signature",),
            after=("wait: ZkMigrationState 3 on all", "closing report"),
            reversible=False,
        ),
        Edge(
            Step.DEPROVISION_CONTROLLERS,
            Phase.PRE_MIGRATION,
            Phase.ZOOKEEPER,
            Gate.ROLLBACK,
            does=(
                "fence the quorum, verify that the metadata copy was not completed, stop the quorum, delete /migration,"
                " and /controller if it names a KRaft controller"
            ),
        ),
        Edge(
            Step.ROLL_BROKERS_BACK_TO_HYBRID,
            Phase.DUAL_WRITE,
            Phase.HYBRID,
            Gate.ROLLBACK,
            does="restart each KRaft-mode broker in migration mode, one by one",
            waits=(BROKER_BACK_IN_MIGRATION_MODE, BROKER_IN_SYNC),
        ),
        Edge(
            Step.LEAVE_KRAFT,
            Phase.HYBRID,
            Phase.ZOOKEEPER,
            Gate.ROLLBACK,
            does=(
                "raise the version of each state znode that is lower than its partition's epoch, fence the quorum,"
                " drain and prove its writes to ZooKeeper, stop it, delete /controller and /migration, wait until every"
                " broker follows the ZooKeeper controller"
            ),
        ),
        Edge(
            Step.ROLL_BROKERS_TO_ZOOKEEPER,
            Phase.ZOOKEEPER,
            Phase.ZOOKEEPER,
            Gate.ROLLBACK,
            does=(
                "restart each broker that still has the migration keys, without these keys, one by one, each once it"
                " knows its ZooKeeper controller"
            ),
            waits=(BROKER_IN_ZOOKEEPER_MODE, BROKER_IN_SYNC),
        ),
        Edge(
            Step.SET_CONTROLLERS_ASIDE,
            Phase.ZOOKEEPER,
            Phase.ZOOKEEPER,
            Gate.ROLLBACK,
            does=(
                "rename the controllers' data and configuration (the new names hold the time), so that the migration"
                " can begin again; nothing is deleted"
            ),
        ),
    ),
)
"""Reading order: forward, then back; the last two finish a rollback without changing the phase."""
