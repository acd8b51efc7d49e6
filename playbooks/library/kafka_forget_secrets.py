"""Take out of a host's secrets file what nothing reads any more. No process needs a restart for that, so the file keeps
its change time.
"""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_host import HostError, read_bytes, why, write_whole
from ansible.module_utils.properties_text import key_of, logical_lines
from ansible.module_utils.written_files import others_change, read_record, record, settle

DOCUMENTATION = """
module: kafka_forget_secrets
short_description: Take properties that nothing reads any more out of a host's secrets file
options:
  path: {description: The secrets file., type: path, required: true}
  unread:
    description: Beginnings of the names of the properties to take out.
    type: list
    elements: str
    required: true
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "unread": {"type": "list", "elements": "str", "required": True},
        },
        supports_check_mode=True,
    )
    path, unread = module.params["path"], tuple(module.params["unread"])
    try:
        found = read_bytes(path)
        lines = list(logical_lines(found[0].decode("latin-1"))) if found else []
        gone = [key for key in map(key_of, lines) if key.startswith(unread)]
        if not gone:
            module.exit_json(changed=False, said=f"{path} holds nothing of ZooKeeper's")
        if not module.check_mode:
            text = "\n".join(line for line in lines if not key_of(line).startswith(unread)).rstrip("\n") + "\n"
            kept, own = text.encode("latin-1"), others_change(path, found[0]) is None and read_record(path) is not None
            if own:
                record(path, kept, before=found[0])
            write_whole(path, kept, 0o600, (found[1].st_uid, found[1].st_gid), changed_at_ns=found[1].st_mtime_ns)
            if own:
                settle(path, kept)
        module.exit_json(
            changed=True, said=f"{'would take' if module.check_mode else 'took'} {', '.join(gone)} out of {path}"
        )
    except HostError as error:
        module.fail_json(msg=error.problem, way_out=error.way_out)
    except OSError as error:
        module.fail_json(
            msg=f"{path} could not be changed ({why(error)})",
            way_out="let the user that Ansible becomes on the host read and write it (docs/hosts.md)",
        )


if __name__ == "__main__":
    main()
