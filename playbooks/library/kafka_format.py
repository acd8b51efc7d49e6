"""Format a controller's log directory with the cluster's own id, once; never one that holds something already."""

from __future__ import annotations

import glob
import os
import subprocess

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.installation import script
from ansible.module_utils.java import any_java, java_home
from ansible.module_utils.kafka_host import (
    HostError,
    holds_metadata_log,
    host_lock,
    is_mount_point,
    make_directory,
    owner_of,
    read_text,
    why,
    without_octal,
)
from ansible.module_utils.kafka_user import kafka_user
from ansible.module_utils.properties_text import properties_of, shown_log
from ansible.module_utils.service_manager import service_manager

DOCUMENTATION = """
module: kafka_format
short_description: Format a controller's log directory with the cluster's own id
options:
  kafka_home: {description: Where Kafka is installed., type: path, required: true}
  config_file: {description: The controller's configuration., type: path, required: true}
  log_dir: {description: The directory to format., type: path, required: true}
  cluster_id: {description: The cluster's own id., type: str, required: true}
  node_id: {description: The controller's id., type: int, required: true}
  joins:
    description: Whether the voters stand in the metadata log, so that this controller begins as an observer (KIP-853).
    type: bool
    default: false
  release_version:
    description: The metadata.version to format with, such as 3.9-IV0; where it is not given, Kafka's newest.
    type: str
  name: {description: The service., type: str, required: true}
  manager: {description: What runs the service., type: str, required: true, choices: [supervisor, systemd]}
  socket: {description: The serverurl of supervisor., type: str}
"""

FORMAT_SECONDS = 120.0
FSTAB, UNITS = "/etc/fstab", "/etc/systemd/system"
CALL_SECONDS = 20.0
SET_ASIDE = "if this data is from an earlier try, move the directory aside (do not delete it), then run this step again"


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "kafka_home": {"type": "path", "required": True},
            "config_file": {"type": "path", "required": True},
            "log_dir": {"type": "path", "required": True},
            "cluster_id": {"type": "str", "required": True},
            "node_id": {"type": "int", "required": True},
            "joins": {"type": "bool", "default": False},
            "release_version": {"type": "str"},
            "name": {"type": "str", "required": True},
            "manager": {"type": "str", "required": True, "choices": ["supervisor", "systemd"]},
            "socket": {"type": "str"},
        },
        supports_check_mode=True,
    )
    asked = module.params
    try:
        if module.check_mode:
            found = formatted(asked)
            module.exit_json(
                changed=not found,
                said=f"{asked['log_dir']} is formatted" if found else f"would format {asked['log_dir']}",
            )
        with host_lock(asked["config_file"], FORMAT_SECONDS * 2):
            if formatted(asked):
                module.exit_json(
                    changed=False, said=f"{asked['log_dir']} is already formatted with {asked['cluster_id']}"
                )
            run_format(asked)
            if not formatted(asked):
                raise HostError(
                    f"kafka-storage.sh said that all was well, but {asked['log_dir']} has no meta.properties", SET_ASIDE
                )
        module.exit_json(changed=True, said=f"formatted {asked['log_dir']} with {asked['cluster_id']}")
    except HostError as error:
        module.fail_json(msg=error.problem, way_out=error.way_out)
    except OSError as error:
        module.fail_json(
            msg=f"{asked['log_dir']} could not be formatted ({why(error)})",
            way_out="see docs/hosts.md for what a host must offer",
        )


def formatted(asked: dict, fstab: str = FSTAB, units: str = UNITS) -> bool:
    """Whether the directory is this cluster's and this node's. Raises HostError when it is another's, naming both.
    ``fstab``, ``units``: what says where this host is to mount a volume.
    """
    log_dir = asked["log_dir"]
    text = read_text(os.path.join(log_dir, "meta.properties"))
    if text is None:
        if holds_metadata_log(log_dir):
            raise HostError(f"{log_dir} holds a metadata log but no meta.properties", SET_ASIDE)
        require_mounted(log_dir, mount_points(fstab, units))
        return False
    found = properties_of(text)
    for key, wanted in (("cluster.id", asked["cluster_id"]), ("node.id", str(asked["node_id"]))):
        if found.get(key) != wanted:
            raise HostError(f"{log_dir} is formatted with {key} {found.get(key)}, but it should be {wanted}", SET_ASIDE)
    return True


def require_mounted(log_dir: str, points: list) -> None:
    """Raise HostError where a volume that belongs there is not mounted: the log that lies on it would come back one day
    and forget what this controller has acknowledged since. ``points``: of this host (``mount_points``).
    """
    inside = os.path.realpath(log_dir)
    for point, told in points:
        if f"{inside}/".startswith(f"{point}/") and not is_mount_point(point):
            raise HostError(
                f"{log_dir} lies on {point}, which {told} names and which is not mounted",
                f"mount it, then run this step again; if it is no longer used, take it out of {told} first",
            )


def mount_points(fstab: str, units: str) -> list:
    """The places, but for the root, where this host is to mount a volume, each with the file that says so."""
    found = []
    for line in (read_text(fstab) or "").splitlines():
        fields = line.split()
        if len(fields) > 1 and not line.lstrip().startswith("#"):
            found.append((without_octal(fields[1]), fstab))
    for path in glob.glob(f"{units}/*.mount"):
        lines = (read_text(path) or "").splitlines()
        found += [(line.partition("=")[2].strip(), path) for line in lines if line.startswith("Where=")]
    return [(point.rstrip("/"), told) for point, told in found if point.startswith("/") and point.rstrip("/")]


def run_format(asked: dict) -> None:
    """``kafka-storage format``, as the user who owns the place."""
    service = service_manager(asked["manager"], asked["name"], asked["socket"], CALL_SECONDS)
    make_directory(asked["log_dir"], kafka_user(service, service.status().pid, asked["log_dir"])[:2])
    java = any_java(service)
    command = format_command(asked)
    uid, gid = owner_of(asked["log_dir"])
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=FORMAT_SECONDS,
            check=False,
            preexec_fn=lambda: _become(uid, gid),
            env={**os.environ, "JAVA_HOME": java_home(java)},
        )
    except subprocess.TimeoutExpired:
        raise HostError(f"{' '.join(command)} took longer than {FORMAT_SECONDS:.0f} s", SET_ASIDE) from None
    if done.returncode:
        said = "\n".join(f"    {shown_log(line)[:300]}" for line in (done.stdout + done.stderr).splitlines()[-15:])
        raise HostError(
            f"{' '.join(command)} failed with exit code {done.returncode}:\n{said}",
            "correct what it names, then run this step again",
        )


def format_command(asked: dict) -> list:
    """The id follows an equals sign: ids may begin with a dash."""
    return [
        script(asked["kafka_home"], "kafka-storage"),
        "format",
        f"--cluster-id={asked['cluster_id']}",
        f"--config={asked['config_file']}",
        *(["--no-initial-controllers"] if asked["joins"] else []),
        *([f"--release-version={asked['release_version']}"] if asked["release_version"] else []),
    ]


def _become(uid: int, gid: int) -> None:
    if os.geteuid() == 0 and uid != 0:
        os.setgroups([gid])
        os.setgid(gid)
        os.setuid(uid)


if __name__ == "__main__":
    main()
