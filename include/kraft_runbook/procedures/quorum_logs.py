"""The controllers' own metadata logs, read on their hosts while the controllers are stopped. Nothing else can be asked
once the quorum has no leader.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.hosts.ansible_reports import HostReport, Tell
from kraft_runbook.io.hosts.ansible_runs import run_ansible
from kraft_runbook.io.hosts.inventory import host_name, node_variables
from kraft_runbook.io.hosts.playbooks import playbook_directory
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.migration.never_copied import LogAccount

_SECONDS = 900.0
"""Seconds. Reading a log of 2,000,000 partitions takes about 60 s."""


def read_logs(
    spec: ClusterSpec, *, stop: bool, gone: Collection[int] = (), secrets: Secrets, tell: Tell
) -> tuple[LogAccount, ...]:
    """The content of the log of each controller that is not ``gone``. ``stop``: stop running controllers first; without
    it the log of a running one is not read.

    A host or a log that can't be read gives an account with the reason, never an exception.
    """
    asked = [controller for controller in spec.controllers if controller.id not in gone]
    report = run_ansible(
        playbook_directory() / "read_metadata_logs.yml",
        {host_name(each): {**node_variables(spec, each), "stop": stop} for each in asked},
        check=False,
        timeout=_SECONDS,
        secret_text=None,
        secret_values=[],
        tell=tell,
        secrets=secrets,
        labels={host_name(each): f"controller {each.id}" for each in asked},
    )
    return tuple(_account(each.id, report.hosts[host_name(each)], report.output) for each in asked)


def _account(controller_id: int, host: HostReport, output: str) -> LogAccount:
    if host.failure or not host.facts:
        return LogAccount(controller_id, None, reason=host.failure[1] if host.failure else output)
    found: dict[str, Any] = dict(host.facts)
    if found["node_id"] != str(controller_id):
        return LogAccount(controller_id, None, reason=f"its log directory is of node {found['node_id']}")
    return LogAccount(controller_id, frozenset(found["states"]), int(found["end"]), found["open_since"])
