"""Read which feature levels Kafka's installations on a host know, and which ones a node meets when it starts. Changes
nothing; the node may run.
"""

from __future__ import annotations

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.feature_levels import levels_of
from ansible.module_utils.further_jars import further_jars
from ansible.module_utils.kafka_host import HostError, part, read_text
from ansible.module_utils.metadata_log_scan import read_at_start
from ansible.module_utils.named_classes import Process, named_classes
from ansible.module_utils.properties_text import read
from ansible.module_utils.request_log import logged_requests
from ansible.module_utils.service_manager import Supervisor, Systemd, service_manager

DOCUMENTATION = """
module: kafka_feature_state
short_description: Read the feature levels of Kafka's installations and of a node's own metadata log
description: Every part of the result is C({value: ...}) or C({unread: <reason>}).
options:
  homes: {description: Where Kafka is installed., type: list, elements: path, required: true}
  home_link: {description: The link through which the node's service finds its installation., type: path}
  log_dir: {description: The directory that holds the node's metadata log., type: path, required: true}
  config_file: {description: The node's configuration., type: path, required: true}
  name: {description: The service., type: str, required: true}
  manager: {description: What runs the service., type: str, required: true, choices: [supervisor, systemd]}
  socket: {description: The serverurl of supervisor., type: str}
  class_keys:
    description: "C(keys): by property, whether its value is a class, classes or login modules. C(built_in): by
      property, the words that stand for no class."
    type: dict
    required: true
  dynamic_classes:
    description: "C(key) and C(name) of each class that a dynamic configuration names."
    type: list
    elements: dict
    default: []
"""

CALL_SECONDS = 10.0


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "homes": {"type": "list", "elements": "path", "required": True},
            "home_link": {"type": "path"},
            "log_dir": {"type": "path", "required": True},
            "config_file": {"type": "path", "required": True},
            "name": {"type": "str", "required": True},
            "manager": {"type": "str", "required": True, "choices": ["supervisor", "systemd"]},
            "socket": {"type": "str"},
            "class_keys": {"type": "dict", "required": True, "no_log": False},
            "dynamic_classes": {"type": "list", "elements": "dict", "default": []},
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
        "classes": part(lambda: classes(asked)),
        "allowed_urls": part(lambda: allowed_urls(asked)),
        "logged_requests": part(lambda: logged_requests(process_of(asked))),
        "further_jars": {home: part(lambda home=home: further_jars(home)) for home in asked["homes"]},
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


def classes(asked: dict) -> dict:
    service = service_of(asked)
    return named_classes(
        read_text(asked["config_file"]),
        service,
        service.status().pid,
        asked["homes"],
        asked["home_link"] or "",
        asked["class_keys"],
        asked["dynamic_classes"],
    )


def allowed_urls(asked: dict) -> list:
    """The URLs that the running process may ask for OAUTHBEARER's keys and tokens (a Java property)."""
    given = process_of(asked).property("org.apache.kafka.sasl.oauthbearer.allowed.urls") or ""
    return [each.strip() for each in given.split(",") if each.strip()]


def process_of(asked: dict) -> Process:
    """The process of its service, whose command line tells what no file does. Raises HostError where none runs."""
    service = service_of(asked)
    pid = service.status().pid
    if not pid:
        raise HostError("its process does not run, and that is asked of its command line", "start it")
    return Process(pid, service)


def service_of(asked: dict) -> Supervisor | Systemd:
    return service_manager(asked["manager"], asked["name"], asked["socket"], CALL_SECONDS)


if __name__ == "__main__":
    main()
