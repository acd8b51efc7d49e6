"""The gate of both directions, right before a node is restarted: its own disk, read now, must be readable to the
software that it is to run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from kraft_runbook.cluster.config_tables import config_table
from kraft_runbook.cluster.feature_levels import NodeHost, NodeOnDisk, SoftwareLevels
from kraft_runbook.cluster.node_properties import kraft_properties
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Software
from kraft_runbook.errors import Refused
from kraft_runbook.io.hosts.inventory import node_of
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.node_hosts import node_hosts
from kraft_runbook.software.class_checks import missing_classes, seen_in_a_process
from kraft_runbook.software.file_keys import file_findings
from kraft_runbook.software.readable import unreadable
from kraft_runbook.software.way_back import interval_in


class Looks(Protocol):
    """As ``node_hosts``."""

    def __call__(
        self, spec: ClusterSpec, node_ids: Sequence[int], /, *, secrets: Secrets
    ) -> Mapping[int, NodeHost | Unread]: ...


def require_readable(
    spec: ClusterSpec,
    node_id: int,
    software: Software,
    *,
    secrets: Secrets,
    tell: Callable[[str], object],
    is_led: bool = True,
    look: Looks = node_hosts,
) -> None:
    """Raise Refused where the node could not start on that software: what its disk holds, what it will be sent, the
    file that is written for it, or what of these could not be read. Nothing was changed then.

    ``is_led``: whether the quorum has a leader. Where it has none, a controller is judged by its own disk alone, since
    without it there may never be one.
    """
    who = node_of(spec, node_id).named
    host = look(spec, [node_id], secrets=secrets)[node_id]
    if isinstance(host, Unread):
        raise Refused(
            f"whether {who} can start on Kafka {software.version} is not known: {host.reason}",
            way_out="make its host reachable to Ansible, then clear this task",
        )
    levels = _levels(who, host, software)
    written = kraft_properties(spec, node_id)
    disk = host.disk
    if not is_led and node_id in spec.controller_ids and isinstance(disk, NodeOnDisk):
        tell(f"no controller leads, so what {who} will be sent is not known; its own disk alone is judged")
        disk = replace(disk, to_come=())
    interval_ms = interval_in(None if isinstance(host.config, Unread) else host.config)  # of the process that runs
    obstacles = unreadable(who, disk, levels, interval_ms=interval_ms)
    problems = [(each.problem, each.way_out) for each in obstacles]
    refused = [each for each in file_findings(written, software.version) if each.refused]
    problems += [(f"{who}'s file, as it would be written: {each.problem}", each.way_out) for each in refused]
    table = config_table(software.version)
    if isinstance(table, Unread) and software != spec.kafka:
        problems.append((f"{who}: {table.reason}", "name another target"))
    back = software == spec.kafka
    missing = [each for each in missing_classes(host, software, written=written, back=back) if isinstance(each, str)]
    problems += [(f"{who}: {each}", "put its jar into that home, or name another class") for each in missing]
    if problems:
        ways = "; ".join(dict.fromkeys(way for _, way in problems))
        raise Refused(
            "; ".join(problem for problem, _ in problems),
            way_out=f"{ways}. {who} was not touched; then clear this task",
        )
    for each in seen_in_a_process(host) if back else ():
        tell(f"{who}: not judged: {each}")
    tell(f"{who} can start on Kafka {software.version}: its snapshot and every level after it are known there")


def _levels(who: str, host: NodeHost, software: Software) -> SoftwareLevels:
    found = host.software.get(software.home, Unread("it was not looked at"))
    if isinstance(found, Unread):
        raise Refused(
            f"the levels of Kafka {software.version} could not be read on the host of {who}: {found.reason}",
            way_out="install it in the home that the cluster file names, then clear this task",
        )
    if found.version != software.version:
        raise Refused(
            f"{software.home} on the host of {who} holds Kafka {found.version}, not {software.version}",
            way_out="install the right version there, or correct the cluster file; then clear this task",
        )
    return found
