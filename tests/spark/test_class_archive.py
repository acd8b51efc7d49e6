"""The class archive: used where it fits, never in the way where it doesn't."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from kraft_runbook.parity.spark.settings import CLASS_ARCHIVE, DRIVER_OPTIONS, driver_options


def java(options: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    java = shutil.which("java")
    assert java is not None
    return subprocess.run([java, *shlex.split(options), *arguments], check=True, capture_output=True, text=True)


def test_there_is_nothing_to_name_without_an_archive(tmp_path: Path) -> None:
    assert driver_options(tmp_path / "none.jsa") == DRIVER_OPTIONS


def test_an_archive_that_is_none_stops_no_java_and_says_nothing_on_standard_output(tmp_path: Path) -> None:
    torn = tmp_path / "a torn archive.jsa"
    torn.write_bytes(b"torn" * 5000)
    ran = java(driver_options(torn), "-version")
    assert ran.stdout == ""
    assert "version" in ran.stderr


def test_what_make_leaves_is_used_by_a_session(tmp_path: Path) -> None:
    """``make test`` makes it: Spark's classes come from it and not from the jars."""
    loaded = tmp_path / "loaded"
    options = driver_options(CLASS_ARCHIVE).replace("-Xlog:disable", f"-Xlog:class+load:file={loaded}")
    script = (
        f"from kraft_runbook.parity.spark.session import session\nwith session(None, driver={options!r}):\n    pass"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    (context,) = (line for line in loaded.read_text().splitlines() if " org.apache.spark.SparkContext source" in line)
    assert "shared objects file" in context
