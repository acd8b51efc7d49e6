"""Write one whole properties file of a node, only where its content differs, and show what changes."""

from __future__ import annotations

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_host import HostError, change, make_directory, owner_of, read_bytes, why, write_whole
from ansible.module_utils.kafka_user import kafka_user, name_of
from ansible.module_utils.properties_text import key_of, logical_lines, properties_of
from ansible.module_utils.service_manager import service_manager
from ansible.module_utils.written_files import (
    read_record,
    record,
    require_nothing_lost,
    require_own,
    settle,
    told,
)

DOCUMENTATION = """
module: kafka_file
short_description: Write one whole properties file of a Kafka node
description:
  - The file is replaced in one move, and only where its content differs, so that its change time is the time of its
    last change.
  - The values of sensitive keys are hidden in the diff, the old text's too. C(said) names the keys that differ.
  - A file that another hand changed since this tool wrote it is left, and the failure shows the change.
  - A file that was not written by this tool is kept once, as C(<path>.before-kraft-runbook), mode 0600. A private one
    is left, and the failure names its properties that would be lost.
  - A new file belongs to the user that runs Kafka, where Ansible is root. A symbolic link is refused.
options:
  path: {description: The file., type: path, required: true}
  content: {description: The whole text., type: str, required: true}
  private:
    description: Whether the mode must be 0600 and the owner the user that runs Kafka. Else a new file gets 0640, and
      one that is there keeps its own.
    type: bool
    default: false
  header:
    description: "The first line of a file that this tool wrote; any other file is kept once before it is replaced.
      Without it a file counts as any other until this tool has a record of it."
    type: str
  unread:
    description: Beginnings of the names of properties that nothing on the host reads in this mode. Each is left as it
      is there, given or not.
    type: list
    elements: str
    default: []
  besides:
    description: "By path, what is to be written into the node's other files: where another hand changed one of them,
      this file is left too."
    type: dict
    default: {}
  name: {description: The service., type: str, required: true}
  manager: {description: What runs the service., type: str, required: true, choices: [supervisor, systemd]}
  socket: {description: The serverurl of supervisor., type: str}
  log_dir: {description: Where the service keeps its data., type: path, required: true}
"""

CALL_SECONDS = 20.0


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            # Not no_log: Ansible would blank the diff too. The task that writes secrets is no_log as a whole.
            "content": {"type": "str", "required": True, "no_log": False},
            "private": {"type": "bool", "default": False},
            "header": {"type": "str"},
            "unread": {"type": "list", "elements": "str", "default": []},
            "besides": {"type": "dict", "default": {}},
            "name": {"type": "str", "required": True},
            "manager": {"type": "str", "required": True, "choices": ["supervisor", "systemd"]},
            "socket": {"type": "str"},
            "log_dir": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(**apply(module.params, check=module.check_mode))
    except HostError as error:
        module.fail_json(msg=error.problem, way_out=error.way_out)
    except OSError as error:
        module.fail_json(
            msg=f"{module.params['path']} could not be written ({why(error)})",
            way_out=(
                "let the user that Ansible becomes on the host read and write this directory (docs/hosts.md), then run"
                " the step again"
            ),
        )


def apply(wanted: dict, *, check: bool) -> dict:
    for other, text in wanted["besides"].items():
        there = read_bytes(other)
        if there is not None:
            require_own(other, there[0], text.encode("utf-8", "surrogateescape"))
    path = wanted["path"]
    found = read_bytes(path)
    before = None if found is None else found[0].decode("utf-8", "surrogateescape")
    content = (
        wanted["content"]
        if before is None
        else without_what_is_gone(wanted["content"], before, tuple(wanted["unread"]))
    )
    mode = 0o600 if wanted["private"] else 0o640 if found is None else found[1].st_mode & 0o7777
    owner = _owner(wanted, found)
    right = found is not None and found[1].st_mode & 0o7777 == mode and _is_owner(found[1], owner)
    same = before == content
    wanted_bytes = content.encode("utf-8", "surrogateescape")
    if found is not None and not same:
        require_own(path, found[0], wanted_bytes)
        if wanted["private"]:
            require_nothing_lost(path, found[0], wanted_bytes)
    if same and not check:
        settle(path, wanted_bytes)
    if same and right:
        return {"changed": False, "said": f"{path} is as it should be"}
    diff = {
        "before_header": path,
        "after_header": path,
        "before": told(found[0]) if found else "",
        "after": told(wanted_bytes),
    }
    keys = "" if before is None else _changed_keys(before, content)
    if check:
        return {"changed": True, "diff": diff, "said": f"would write {path}{keys}"}
    if same:
        change(path, mode, owner)  # leaves the change time of the content alone
        return {"changed": True, "said": f"{path}: owner and mode are now {name_of(owner[0])}, {mode:o}"}
    make_directory(os.path.dirname(path))
    if found is not None and not _is_this_tools(wanted, before):
        _keep_the_first(path, found[0], (found[1].st_uid, found[1].st_gid))
    record(path, wanted_bytes, before=found[0] if found else None)
    write_whole(path, wanted_bytes, mode, owner)
    settle(path, wanted_bytes)
    return {"changed": True, "diff": diff, "said": f"wrote {path}{keys}"}


def _changed_keys(before: str, content: str) -> str:
    """The names of the properties whose values differ, for a file of which no diff is shown."""
    old, new = properties_of(before), properties_of(content)
    names = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    return f", with other values of: {', '.join(names)}" if names else ""


def _is_this_tools(wanted: dict, before: str) -> bool:
    header = wanted["header"]
    return before.startswith(header) if header else read_record(wanted["path"]) is not None


def _is_owner(found: os.stat_result, owner: tuple) -> bool:
    return os.geteuid() != 0 or (found.st_uid, found.st_gid) == owner


def _owner(wanted: dict, found: tuple | None) -> tuple:
    """A file that is there keeps its owner, but for secrets: Kafka must be able to read them, and nobody else."""
    if found is not None and not wanted["private"]:
        return found[1].st_uid, found[1].st_gid
    service = service_manager(wanted["manager"], wanted["name"], wanted["socket"], CALL_SECONDS)
    uid, gid, certain = kafka_user(service, service.status().pid, wanted["log_dir"])
    if os.geteuid() == 0:
        return uid, gid
    if wanted["private"] and certain and uid != os.geteuid():
        raise HostError(
            f"{wanted['path']} would belong to {name_of(os.geteuid())} alone (0600), and {wanted['name']} runs as"
            f" {name_of(uid)}, who could not read it",
            "let Ansible become root on the host (reach.become), or connect as the user that runs Kafka; nothing was"
            " written",
        )
    return owner_of(os.path.dirname(wanted["path"]))


def without_what_is_gone(content: str, before: str, unread: tuple) -> str:
    """The content, without those properties that nothing reads and that the file no longer has."""
    if not unread:
        return content
    there = set(map(key_of, logical_lines(before)))
    return "".join(
        f"{line}\n" for line in content.splitlines() if not key_of(line).startswith(unread) or key_of(line) in there
    )


def _keep_the_first(path: str, before: bytes, owner: tuple) -> None:
    """As its owner had it, but for that owner alone: it may hold passwords."""
    kept = f"{path}.before-kraft-runbook"
    found = read_bytes(kept)
    if found is None:
        write_whole(kept, before, 0o600, owner)
    elif found[1].st_mode & 0o077:
        change(kept, 0o600)


if __name__ == "__main__":
    main()
