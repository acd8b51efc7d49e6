"""Wait on the machine that runs Ansible until the process that started this run writes a word into a file.

So a decision that needs the Kafka and ZooKeeper clients is taken there, while this run stays connected to the hosts and
acts on it at once.
"""

from __future__ import annotations

import os
import time

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: await_word
short_description: Wait for a word of the process that started this run
options:
  path: {description: The file that will hold the word., type: path, required: true}
  process:
    description: The process that will write it; nothing is waited for once it is gone.
    type: int
    required: true
  timeout: {description: Seconds., type: float, required: true}
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "process": {"type": "int", "required": True},
            "timeout": {"type": "float", "required": True},
        },
        supports_check_mode=True,
    )
    asked = module.params
    deadline = time.monotonic() + asked["timeout"]
    while not os.path.exists(asked["path"]):
        if not os.path.exists(f"/proc/{asked['process']}"):
            module.fail_json(
                msg=f"process {asked['process']}, which was to decide, is gone", way_out="run this step again"
            )
        if time.monotonic() > deadline:
            module.fail_json(msg=f"no decision came within {asked['timeout']:.0f} s", way_out="run this step again")
        time.sleep(0.005)
    with open(asked["path"], encoding="utf-8") as stream:
        module.exit_json(changed=False, word=stream.read())


if __name__ == "__main__":
    main()
