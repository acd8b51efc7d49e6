"""Two commits are two versions of this tool, whatever its number says; a checkout and its wheel are one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kraft_runbook import __version__
from kraft_runbook.io.own_code import CODE, digest_of_code, version_of_code
from lab import ROOT

FILES = ("steps/ladder.py", "metadata/log/schemas/TopicRecord.json", "io/local/templates/log4j.properties")
PLAYS = ("restart_broker.yml", "library/kafka_service.py")


@pytest.fixture
def checkout(tmp_path: Path) -> tuple[Path, Path]:
    """A package and its playbooks."""
    package, playbooks = tmp_path / "package", tmp_path / "playbooks"
    for root, names in ((package, FILES), (playbooks, PLAYS)):
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(name)
    return package, playbooks


@pytest.mark.parametrize("name", [*FILES, *PLAYS])
def test_any_file_that_differs_or_is_gone_is_another_version(checkout: tuple[Path, Path], name: str) -> None:
    package, playbooks = checkout
    before = digest_of_code(package, playbooks)
    file = (package if name in FILES else playbooks) / name
    file.write_text(file.read_text() + " ")
    changed = digest_of_code(package, playbooks)
    file.unlink()
    assert len({before, changed, digest_of_code(package, playbooks)}) == 3


def test_a_wheel_has_the_playbooks_in_the_package_and_is_the_same_version(checkout: tuple[Path, Path]) -> None:
    package, playbooks = checkout
    before = digest_of_code(package, playbooks)
    shutil.move(playbooks, package / "playbooks")
    (package / "steps" / "__pycache__").mkdir()
    (package / "steps" / "__pycache__" / "ladder.pyc").write_text("made by Python")
    assert digest_of_code(package, package / "playbooks") == before


@pytest.mark.parametrize("name", [".ruff_cache/0.15/1.json", "library/.kafka_service.py.swp", "notes.txt", ".x.py"])
def test_what_is_no_code_of_this_tool_is_not_counted(checkout: tuple[Path, Path], name: str) -> None:
    before = digest_of_code(*checkout)
    for root in checkout:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    assert digest_of_code(*checkout) == before


def test_every_file_that_is_kept_in_git_is_counted_but_a_linters_own() -> None:
    kept = subprocess.run(
        ["git", "ls-files", "include/kraft_runbook", "playbooks"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert {name for name in kept.stdout.splitlines() if Path(name).suffix not in CODE} <= {"playbooks/ruff.toml"}


def test_it_begins_with_the_number() -> None:
    assert version_of_code().startswith(f"{__version__}+")
