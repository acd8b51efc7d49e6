"""Set a stopped controller's data and configuration aside under a name with the time, so that it can be provisioned
anew. Nothing is deleted.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_host import HostError, change, host_lock, is_mount_point, is_there, place_of, why
from ansible.module_utils.service_manager import ABSENT, STOPPED, service_manager

DOCUMENTATION = """
module: kafka_set_aside
short_description: Set a stopped controller's data and configuration aside
options:
  name: {description: The service., type: str, required: true}
  manager: {description: What runs the service., type: str, required: true, choices: [supervisor, systemd]}
  socket: {description: The serverurl of supervisor., type: str}
  config_file: {description: The controller's configuration., type: path, required: true}
  log_dir: {description: The directory that holds its metadata log., type: path, required: true}
  log4j_file: {description: The file of its loggers, where the runbook wrote one., type: path}
"""

SECONDS = 60.0
SET_ASIDE = "set-aside-"


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "manager": {"type": "str", "required": True, "choices": ["supervisor", "systemd"]},
            "socket": {"type": "str"},
            "config_file": {"type": "path", "required": True},
            "log_dir": {"type": "path", "required": True},
            "log4j_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    asked = module.params
    try:
        asked_for = filter(None, (asked["log_dir"], asked["config_file"], asked["log4j_file"]))
        found = [path for path in asked_for if is_left(path)]
        if not found:
            module.exit_json(changed=False, said="nothing is left to set aside")
        if module.check_mode:
            module.exit_json(changed=True, said=f"would set {' and '.join(found)} aside")
        with host_lock(asked["config_file"], SECONDS):
            status = service_manager(asked["manager"], asked["name"], asked["socket"], SECONDS).status()
            if status.state not in (ABSENT, STOPPED):
                raise HostError(
                    f"{asked['name']} is {status.detail}: its data is in use", "stop it, then run this step again"
                )
            suffix = time.strftime(f"{SET_ASIDE}%Y%m%dT%H%M%SZ", time.gmtime())
            moved = [set_aside(path, suffix) for path in found]
        module.exit_json(changed=True, said=f"set aside: {', '.join(moved)}")
    except HostError as error:
        module.fail_json(msg=error.problem, way_out=error.way_out)
    except OSError as error:
        module.fail_json(
            msg=f"{asked['log_dir']} and {asked['config_file']} could not be set aside ({why(error)})",
            way_out="see docs/hosts.md for what a host must allow",
        )


def is_left(path: str) -> bool:
    """Whether it is still to be set aside. A directory that is a mount point stays where it is, and is left while it
    holds anything else than what was set aside in it.
    """
    if os.path.isdir(path) and is_mount_point(path):
        return any(not stays(name) for name in os.listdir(path))
    return is_there(path)


def stays(name: str) -> bool:
    """Of what a mount point holds: what a file system needs, and what was set aside before."""
    return name == "lost+found" or name.startswith(SET_ASIDE)


def set_aside(path: str, suffix: str) -> str:
    """Rename it; of a mount point, which has no other name, what it holds goes into a directory there. Returns where it
    is.
    """
    target = f"{path.rstrip('/')}.{suffix}"
    aside = os.path.basename(target)
    try:
        with place_of(target) as (directory, _):
            os.rename(os.path.basename(path.rstrip("/")), aside, src_dir_fd=directory, dst_dir_fd=directory)
            if stat.S_ISREG(os.lstat(aside, dir_fd=directory).st_mode):
                change(target, 0o600)  # a configuration may hold passwords
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.EXDEV):
            raise
        return set_aside_within(path, suffix)
    return target


def set_aside_within(path: str, suffix: str) -> str:
    with place_of(os.path.join(path, suffix)) as (directory, _):
        os.mkdir(suffix, 0o700, dir_fd=directory)
        aside = os.open(suffix, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            for name in os.listdir(path):
                if not stays(name):
                    os.rename(name, name, src_dir_fd=directory, dst_dir_fd=aside)
        finally:
            os.close(aside)
    return os.path.join(path, suffix)


if __name__ == "__main__":
    main()
