"""The playbooks as functions. Every variable that a playbook gets follows from the cluster file, through ``kraft_runbook.cluster.node_properties``.

Each function may be called again at any time, also while an earlier call's ansible still runs: the playbooks act on what
they see on the host, under a lock there. Errors are StepFailed, with the task, the host, the message and the way out.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from kraft_runbook.cluster.mode_settings import ZOOKEEPER_KEYS
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode, HostState, Unread
from kraft_runbook.cluster.properties_text import render_properties, render_secrets
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Broker, Controller
from kraft_runbook.errors import Refused, RunbookError, StepFailed
from kraft_runbook.io.hosts.ansible_runs import HostReport, RunReport, Tell, run_ansible
from kraft_runbook.io.kafka.metadata_quorum import controller_mode
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.migration.controller_files import controller_log4j
from kraft_runbook.migration.copy_tuning import SMALL, Size

N = TypeVar("N", Broker, Controller, Broker | Controller)

AGAIN = "correct what is named above, then run this step again: it goes on from what it finds on the host"
_MARGIN = 300.0
"""Seconds beyond the stop and the start that a run may last: two waits for the node's lock, formatting, ansible itself."""
_FACTS_SECONDS = 120.0
_MODE_SECONDS = 3.0
"""What a controller may take to show its mode before a step."""


class Guard(Enum):
    """What a step demands of the controllers' hosts first, so that no election can finalize the migration unasked (KAFKA-20960)."""

    NONE = "nothing: there is no way back to protect, or the step is finalization itself"
    PROVISIONED = "every controller is in migration mode, on disk and running"
    PROVISIONING = "the same, but for one that does not run and is not provisioned, yet or any more: it has no file, or no formatted data"


@dataclass(frozen=True, slots=True)
class ConfigDiff:
    """A file before and after, whole; the values of sensitive keys are ``<set>``. ``before`` is empty where there was no file."""

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
    """A playbook that went well on one node. ``changed``: the tasks that changed something (with ``check``: that would); ``ok``: tasks in all.

    ``restarted``: a process that ran was stopped, and one runs again with the current files (with ``check``: would be, and would).
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


def provision_controller(
    spec: ClusterSpec,
    node_id: int,
    cluster_id: str,
    *,
    size: Size = SMALL,
    secrets: Secrets,
    check: bool = False,
    on_event: Tell | None = None,
    state_dir: Path | None = None,
) -> PlaybookResult:
    """Render a migration controller's files, format its directory with the cluster's id, start it. A formatted directory is left alone.

    ``size``: what the metadata's copy is tuned for (``procedures.copy_size``). Raises Refused, before anything is touched, where another controller is not proven to be in migration mode.
    """
    given = {**_controller_files(spec, node_id, ControllerMode.MIGRATION, size), "cluster_id": cluster_id}
    return run_playbook(
        spec,
        "provision_controller",
        node_id=node_id,
        variables=given,
        secrets=secrets,
        check=check,
        on_event=on_event,
        state_dir=state_dir,
        guard=Guard.PROVISIONING,
    )


def restart_broker(
    spec: ClusterSpec,
    node_id: int,
    mode: BrokerMode,
    *,
    secrets: Secrets,
    check: bool = False,
    on_event: Tell | None = None,
    state_dir: Path | None = None,
    finalized: bool = False,
    way_back: bool = False,
    gone: Collection[int] = (),
) -> PlaybookResult:
    """Bring a broker to run in a mode: render its files; restart it where its process is older than them; wait for its port.

    Raises Refused, before anything is touched, where a controller is not proven to be in migration mode. That is not asked for
    ZooKeeper mode, and not where the migration is ``finalized``: then KRaft mode is the only way left for a broker.
    ``way_back``: a controller that does not run and has lost its file or its data is let be, as at the fence: it can't start, so it can't lead.
    ``gone``: controllers whose hosts are gone for good, on the operator's word, so that nothing can be proven of them.
    """
    given = {
        "properties": broker_properties(spec, spec.broker(node_id), mode),
        "mode": mode.value,
        **_unread_secrets(mode),
    }
    unguarded = mode is BrokerMode.ZOOKEEPER or (finalized and mode is BrokerMode.KRAFT)
    return run_playbook(
        spec,
        "restart_broker",
        node_id=node_id,
        variables=given,
        secrets=secrets,
        check=check,
        on_event=on_event,
        state_dir=state_dir,
        guard=Guard.NONE if unguarded else Guard.PROVISIONING if way_back else Guard.PROVISIONED,
        gone=gone,
    )


def finalize_controller(
    spec: ClusterSpec,
    node_id: int,
    *,
    secrets: Secrets,
    check: bool = False,
    on_event: Tell | None = None,
    state_dir: Path | None = None,
) -> PlaybookResult:
    """Take a controller out of migration mode: render it without the flag, ZooKeeper and the copy's tuning, restart it where needed, wait for its port."""
    given = _controller_files(spec, node_id, ControllerMode.KRAFT)
    return run_playbook(
        spec,
        "finalize_controller",
        node_id=node_id,
        variables=given,
        secrets=secrets,
        check=check,
        on_event=on_event,
        state_dir=state_dir,
    )


def _controller_files(spec: ClusterSpec, node_id: int, mode: ControllerMode, size: Size = SMALL) -> dict[str, Any]:
    """What a controller's files are to hold: its configuration, and its loggers where the cluster file names their file."""
    controller = spec.controller(node_id)
    log4j = {"log4j_properties": controller_log4j(spec, mode, size)} if controller.log4j_file else {}
    return {
        "properties": controller_properties(spec, controller, mode, also=size.properties),
        **log4j,
        **_unread_secrets(mode),
    }


def _unread_secrets(mode: BrokerMode | ControllerMode) -> dict[str, Any]:
    """What a process in this mode does not read of the host's secrets file: it is left there until finalization, and not brought back after it."""
    return {"unread_secrets": list(ZOOKEEPER_KEYS)} if mode in (BrokerMode.KRAFT, ControllerMode.KRAFT) else {}


def forget_zookeeper_secrets(
    spec: ClusterSpec, *, check: bool = False, on_event: Tell | None = None, state_dir: Path | None = None
) -> tuple[str, ...]:
    """Take ZooKeeper's secrets out of every host's secrets file, once the migration is final. Restarts nothing, and needs no secret itself.

    Returns the nodes whose host held some, by label. Raises StepFailed, naming each host where it failed.
    """
    if not spec.secrets_file:
        return ()
    nodes: list[Broker | Controller] = [*spec.brokers, *spec.controllers]
    given = {"unread_secrets": list(ZOOKEEPER_KEYS)}
    report = run_ansible(
        playbook_directory() / "forget_zookeeper_secrets.yml",
        {host_name(node): {**node_variables(spec, node), **given} for node in nodes},
        check=check,
        timeout=_FACTS_SECONDS,
        secret_text=None,
        secret_values=[],
        tell=on_event or _silent,
        labels={host_name(node): _label(node) for node in nodes},
        directory=state_dir,
    )
    failed = [
        f"{_label(node)} ({node.host}): {failure[1]}"
        for node in nodes
        if (failure := report.hosts[host_name(node)].failure)
    ]
    if failed or report.status != "successful":
        said = "; ".join(failed) or report.output
        raise StepFailed(f"ZooKeeper's secrets could not be taken off every host: {said}", way_out=AGAIN)
    return tuple(_label(node) for node in nodes if report.hosts[host_name(node)].changed)


def _texts(node: Broker | Controller, spec: ClusterSpec, variables: Mapping[str, Any]) -> dict[str, str]:
    """The whole text of each file that the variables' properties are for."""
    files = (("properties", "config_text"), ("log4j_properties", "log4j_text"))
    return {
        text: render_properties(variables[given], header=_header(node, spec))
        for given, text in files
        if given in variables
    }


def _header(node: Broker | Controller, spec: ClusterSpec) -> str:
    """The first line of each file that this tool writes on a host; any other file is kept before it is replaced."""
    return f"{_label(node).capitalize()} of cluster {spec.name}"


def run_playbook(
    spec: ClusterSpec,
    playbook: str,
    *,
    node_id: int,
    variables: Mapping[str, Any],
    secrets: Secrets | None,
    check: bool = False,
    on_event: Tell | None = None,
    state_dir: Path | None = None,
    guard: Guard = Guard.NONE,
    gone: Collection[int] = (),
) -> PlaybookResult:
    """Run ``playbooks/<playbook>.yml`` on one node and wait for its end.

    ``variables`` come on top of the node's own; ``secrets`` resolves the values of the host's secrets file (None: it is not
    written); ``on_event`` gets a line whenever there is news; ``state_dir`` is where the run's private directory is made
    (default: the system's temporary directory); ``guard`` is what must be true of the other controllers' hosts, but for those of
    ``gone``, for playbooks that import ``prove_migration_mode.yml``. Raises Refused where it is not, before anything is touched; StepFailed; SecretMissing
    before anything is touched.
    """
    node = _node(spec, node_id)
    values = {key: secrets(ref) for key, ref in spec.secrets.items()} if secrets else {}
    began = datetime.now(UTC)
    guarded = guarded_controllers(spec, guard, but=node_id, secrets=secrets, check=check, gone=gone)
    report = run_ansible(
        playbook_directory() / f"{playbook}.yml",
        {
            **guarded,
            host_name(node): {
                **node_variables(spec, node),
                **variables,
                **_texts(node, spec, variables),
                "must_be_proven": list(guarded),
            },
        },
        check=check,
        timeout=spec.service_manager.stop_timeout + spec.deadlines.registration + _MARGIN,
        secret_text=render_secrets(values) if values else None,
        secret_values=list(values.values()),
        tell=on_event or _silent,
        labels={host_name(node): _label(node)},
        directory=state_dir,
        groups={"guarded": list(guarded)},
    )
    _raise_unless_proven(f"{playbook} on {_label(node)}", guarded, report)
    host = report.hosts[host_name(node)]
    _raise_unless_successful(playbook, node, report, host)
    diffs = tuple(ConfigDiff(*each) for each in host.diffs)
    return PlaybookResult(
        playbook, node_id, host.changed, diffs, host.ok, host.facts, began, datetime.now(UTC), host.restarted
    )


def gather_host_facts(
    spec: ClusterSpec, node_ids: Sequence[int] | None = None, *, state_dir: Path | None = None
) -> dict[int, HostState]:
    """What the hosts of these nodes (default: all) have, read in one run. Changes nothing.

    A host or a part that can't be read is Unread with its reason, never an exception. ``clock_skew_seconds`` is how far the
    host's clock lies outside the time that reading it took here: 0.0 when no skew can be proven (a run takes about a second).
    """
    nodes = [
        _node(spec, each) for each in (node_ids if node_ids is not None else (*spec.broker_ids, *spec.controller_ids))
    ]
    if not nodes:
        return {}
    machines = {f"host-of-{host_name(together[0])}": together for together in _by_machine(spec, nodes)}
    report = run_ansible(
        playbook_directory() / "gather_host_facts.yml",
        {
            name: {**node_variables(spec, together[0]), "nodes": [_read_there(spec, each) for each in together]}
            for name, together in machines.items()
        },
        check=False,
        timeout=_FACTS_SECONDS,
        secret_text=None,
        secret_values=[],
        tell=_silent,
        labels={name: ", ".join(_label(each) for each in together) for name, together in machines.items()},
        directory=state_dir,
    )
    return {
        each.id: _host_state(each.id, report.hosts[name], report)
        for name, together in machines.items()
        for each in together
    }


def _read_there(spec: ClusterSpec, node: Broker | Controller) -> dict[str, Any]:
    """What ``kafka_host_facts`` is given of one of a machine's nodes."""
    own = node_variables(spec, node)
    return {
        "name": own["service"],
        "host": own["node_host"],
        **{key: own[key] for key in ("node_id", "ports", "log_dirs", "config_file", "must_reach")},
    }


def _by_machine(spec: ClusterSpec, nodes: Iterable[N]) -> list[list[N]]:
    """The nodes, those of one machine together: a run costs by the machine."""
    machines: dict[str, list[N]] = {}
    for each in nodes:
        machines.setdefault("here" if spec.reach.kind == "local" else each.host, []).append(each)
    return list(machines.values())


def playbook_directory() -> Path:
    """Where the playbooks lie: ``KRAFT_RUNBOOK_PLAYBOOKS``, or ``playbooks`` beside ``include``."""
    return Path(os.environ.get("KRAFT_RUNBOOK_PLAYBOOKS") or Path(__file__).resolve().parents[4] / "playbooks")


# -- the guard ----------------------------------------------------------------------------------------------------------


def guarded_controllers(
    spec: ClusterSpec,
    guard: Guard,
    *,
    but: int | None,
    secrets: Secrets | None,
    check: bool,
    gone: Collection[int] = (),
) -> dict[str, dict[str, Any]]:
    """The hosts, by name, and their variables, that a playbook's import of ``prove_migration_mode.yml`` looks at: the group ``guarded``.

    Every controller but ``but`` (the one that the step itself writes and starts) and those that are ``gone`` with their hosts, with the mode that
    its process shows at this moment; those of one machine together, since a run costs by the machine.
    """
    if guard is Guard.NONE:
        return {}
    others = [each for each in spec.controllers if each.id != but and each.id not in gone]
    with ThreadPoolExecutor(max_workers=max(1, len(others)), thread_name_prefix="guard") as pool:
        shown = dict(
            zip(
                [each.id for each in others],
                pool.map(lambda each: _shown_mode(spec, each, secrets), others),
                strict=True,
            )
        )
    # A dry run shows the whole way, also before any controller is provisioned.
    provisioning = check or guard is Guard.PROVISIONING
    return {
        f"controllers-{'-'.join(str(each.id) for each in together)}": {
            **node_variables(spec, together[0]),
            "provisioning": provisioning,
            "controllers": [_asked(each, shown[each.id]) for each in together],
        }
        for together in _by_machine(spec, others)
    }


def _asked(controller: Controller, shown: Mapping[str, str]) -> dict[str, str]:
    own = {"name": controller.service, "config_file": controller.config_file, "log_dir": controller.log_dir}
    return {"controller": _label(controller), **own, **shown}


def _shown_mode(spec: ClusterSpec, controller: Controller, secrets: Secrets | None) -> dict[str, str]:
    if secrets is None:
        return {"shown": "", "not_shown": "it was not asked"}
    try:
        return {
            "shown": controller_mode(spec, controller, secrets=secrets, timeout=_MODE_SECONDS).value,
            "not_shown": "",
        }
    except RunbookError as error:
        return {"shown": "", "not_shown": error.problem}


def _raise_unless_proven(where: str, guarded: Mapping[str, Mapping[str, Any]], report: RunReport) -> None:
    found = [(name, host.failure) for name, host in report.hosts.items() if name in guarded and host.failure]
    if found:
        who = {name: [each["controller"] for each in guarded[name]["controllers"]] for name, _ in found}
        said = "; ".join(
            message if any(each in message for each in who[name]) else f"{', '.join(who[name])}: {message}"
            for name, (_, message, _) in found
        )
        ways = dict.fromkeys(way_out or AGAIN for _, (_, _, way_out) in found)
        raise Refused(f"{where} was refused before anything was touched: {said}", way_out="; ".join(ways))


# -- what a node's playbook is given ------------------------------------------------------------------------------------


def _node(spec: ClusterSpec, node_id: int) -> Broker | Controller:
    return spec.broker(node_id) if node_id in spec.broker_ids else spec.controller(node_id)


def _label(node: Broker | Controller) -> str:
    return f"{'broker' if isinstance(node, Broker) else 'controller'} {node.id}"


def host_name(node: Broker | Controller) -> str:
    """What ansible calls the node. Not its service: that may have the same name on every host."""
    return _label(node).replace(" ", "-")


def node_variables(spec: ClusterSpec, node: Broker | Controller) -> dict[str, Any]:
    """What every playbook is given of a node: how it is reached, its service, its files, its address."""
    if isinstance(node, Broker):
        place, log_dirs, ports = (
            node.waited_for(node.listener(spec.client_listener)),
            node.log_dirs,
            [each.port for each in node.listeners],
        )
        must_reach: list[str] = []
        log4j_file = None
    else:
        place, log_dirs, ports, log4j_file = node.address, (node.log_dir,), [node.port], node.log4j_file
        servers = spec.zookeeper.servers if spec.zookeeper else ()
        must_reach = [*servers, *(_inter_broker_address(spec, broker) for broker in spec.brokers)]
    manager = spec.service_manager
    return {
        **_reach(spec, node),
        "node_id": node.id,
        "node_host": node.host,
        "address": place,
        "ports": [*ports, node.metrics_port],
        "must_reach": must_reach,
        "service": node.service,
        "manager": manager.kind,
        **({"manager_socket": manager.socket} if manager.socket else {}),
        "stop_timeout": manager.stop_timeout,
        "start_timeout": spec.deadlines.registration,
        "config_file": node.config_file,
        **({"log4j_file": log4j_file} if log4j_file else {}),
        "files_read_at_start": [
            node.config_file,
            *([spec.secrets_file] if spec.secrets and spec.secrets_file else []),
            *([log4j_file] if log4j_file else []),
        ],
        "file_header": _header(node, spec),
        "secrets_file": spec.secrets_file or "",
        "log_dirs": list(log_dirs),
        "kafka_home": spec.kafka.home,
        "kafka_version": spec.kafka.version,
    }


def _inter_broker_address(spec: ClusterSpec, broker: Broker) -> str:
    return broker.advertised(broker.listener(spec.kafka.inter_broker_listener))


def _reach(spec: ClusterSpec, node: Broker | Controller) -> dict[str, Any]:
    reach = spec.reach
    become = {"ansible_become": True} if reach.become else {}
    if reach.kind == "local":
        return {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, **become}
    known = {"ansible_user": reach.user, "ansible_ssh_private_key_file": reach.private_key_file}
    return {
        "ansible_connection": "ssh",
        "ansible_host": node.host,
        "ansible_port": reach.port,
        "ansible_python_interpreter": reach.python,
        **{k: v for k, v in known.items() if v},
        **become,
    }


# -- what came of it ----------------------------------------------------------------------------------------------------


def _silent(_: str) -> None:
    """Nobody listens."""


def _raise_unless_successful(playbook: str, node: Broker | Controller, report: RunReport, host: HostReport) -> None:
    where = f"{playbook} on {_label(node)} ({node.host})"
    if report.status == "successful" and host.ok:
        return
    if report.status == "timeout":
        raise StepFailed(
            f"{where} took longer than it may (service_manager.stop_timeout and deadlines.registration in the cluster file)",
            way_out=f"look at {node.service} on the host; the step can be run again at any time and goes on from what it finds",
        )
    if report.status == "canceled":
        raise StepFailed(
            f"{where} was canceled", way_out="run this step again; it goes on from what it finds on the host"
        )
    if host.failure:
        task, message, way_out = host.failure
        raise StepFailed(f"{where}: '{task}' failed: {message}", way_out=way_out or AGAIN)
    raise StepFailed(f"{where}: ansible ended as {report.status} before any task:\n{report.output}", way_out=AGAIN)


def _host_state(node_id: int, host: HostReport, report: RunReport) -> HostState:
    facts = host.facts.get(str(node_id))
    if host.failure or not facts:
        reason = (
            host.failure[1]
            if host.failure
            else f"ansible ended as {report.status}: {report.output.rpartition(chr(10))[2] or 'it printed nothing'}"
        )
        parts = {each.name: Unread(reason) for each in fields(HostState) if each.name != "node_id"}
        return HostState(node_id=node_id, **parts)
    found: dict[str, Any] = {
        name: Unread(part["unread"]) if "unread" in part else part["value"] for name, part in facts.items()
    }
    lists = ("unreachable_addresses", "controller_threads", "listener_threads", "secrets_keys")
    for name, kind in (("ports_in_use", frozenset), *((each, tuple) for each in lists)):
        if not isinstance(found[name], Unread) and found[name] is not None:
            found[name] = kind(found[name])
    return HostState(node_id=node_id, clock_skew_seconds=_skew(host.clock), **found)


def _skew(clock: tuple[float, float, float] | None) -> float | Unread:
    if clock is None:
        return Unread("the host did not tell its time")
    there, before, after = clock
    return min(there - before, 0.0) or max(there - after, 0.0)
