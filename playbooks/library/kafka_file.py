"""Write one whole properties file of a node, only where its content differs, and show what changes."""

from __future__ import annotations

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_host import make_directory, owner_of, why, write_whole
from ansible.module_utils.properties_text import shown

DOCUMENTATION = """
module: kafka_file
short_description: Write one whole properties file of a Kafka node
description:
  - The file is replaced in one move, and only where its content differs, so that its change time is the time of its last change.
  - The values of sensitive keys are hidden in the diff, the old text's too.
  - A file that was not written by this tool is kept once, as C(<path>.before-kraft-runbook).
options:
  path: {description: The file., type: path, required: true}
  content: {description: The whole text., type: str, required: true}
  private: {description: "Whether the mode must be 0600. Else a new file gets 0640, and one that is there keeps its own.", type: bool, default: false}
  header: {description: "The first line of a file that this tool wrote; any other file is kept once before it is replaced.", type: str}
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            # Not no_log: Ansible would blank the diff too. The task that writes secrets is no_log as a whole.
            "content": {"type": "str", "required": True, "no_log": False},
            "private": {"type": "bool", "default": False},
            "header": {"type": "str"},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(**apply(module.params, check=module.check_mode))
    except OSError as error:
        module.fail_json(
            msg=f"{module.params['path']} could not be written ({why(error)})",
            way_out="let the user that Ansible becomes on the host read and write this directory (docs/hosts.md), then run the step again",
        )


def apply(wanted: dict, *, check: bool) -> dict:
    path, content = wanted["path"], wanted["content"]
    before, found_mode = _existing(path)
    mode = 0o600 if wanted["private"] else found_mode or 0o640
    same = before == content
    if same and found_mode == mode:
        return {"changed": False, "said": f"{path} is as it should be"}
    diff = {"before_header": path, "after_header": path, "before": shown(before or ""), "after": shown(content)}
    said = f"{'would write' if check else 'wrote'} {path}"
    if check:
        return {"changed": True, "diff": diff, "said": said}
    if same:
        os.chmod(path, mode)  # leaves the change time of the content alone
        return {"changed": True, "said": f"{path}: mode is now {mode:o}"}
    make_directory(os.path.dirname(path))
    owner = owner_of(path)
    _keep_the_first(path, before, wanted["header"], found_mode, owner)
    write_whole(path, content.encode(), mode, owner)
    return {"changed": True, "diff": diff, "said": said}


def _existing(path: str) -> tuple:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as stream:
            return stream.read(), os.fstat(stream.fileno()).st_mode & 0o7777
    except FileNotFoundError:
        return None, None


def _keep_the_first(path: str, before: str | None, header: str | None, mode: int, owner: tuple) -> None:
    kept = f"{path}.before-kraft-runbook"
    if header and before is not None and not before.startswith(header) and not os.path.lexists(kept):
        write_whole(kept, before.encode(errors="surrogateescape"), mode, owner)


if __name__ == "__main__":
    main()
