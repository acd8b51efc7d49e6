"""Lead a node's link to another installation of Kafka, in one move. The process that runs keeps what it has opened: it
is older than the link then, and restarted for it.
"""

from __future__ import annotations

import os
import secrets
import stat

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.installation import holds
from ansible.module_utils.kafka_host import HostError, host_lock, place_of, why

DOCUMENTATION = """
module: kafka_home_link
short_description: Lead a node's link to an installation of Kafka
options:
  path: {description: The link., type: path, required: true}
  home: {description: Where it is to lead., type: path, required: true}
  version: {description: The version of Kafka that must be installed there., type: str, required: true}
  config_file: {description: "The node's configuration, beside which its lock lies.", type: path, required: true}
"""

SECONDS = 60.0


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "home": {"type": "path", "required": True},
            "version": {"type": "str", "required": True},
            "config_file": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    asked = module.params
    try:
        require_installed(asked["home"], asked["version"])
        if module.check_mode:
            before = where_it_leads(asked["path"])
        else:
            with host_lock(asked["config_file"], SECONDS):
                before = where_it_leads(asked["path"])
                if before != asked["home"]:
                    lead(asked["path"], asked["home"])
        if before == asked["home"]:
            module.exit_json(changed=False, said=f"{asked['path']} leads to {before} already")
        leads = "would lead" if module.check_mode else "leads"
        module.exit_json(
            changed=True,
            said=f"{asked['path']} {leads} to {asked['home']} ({before or 'nowhere'} before)",
            diff={
                "before_header": asked["path"],
                "before": f"{before}\n",
                "after_header": asked["path"],
                "after": f"{asked['home']}\n",
            },
        )
    except HostError as error:
        module.fail_json(msg=error.problem, way_out=error.way_out)
    except OSError as error:
        module.fail_json(
            msg=f"{asked['path']} could not be led to {asked['home']} ({why(error)})",
            way_out="see docs/hosts.md for what a host must allow",
        )


def require_installed(home: str, version: str) -> None:
    if not holds(home, version):
        raise HostError(
            f"Kafka {version} is not installed in {home} on this host",
            "install it there, beside the one that runs, or correct the version or the home in the cluster file",
        )


def where_it_leads(path: str) -> str:
    """The directory as the link names it; empty where there is no link. Raises HostError for anything else there."""
    with place_of(path) as (directory, name):
        try:
            found = os.lstat(name, dir_fd=directory)
        except FileNotFoundError:
            return ""
        if not stat.S_ISLNK(found.st_mode):
            raise HostError(
                f"{path} is no symbolic link",
                "let the node's service start Kafka through a link of its own, and name that as home_link in the"
                " cluster file",
            )
        return os.readlink(name, dir_fd=directory)


def lead(path: str, home: str) -> None:
    with place_of(path) as (directory, name):
        draft = f".{name}.{secrets.token_hex(8)}"
        os.symlink(home, draft, dir_fd=directory)
        os.replace(draft, name, src_dir_fd=directory, dst_dir_fd=directory)


if __name__ == "__main__":
    main()
