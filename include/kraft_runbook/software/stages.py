"""The one table of the rolling software upgrade and its way back (KIP-778: first the software, then the levels)."""

from __future__ import annotations

from enum import StrEnum

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.transitions import Edge, GateTerms, Stage, Transitions
from kraft_runbook.software import conditions
from kraft_runbook.software.roll import Rolled


class Step(StrEnum):
    CONTROLLERS_UP = "roll_controllers_up"
    BROKERS_UP = "roll_brokers_up"
    BROKERS_BACK = "roll_brokers_back"
    CONTROLLERS_BACK = "roll_controllers_back"


class Gate(StrEnum):
    UP = "software_up"
    BACK = "software_back"


def _up(spec: ClusterSpec) -> str:
    target = spec.kafka.upgrade_to
    version = target.version if target else "the target"
    return (
        f"Every node of {spec.name} runs Kafka {version}. The way back is open until a level is raised that Kafka"
        f" {spec.kafka.version} does not know (upgrade_features). When you stay, let kafka.version and kafka.home in"
        " the cluster file be the new ones, and take kafka.upgrade_to out."
    )


def _back(spec: ClusterSpec) -> str:
    return f"Every node of {spec.name} runs Kafka {spec.kafka.version} again."


TABLE = Transitions(
    stages=(
        Stage(
            Rolled.OLD,
            "Every node runs the version that the cluster file names.",
            end=_back,
        ),
        Stage(
            Rolled.MIXED,
            "Some nodes run the target, the others the version before. Both serve; no level can be raised.",
        ),
        Stage(
            Rolled.NEW,
            "Every node runs the target. The roll raised no level; one that was raised since shuts the way back.",
            end=_up,
        ),
    ),
    outside=(
        Stage(
            Rolled.UNKNOWN,
            "A node does not show which of the two versions it runs, or ZooKeeper is not behind. No step may run.",
            refuses="make readable what is named above (kraft-runbook features), or bring that node to run",
        ),
    ),
    at_rest="every node runs the version before",
    gates=(
        GateTerms(
            Gate.UP,
            asks="bring the nodes to the other Kafka?",
            means="Approving restarts every node on the target. No level changes; the way back stays open.",
            next="preflight, then the software_up gate",
        ),
        GateTerms(
            Gate.BACK,
            asks="bring the nodes back to the version before?",
            means="Approving restarts every node on the version before, brokers first. No level changes.",
            next="the software_back gate",
        ),
    ),
    edges=(
        Edge(
            Step.CONTROLLERS_UP,
            Rolled.OLD,
            Rolled.MIXED,
            Gate.UP,
            does="restart each controller on the target, one by one, the active one last; one that is a broker too,"
            " once",
            waits=(conditions.CONTROLLER_ON_TARGET,),
            before=("preflight: every check", "gate software_up: a person approves the proof"),
        ),
        Edge(
            Step.BROKERS_UP,
            Rolled.MIXED,
            Rolled.NEW,
            Gate.UP,
            does="restart each broker on the target",
            waits=(conditions.BROKER_ON_TARGET, conditions.BROKER_IN_SYNC),
        ),
        Edge(
            Step.BROKERS_BACK,
            Rolled.NEW,
            Rolled.MIXED,
            Gate.BACK,
            does="restart each broker on the version before",
            waits=(conditions.BROKER_ON_FORMER, conditions.BROKER_IN_SYNC),
        ),
        Edge(
            Step.CONTROLLERS_BACK,
            Rolled.MIXED,
            Rolled.OLD,
            Gate.BACK,
            does="restart each controller on the version before, one by one, the active one last; one that is a broker"
            " too, once",
            waits=(conditions.CONTROLLER_ON_FORMER,),
        ),
    ),
)
