"""The class archive of the lab's Kafka: used where it fits, never in the way where it doesn't."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kraft_runbook.errors import StepFailed
from lab.class_archive import make_archive
from lab.installation import CLASS_ARCHIVE, JARS, install, java
from lab.layout import load


def installed(directory: Path, *, jars: Path = JARS, class_archive: Path = CLASS_ARCHIVE) -> Path:
    """The ``bin`` of a lab's Kafka that nothing was started of."""
    spec = load({**os.environ, "KRB_LAB_DIR": str(directory)})
    install(spec, jars=jars, java_command=java(), class_archive=class_archive)
    return Path(spec.kafka.home, "bin")


def new_cluster_id(scripts: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Kafka's storage tool, asked for what takes no cluster."""
    command = [str(scripts / "kafka-storage.sh"), "random-uuid"]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=True
    )


def source_of_kafka(scripts: Path, loaded: Path) -> str:
    """Where a run of the tool had a class of Kafka's from: the JVM's own words."""
    new_cluster_id(scripts, KAFKA_OPTS=f"-Xlog:class+load:file={loaded}")
    (line,) = (line for line in loaded.read_text().splitlines() if " kafka.utils.Logging source" in line)
    return line.partition("source: ")[2]


def test_what_make_leaves_is_used_by_a_lab_wherever_it_lies(tmp_path: Path) -> None:
    """``make test`` makes it: the classes come from it and not from the jars, and nothing is said about it."""
    for name in ("one", "another"):
        scripts = installed(tmp_path / name)
        assert "shared objects file" in source_of_kafka(scripts, tmp_path / f"{name}.loaded")
        assert new_cluster_id(scripts).stderr == ""


def test_without_an_archive_the_jars_are_read(tmp_path: Path) -> None:
    source = source_of_kafka(installed(tmp_path, class_archive=tmp_path / "none.jsa"), tmp_path / "loaded")
    assert source == (JARS / "kafka_2.13-3.9.2.jar").resolve().as_uri().replace("file://", "file:")


def test_an_archive_of_other_jars_is_left_alone_and_java_says_so_on_standard_error(tmp_path: Path) -> None:
    jars = tmp_path / "jars"
    shutil.copytree(JARS, jars)
    scripts = installed(tmp_path / "lab", jars=jars)
    assert source_of_kafka(scripts, tmp_path / "loaded") == f"file:{jars}/kafka_2.13-3.9.2.jar"
    ran = new_cluster_id(scripts)
    assert len(ran.stdout.strip()) == 22
    assert "Unable to use shared archive" in ran.stderr


def test_a_jar_replaced_in_a_lab_by_hand_is_read_and_the_archive_left_alone(tmp_path: Path) -> None:
    scripts = installed(tmp_path)
    patched = scripts.parent / "libs" / "kafka_2.13-3.9.2.jar"
    patched.unlink()
    shutil.copyfile(JARS / patched.name, patched)
    assert source_of_kafka(scripts, tmp_path / "loaded") == f"file:{patched}"


def test_an_archive_that_is_none_stops_no_java_and_says_nothing_on_standard_output(tmp_path: Path) -> None:
    torn = tmp_path / "a torn archive.jsa"
    torn.write_bytes(b"torn" * 5000)
    assert len(new_cluster_id(installed(tmp_path / "lab", class_archive=torn)).stdout.strip()) == 22


def test_a_java_that_writes_none_leaves_the_archive_as_it_was_and_nothing_beside_it(tmp_path: Path) -> None:
    archive = tmp_path / "kafka.jsa"
    archive.write_bytes(b"an earlier one")
    broken = tmp_path / "java"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(StepFailed, match="Java wrote no class archive"):
        make_archive(archive, java_command=broken)
    assert archive.read_bytes() == b"an earlier one"
    assert {path.name for path in tmp_path.iterdir()} == {"java", "kafka.jsa"}
