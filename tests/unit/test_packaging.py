"""The package: what a wheel holds and asks for, and that its command says which version it is."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from installed import install_consumer, make_wheel
from packaging.requirements import Requirement

import kraft_runbook

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MADE = {"__pycache__", ".ruff_cache"}
"""Directories that tools leave between the files."""
PINNED = {
    name: version
    for name, version in re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wheel(tmp_path_factory.mktemp("wheel"))


def test_a_wheel_holds_every_file_that_a_run_needs(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    places = {
        "include/kraft_runbook": "kraft_runbook/",
        "include/kraft_runbook_consumer": "kraft_runbook_consumer/",
        "plugins/kraft_runbook_airflow": "kraft_runbook_airflow/",
        "playbooks": "kraft_runbook/playbooks/",
        "dags": "kraft_runbook_airflow/dags/",
    }
    needed = {
        place + path.relative_to(ROOT / folder).as_posix()
        for folder, place in places.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and not MADE & set(path.parts)
    }
    assert held == needed


def test_what_the_package_asks_for_is_what_is_pinned() -> None:
    """Each bound begins at the pinned version: no other is tested."""
    asked = [*PROJECT["dependencies"], *(each for extra in PROJECT["optional-dependencies"].values() for each in extra)]
    for requirement in map(Requirement, asked):
        assert {each.version for each in requirement.specifier if each.operator == ">="} == {PINNED[requirement.name]}
        assert requirement.specifier.contains(PINNED[requirement.name])


@pytest.mark.parametrize("command", [["-m", "kraft_runbook"], [str(Path(sys.executable).parent / "kraft-runbook")]])
def test_the_command_says_its_version(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *command, "--version"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == (f"kraft-runbook {kraft_runbook.__version__}\n", 0), done.stderr


def test_the_migrating_consumer_needs_two_libraries_and_is_imported_fast(wheel: Path, tmp_path: Path) -> None:
    """In an environment without the core's libraries. By the processor's time, beside that of its two libraries alone:
    no machine is too slow for it.
    """
    python = install_consumer(tmp_path, wheel)

    def imported(what: str) -> tuple[float, set[str]]:
        program = (
            f"import sys, time; begin = time.process_time(); {what};"
            " print(time.process_time() - begin, *sorted({name.split('.')[0] for name in sys.modules}))"
        )
        done = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
        seconds, *modules = done.stdout.split()
        return float(seconds), set(modules)

    ours = [imported("from kraft_runbook_consumer import MigratingConsumer") for _ in range(3)]
    libraries = [imported("import kazoo.client, confluent_kafka.admin") for _ in range(3)]
    for _, modules in ours:
        assert "kraft_runbook" not in modules
        assert {"kazoo", "confluent_kafka", "kraft_runbook_consumer"} <= modules
    took, alone = min(ours)[0], min(libraries)[0]
    assert took <= 3 * alone, f"{took:.3f} s, its libraries alone {alone:.3f} s"
    print(f"imported in {took:.3f} s, its libraries alone in {alone:.3f} s")
