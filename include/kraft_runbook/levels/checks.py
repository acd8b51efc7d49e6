"""What must hold before a feature level is changed, whichever it is. What a certain change needs stands in its plan
(``obstacles``).
"""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.levels.obstacles import running_software
from kraft_runbook.levels.overview import not_applied, unlike_declared
from kraft_runbook.runbook.check_results import BLOCKING, WARNING, Finding, failed, passed, settle, unknown
from kraft_runbook.runbook.checklist import Checklist, Needs
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS, whole_quorum, zookeeper_behind
from kraft_runbook.runbook.obstacle import Obstacle
from kraft_runbook.runbook.read_parts import needed

CHECKS = Checklist()
"""Every check of a level's change by its code. What holds for any cluster is taken over by its own code."""

check = CHECKS.check

CHECKS.take(*CLUSTER_CHECKS.of("KRB-PRE-004", "KRB-PRE-009"))


@check("KRB-FEA-001", severity=BLOCKING, fix="finalize the migration first, or go back to ZooKeeper")
def zookeeper_is_behind(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The migration is final, or there never was one.

    The server changes no metadata.version before that (``FeatureControlManager``).
    """
    return zookeeper_behind(seen)


@check("KRB-FEA-002", severity=BLOCKING, needs=Needs.HOSTS, fix="end the roll first (upgrade_software)")
def every_node_runs_one_version(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every node runs the same version of Kafka, and its levels could be read out of its jar.

    The table of levels is that of the version that runs; another one's differs.
    """
    found = running_software(needed(seen.features))
    if isinstance(found, Obstacle):
        return unknown(found.problem, found.way_out) if found.unknown else failed(found.problem, found.way_out)
    return passed(f"Kafka {found.version}")


@check(
    "KRB-FEA-003",
    severity=BLOCKING,
    needs=Needs.HOSTS,
    fix="wait until the node has applied the log's end; one that does not in a minute may not serve: see its log",
)
def every_node_shows_the_levels_that_the_log_gave(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every node shows the levels that the metadata log gave last.

    A level is raised only from a state that every node has applied.
    """
    features = needed(seen.features)
    needed(features.log)
    return settle(not_applied(features), (), "all do")


@check(
    "KRB-FEA-004",
    severity=WARNING,
    needs=Needs.HOSTS,
    fix="name the node in the cluster file, or unregister it: it counts when a level is raised (docs/levels.md)",
)
def every_registered_node_is_declared(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The nodes that are registered are those of the cluster file.

    The server asks every registered broker and controller whether it supports a level, whether or not it runs.
    """
    features = needed(seen.features)
    needed(features.log)
    return settle(unlike_declared(features), (), "they are")


@check("KRB-FEA-005", severity=BLOCKING, fix="bring every controller to run and let it catch up", twice=True)
def the_quorum_is_whole(seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None) -> Finding:
    """A controller leads, and every controller runs and is caught up.

    The active controller writes the level, and a majority must acknowledge it.
    """
    return whole_quorum(seen, spec, earlier)
