"""The plays of the migration, played: for tests of playbooks, which have no task around them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.hosts.ansible_reports import Tell
from kraft_runbook.io.hosts.playbooks import PlaybookResult, play
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.migration import plays
from kraft_runbook.migration.copy_tuning import SMALL, Size
from kraft_runbook.runbook.plays import Play


def restart_broker(
    spec: ClusterSpec,
    node_id: int,
    mode: BrokerMode,
    *,
    secrets: Secrets,
    check: bool = False,
    on_event: Tell | None = None,
    finalized: bool = False,
    way_back: bool = False,
    gone: Collection[int] = (),
    **how: Any,
) -> PlaybookResult:
    what = plays.restart_broker(spec, node_id, mode, finalized=finalized, way_back=way_back, gone=gone)
    return play(spec, what, secrets=secrets, check=check, on_event=on_event, **how)


def provision_controller(
    spec: ClusterSpec, node_id: int, cluster_id: str, *, size: Size = SMALL, secrets: Secrets, check: bool = False
) -> PlaybookResult:
    return play(spec, plays.provision_controller(spec, node_id, cluster_id, size=size), secrets=secrets, check=check)


def finalize_controller(spec: ClusterSpec, node_id: int, *, secrets: Secrets, check: bool = False) -> PlaybookResult:
    return play(spec, plays.finalize_controller(spec, node_id), secrets=secrets, check=check)


def set_controller_aside(spec: ClusterSpec, node_id: int) -> PlaybookResult:
    return play(spec, plays.set_controller_aside(node_id), secrets=lambda _: "")


def run_playbook(
    spec: ClusterSpec, playbook: str, *, node_id: int, variables: dict[str, Any], secrets: Secrets, **how: Any
) -> PlaybookResult:
    return play(spec, Play(playbook, node_id, variables, **how), secrets=secrets)
