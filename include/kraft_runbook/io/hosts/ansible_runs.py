"""One run of ansible-playbook through ansible-runner: what it is given, what it reports, and what it leaves behind
(nothing).

ansible-runner writes its command, the whole environment and every event below its private directory (2.4.3). So each
run has a directory of its own, mode 0700, removed afterwards, and an environment of the few variables that ansible
needs. Secrets travel in memory only: an anonymous file (memfd_create) that ends with this process. Of a variable whose
value is a secret's reference (sudo's password) the inventory holds the place of that file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import ansible_runner
import yaml

from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.errors import RunbookError, StepFailed
from kraft_runbook.io.hosts.ansible_reports import Fold, RunReport, Tell, hider
from kraft_runbook.io.hosts.kept_modules import forget_if_changed, kept_modules
from kraft_runbook.io.secrets import Secrets

_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSH_AUTH_SOCK", "JAVA_HOME")
_PREFIX = "kraft-runbook-run-"
_OLD_SECONDS = 3600.0
_TIED = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Becomes ansible-playbook, which the kernel then ends together with this process, however this process ends. Without
it ansible-playbook would go on to further tasks, since pexpect shields it from the terminal's hang-up. The task in
progress runs to its end.
"""


AGAIN = "correct what is named above, then run this step again: it goes on from what it finds on the host"
"""The way out if a host gives no better one."""


def run_ansible(
    playbook: Path,
    inventory: Mapping[str, Mapping[str, Any]],
    *,
    check: bool,
    timeout: float,
    secret_text: str | None,
    secret_values: Sequence[str],
    tell: Tell,
    labels: Mapping[str, str],
    groups: Mapping[str, Sequence[str]] | None = None,
    secrets: Secrets,
    on_failure: Callable[[str, str], None] | None = None,
    foreign: bool = False,
) -> RunReport:
    """Run one playbook on the inventory's hosts (name → variables) and wait for its end, at most ``timeout`` seconds.

    ``on_failure`` gets host and message as soon as a task fails on a host, also where the playbook goes on. ``groups``
    names some of the hosts together, for playbooks whose plays differ in their hosts; ``labels`` may leave those out.
    ``secret_text`` is what the playbooks read from ``secrets_channel``; ``secret_values`` are blanked in everything
    reported. ``secrets`` resolves references among the variables. ``foreign``: as of ``Fold``. An exception in the
    calling thread (a task being killed, Ctrl-C) ends ansible before it goes on. Raises SecretMissing, and StepFailed
    when the private directory can't be removed.
    """
    named = {each for variables in inventory.values() for each in variables.values() if isinstance(each, SecretRef)}
    values = {ref: secrets(ref) for ref in named}
    hide = hider([*secret_values, *values.values()])
    with contextlib.ExitStack() as stack:
        private = stack.enter_context(private_directory())
        channel = stack.enter_context(_in_memory(secret_text))
        places = {ref: stack.enter_context(_in_memory(value)) for ref, value in values.items()}
        given = {
            name: {
                **{key: _read_from(places[v]) if isinstance(v, SecretRef) else v for key, v in variables.items()},
                **({"secrets_channel": channel} if channel else {}),
            }
            for name, variables in inventory.items()
        }
        (private / "hosts.yml").write_text(_inventory_text(given, groups or {}, private))
        fold = Fold(labels, tell, hide, on_failure, foreign=foreign)
        status = _run(playbook, private, check=check, timeout=timeout, fold=fold)
    return RunReport(status, fold.reports(), fold.output())


# -- running -----------------------------------------------------------------------------------------------------------


def _run(playbook: Path, private: Path, *, check: bool, timeout: float, fold: Fold) -> str:
    """ansible-runner in a thread, its events handled here: in this thread it would replace the signal handlers of
    Airflow.
    """
    events: SimpleQueue[Mapping[str, Any] | None] = SimpleQueue()
    canceled = threading.Event()
    broken: list[BaseException] = []

    def on_event(event: Mapping[str, Any]) -> bool:
        events.put(event)
        return False  # nothing is kept on disk

    kept = kept_modules(playbook.parent)
    settings = _ansible_settings(playbook, private, kept)
    runner = ansible_runner.interface.init_runner(
        private_data_dir=str(private),
        playbook=str(playbook),
        inventory=str(private / "hosts.yml"),
        envvars=settings,
        cmdline="--diff --check" if check else "--diff",
        settings={
            "pexpect_timeout": 1,
            "job_timeout": int(timeout),
            "suppress_ansible_output": True,
            "suppress_output_file": True,
        },
        quiet=True,
        event_handler=on_event,
        cancel_callback=canceled.is_set,
    )
    runner.config.env = _scrubbed(runner.config.env, settings)
    runner.config.command = [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), *runner.config.command]

    def work() -> None:
        try:
            runner.run()
        except BaseException as error:
            broken.append(error)
        finally:
            events.put(None)

    thread = threading.Thread(target=work, name=f"ansible-{playbook.stem}", daemon=True)
    thread.start()
    try:
        while (event := events.get()) is not None:
            fold.add(event)
    finally:
        canceled.set()
        thread.join()
        forget_if_changed(kept, playbook.parent)
    if broken:
        raise RunbookError(
            f"ansible-runner broke off: {broken[0]}",
            way_out="run this step again; it goes on from what it finds on the host",
        ) from broken[0]
    return str(runner.status)


def _ansible_settings(playbook: Path, private: Path, kept: Path | None) -> dict[str, str]:
    return {
        **({"KRAFT_RUNBOOK_KEPT_MODULES": str(kept)} if kept else {}),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "ANSIBLE_CONFIG": str(playbook.parent / "ansible.cfg"),
        "ANSIBLE_HOME": str(private / "ansible"),
        "ANSIBLE_LOCAL_TEMP": str(private / "tmp"),
        # The inventory is one YAML file, and no collection is used: looking for others is a sixth of what ansible's
        # start costs.
        "ANSIBLE_INVENTORY_ENABLED": "yaml",
        "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "False",
        # ansible-runner turns host key checking off unless the environment says otherwise.
        "ANSIBLE_HOST_KEY_CHECKING": "True",
    }


def _scrubbed(environment: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """What ansible needs of our environment, what ansible-runner added to it, and the settings. Nothing else."""
    added = {key: value for key, value in environment.items() if os.environ.get(key) != value}
    return {key: os.environ[key] for key in _INHERITED if key in os.environ} | added | dict(settings)


# -- what a run is given -----------------------------------------------------------------------------------------------


class _Literal(str):
    """Text that Ansible must not read as a template, whatever braces it has."""

    __slots__ = ()


class _Template(str):
    """Text that Ansible is to read as a template."""

    __slots__ = ()


def _read_from(place: str | None) -> _Template:
    return _Template(f"{{{{ lookup('ansible.builtin.file', '{place}', rstrip=false) }}}}")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(_Literal, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text)))
_Dumper.add_representer(_Template, lambda dumper, text: dumper.represent_str(str(text)))


def _literal(value: Any) -> Any:
    """The same value, with every text marked that Ansible could read as a template. Other texts stay unmarked, since
    ``!unsafe true`` would become a boolean and ``012`` a number.
    """
    if isinstance(value, _Template):
        return value
    if isinstance(value, str):
        return _Literal(value) if any(mark in value for mark in ("{{", "{%", "{#")) else value
    if isinstance(value, Mapping):
        return {_literal(key): _literal(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_literal(each) for each in value]
    return value


def _inventory_text(
    inventory: Mapping[str, Mapping[str, Any]], groups: Mapping[str, Sequence[str]], private: Path
) -> str:
    hosts = {}
    for name, variables in inventory.items():
        local = {"ansible_remote_tmp": str(private / "tmp")} if variables.get("ansible_connection") == "local" else {}
        hosts[name] = {key: _literal(value) for key, value in {**variables, **local}.items()}
    children: dict[str, Any] = {group: {"hosts": {name: {} for name in names}} for group, names in groups.items()}
    return str(yaml.dump({"all": {"hosts": hosts, "children": children}}, Dumper=_Dumper, sort_keys=False, width=1000))


@contextlib.contextmanager
def _in_memory(text: str | None) -> Iterator[str | None]:
    """A path at which the processes of this user can read the text while this process lives, with no file behind it
    (Linux).
    """
    if text is None:
        yield None
        return
    handle = os.memfd_create("kraft-runbook", os.MFD_CLOEXEC)
    try:
        os.write(handle, text.encode())
        yield f"/proc/{os.getpid()}/fd/{handle}"
    finally:
        os.close(handle)


@contextlib.contextmanager
def private_directory() -> Iterator[Path]:
    """A directory of one run in the system's temporary one, removed at its end. Those of runs whose process was killed
    are removed first.
    """
    remove_what_killed_runs_left()
    private = Path(tempfile.mkdtemp(prefix=_PREFIX))
    alive = _mark_alive(private)
    try:
        (private / "tmp").mkdir(mode=0o700)
        yield private
    finally:
        os.close(alive)
        try:
            shutil.rmtree(private)
        except OSError as error:
            shutil.rmtree(private, ignore_errors=True)
            if private.exists():
                raise StepFailed(
                    f"the run's directory {private} could not be removed: {error}",
                    way_out=(
                        "remove it by hand (it holds host names and configuration, no secrets), then run this step"
                        " again: it repeats nothing that is done"
                    ),
                ) from error


def _mark_alive(private: Path) -> int:
    """A file that this process holds locked while it lives; it gets its name only once it is locked."""
    draft = private / ".alive.new"
    handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    draft.rename(private / ".alive")
    return handle


def remove_what_killed_runs_left() -> None:
    """Remove the directories of runs whose process is gone: nobody holds their ``.alive``.

    One without it is being made, or was made again by an ended run's last task (ansible's cache of module code): it
    goes when it is old.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's, or gone meanwhile
            if (left / ".alive").exists():
                handle = os.open(left / ".alive", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: its process lives
                    shutil.rmtree(left, ignore_errors=True)
                finally:
                    os.close(handle)
            elif time.time() - left.stat().st_mtime > _OLD_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
