"""Where Ansible keeps its packed modules: another place for other modules, and none that somebody else may write."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kraft_runbook.io.hosts import kept_modules as kept
from kraft_runbook.io.hosts.kept_modules import kept_modules


@pytest.fixture
def playbooks(tmp_path: Path) -> Path:
    for part in ("library", "module_utils"):
        (tmp_path / "playbooks" / part).mkdir(parents=True)
        (tmp_path / "playbooks" / part / "a.py").write_text(f"# {part}\n")
    return tmp_path / "playbooks"


def test_it_is_the_users_alone_and_the_same_as_long_as_the_modules_are(playbooks: Path, tmp_path: Path) -> None:
    found = kept_modules(playbooks, tmp_path / "home")
    assert found is not None and found.parent == tmp_path / "home"
    assert found.stat().st_mode & 0o777 == 0o700
    assert kept_modules(playbooks, tmp_path / "home") == found


@pytest.mark.parametrize("changed", ["library/a.py", "module_utils/a.py", "module_utils/b.py"])
def test_a_changed_or_new_file_has_another_place(playbooks: Path, tmp_path: Path, changed: str) -> None:
    before = kept_modules(playbooks, tmp_path / "home")
    (playbooks / changed).write_text("# changed\n")
    assert kept_modules(playbooks, tmp_path / "home") not in (before, None)


def test_another_version_of_ansible_has_another_place(
    playbooks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = kept_modules(playbooks, tmp_path / "home")
    monkeypatch.setattr(kept.importlib.metadata, "version", lambda name: f"{name} of tomorrow")
    assert kept_modules(playbooks, tmp_path / "home") not in (before, None)


def test_where_others_may_write_or_a_link_leads_away_nothing_is_kept(playbooks: Path, tmp_path: Path) -> None:
    found = kept_modules(playbooks, tmp_path / "home")
    assert found is not None
    found.chmod(0o770)
    assert kept_modules(playbooks, tmp_path / "home") is None
    found.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o700)
    found.symlink_to(tmp_path / "elsewhere")
    assert kept_modules(playbooks, tmp_path / "home") is None


def test_another_users_directory_is_not_used(playbooks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept_modules(playbooks, tmp_path / "home") is not None
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert kept_modules(playbooks, tmp_path / "home") is None


def test_where_nothing_can_be_made_nothing_is_kept(playbooks: Path, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    assert kept_modules(playbooks, tmp_path / "home") is None


def test_what_no_run_has_used_for_a_day_goes_when_the_modules_change(playbooks: Path, tmp_path: Path) -> None:
    old, used = tmp_path / "home" / "old", tmp_path / "home" / "used"
    for each in (old, used):
        each.mkdir(parents=True)
    os.utime(old, (0, time.time() - kept.OLD_SECONDS - 60))
    found = kept_modules(playbooks, tmp_path / "home")
    assert sorted((tmp_path / "home").iterdir()) == sorted(filter(None, (used, found)))
