"""``kraft-runbook adopt``: the file of a cluster that runs, made of the brokers' own files. Only reads the hosts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from kraft_runbook.cli.asking import asking
from kraft_runbook.cli.cluster_files import clusters_directory
from kraft_runbook.cli.progress import reading
from kraft_runbook.cluster.adopted_file import render_adopted
from kraft_runbook.cluster.adoption import Adopted, FoundBroker, Notes, WantedController, adopt
from kraft_runbook.cluster.cluster_file import parse_cluster
from kraft_runbook.cluster.distributions import APACHE, DISTRIBUTIONS, distribution_of
from kraft_runbook.cluster.known_properties import is_known
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import ClusterFileError, RunbookError
from kraft_runbook.io.hosts.foreign_inventory import OWN, ForeignInventory, InventoryHost
from kraft_runbook.io.secrets import environment_secrets

OF_A_CONTROLLER = ("id", "port", "log_dir", "config_file", "service", "metrics_port", "rack", "bind_host")
_BECOME_PASSWORDS = ("ansible_become_password", "ansible_become_pass", "ansible_sudo_pass")
_KNOWN_FAMILIES = ("listener.name.", "config.providers.")
"""Prefixes before what Kafka knows."""


def _of_each(what: str) -> str:
    """What each distribution has, once."""
    return ", ".join(dict.fromkeys(str(getattr(each, what)) for each in DISTRIBUTIONS))


def adopt_command(
    context: typer.Context,
    name: Annotated[str, typer.Option("--name", help="The cluster's name: its file is NAME.yaml.")],
    inventory: Annotated[Path, typer.Option("--inventory", help="Ansible's inventory, INI or YAML.")],
    brokers: Annotated[str, typer.Option("--brokers", help="The inventory's group of the brokers.")] = "kafka_broker",
    controllers: Annotated[
        str, typer.Option("--controllers", help="The group of the hosts for controllers: 1, 3 or 5.")
    ] = "kafka_controller",
    config_file: Annotated[
        str | None,
        typer.Option("--config-file", help=f"The brokers' file, else krb_config_file or {APACHE.broker_file}."),
    ] = None,
    service: Annotated[
        str | None,
        typer.Option("--service", help=f"The brokers' service, else krb_service or {_of_each('service')}."),
    ] = None,
    home: Annotated[
        str | None, typer.Option("--kafka-home", help=f"Kafka's directory on every host, else {_of_each('home')}.")
    ] = None,
    version: Annotated[
        str, typer.Option("--kafka-version", help="The brokers' software: 3.9.2, 7.9.2-ccs, 7.9.2-ce.")
    ] = "3.9.2",
    metrics_port: Annotated[int, typer.Option("--metrics-port", help="Where a broker's metrics are read.")] = 7071,
    supervisor: Annotated[
        str | None, typer.Option("--supervisor", help="supervisor's serverurl, where systemd does not run Kafka.")
    ] = None,
    become_password: Annotated[
        str | None,
        typer.Option("--become-password", help="The environment variable with sudo's password, where sudo asks."),
    ] = None,
    known_hosts: Annotated[
        str | None, typer.Option("--known-hosts", help="The file with the hosts' keys, where it is not ssh's own.")
    ] = None,
    clusters_dir: Annotated[Path | None, typer.Option("--clusters-dir", help="Where the cluster files lie.")] = None,
) -> None:
    """Write the cluster file of a cluster that runs: its hosts are named by Ansible's inventory and only read."""
    from kraft_runbook.io.hosts.foreign_inventory import read_inventory
    from kraft_runbook.io.hosts.playbooks import playbook_directory  # ansible-runner is slow to import

    target = clusters_directory(clusters_dir) / f"{name}.yaml"
    if target.exists():
        raise RunbookError(
            f"{target} is there already, and adopt overwrites no file", way_out="take another --name, or move that file"
        )
    named = read_inventory(inventory, directory=playbook_directory())
    hosts = named.group(brokers)
    if not hosts:
        raise RunbookError(
            f"the inventory's group {brokers!r} has no host", way_out="name the group of the brokers by --brokers"
        )
    theirs = distribution_of(version)
    reach, unsaid = reach_of((*hosts, *named.group(controllers)), said=_BECOME_PASSWORDS if become_password else ())
    if become_password and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", become_password):
        raise RunbookError(
            "--become-password names no environment variable",
            way_out="give the password in a variable, as KRB_BECOME_PASSWORD, and name that variable here",
        )
    reach |= {"become_password": {"env": become_password}} if become_password else {}
    reach |= {"known_hosts": known_hosts} if known_hosts else {}
    given: dict[str, Any] = {
        "name": name,
        "description": f"Adopted from {inventory.name}",
        "kafka": {"version": version, "home": home or theirs.home},
        "reach": reach,
        "service_manager": {"kind": "supervisor", "socket": supervisor} if supervisor else {"kind": "systemd"},
    }
    with reading(f"reading {len(hosts)} brokers' files"):
        found, notes = _found(
            hosts,
            asking(context).brokers_files,
            given,
            own={
                "config_file": config_file or theirs.broker_file,
                "service": service or theirs.service,
                "metrics_port": metrics_port,
            },
        )
    made = adopt(given, found, wanted(named, controllers))
    made = Adopted(made.data, made.secrets, (*unsaid, *notes, *made.notes, *_of_plugins(made.data)))
    text = render_adopted(made, source=inventory.name)
    _require_usable(text, target)
    write_new(target, text)
    typer.echo(
        f"{target} is written. Brokers: {len(found)}; secrets to give: {len(made.secrets)};"
        f" to look at: {len(made.notes)}"
    )
    for key, variable in made.secrets.items():
        typer.echo(f"  give {variable}: {key}")
    for note in made.notes:
        typer.echo(f"  look at: {note}")
    typer.echo(f"next: kraft-runbook plan --cluster {name} --hosts, then kraft-runbook preflight --cluster {name}")


def reach_of(hosts: Sequence[InventoryHost], said: Sequence[str] = ()) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The cluster file's ``reach``, and notes of what it can't say. ``said``: variables that an option stands for."""
    keys = {
        "user": "ansible_user",
        "port": "ansible_port",
        "private_key_file": "ansible_ssh_private_key_file",
        "python": "ansible_python_interpreter",
        "become": "ansible_become",
    }
    local = all(each.reach.get("ansible_connection") == "local" for each in hosts)
    reach: dict[str, Any] = {"kind": "local" if local else "ssh"}
    notes = []
    for key, variable in keys.items():
        values = [each.reach.get(variable) for each in hosts]
        most = max(values, key=values.count)
        if any(each != most for each in values):
            notes.append(f"reach.{key}: the hosts have several values of {variable}; a cluster file has one")
        if most is not None and not (local and key != "become"):
            reach[key] = most
    if unread := sorted({each for host in hosts for each in host.unread} - set(said)):
        notes.append(f"the inventory also has {', '.join(unread)}, which a cluster file can't say and was not read")
    return reach, tuple(notes)


def wanted(named: ForeignInventory, group: str) -> list[WantedController]:
    return [
        WantedController(each.host, {key: each.own[key] for key in OF_A_CONTROLLER if key in each.own})
        for each in named.group(group)
    ]


def _of_plugins(data: Mapping[str, Any]) -> Iterator[str]:
    """A note of the properties whose values are in the file and that Kafka does not know: what looks like no secret may
    be one.
    """
    held = [data["broker_properties"], *(each.get("properties", {}) for each in data["brokers"])]
    names = {key for each in held for key, value in each.items() if not value.startswith("${")}
    if unknown := sorted(key for key in names if not key.startswith(_KNOWN_FAMILIES) and not is_known(key)):
        yield (
            f"{len(unknown)} properties whose values are in this file are unknown to Kafka, so only their names and"
            f" looks tell that they are no secrets: {some(unknown, 20)}. If one of them is a secret, move it to"
            " 'secrets' and change it"
        )


def _number(host: InventoryHost, its: Mapping[str, Any], key: str) -> int:
    """Raises RunbookError where the inventory has something else there."""
    try:
        return int(its[key])
    except ValueError:
        raise RunbookError(
            f"the inventory's {OWN}{key} of {host.name} is no number", way_out="correct it; nothing was written"
        ) from None


def _found(
    hosts: Sequence[InventoryHost], read: Callable[..., Sequence[Any]], given: Mapping[str, Any], own: Mapping[str, Any]
) -> tuple[list[FoundBroker], tuple[str, ...]]:
    """Each broker with its file. Raises RunbookError, naming every host whose file was not read."""
    from kraft_runbook.io.hosts.unknown_hosts import AskedHost

    settings = [{**own, **each.own} for each in hosts]
    asked = [
        AskedHost(host, str(its["config_file"]), str(its["service"]), given["kafka"]["home"], given["kafka"]["version"])
        for host, its in zip(hosts, settings, strict=True)
    ]
    manager = given["service_manager"]
    reach = given["reach"]
    answers = read(
        asked,
        manager=manager["kind"],
        socket=manager.get("socket"),
        secrets=environment_secrets(),
        known_hosts=reach.get("known_hosts"),
        become_password=SecretRef(env=reach["become_password"]["env"]) if "become_password" in reach else None,
    )
    found, unread, notes = [], [], Notes()
    for host, its, answer in zip(hosts, settings, answers, strict=True):
        if answer.config is None or isinstance(answer.config, Unread):
            why = answer.config.reason if answer.config else f"there is no {its['config_file']}"
            unread.append(f"{host.name}: {why}")
            continue
        if answer.service_defined is not True:
            notes.add(f"service {its['service']} is not defined there, or could not be asked", who=host.name)
        if answer.has_software is not True:
            notes.add(f"Kafka {given['kafka']['version']} was not found at {given['kafka']['home']}", who=host.name)
        found.append(
            FoundBroker(
                host.host,
                str(its["config_file"]),
                str(its["service"]),
                _number(host, its, "metrics_port"),
                answer.config,
                _number(host, its, "id") if "id" in its else None,
            )
        )
    if unread:
        raise RunbookError(
            f"the files of {len(unread)} of {len(hosts)} brokers could not be read: {'; '.join(unread)}",
            way_out=(
                "name the right file by --config-file or krb_config_file in the inventory, and let the inventory's user"
                " read it (ansible_user, ansible_become); nothing was written"
            ),
        )
    return found, notes.told()


def _require_usable(text: str, target: Path) -> None:
    """Raises RunbookError where the language of cluster files can't say what was found."""
    try:
        parse_cluster(text, source=str(target), environment=os.environ)
    except ClusterFileError as error:
        problems = "; ".join(each.partition(": ")[2] if each.startswith("line ") else each for each in error.problems)
        raise RunbookError(
            f"a cluster file can't say what was found: {problems}",
            way_out=(
                "correct what is named in the inventory (krb_id, krb_port, krb_metrics_port … of a host) or in the"
                " brokers' files; nothing was written"
            ),
        ) from None


def write_new(path: Path, text: str) -> None:
    """Raises RunbookError where the file is there already, or can't be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x") as file:
            file.write(text)
    except OSError as error:
        raise RunbookError(
            f"{path} could not be written: {error.strerror}", way_out="name another --clusters-dir"
        ) from None
