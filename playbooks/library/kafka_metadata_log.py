"""Read a stopped controller's own metadata log: which states of the migration it holds. Changes nothing."""

from __future__ import annotations

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_host import HostError, host_lock, why
from ansible.module_utils.metadata_log_scan import scan
from ansible.module_utils.service_manager import ABSENT, STOPPED, service_manager

DOCUMENTATION = """
module: kafka_metadata_log
short_description: Read which states of the migration a stopped controller's metadata log holds
options:
  name: {description: The service., type: str, required: true}
  manager: {description: What runs the service., type: str, required: true, choices: [supervisor, systemd]}
  socket: {description: The serverurl of supervisor., type: str}
  config_file: {description: The controller's configuration., type: path, required: true}
  log_dir: {description: The directory that holds its metadata log., type: path, required: true}
"""

SECONDS = 60.0


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "manager": {"type": "str", "required": True, "choices": ["supervisor", "systemd"]},
            "socket": {"type": "str"},
            "config_file": {"type": "path", "required": True},
            "log_dir": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    asked = module.params
    try:
        with host_lock(asked["config_file"], SECONDS):
            status = service_manager(asked["manager"], asked["name"], asked["socket"], SECONDS).status()
            if status.state not in (ABSENT, STOPPED):
                raise HostError(
                    f"{asked['name']} is {status.detail}: its log is being written", "stop it, then run this step again"
                )
            found = read(asked["log_dir"])
        module.exit_json(
            changed=False, host_state=found, said=f"{asked['log_dir']} was read up to offset {found['end']}"
        )
    except HostError as error:
        module.fail_json(msg=error.problem, way_out=error.way_out)
    except OSError as error:
        module.fail_json(
            msg=f"the metadata log could not be read ({why(error)})",
            way_out="see docs/hosts.md for what a host must allow",
        )


def read(log_dir: str) -> dict:
    with open(os.path.join(log_dir, "meta.properties"), encoding="utf-8") as stream:
        formatted = dict(line.strip().partition("=")[::2] for line in stream if "=" in line)
    found = scan(os.path.join(log_dir, "__cluster_metadata-0"))
    return {
        "node_id": formatted.get("node.id", ""),
        "cluster_id": formatted.get("cluster.id", ""),
        "states": sorted(found.states),
        "end": found.end,
        "open_since": found.open_since,
    }


if __name__ == "__main__":
    main()
