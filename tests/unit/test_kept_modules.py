"""Where Ansible keeps its packed modules: another place for other modules, and none that somebody else may write."""

from __future__ import annotations

import os
import time
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from kraft_runbook.io.hosts.kept_modules import OLD_SECONDS, ROOM, Machine, forget_if_changed, kept_modules


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


@pytest.mark.parametrize("changed", ["library/a.py", "module_utils/a.py", "module_utils/b.py", "module_utils/c/d.py"])
def test_a_changed_or_new_file_has_another_place(playbooks: Path, tmp_path: Path, changed: str) -> None:
    before = kept_modules(playbooks, tmp_path / "home")
    (playbooks / changed).parent.mkdir(exist_ok=True)
    (playbooks / changed).write_text("# changed\n")
    assert kept_modules(playbooks, tmp_path / "home") not in (before, None)


def test_another_version_of_ansible_has_another_place(playbooks: Path, tmp_path: Path) -> None:
    before = kept_modules(playbooks, tmp_path / "home")
    tomorrow = Machine(version=lambda name: f"{name} of tomorrow")
    assert kept_modules(playbooks, tmp_path / "home", tomorrow) not in (before, None)


def test_where_others_may_write_or_a_link_leads_away_nothing_is_kept(playbooks: Path, tmp_path: Path) -> None:
    found = kept_modules(playbooks, tmp_path / "home")
    assert found is not None
    found.chmod(0o770)
    assert kept_modules(playbooks, tmp_path / "home") is None
    found.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o700)
    found.symlink_to(tmp_path / "elsewhere")
    assert kept_modules(playbooks, tmp_path / "home") is None


def test_another_users_directory_is_not_used(playbooks: Path, tmp_path: Path) -> None:
    assert kept_modules(playbooks, tmp_path / "home") is not None
    other = Machine(user=lambda: os.geteuid() + 1)
    assert kept_modules(playbooks, tmp_path / "home", other) is None


def test_where_nothing_can_be_made_nothing_is_kept(playbooks: Path, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    assert kept_modules(playbooks, tmp_path / "home") is None


def test_what_no_run_has_used_for_a_day_goes_when_the_modules_change(playbooks: Path, tmp_path: Path) -> None:
    old, used = tmp_path / "home" / "old", tmp_path / "home" / "used"
    for each in (old, used):
        each.mkdir(parents=True)
    os.utime(old, (0, time.time() - OLD_SECONDS - 60))
    found = kept_modules(playbooks, tmp_path / "home")
    assert sorted((tmp_path / "home").iterdir()) == sorted(filter(None, (used, found)))


def test_after_another_boot_everything_is_packed_anew(playbooks: Path, tmp_path: Path) -> None:
    """A power cut leaves empty files of what was renamed and never synced; Ansible would fail on them for ever."""
    before = kept_modules(playbooks, tmp_path / "home")
    (tmp_path / "boot_id").write_text("another\n")
    assert kept_modules(playbooks, tmp_path / "home", Machine(boot=tmp_path / "boot_id")) not in (before, None)


def test_a_file_that_can_not_be_read_lets_nothing_be_kept_and_is_no_error(playbooks: Path, tmp_path: Path) -> None:
    """An editor's lock is a link that leads nowhere; a file may go while an installation is replaced."""
    (playbooks / "library" / ".#a.py").symlink_to("somebody@somewhere.1234")
    assert kept_modules(playbooks, tmp_path / "home") is None


def test_on_a_full_disk_nothing_is_kept(playbooks: Path, tmp_path: Path) -> None:
    """A module that can't be written fails its task, though there may be room where Ansible packs by itself."""
    full = Machine(room=lambda _: SimpleNamespace(free=ROOM - 1))
    assert kept_modules(playbooks, tmp_path / "home", full) is None


@pytest.mark.parametrize(("changed", "left"), [(False, ["a", "a.lock"]), (True, ["a.lock"])])
def test_what_a_run_packed_while_its_modules_were_replaced_is_not_kept(
    playbooks: Path, tmp_path: Path, changed: bool, left: list[str]
) -> None:
    """It may be the new module in the old one's place: whoever goes back to the old version would run the new one."""
    found = kept_modules(playbooks, tmp_path / "home")
    assert found is not None
    if changed:
        (playbooks / "library" / "a.py").write_text("# of a newer version\n")
    for name in ("a", "a.lock"):
        (found / name).write_text("packed")
    forget_if_changed(found, playbooks)
    assert sorted(path.name for path in found.iterdir()) == left
    forget_if_changed(None, playbooks)


def test_the_place_of_all_is_this_users_alone(playbooks: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert kept_modules(playbooks, tmp_path / "home") is not None
    finally:
        os.umask(before)
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


def test_while_ansible_itself_is_replaced_nothing_is_kept_and_it_is_no_error(playbooks: Path, tmp_path: Path) -> None:
    found = kept_modules(playbooks, tmp_path / "home")
    assert found is not None
    (found / "a").write_text("packed")

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    replaced = Machine(version=missing)
    assert kept_modules(playbooks, tmp_path / "home", replaced) is None
    forget_if_changed(found, playbooks, replaced)
    assert list(found.iterdir()) == []
