"""An operator's own Ansible inventory (INI or YAML), by Ansible's own loader. Its scripts and plugins are not run, and
of its variables only those are read that say how to reach a host, or that are meant for this tool (``krb_…``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraft_runbook.errors import RunbookError

SECONDS = 60.0
READ = (
    "ansible_host",
    "ansible_port",
    "ansible_user",
    "ansible_ssh_private_key_file",
    "ansible_python_interpreter",
    "ansible_become",
    "ansible_connection",
)
"""How a host is reached, as far as a cluster file can say it. Passwords are none of these."""
OWN = "krb_"
_FORMER = {
    "ansible_ssh_host": "ansible_host",
    "ansible_ssh_port": "ansible_port",
    "ansible_ssh_user": "ansible_user",
}
"""Former names of some of these, which Ansible still takes."""
_CONNECTION = ("ansible_ssh_", "ansible_become_", "ansible_password", "ansible_pass")
"""How variables begin that also say how a host is reached. A later step would miss them."""
_INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL")


@dataclass(frozen=True, slots=True)
class InventoryHost:
    """A host by its name. ``reach``: the variables of ``READ`` that it has; ``own``: those of this tool, without
    ``krb_``. ``unread``: the names of further connection variables, whose values were not taken.
    """

    name: str
    reach: Mapping[str, Any]
    own: Mapping[str, Any]
    unread: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        return str(self.reach.get("ansible_host", self.name))


@dataclass(frozen=True, slots=True)
class ForeignInventory:
    """Groups by name, each with its hosts and those of its children, in the inventory's order."""

    groups: Mapping[str, tuple[InventoryHost, ...]]

    def group(self, name: str) -> tuple[InventoryHost, ...]:
        """Raises RunbookError for a group that is not there."""
        if name not in self.groups:
            known = ", ".join(each for each in self.groups if each not in ("all", "ungrouped")) or "none"
            raise RunbookError(
                f"the inventory has no group {name!r} (its groups: {known})",
                way_out="name the group of the brokers by --brokers, the controllers' by --controllers",
            )
        return self.groups[name]


def read_inventory(path: Path, *, directory: Path) -> ForeignInventory:
    """The inventory in a file. ``directory``: where ansible's own settings of this project are (``ansible.cfg``).

    Raises RunbookError. What ansible says is not repeated, since it quotes lines of the file, and these may hold
    passwords.
    """
    if not path.is_file():
        raise RunbookError(f"no inventory file {path}", way_out="name an INI or YAML file of Ansible by --inventory")
    environment = {
        **{key: os.environ[key] for key in _INHERITED if key in os.environ},
        "ANSIBLE_CONFIG": str(directory / "ansible.cfg"),
        "ANSIBLE_INVENTORY_ENABLED": "yaml,ini",
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "True",
        "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "False",
    }
    tool = Path(sys.executable).parent / "ansible-inventory"
    try:
        done = subprocess.run(
            [sys.executable, str(tool), "-i", str(path.resolve()), "--list"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        told = json.loads(done.stdout) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        told = None
    if told is None:
        raise RunbookError(
            f"Ansible could not read the inventory {path}",
            way_out=(
                f"ansible-inventory -i {path} --list says why. Variables beside it (group_vars, host_vars) are read"
                " too: where ansible-vault has encrypted a file there, take a copy of the inventory without it"
            ),
        )
    return inventory_of(told)


def inventory_of(told: Mapping[str, Any]) -> ForeignInventory:
    """Of ansible-inventory's ``--list``."""
    variables = told.get("_meta", {}).get("hostvars", {})

    def names(group: str, above: tuple[str, ...] = ()) -> list[str]:
        own = told.get(group, {})
        below = [
            each for child in own.get("children", ()) if child not in above for each in names(child, (*above, group))
        ]
        return [*own.get("hosts", ()), *below]

    groups = {"all", *(key for key in told if key != "_meta")}
    groups |= {child for each in told.values() for child in each.get("children", ())}
    return ForeignInventory(
        {
            group: tuple(_host(name, variables.get(name, {})) for name in dict.fromkeys(names(group)))
            for group in sorted(groups)
        }
    )


def _host(name: str, given: Mapping[str, Any]) -> InventoryHost:
    former = {now: given[key] for key, now in _FORMER.items() if key in given}
    variables = {**former, **{key: value for key, value in given.items() if key not in _FORMER}}
    plain = {
        key: value for key, value in variables.items() if isinstance(value, str | int | bool) and "{{" not in str(value)
    }
    if "ansible_host" in variables and "ansible_host" not in plain:
        raise RunbookError(
            f"the inventory's ansible_host of {name} is a template, or encrypted, and adopt fills none",
            way_out="write the address itself, in this inventory or in a copy of it",
        )
    unread = {key for key in variables if key.startswith(_CONNECTION) and key not in READ}
    unread |= {key for key in READ if key in variables and key not in plain}
    return InventoryHost(
        name,
        {key: plain[key] for key in READ if key in plain},
        {key.removeprefix(OWN): value for key, value in plain.items() if key.startswith(OWN)},
        tuple(sorted(unread)),
    )
