"""The facts of the nodes' hosts, read in one run of Ansible. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from kraft_runbook.cluster.observation import HostState, Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.io.hosts.ansible_reports import HostReport, RunReport, value_of
from kraft_runbook.io.hosts.ansible_runs import run_ansible
from kraft_runbook.io.hosts.inventory import by_machine, host_name, node_of, node_variables
from kraft_runbook.io.hosts.node_secrets import ScramLogin
from kraft_runbook.io.hosts.playbooks import playbook_directory
from kraft_runbook.io.hosts.replica_directories import replica_directories_of
from kraft_runbook.io.hosts.stores import SecuredQuestion, SecuredRead
from kraft_runbook.io.secrets import FROM_ENVIRONMENT, Secrets

SECONDS = 120.0
WITH_STORES_SECONDS = 180.0
"""Seconds of a run: a host starts a JVM for each store."""
FORKS = 10
"""Hosts that Ansible reads at once (``forks`` in playbooks/ansible.cfg)."""


def seconds_for_replicas(machines: int) -> float:
    """How long one host may read replicas, so that all of them, one wave after the other, take half of the run's time:
    else the run ends early, and nothing of any host is known.
    """
    return min(20.0, SECONDS / 2 / max(1, -(-machines // FORKS)))


def gather_host_facts(
    spec: ClusterSpec,
    node_ids: Sequence[int] | None = None,
    *,
    replicas: bool = False,
    secrets: Secrets = FROM_ENVIRONMENT,
) -> dict[int, HostState]:
    """The facts of these nodes' hosts (default: all nodes), read in one run. Changes nothing. ``replicas``: also read
    every replica's topic id (1 s for 20,000 replicas on a host, measured).

    A host or a part that can't be read is Unread with its reason, never an exception. ``clock_skew_seconds``: how far
    the host's clock is outside the time span that reading it took here; 0.0 if no skew can be proven (reading takes
    about a second).
    """
    return _gathered(spec, spec.node_ids if node_ids is None else node_ids, None, replicas=replicas, secrets=secrets)[0]


def gather_secured_hosts(
    spec: ClusterSpec,
    *,
    replicas: bool = False,
    scram: ScramLogin | None = None,
    secrets: Secrets,
    plays: Callable[..., RunReport] = run_ansible,
) -> tuple[dict[int, HostState], SecuredRead]:
    """The same of all nodes, and in the same run their stores and secrets. ``scram``: the controllers' login to the
    brokers, where it is by SCRAM. ``plays``: as ``run_ansible``.
    """
    question = SecuredQuestion(spec, secrets, scram)
    hosts, told = _gathered(spec, spec.node_ids, question, replicas=replicas, secrets=secrets, plays=plays)
    return hosts, question.answered(told)


def _gathered(
    spec: ClusterSpec,
    node_ids: Sequence[int],
    question: SecuredQuestion | None,
    *,
    replicas: bool,
    secrets: Secrets,
    plays: Callable[..., RunReport] = run_ansible,
) -> tuple[dict[int, HostState], dict[int, Mapping[str, Any] | Unread]]:
    """The facts, and what each host answers to the question."""
    nodes = [node_of(spec, each) for each in node_ids]
    if not nodes:
        return {}, {}
    asks = question is not None and bool(question.asked)
    machines = {f"host-of-{host_name(together[0])}": together for together in by_machine(spec, nodes)}
    report = plays(
        playbook_directory() / "gather_host_facts.yml",
        {
            name: {
                **node_variables(spec, together[0]),
                "replicas": replicas,
                "replicas_seconds": seconds_for_replicas(len(machines)),
                "nodes": [_read_there(spec, each) for each in together],
                "asks_for_stores": asks,
            }
            for name, together in machines.items()
        },
        check=False,
        timeout=WITH_STORES_SECONDS if asks else SECONDS,
        secret_text=question.text if question and asks else None,
        secret_values=question.values if question else [],
        tell=lambda _: None,
        secrets=secrets,
        labels={name: ", ".join(each.named for each in together) for name, together in machines.items()},
    )
    host_of = {each.id: report.hosts[name] for name, together in machines.items() for each in together}
    return (
        {node_id: _host_state(node_id, host, report) for node_id, host in host_of.items()},
        {node_id: _secured(node_id, host, report) for node_id, host in host_of.items()},
    )


def _read_there(spec: ClusterSpec, node: Broker | Controller) -> dict[str, Any]:
    """What ``kafka_host_facts`` is given of one of a machine's nodes."""
    own = node_variables(spec, node)
    return {
        "name": own["service"],
        "host": own["node_host"],
        **{key: own[key] for key in ("node_id", "ports", "log_dirs", "config_file", "must_reach")},
        "files": [each for each in own["files_read_at_start"] if each != node.home_link],
    }


def _host_state(node_id: int, host: HostReport, report: RunReport) -> HostState:
    facts = host.facts.get(str(node_id))
    if not facts:  # a host that was lost later has told them
        reason = _why(host, report)
        parts = {each.name: Unread(reason) for each in fields(HostState) if each.name != "node_id"}
        return HostState(node_id=node_id, **parts)
    found: dict[str, Any] = {name: value_of(part) for name, part in facts.items()}
    lists = (
        "unreachable_addresses",
        "controller_threads",
        "listener_threads",
        "secrets_keys",
        "configuration_managers",
        "zookeeper_login",
        "server_sections",
        "stop_commands",
    )
    for name, kind in (("ports_in_use", frozenset), *((each, tuple) for each in lists)):
        if not isinstance(found[name], Unread) and found[name] is not None:
            found[name] = kind(found[name])
    if not isinstance(found["other_kafkas"], Unread):
        found["other_kafkas"] = {int(pid): user for pid, user in found["other_kafkas"].items()}
    if not isinstance(found["other_hands"], Unread):
        found["other_hands"] = {path: tuple(lines) for path, lines in found["other_hands"].items()}
    if not isinstance(found["replicas"], Unread):
        found["replicas"] = replica_directories_of(found["replicas"])
    return HostState(node_id=node_id, clock_skew_seconds=_skew(host.clock), **found)


def _secured(node_id: int, host: HostReport, report: RunReport) -> Mapping[str, Any] | Unread:
    told = host.facts.get("secured")
    if host.failure or told is None:
        opening = "while its stores were opened: " if str(node_id) in host.facts else ""
        return Unread(f"{opening}{_why(host, report)}")
    return Unread(str(told["unread"])) if "unread" in told else told.get(str(node_id), Unread("it was not asked"))


def _why(host: HostReport, report: RunReport) -> str:
    if host.failure:
        return host.failure[1]
    return f"{report.ending}: {report.output.rpartition(chr(10))[2] or 'it printed nothing'}"


def _skew(clock: tuple[float, float, float] | None) -> float | Unread:
    if clock is None:
        return Unread("the host did not tell its time")
    there, before, after = clock
    return min(there - before, 0.0) or max(there - after, 0.0)
