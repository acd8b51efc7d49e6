"""Where Ansible keeps its modules packed from one run to the next (``playbooks/callback_plugins/kept_modules.py``)."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import stat
import sys
import time
from pathlib import Path

HOME = Path(sys.prefix, "share", "kraft-runbook", "packed-modules")
"""Of this installation. Three megabytes at most."""
PARTS = ("library", "module_utils")
OLD_SECONDS = 86400.0
"""After so long without a run, what other versions of the modules left is removed."""


def kept_modules(playbooks: Path, home: Path = HOME) -> Path | None:
    """The directory for the modules beside these playbooks as they are now, made where it is missing.

    None where this user has no directory there that is his alone: what lies in it is unpickled by Ansible. Runs pack
    their modules anew then, as Ansible does by itself.
    """
    kept = home / _key(playbooks)
    try:
        if not kept.is_dir():
            kept.mkdir(mode=0o700, parents=True, exist_ok=True)
            _remove_old(home)
        found = kept.lstat()
        if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077:
            return None
        os.utime(kept)
    except OSError:
        return None
    return kept


def _key(playbooks: Path) -> str:
    """Of all that is packed: ansible-core's version stands for its own modules and what they import."""
    found = hashlib.sha256(f"{importlib.metadata.version('ansible-core')} {sys.version}".encode())
    for part in PARTS:
        for file in sorted((playbooks / part).glob("*.py")):
            found.update(f"\0{part}/{file.name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}".encode())
    return found.hexdigest()[:16]


def _remove_old(home: Path) -> None:
    for other in home.iterdir():
        if time.time() - other.stat().st_mtime > OLD_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
