"""The commit that a figure names: of what is checked out, and marked where a file differs from it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab.checkout import commit


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
    return subprocess.run(["git", *identity, *arguments], cwd=root, capture_output=True, text=True, check=True).stdout


def test_the_commit_is_named_and_a_change_beside_it_is_shown(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "code").write_text("1")
    (tmp_path / "page").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    head = git(tmp_path, "rev-parse", "HEAD")[:7]
    (tmp_path / "not known to git").touch()
    assert commit(root=tmp_path) == head
    (tmp_path / "page").write_text("2")
    assert commit(root=tmp_path) == f"{head}+"
    assert commit(root=tmp_path, but=[tmp_path / "page"]) == head
    (tmp_path / "code").write_text("2")
    assert commit(root=tmp_path, but=[tmp_path / "page"]) == f"{head}+"


def test_outside_a_repository_it_is_unknown(tmp_path: Path) -> None:
    assert commit(root=tmp_path) == "unknown"
