"""What the lab says on a machine that lacks something; nothing is made there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kraft_runbook.errors import RunbookError
from lab import ROOT
from lab.installation import COMPLETE, fetch_jars
from lab.layout import layout, load


def up(directory: Path, **changes: str) -> tuple[int, str]:
    """``python -m lab up`` with some variables changed: its exit code and what it said."""
    environ = (
        {k: v for k, v in os.environ.items() if k != "JAVA_HOME"}
        | {"KRB_LAB_DIR": str(directory / "lab"), "KRB_LAB_NET": "127.251.3"}
        | changes
    )
    done = subprocess.run(
        [sys.executable, "-m", "lab", "up"],
        env=environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not (directory / "lab").exists()
    return done.returncode, done.stderr


def fake_java(directory: Path, says: str) -> str:
    """A JAVA_HOME whose java says this to -version."""
    script = directory / "jdk" / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    script.chmod(0o755)
    return str(directory / "jdk")


def test_no_java(tmp_path: Path) -> None:
    code, said = up(tmp_path, PATH=str(tmp_path))
    assert code == 1
    assert (
        said == "error: no java in the PATH\n  What to do: install a Java 17 runtime (openjdk-17-jre-headless), or set"
        " JAVA_HOME\n"
    )


def test_java_older_than_17(tmp_path: Path) -> None:
    code, said = up(tmp_path, JAVA_HOME=fake_java(tmp_path, 'openjdk version "11.0.22" 2024-01-16'))
    assert code == 1
    assert f"{tmp_path}/jdk/bin/java is Java 11; the lab needs 17 or newer" in said


def test_java_8_is_recognized_by_its_old_numbering(tmp_path: Path) -> None:
    code, said = up(tmp_path, JAVA_HOME=fake_java(tmp_path, 'java version "1.8.0_402"'))
    assert (code, "is Java 8; the lab needs 17" in said) == (1, True)


def test_a_network_beyond_loopback_is_refused(tmp_path: Path) -> None:
    code, said = up(tmp_path, KRB_LAB_NET="10.0.0")
    assert (code, "listens on loopback addresses (127.0.0.0/8) only" in said) == (1, True)


def test_no_maven_and_no_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        RunbookError, match=r"Kafka's jars are not in .*/jars, and there is no mvn to bring them"
    ) as caught:
        fetch_jars("3.9.2", jars=tmp_path / "jars")
    assert caught.value.way_out == "install Maven, then: make jars"


def test_jars_of_another_version_than_the_cluster_file_declares(tmp_path: Path) -> None:
    (tmp_path / "kafka_2.13-3.9.2.jar").touch()
    (tmp_path / COMPLETE).touch()
    with pytest.raises(RunbookError, match=r"declares Kafka 3\.9\.1, but .* holds kafka_2\.13-3\.9\.2\.jar"):
        fetch_jars("3.9.1", jars=tmp_path)


def test_a_directory_too_long_for_a_socket(tmp_path: Path) -> None:
    spec = load({"KRB_LAB_DIR": str(tmp_path / ("d" * 100)), "KRB_LAB_NET": "127.251.3"})
    with pytest.raises(RunbookError, match="too long a path for a Unix socket"):
        layout(spec)


def test_a_relative_directory_counts_from_here() -> None:
    assert load({"KRB_LAB_DIR": "some/lab"}).kafka.home == str(Path("some/lab").absolute() / "kafka")
