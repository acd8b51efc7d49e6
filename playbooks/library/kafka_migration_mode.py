"""Prove that a host's running controllers are in migration mode, and that their next start will be. Changes nothing."""

from __future__ import annotations

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.former_copy import require_no_former_copy
from ansible.module_utils.kafka_host import HostError, changed_since, is_there, read_text, started_at_ns, why
from ansible.module_utils.migration_mode import lacking
from ansible.module_utils.properties_text import read
from ansible.module_utils.service_manager import STOPPED, service_manager, settled

DOCUMENTATION = """
module: kafka_migration_mode
short_description: Prove that the controllers on a host are in migration mode, on disk and in their processes
description:
  - The file on disk decides the next start, whoever causes it; the process shows the last start. Both must be right.
  - A running process proves its mode itself (C(shown)) or, if it did not answer, by having started after its file's
    last change.
options:
  manager: {description: What runs the services., type: str, required: true, choices: [supervisor, systemd]}
  socket: {description: The serverurl of supervisor., type: str}
  provisioning:
    description: "Whether a controller that can't start yet (no file, or not formatted) is fine."
    type: bool
    default: false
  refuses_former_copy:
    description: "Whether a log is refused that holds the end of a metadata copy: ZooKeeper leads, and no quorum does."
    type: bool
    default: false
  controllers:
    description: The controllers of this host.
    type: list
    elements: dict
    required: true
    suboptions:
      controller: {description: What to call it, type: str, required: true}
      name: {description: The service., type: str, required: true}
      config_file: {description: The controller's configuration., type: path, required: true}
      log_dir: {description: The controller's log directory., type: path, required: true}
      shown:
        description: The mode that the process showed in its ApiVersions; empty where it did not answer.
        type: str
        choices: [migration, kraft, ""]
      not_shown: {description: Why it showed none., type: str}
"""

CALL_SECONDS = 20.0
MEANING = (
    "the first time this controller leads, the migration is final, whatever mode the brokers are in. Nothing was"
    " changed"
)
AGAIN = "then run this step again"


def main() -> None:
    one = {
        "controller": {"type": "str", "required": True},
        "name": {"type": "str", "required": True},
        "config_file": {"type": "path", "required": True},
        "log_dir": {"type": "path", "required": True},
        "shown": {"type": "str", "choices": ["migration", "kraft", ""], "default": ""},
        "not_shown": {"type": "str", "default": "it was not asked"},
    }
    module = AnsibleModule(
        argument_spec={
            "manager": {"type": "str", "required": True, "choices": ["supervisor", "systemd"]},
            "socket": {"type": "str"},
            "provisioning": {"type": "bool", "default": False},
            "refuses_former_copy": {"type": "bool", "default": False},
            "controllers": {"type": "list", "elements": "dict", "required": True, "options": one},
        },
        supports_check_mode=True,
    )
    common = {name: value for name, value in module.params.items() if name != "controllers"}
    proofs, against = [], []
    for controller in module.params["controllers"]:
        try:
            proofs.append(f"{controller['controller']} {prove({**common, **controller})}")
        except HostError as error:
            against.append(error)
        except (OSError, UnicodeDecodeError) as error:
            against.append(_unread(controller, error))
    if against:
        module.fail_json(
            msg="; ".join(each.problem for each in against), way_out="; ".join(each.way_out for each in against)
        )
    module.exit_json(changed=False, proven=True, said="; ".join(proofs))


def _unread(asked: dict, error: Exception) -> HostError:
    said = why(error) if isinstance(error, OSError) else f"{asked['config_file']}: {error}"
    return HostError(
        f"whether {asked['controller']} is in migration mode could not be read ({said}); if it is not, {MEANING}",
        f"let the user that Ansible becomes on the host read what is named (docs/hosts.md), {AGAIN}",
    )


def prove(asked: dict) -> str:
    """What proves it, in a few words. Raises HostError where something speaks against it, or can't be seen."""
    who, path = asked["controller"], asked["config_file"]
    if asked["shown"] == "kraft":
        raise HostError(
            f"{who} runs without the migration flag (its ApiVersions say so): {MEANING}",
            f"see that {path} holds zookeeper.metadata.migration.enable=true and zookeeper.connect, restart {who}"
            f" before it is elected, and restart no other controller before that; {AGAIN}",
        )
    if asked["refuses_former_copy"]:
        require_no_former_copy(who, asked["log_dir"])
    found = properties(path)
    status = settled(service_manager(asked["manager"], asked["name"], asked["socket"], CALL_SECONDS), CALL_SECONDS)
    runs = status.state != STOPPED or asked["shown"] == "migration"
    if asked["provisioning"] and not runs and (found is None or not formatted(asked["log_dir"])):
        return "is not provisioned yet"
    if found is None:
        raise HostError(
            f"{who} has no file {path}, so what its next start would be can't be proven; without the migration flag,"
            f" {MEANING}",
            f"put the file back as the cluster file renders it (kraft-runbook preflight names its keys), {AGAIN}",
        )
    wrong = lacking(found)
    if wrong:
        raise HostError(
            f"{who} would not start in migration mode: in {path} {'; '.join(wrong)}. Once it is restarted by anybody:"
            f" {MEANING}",
            f"put that back into {path} before anybody restarts {who} (kraft-runbook preflight names every key that"
            f" differs), {AGAIN}",
        )
    return f"is in migration mode ({path} says so, and {_process(status, asked) if runs else 'it does not run'})"


def properties(path: str) -> dict | None:
    text = read_text(path)
    return None if text is None else read(text)


def formatted(log_dir: str) -> bool:
    """A controller never starts on a directory without meta.properties, so it can't lead."""
    return is_there(os.path.join(log_dir, "meta.properties"))


def _process(status: object, asked: dict) -> str:
    if asked["shown"] == "migration":
        return "its process shows it"
    who, path = asked["controller"], asked["config_file"]
    silent = f"and the process does not show its mode itself ({asked['not_shown']})"
    way_out = f"let {who} answer at its listener, or restart it now that its file is right; {AGAIN}"
    began = started_at_ns(status.pid) if status.pid else None
    if began is None:
        raise HostError(
            f"{who} is {status.detail}, but its main process ({status.pid}) can't be seen, {silent}; if it has no"
            f" migration flag, {MEANING}",
            way_out,
        )
    if changed_since(began, [path]):
        raise HostError(
            f"{who}'s process {status.pid} began before {path} was last changed, {silent}; if it began without the"
            f" flag, {MEANING}",
            way_out,
        )
    return f"process {status.pid} began with it"


if __name__ == "__main__":
    main()
