"""Read, and change nothing: whether key stores and trust stores are there and open with their passwords, whether the
user that runs Kafka can read them, and whether nodes' files hold the secrets that would be written.
"""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.java import any_java
from ansible.module_utils.kafka_host import HostError, owner_of, why
from ansible.module_utils.kafka_user import kafka_user, unreadable
from ansible.module_utils.key_stores import SECONDS, Unknown, Wrong, opened
from ansible.module_utils.node_secrets import told
from ansible.module_utils.references import Lacking, followed
from ansible.module_utils.service_manager import service_manager

DOCUMENTATION = """
module: kafka_stores
short_description: Look into the stores and the secrets of Kafka nodes without changing them
description:
  - C(keytool) of the service's Java opens each store. A password goes to it by its environment, never by its arguments.
  - The result has the certificates of each, which are no secret. Passwords that are compared are digests in it.
options:
  nodes:
    description: The nodes on this host, each with its C(node_id), C(name), the service, and C(log_dirs). They are read
      side by side.
    type: list
    elements: dict
    required: true
  asked: {description: "JSON, what is asked by node, with passwords: the task has no_log.", type: str, required: true}
  manager: {description: What runs the services., type: str, required: true, choices: [supervisor, systemd]}
  socket: {description: The serverurl of supervisor., type: str}
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "nodes": {"type": "list", "elements": "dict", "required": True},
            "asked": {"type": "str", "required": True, "no_log": False},
            "manager": {"type": "str", "required": True, "choices": ["supervisor", "systemd"]},
            "socket": {"type": "str"},
        },
        supports_check_mode=True,
    )
    asked = json.loads(module.params["asked"])
    nodes = [each for each in module.params["nodes"] if str(each["node_id"]) in asked]

    def secured(node: dict) -> dict:
        service = service_manager(module.params["manager"], node["name"], module.params["socket"], SECONDS)
        own = asked[str(node["node_id"])]

        @functools.lru_cache(maxsize=None)
        def whose() -> tuple:
            try:
                pid = service.status().pid
            except (HostError, subprocess.SubprocessError):  # then nothing but the data's owner says whose it is
                return owner_of(node["log_dirs"][0])
            return kafka_user(service, pid, node["log_dirs"][0])[:2]

        def refused(path: str) -> str:
            return unreadable(path, *whose())

        return {
            "stores": [look(each, own["secrets"]["providers"], service, refused) for each in own["stores"]],
            "secrets": told(own["secrets"], refused),
        }

    with ThreadPoolExecutor(max(1, len(nodes))) as pool:
        found = dict(zip((str(each["node_id"]) for each in nodes), pool.map(secured, nodes)))
    module.exit_json(changed=False, host_state={"secured": found})


def look(store: dict, providers: dict, service: object, refused: Callable[[str], str]) -> dict:
    """What is wrong with one store (``wrong``), why that can't be told (``unread``), or its ``certificates`` in PEM.
    ``refused``: why Kafka's user can't read a path; empty where it can.
    """

    def java() -> str:
        try:
            return any_java(service)
        except HostError as error:
            raise Unknown(error.problem) from None

    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # ``opened`` tells that
            if why_not := refused(store["path"]):
                raise Wrong(why_not)
        passwords = [_resolved(store[each], providers) for each in ("password", "key_password")]
        return {"certificates": opened(store, *passwords, java)}
    except Wrong as error:
        return {"wrong": str(error)}
    except OSError as error:
        return {"unread": why(error)}
    except (Unknown, HostError, subprocess.SubprocessError, ValueError) as error:
        return {"unread": str(error) if isinstance(error, (Unknown, HostError)) else type(error).__name__}


def _resolved(password: dict, providers: dict) -> str | None:
    """Given, or what its references lead to on this host, trimmed as Kafka does; None where none is set."""
    if password["reference"] is None:
        return None if password["value"] is None else password["value"].strip()
    found, unfollowed = followed(password["reference"], providers)
    if unfollowed and isinstance(unfollowed[0], Lacking):
        raise Wrong(f"its password: {unfollowed[0].problem}")
    if unfollowed:
        raise Unknown(unfollowed[0].problem)
    return found.strip()


if __name__ == "__main__":
    main()
