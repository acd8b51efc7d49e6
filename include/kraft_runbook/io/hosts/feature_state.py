"""What the hosts say of feature levels: which ones each installation of Kafka knows, and which ones each node's own
metadata log holds for its next start.

A node's newest snapshot can be learned on its host alone: FetchSnapshot and Fetch are answered by the quorum's leader,
for its own snapshots (measured on 3.9.2 and 4.1.1). Each node, broker or controller, takes its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kraft_runbook.cluster.class_keys import BUILT_IN, CLASS_KEYS
from kraft_runbook.cluster.feature_levels import (
    FeatureTable,
    Level,
    NamedClass,
    NamedClasses,
    NodeHost,
    NodeOnDisk,
    Range,
    Snapshot,
    SoftwareLevels,
    WrittenLevel,
)
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.old_requests import LoggedClient, LoggedRequests
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.hosts.ansible_reports import HostReport, Tell, value_of
from kraft_runbook.io.hosts.ansible_runs import run_ansible
from kraft_runbook.io.hosts.inventory import host_name, node_of, node_variables
from kraft_runbook.io.hosts.playbooks import playbook_directory
from kraft_runbook.io.secrets import FROM_ENVIRONMENT, Secrets

_SECONDS = 120.0


def read_feature_state(
    spec: ClusterSpec,
    node_ids: Sequence[int] | None = None,
    *,
    secrets: Secrets = FROM_ENVIRONMENT,
    dynamic_classes: Mapping[int, Sequence[tuple[str, str]]] | None = None,
    tell: Tell | None = None,
) -> dict[int, NodeHost | Unread]:
    """These nodes' hosts (default: all), read in one run. Changes nothing; a host or a part that can't be read is
    Unread with its reason, never an exception.

    ``dynamic_classes``: by node, the keys and classes that dynamic configurations name; they are looked for too.
    """
    nodes = [node_of(spec, each) for each in (spec.node_ids if node_ids is None else node_ids)]
    homes = [spec.kafka.home, *([spec.kafka.upgrade_to.home] if spec.kafka.upgrade_to else [])]
    report = run_ansible(
        playbook_directory() / "read_feature_state.yml",
        {
            host_name(each): {
                **node_variables(spec, each),
                "homes": homes,
                **({"home_link": each.home_link} if each.home_link else {}),
                "class_keys": {"keys": {k: v.value for k, v in CLASS_KEYS.items()}, "built_in": BUILT_IN},
                "dynamic_classes": [
                    {"key": key, "name": name} for key, name in (dynamic_classes or {}).get(each.id, ())
                ],
            }
            for each in nodes
        },
        check=False,
        timeout=_SECONDS,
        secret_text=None,
        secret_values=[],
        tell=tell or (lambda _: None),
        secrets=secrets,
        labels={host_name(each): each.named for each in nodes},
    )
    return {each.id: _host(each.id, report.hosts[host_name(each)], report.output) for each in nodes}


def _host(node_id: int, host: HostReport, output: str) -> NodeHost | Unread:
    if host.failure or not host.facts:
        last = output.rpartition("\n")[2]
        return Unread(host.failure[1] if host.failure else f"ansible said: {last or 'nothing'}")
    facts = host.facts
    return NodeHost(
        node_id,
        {home: _software(part) for home, part in facts["homes"].items()},
        value_of(facts["home"]),
        _disk(node_id, facts["disk"]),
        value_of(facts["config"]),
        classes_of(facts["classes"]),
        {
            home: jars if isinstance(jars := value_of(part), Unread) else tuple(jars)
            for home, part in facts["further_jars"].items()
        },
        urls if isinstance(urls := value_of(facts["allowed_urls"]), Unread) else tuple(urls),
        logged_of(value_of(facts["logged_requests"])),
    )


def logged_of(told: Any) -> LoggedRequests | Unread | None:
    """What ``logged_requests`` in ``module_utils`` read, as values."""
    if told is None or isinstance(told, Unread):
        return told
    return LoggedRequests(tuple(LoggedClient(*each) for each in told["clients"]), told["more"], told["since"])


def classes_of(part: Mapping[str, Any]) -> NamedClasses | Unread:
    """What ``named_classes`` in ``module_utils`` found, as a value."""
    told = value_of(part)
    if isinstance(told, Unread):
        return told
    named = (
        NamedClass(each["key"], each["name"], {home: value_of(jar) for home, jar in each["found"].items()})
        for each in told["named"]
    )
    unasked = told["unasked"]
    return NamedClasses(tuple(named), tuple(told["unread"]), None if unasked is None else tuple(unasked))


def _software(part: Mapping[str, Any]) -> SoftwareLevels | Unread:
    told = value_of(part)
    if isinstance(told, Unread):
        return told
    return software_of(told)


def software_of(told: Mapping[str, Any]) -> SoftwareLevels:
    """What ``levels_of`` in ``module_utils`` read out of a jar, as a value."""
    return SoftwareLevels(
        told["version"],
        {
            name: FeatureTable(
                Range(each["lowest"], each["highest"]), tuple(Level(**level) for level in each["levels"])
            )
            for name, each in told["features"].items()
        },
        value_of(told["records"]),
    )


def _disk(node_id: int, part: Mapping[str, Any]) -> NodeOnDisk | Unread:
    told = value_of(part)
    return told if isinstance(told, Unread) else on_disk_of(node_id, told)


def on_disk_of(node_id: int, told: Mapping[str, Any]) -> NodeOnDisk:
    """What ``read_at_start`` in ``module_utils`` read of a node's directory, as a value."""
    snapshot = told["snapshot"]
    return NodeOnDisk(
        node_id,
        Snapshot(snapshot["end"], snapshot["taken"], snapshot["levels"]) if snapshot else None,
        tuple(WrittenLevel(each["feature"], each["level"], each["offset"]) for each in told["after"]),
        told["bootstrap"],
        told["end"],
        told["epoch"],
    )
