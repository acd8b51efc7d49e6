"""Read which feature levels Kafka's installations on a host know, and which ones a node meets when it starts. Changes
nothing; the node may run.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.feature_levels import levels_of
from ansible.module_utils.kafka_host import HostError, read_text, why
from ansible.module_utils.metadata_log_scan import read_at_start
from ansible.module_utils.properties_text import read

DOCUMENTATION = """
module: kafka_feature_state
short_description: Read the feature levels of Kafka's installations and of a node's own metadata log
description: Every part of the result is C({value: ...}) or C({unread: <reason>}).
options:
  homes: {description: Where Kafka is installed., type: list, elements: path, required: true}
  home_link: {description: The link through which the node's service finds its installation., type: path}
  log_dir: {description: The directory that holds the node's metadata log., type: path, required: true}
  config_file: {description: The node's configuration., type: path, required: true}
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "homes": {"type": "list", "elements": "path", "required": True},
            "home_link": {"type": "path"},
            "log_dir": {"type": "path", "required": True},
            "config_file": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    asked = module.params
    log = os.path.join(asked["log_dir"], "__cluster_metadata-0")
    state = {
        "homes": {home: part(lambda home=home: levels_of(home)) for home in asked["homes"]},
        "home": part(lambda: led_to(asked["home_link"], asked["homes"])) if asked["home_link"] else {"value": None},
        "disk": part(lambda: read_at_start(log)),
        "config": part(lambda: config(asked["config_file"])),
    }
    module.exit_json(changed=False, host_state=state)


def led_to(link: str, homes: list) -> str:
    """The home that the link leads to, as it was asked for: homes may be links themselves. Else the directory there."""
    os.stat(link)  # realpath gives an unreadable link for what it leads to
    there = os.path.realpath(link)
    return next((home for home in homes if os.path.realpath(home) == there), there)


def config(path: str) -> dict | None:
    text = read_text(path)
    return None if text is None else read(text)


def part(ask: Callable[[], object]) -> dict:
    """One part's value, or why it could not be read."""
    try:
        return {"value": ask()}
    except HostError as error:
        return {"unread": error.problem}
    except OSError as error:
        return {"unread": why(error)}


if __name__ == "__main__":
    main()
