"""Where Ansible keeps its modules packed from one run to the next (``playbooks/callback_plugins/kept_modules.py``)."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraft_runbook.io.file_prints import prints_of

HOME = Path(sys.prefix, "share", "kraft-runbook", "packed-modules")
"""Of this installation. Three megabytes at most."""
PARTS = ("library", "module_utils")
ROOM = 16 * 1024 * 1024
"""Bytes that must be free: a module that can't be written is an error of its task."""
OLD_SECONDS = 86400.0
"""After so long without a run, what other versions of the modules left is removed."""
NOT_TOLD = (OSError, importlib.metadata.PackageNotFoundError)
"""A file or ansible-core itself may be missing for a moment, while an installation is replaced."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What of this machine decides: its user, ansible-core's version, the file that names its boot, and how much room a
    directory has (``shutil.disk_usage``).
    """

    user: Callable[[], int] = os.geteuid
    version: Callable[[str], str] = importlib.metadata.version
    boot: Path = Path("/proc/sys/kernel/random/boot_id")
    room: Callable[[Path], Any] = shutil.disk_usage


THIS = Machine()


def kept_modules(playbooks: Path, home: Path = HOME, machine: Machine = THIS) -> Path | None:
    """The directory for the modules beside these playbooks as they are now, made where it is missing.

    None where this user has no directory there that is his alone (what lies in it is unpickled by Ansible), or the disk
    has no room. Runs pack their modules anew then, as Ansible does by itself.
    """
    try:
        kept = home / _key(playbooks, machine)
        if not kept.is_dir():
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            kept.mkdir(mode=0o700, exist_ok=True)
            _remove_old(home)
        found = kept.lstat()
        if found.st_uid != machine.user() or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077:
            return None
        os.utime(kept)
        return kept if machine.room(kept).free >= ROOM else None
    except NOT_TOLD:
        return None


def forget_if_changed(kept: Path | None, playbooks: Path, machine: Machine = THIS) -> None:
    """To be called when the run has ended: where the modules changed while it went on, what it packed may be the new
    ones, kept in the old ones' place. An installation that comes back to the old ones would run them. The directory
    and its locks stay: another run may be using them.
    """
    if kept is None:
        return
    try:
        same = kept.name == _key(playbooks, machine)
    except NOT_TOLD:
        same = False
    with contextlib.suppress(OSError):
        for packed in () if same else kept.iterdir():
            if packed.suffix != ".lock":
                packed.unlink(missing_ok=True)


def _key(playbooks: Path, machine: Machine) -> str:
    """Of all that is packed: ansible-core's version stands for its own modules and what they import. The boot stands
    for the disk: what was written before the machine lost its power may be torn (Ansible does not sync it).
    """
    boot = machine.boot.read_text() if machine.boot.exists() else ""
    found = hashlib.sha256(f"{machine.version('ansible-core')} {sys.version} {boot}".encode())
    for part in PARTS:
        for each in prints_of(playbooks, (playbooks / part).rglob("*.py")):
            found.update(each)
    return found.hexdigest()[:16]


def _remove_old(home: Path) -> None:
    for other in home.iterdir():
        if time.time() - other.stat().st_mtime > OLD_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
