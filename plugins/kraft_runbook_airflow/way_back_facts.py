"""What the way back asks besides an observation: who is gone for good, whether hosts answer for what is down, and
whether this tool may delete.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, Unreachable
from kraft_runbook.io.hosts.playbooks import gather_host_facts
from kraft_runbook.io.zookeeper.handover import why_not_deletable
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook_airflow.environment import airflow_secrets

GONE_TITLE = "Controllers whose hosts are gone"


def said_to_be_gone(context: Any, spec: ClusterSpec) -> frozenset[int]:
    """The controllers that this run's trigger form names as gone for good with their hosts. Raises Refused for a text
    that names anything else.
    """
    return named_as_gone(str(context["params"].get("gone_controllers") or ""), spec)


def named_as_gone(text: str, spec: ClusterSpec) -> frozenset[int]:
    """The same of the form's text."""
    words = text.replace(",", " ").split()
    wrong = [word for word in words if not word.isdigit() or int(word) not in spec.controller_ids]
    if wrong:
        ids = ", ".join(map(str, spec.controller_ids))
        raise Refused(
            f"'{GONE_TITLE}' names {', '.join(wrong)}; the cluster file's controllers are {ids}",
            way_out="trigger the rollback again with their ids",
        )
    return frozenset(map(int, words))


def examine_the_hosts_of_those_down(
    spec: ClusterSpec, seen: ClusterObservation, gone: Collection[int]
) -> ClusterObservation:
    """The same with the hosts of the controllers that are down: each must say so itself, and be there to keep it so."""
    down = [c.id for c in seen.controllers.values() if c.running is False and c.id not in gone]
    return replace(seen, hosts=gather_host_facts(spec, down)) if down else seen


def not_deletable(spec: ClusterSpec) -> str | None:
    """Why this tool may not delete what KRaft holds in ZooKeeper; None where it may, and where ZooKeeper can't be
    asked, which the plan says itself.
    """
    try:
        with ZookeeperReader(spec.ensemble, secrets=airflow_secrets()) as zookeeper:
            return why_not_deletable(zookeeper)
    except Unreachable:
        return None
