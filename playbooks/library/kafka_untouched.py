"""See that no other hand changed the files of a node since this tool wrote them. Changes nothing."""

from __future__ import annotations

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_host import HostError, read_bytes, why
from ansible.module_utils.written_files import require_own

DOCUMENTATION = """
module: kafka_untouched
short_description: Fail where another hand changed a file that this tool wrote
description:
  - The failure shows what was changed, the values of secrets hidden.
  - A file that this tool never wrote is passed over, and so is a link to a directory.
options:
  paths: {description: The files., type: list, elements: path, required: true}
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "paths": {"type": "list", "elements": "path", "required": True},
        },
        supports_check_mode=True,
    )
    path = ""
    try:
        for path in module.params["paths"]:
            found = None if os.path.isdir(path) else read_bytes(path)
            if found is not None:
                require_own(path, found[0], None)
        module.exit_json(changed=False)
    except HostError as error:
        module.fail_json(msg=error.problem, way_out=error.way_out)
    except OSError as error:
        module.fail_json(
            msg=f"{path} could not be compared with what was written there ({why(error)})",
            way_out="let the user that Ansible becomes on the host read this directory (docs/hosts.md)",
        )


if __name__ == "__main__":
    main()
