"""The Java of a service's next start, where its definition was changed since it was started."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from feature_looks import host_module

NEEDED = ("kafka_host", "installation", "properties_text", "login_modules", "references", "kafka_user")
for _each in NEEDED:
    host_module(_each)
java = host_module("java")


def a_home(place: Path) -> Path:
    program = place / "bin" / "java"
    program.parent.mkdir(parents=True)
    shutil.copy("/bin/sleep", program)
    return place


def defined(**environment: str) -> Any:
    return SimpleNamespace(name="broker-1", environment=lambda: environment)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([a_home(tmp_path / "jdk17") / "bin" / "java", "60"]) as process:
        yield process
        process.kill()


def test_a_java_that_the_definition_names_since_the_start_is_told(
    running: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    older = a_home(tmp_path / "jdk11")
    assert java.java_of(defined(JAVA_HOME=str(older)), running.pid) == str(tmp_path / "jdk17/bin/java")
    for changed in ({"JAVA_HOME": str(older)}, {"PATH": f"{older}/bin:/usr/bin"}):
        assert java.java_of_next_start(defined(**changed), running.pid) == str(older / "bin/java")
    with pytest.raises(java.HostError, match="JAVA_HOME=/gone"):
        java.java_of_next_start(defined(JAVA_HOME="/gone"), running.pid)


def test_nothing_is_told_where_they_agree_or_the_definition_names_none_or_nothing_runs(
    running: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    (tmp_path / "current").symlink_to(tmp_path / "jdk17")
    same = defined(JAVA_HOME=str(tmp_path / "current"))
    assert java.java_of_next_start(same, running.pid) is None
    assert java.java_of_next_start(defined(), running.pid) is None
    assert java.java_of_next_start(SimpleNamespace(environment=lambda: None), running.pid) is None
    assert java.java_of_next_start(defined(JAVA_HOME=str(a_home(tmp_path / "jdk11"))), 0) is None
