"""The table of a level's change: one stage, since what changes is a number, and its plan says from where to where."""

from __future__ import annotations

from enum import StrEnum

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.transitions import Edge, GateTerms, Stage, Transitions


class Levels(StrEnum):
    """READY: ZooKeeper is behind, so that levels may be changed. UNKNOWN: that is not proven."""

    READY = "READY"
    UNKNOWN = "UNKNOWN"


class Step(StrEnum):
    CHANGE = "change_level"


class Gate(StrEnum):
    LEVEL = "level"


def _end(spec: ClusterSpec) -> str:
    return (
        f"Every node of {spec.name} shows the level. kraft-runbook features --cluster {spec.name} shows all of them,"
        " and how far each can be lowered."
    )


TABLE = Transitions(
    stages=(Stage(Levels.READY, "The cluster runs in KRaft mode: feature levels can be changed.", end=_end),),
    outside=(
        Stage(
            Levels.UNKNOWN,
            "It is not proven that ZooKeeper is behind. No level may be changed.",
            refuses="finalize the migration first, or make readable what is named above",
        ),
    ),
    at_rest="a level that was lowered stays lowered until it is raised again",
    gates=(
        GateTerms(
            Gate.LEVEL,
            asks="change the feature level as planned?",
            means="Approving changes the level as the plan below says, on every node at once. No process is restarted.",
            next="preflight, then the plan, then the level gate",
        ),
    ),
    edges=(
        Edge(
            Step.CHANGE,
            Levels.READY,
            Levels.READY,
            Gate.LEVEL,
            does="ask the quorum's leader once more with validate-only, then to change the level",
            before=("preflight: every check", "plan, preview and the leader's validate-only answer", "gate level"),
            after=("wait: every node shows the level, two looks in a row",),
        ),
    ),
)
