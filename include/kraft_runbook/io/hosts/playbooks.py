"""Playing a playbook on one node, and the one that removes secrets from every host.

Each function may be called again at any time, also while an earlier call's Ansible still runs: the playbooks act on
what they find on the host, under a lock there. Errors are StepFailed, with the task, the host, the message and the way
out.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.mode_settings import ZOOKEEPER_KEYS
from kraft_runbook.cluster.properties_text import render_properties, render_secrets
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.hosts.ansible_reports import HostReport, RunReport, Tell
from kraft_runbook.io.hosts.ansible_runs import AGAIN, run_ansible
from kraft_runbook.io.hosts.inventory import file_header, host_name, node_of, node_variables
from kraft_runbook.io.hosts.migration_guard import guarded_controllers, raise_unless_proven
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.runbook.plays import Play

_MARGIN = 300.0
"""Seconds beyond the stop and the start that a run may last: two waits for the node's lock, formatting, ansible itself.
"""
_FORGETTING_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class ConfigDiff:
    """A file before and after, whole; the values of sensitive keys are ``<set>``. ``before`` is empty where there was
    no file.
    """

    path: str
    before: str
    after: str

    def render(self) -> str:
        """The change as a unified diff."""
        lines = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), f"{self.path} (now)", f"{self.path} (then)", lineterm=""
        )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class PlaybookResult:
    """A playbook that went well on one node. ``changed``: the tasks that changed something (with ``check``: that
    would); ``ok``: tasks in all.

    ``restarted``: a process that ran was stopped, and one runs again with the current files (with ``check``: would be,
    and would). ``ended_at``: when a process was told to end, in seconds since the epoch by this machine's clock; late
    by what the host's answer took.
    """

    playbook: str
    node_id: int
    changed: tuple[str, ...]
    diffs: tuple[ConfigDiff, ...]
    ok: int
    facts: Mapping[str, Any]
    started_at: datetime
    finished_at: datetime
    restarted: bool = False
    ended_at: float | None = None


def forget_zookeeper_secrets(
    spec: ClusterSpec, *, secrets: Secrets, check: bool = False, on_event: Tell | None = None
) -> tuple[str, ...]:
    """Remove ZooKeeper's secrets from every host's secrets file, once the migration is final. Restarts nothing.

    Returns the nodes whose host held some, by label. Raises StepFailed, naming each host where it failed.
    """
    if not spec.secrets_file:
        return ()
    nodes = spec.nodes
    given = {"unread_secrets": list(ZOOKEEPER_KEYS)}
    report = run_ansible(
        playbook_directory() / "forget_zookeeper_secrets.yml",
        {host_name(node): {**node_variables(spec, node), **given} for node in nodes},
        check=check,
        timeout=_FORGETTING_SECONDS,
        secret_text=None,
        secret_values=[],
        tell=on_event or _silent,
        secrets=secrets,
        labels={host_name(node): node.named for node in nodes},
    )
    failed = [
        f"{node.named} ({node.host}): {failure[1]}"
        for node in nodes
        if (failure := report.hosts[host_name(node)].failure)
    ]
    if failed or report.status != "successful":
        said = "; ".join(failed) or report.output
        raise StepFailed(f"ZooKeeper's secrets could not be removed from every host: {said}", way_out=AGAIN)
    return tuple(node.named for node in nodes if report.hosts[host_name(node)].changed)


def _texts(node: Broker | Controller, spec: ClusterSpec, variables: Mapping[str, Any]) -> dict[str, str]:
    """The whole text of each file that the variables' properties are for."""
    files = (("properties", "config_text"), ("log4j_properties", "log4j_text"))
    return {
        text: render_properties(variables[given], header=file_header(node, spec))
        for given, text in files
        if given in variables
    }


def play(
    spec: ClusterSpec,
    what: Play,
    *,
    secrets: Secrets,
    check: bool = False,
    on_event: Tell | None = None,
    guarded_by: Callable[..., Mapping[str, Mapping[str, Any]]] = guarded_controllers,
) -> PlaybookResult:
    """Play ``playbooks/<what.playbook>.yml`` on its node and wait for its end. With ``check`` it is a rehearsal that
    changes nothing.

    ``secrets`` resolves the values of the host's secrets file, and of the connections to the guarded controllers.
    ``on_event`` gets a line at each progress. ``guarded_by``: who must prove what (``migration_guard``). Raises Refused
    if the guard does not hold, and SecretMissing, both before any change; StepFailed.
    """
    node = node_of(spec, what.node_id)
    values = {key: secrets(ref) for key, ref in spec.secrets.items()} if what.writes_secrets else {}
    began = datetime.now(UTC)
    but = None if what.guards_itself else what.node_id
    guarded = guarded_by(spec, what.guard, but=but, secrets=secrets, check=check, gone=what.gone)
    own = {**node_variables(spec, node), **what.variables, **_texts(node, spec, what.variables)}
    report = run_ansible(
        playbook_directory() / f"{what.playbook}.yml",
        {**guarded, host_name(node): {**own, "must_be_proven": list(guarded)}},
        check=check,
        timeout=spec.service_manager.stop_timeout + spec.deadlines.registration + _MARGIN,
        secret_text=render_secrets(values) if values else None,
        secret_values=list(values.values()),
        tell=on_event or _silent,
        secrets=secrets,
        labels={host_name(node): node.named},
        groups={"guarded": list(guarded)},
    )
    raise_unless_proven(f"{what.playbook} on {node.named}", guarded, report)
    host = report.hosts[host_name(node)]
    _raise_unless_successful(what.playbook, node, report, host)
    diffs = tuple(ConfigDiff(*each) for each in host.diffs)
    return PlaybookResult(
        what.playbook,
        node.id,
        host.changed,
        diffs,
        host.ok,
        host.facts,
        began,
        datetime.now(UTC),
        host.restarted,
        host.ended_at,
    )


def playbook_directory() -> Path:
    """The playbooks' directory: ``KRAFT_RUNBOOK_PLAYBOOKS``, or that of the installed package, or ``playbooks`` beside
    ``include`` in a checkout.
    """
    if configured := os.environ.get("KRAFT_RUNBOOK_PLAYBOOKS"):
        return Path(configured)
    here = Path(__file__).resolve()
    installed = here.parents[2] / "playbooks"
    return installed if installed.is_dir() else here.parents[4] / "playbooks"


# -- what came of it ---------------------------------------------------------------------------------------------------


def _silent(_: str) -> None:
    """Nobody listens."""


def _raise_unless_successful(playbook: str, node: Broker | Controller, report: RunReport, host: HostReport) -> None:
    where = f"{playbook} on {node.named} ({node.host})"
    if report.status == "successful" and host.ok:
        return
    if report.status == "timeout":
        raise StepFailed(
            f"{where} was not done in its time: the host may be gone, or the stop or the start of {node.service} takes"
            " longer than service_manager.stop_timeout or deadlines.registration in the cluster file",
            way_out=(
                f"see that ssh reaches {node.host}, and look at {node.service} there; the step can be run again at any"
                " time and goes on from what it finds"
            ),
        )
    if report.status == "canceled":
        raise StepFailed(
            f"{where} was canceled", way_out="run this step again; it goes on from what it finds on the host"
        )
    if host.failure:
        task, message, way_out = host.failure
        raise StepFailed(f"{where}: '{task}' failed: {message}", way_out=way_out or AGAIN)
    raise StepFailed(f"{where}: {report.ending} before any task:\n{report.output}", way_out=AGAIN)
