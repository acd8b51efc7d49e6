"""Which commit is checked out here: what a figure or an outcome must name, to be worth something later."""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from pathlib import Path

from lab.layout import ROOT


def commit(*, root: Path = ROOT, but: Collection[Path] = ()) -> str:
    """The commit, seven digits; with a ``+`` where a file that git knows differs from it, those of ``but`` aside.
    ``unknown`` outside a repository.
    """
    try:
        head = _git(root, "rev-parse", "--short=7", "HEAD").strip()
        changed = [root / line[3:] for line in _git(root, "status", "--porcelain", "--untracked-files=no").splitlines()]
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if [each for each in changed if each not in but] else "")


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout
