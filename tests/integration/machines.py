"""Hosts as operators have them, on one machine: Debian under systemd-nspawn, with sshd, sudo and systemd.

Each has a network namespace of its own; a bridge in another one joins them, which the test enters
(``Machines.entered``) with all that it starts. The root namespace is left alone. What they are made of is fetched once
and kept below ``build/machines``: Debian's packages by apt-get and debootstrap, some 320 MB. Root is needed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lab import ROOT

KEPT = ROOT / "build" / "machines"
TOOLS = KEPT / "tools"
PACKAGES = "systemd-sysv,dbus,libpam-systemd,openssh-server,python3,sudo,iproute2,procps"
NETWORK = "10.77.0"
"""Of the namespaces alone: nothing else sees it."""
USER = "ops"
CGROUPS = [each for each in (Path("/sys/fs/cgroup/systemd"), Path("/sys/fs/cgroup/unified")) if each.is_dir()]
NEW_NETWORK = 0x40000000
"""``CLONE_NEWNET`` of setns(2)."""


def why_not() -> str:
    """Why no machine can run here; empty where they can."""
    if os.geteuid() != 0:
        return "machines need root"
    if missing := [tool for tool in ("ip", "apt-get", "dpkg", "ssh", "mount") if shutil.which(tool) is None]:
        return f"machines need {', '.join(missing)}"
    if "overlay" not in Path("/proc/filesystems").read_text():
        return "machines need overlayfs"
    return "" if CGROUPS else "machines need the cgroups of systemd, beside another first process than it"


def run(*command: str | Path, timeout: float = 120, within: Mapping[str, str] | None = None) -> str:
    """What a command prints; fails with its last words."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, **(within or {})},
    )
    assert done.returncode == 0, f"{command[0]} failed: {(done.stdout + done.stderr)[-2000:]}"
    return done.stdout


def base() -> Path:
    """What all machines have in common, made once; takes some minutes then. Skips the test where it can't be made."""
    made = KEPT / "base"
    if made.exists():
        return made
    TOOLS.mkdir(parents=True, exist_ok=True)
    draft = KEPT / f"draft-{os.getpid()}"
    try:
        with contextlib.chdir(TOOLS):
            run("apt-get", "download", "systemd-container", "debootstrap", timeout=300)
            for package in sorted(TOOLS.glob("*.deb")):
                run("dpkg", "-x", package, TOOLS)
        tools = {
            "DEBOOTSTRAP_DIR": str(TOOLS / "usr/share/debootstrap"),
            "PATH": f"{TOOLS}/usr/sbin:{os.environ['PATH']}",
        }
        words = ("--variant=minbase", f"--include={PACKAGES}", *_own_debian(draft))
        run("debootstrap", *words, timeout=1800, within=tools)
    except (AssertionError, subprocess.TimeoutExpired, OSError) as error:
        shutil.rmtree(draft, ignore_errors=True)
        pytest.skip(f"no Debian for machines: {error}")
    for each in (draft / "etc/hostname", *(draft / "etc/ssh").glob("ssh_host_*")):
        each.unlink(missing_ok=True)
    (draft / "etc/machine-id").write_text("")
    for user in (USER, "kafka"):
        run("chroot", draft, "useradd", "--create-home", "--shell", "/bin/bash", user)
    draft.rename(made)
    return made


def _own_debian(into: Path) -> tuple[str | Path, ...]:
    """debootstrap's last words: this machine's own release, whose Java runs there too, and whence apt brings it."""
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    codename = release.get("VERSION_CODENAME", "").strip('"')
    told = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages")
    mirrors = [uri for uri, _, suite in (line.partition(" ") for line in told.splitlines()) if suite == codename]
    assert mirrors, f"apt names no place of {codename or 'a Debian without a codename'}"
    return codename, into, mirrors[0]


@dataclass
class Machine:
    """One host. ``root`` is its file system, as this process sees it."""

    name: str
    number: int
    directory: Path
    root: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{NETWORK}.{10 + self.number}"

    @property
    def file_for_password(self) -> Path:
        """sudo asks for no password while this file is there."""
        return self.root / "etc/sudoers.d/ops"


@dataclass
class Machines:
    """All hosts of one test, their key and what is known of theirs."""

    directory: Path
    lan: str = field(default_factory=lambda: f"krb-{os.getpid()}")
    every: list[Machine] = field(default_factory=list)

    @property
    def key(self) -> Path:
        return self.directory / "key"

    @property
    def known_hosts(self) -> Path:
        return self.directory / "known_hosts"

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """This thread, and what it starts, reach the machines; and nothing else."""
        libc = ctypes.CDLL(None, use_errno=True)
        with Path("/proc/thread-self/ns/net").open() as before, Path(f"/run/netns/{self.lan}").open() as lan:
            assert libc.setns(lan.fileno(), NEW_NETWORK) == 0, os.strerror(ctypes.get_errno())
            try:
                yield
            finally:
                libc.setns(before.fileno(), NEW_NETWORK)

    def add(self, name: str, *, binds: Mapping[Path, str]) -> Machine:
        """A new machine that does not run yet. ``binds``: what it sees of this one, read-only, and where."""
        number = len(self.every) + 1
        here = self.directory / name
        for part in ("up", "work", "root"):
            (here / part).mkdir(parents=True)
        layers = f"lowerdir={base()},upperdir={here}/up,workdir={here}/work"
        run("mount", "-t", "overlay", "overlay", "-o", layers, here / "root")
        machine = Machine(name, number, here, here / "root")
        self.every.append(machine)
        self._plug_in(machine)
        self._let_in(machine)
        (here / "binds").write_text("".join(f"--bind-ro={ours}:{theirs}\n" for ours, theirs in binds.items()))
        return machine

    def plug(self, machine: Machine, state: str) -> None:
        """The cable of a machine: ``up`` or ``down``."""
        run("ip", "-n", self.lan, "link", "set", f"v{machine.number}", state)

    def boot(self, machine: Machine) -> None:
        """Start it and wait until sshd answers."""
        groups = [group / f"{self.lan}-{machine.name}" for group in CGROUPS]
        for group in groups:
            group.mkdir(exist_ok=True)
        moves = "".join(f"echo $$ > {group}/cgroup.procs; " for group in groups)
        words = [
            f"{TOOLS}/usr/bin/systemd-nspawn --quiet --register=no --keep-unit -D {machine.root}",
            f"-M {self.lan}-{machine.name} --hostname={machine.name}",
            f"--network-namespace-path=/run/netns/{self.lan}-{machine.name}",
            "--resolv-conf=off --timezone=off --link-journal=no",
            *(machine.directory / "binds").read_text().split(),
            "-b",
        ]
        with (machine.directory / "console").open("wb") as console:
            machine.process = subprocess.Popen(
                ["/bin/sh", "-c", f"{moves}exec {' '.join(words)}"],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )
        deadline = time.monotonic() + 240
        while (said := self.said(machine, "true"))[0] != 0:
            assert time.monotonic() < deadline and machine.process.poll() is None, (
                f"{machine.name} does not come up: {said[1]}\n{(machine.directory / 'console').read_text()[-2000:]}"
            )
            time.sleep(0.5)

    def said(self, machine: Machine, command: str) -> tuple[int, str]:
        """A command on a machine by its operator: exit code and all that it said."""
        known = f"-oUserKnownHostsFile={self.known_hosts}"
        ssh = ["ssh", "-i", str(self.key), known, "-oConnectTimeout=5", "-oBatchMode=yes", f"{USER}@{machine.address}"]
        done = subprocess.run(
            ["ip", "netns", "exec", self.lan, *ssh, command], capture_output=True, text=True, timeout=120, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def _plug_in(self, machine: Machine) -> None:
        own, cable = f"{self.lan}-{machine.name}", f"v{machine.number}"
        run("ip", "netns", "add", own)
        run("ip", "-n", own, "link", "set", "lo", "up")
        run("ip", "-n", self.lan, "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", own)
        run("ip", "-n", self.lan, "link", "set", cable, "master", "br0", "up")
        run("ip", "-n", own, "addr", "add", f"{machine.address}/24", "dev", "eth0")
        run("ip", "-n", own, "link", "set", "eth0", "up")

    def _let_in(self, machine: Machine) -> None:
        root = machine.root
        host_key = root / "etc/ssh/ssh_host_ed25519_key"
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", host_key)
        known = f"{machine.address} {host_key.with_suffix('.pub').read_text()}"
        self.known_hosts.write_text((self.known_hosts.read_text() if self.known_hosts.exists() else "") + known)
        (root / f"home/{USER}/.ssh").mkdir(mode=0o700)
        shutil.copy(self.key.with_suffix(".pub"), root / f"home/{USER}/.ssh/authorized_keys")
        run("chroot", root, "chown", "-R", f"{USER}:{USER}", f"/home/{USER}")
        machine.file_for_password.write_text(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")
        (root / "etc/hosts").write_text(f"127.0.0.1 localhost\n{machine.address} {machine.name}\n")

    def end(self) -> None:
        """End all that runs there, at once, and leave nothing behind."""
        for each in self.every:
            groups, deadline = [group / f"{self.lan}-{each.name}" for group in CGROUPS], time.monotonic() + 60
            while time.monotonic() < deadline and (
                pids := [int(pid) for group in groups for file in group.rglob("cgroup.procs") for pid in _read(file)]
            ):
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.1)
            if each.process is not None:
                each.process.wait(60)
            subprocess.run(["umount", "-l", str(each.root)], check=False)
            subprocess.run(["ip", "netns", "del", f"{self.lan}-{each.name}"], check=False)
            for group in groups:
                for inner, _, _ in os.walk(group, topdown=False):
                    with contextlib.suppress(OSError):
                        Path(inner).rmdir()
        subprocess.run(["ip", "netns", "del", self.lan], check=False)
        shutil.rmtree(self.directory, ignore_errors=True)


def _read(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:  # gone meanwhile
        return []


@contextlib.contextmanager
def machines() -> Iterator[Machines]:
    """A network without a machine yet; all is ended and removed afterwards. Skips where none can run."""
    if reason := why_not():
        pytest.skip(reason)
    base()
    made = Machines(Path(tempfile.mkdtemp(prefix="krb-machines-")))
    try:
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", made.key)
        run("ip", "netns", "add", made.lan)
        run("ip", "-n", made.lan, "link", "set", "lo", "up")
        run("ip", "-n", made.lan, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", made.lan, "addr", "add", f"{NETWORK}.1/24", "dev", "br0")
        run("ip", "-n", made.lan, "link", "set", "br0", "up")
        yield made
    finally:
        made.end()
