"""The controllers' own metadata logs, read on their hosts while they are stopped: what is left to ask where no quorum
leads any more.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.hosts.ansible_runs import HostReport, Tell, run_ansible
from kraft_runbook.io.hosts.inventory import host_name, node_variables
from kraft_runbook.io.hosts.playbooks import playbook_directory
from kraft_runbook.migration.never_copied import LogAccount

_SECONDS = 900.0
"""A log of two million partitions is read in about a minute."""


def read_logs(spec: ClusterSpec, *, stop: bool, gone: Collection[int] = (), tell: Tell) -> tuple[LogAccount, ...]:
    """What the log of each controller holds that is not ``gone``. ``stop``: end those first that run; else one that
    runs is not read.

    A host or a log that can't be read is an account with its reason, never an exception.
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
        labels={host_name(each): f"controller {each.id}" for each in asked},
        directory=None,
    )
    return tuple(_account(each.id, report.hosts[host_name(each)], report.output) for each in asked)


def _account(controller_id: int, host: HostReport, output: str) -> LogAccount:
    if host.failure or not host.facts:
        return LogAccount(controller_id, None, reason=host.failure[1] if host.failure else output)
    found: dict[str, Any] = dict(host.facts)
    if found["node_id"] != str(controller_id):
        return LogAccount(controller_id, None, reason=f"its log directory is of node {found['node_id']}")
    return LogAccount(controller_id, frozenset(found["states"]), int(found["end"]), found["open_since"])
