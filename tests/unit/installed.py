"""The project as somebody installs it: a wheel, and a virtual environment that has nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UV = ROOT / "build" / "uv" / "bin" / "uv"


def make_wheel(directory: Path) -> Path:
    """A wheel in ``directory``, made of a copy: a build leaves files beside what it builds."""
    copy = directory / "project"
    copy.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, copy)
    for name in ("include", "plugins", "dags", "playbooks"):
        shutil.copytree(
            ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", ".ruff_cache", "*.egg-info")
        )
    _uv("build", "--quiet", "--wheel", "--out-dir", str(directory), str(copy))
    return next(directory.glob("*.whl"))


def install(directory: Path, extras: Sequence[str] = ()) -> Path:
    """The ``bin`` of a new virtual environment below ``directory``, with the core and what it asks for. ``extras``: of
    the package, with what they ask for too.
    """
    wheel = make_wheel(directory)
    asked = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    _uv("venv", "--quiet", "--python", sys.executable, str(directory / "venv"))
    python = directory / "venv" / "bin" / "python"
    locked = ROOT / "requirements.lock"
    _uv("pip", "install", "--quiet", "--python", str(python), "--constraint", str(locked), asked)
    return python.parent


def install_consumer(directory: Path, wheel: Path) -> Path:
    """The python of a new virtual environment below ``directory`` with the migrating consumer, its two libraries and
    nothing else that a wheel asks for.
    """
    _uv("venv", "--quiet", "--python", sys.executable, str(directory / "venv"))
    python = directory / "venv" / "bin" / "python"
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["consumer"]
    locked = ROOT / "requirements.lock"
    _uv("pip", "install", "--quiet", "--python", str(python), "--constraint", str(locked), *asked)
    _uv("pip", "install", "--quiet", "--python", str(python), "--no-deps", str(wheel))
    return python


def _uv(*words: str) -> None:
    done = subprocess.run([str(UV), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
