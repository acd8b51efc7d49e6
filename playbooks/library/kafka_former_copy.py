"""See that a controller's metadata log is of no migration that was left. Changes nothing."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.former_copy import require_no_former_copy
from ansible.module_utils.kafka_host import HostError, why

DOCUMENTATION = """
module: kafka_former_copy
short_description: See that a controller's metadata log holds no copy of a migration that was left
options:
  controller: {description: What to call it, type: str, required: true}
  log_dir: {description: The directory that holds its metadata log., type: path, required: true}
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "controller": {"type": "str", "required": True},
            "log_dir": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    asked = module.params
    try:
        require_no_former_copy(asked["controller"], asked["log_dir"])
    except HostError as error:
        module.fail_json(msg=error.problem, way_out=error.way_out)
    except OSError as error:
        module.fail_json(
            msg=f"whether the metadata log of {asked['controller']} is of an earlier migration could not be read"
            f" ({why(error)})",
            way_out="let the user that Ansible becomes on the host read it (docs/hosts.md), then run this step again",
        )
    module.exit_json(changed=False, said=f"{asked['controller']} has no log of an earlier migration's copy")


if __name__ == "__main__":
    main()
