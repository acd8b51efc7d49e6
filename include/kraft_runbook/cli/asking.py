"""How the commands see a cluster, and how long they wait between two looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import typer

from kraft_runbook.cluster.feature_levels import FeatureObservation
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.groups.look import GroupLook
from kraft_runbook.groups.report import GroupScan
from kraft_runbook.io.cluster_claim import told_of_claim
from kraft_runbook.levels.preview import Preview
from kraft_runbook.parity.standstill import LIVENESS_SECONDS
from kraft_runbook.procedures.observe import observe
from kraft_runbook.procedures.observe_features import observe_features
from kraft_runbook.procedures.preview_levels import preview_change
from kraft_runbook.procedures.see_groups import look_at_meant, scan_groups, told_of_groups
from kraft_runbook.procedures.see_reassignment import see_reassignment
from kraft_runbook.procedures.settled import observe_settled
from kraft_runbook.reassignment.look import ReassignmentSeen


def read_brokers_files(*asked: Any, **how: Any) -> Sequence[Any]:
    """``unknown_hosts.read_hosts``. ansible-runner is slow to import, and few commands need it."""
    from kraft_runbook.io.hosts.unknown_hosts import read_hosts

    return read_hosts(*asked, **how)


APART_SECONDS = 5.0
"""Between two looks of an operation's own: whether a copy grows shows in some seconds."""
GLANCE_SECONDS = 2.0


@dataclass(frozen=True)
class Asking:
    """What the commands ask the cluster with. ``own_looks``: how the looks are made that operations have of their own,
    by what an operation ``sees``; each holds an observation as ``cluster``. ``liveness``: seconds between two looks
    that tell whether dual write is alive; ``apart``: between two looks of an operation's own; ``glance``: between
    two looks at consumer groups that must be the same.
    """

    observe: Callable[..., ClusterObservation] = observe
    settled: Callable[..., ClusterObservation] = observe_settled
    claim: Callable[..., str] = told_of_claim
    groups: Callable[..., tuple[str, ...]] = told_of_groups
    scan: Callable[..., GroupScan] = scan_groups
    meant: Callable[..., tuple[GroupLook, ...]] = look_at_meant
    features: Callable[..., FeatureObservation] = observe_features
    preview: Callable[..., Preview] = preview_change
    brokers_files: Callable[..., Sequence[Any]] = read_brokers_files
    own_looks: Mapping[type, Callable[..., Any]] = field(default_factory=lambda: {ReassignmentSeen: see_reassignment})
    liveness: float = LIVENESS_SECONDS
    apart: float = APART_SECONDS
    glance: float = GLANCE_SECONDS


def asking(context: typer.Context) -> Asking:
    """What the command line was begun with."""
    return context.obj if isinstance(context.obj, Asking) else Asking()
