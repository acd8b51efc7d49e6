"""Java, and a directory shaped like a Kafka installation, whose scripts a supervisor can run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from kraft_runbook.errors import RunbookError

TEMPLATES = Path(__file__).with_name("templates")
MINIMUM_JAVA = 17


def java() -> Path:
    """The Java to run: ``$JAVA_HOME/bin/java``, else the first on the path. Raises RunbookError when there is none, or
    it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    where = f"JAVA_HOME={home}" if home else "the PATH"
    if not found:
        raise RunbookError(
            f"no java in {where}",
            way_out=f"install a Java {MINIMUM_JAVA} runtime (openjdk-17-jre-headless), or set JAVA_HOME",
        )
    said = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=60, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if said.returncode != 0 or not version:
        raise RunbookError(
            f"{found} -version failed: {(said.stderr or said.stdout).strip()[:200]}",
            way_out=f"install a working Java {MINIMUM_JAVA}",
        )
    if int(version.group(1)) < MINIMUM_JAVA:
        raise RunbookError(
            f"{found} is Java {version.group(1)}; the lab needs {MINIMUM_JAVA} or newer",
            way_out=f"install Java {MINIMUM_JAVA} and set JAVA_HOME to it",
        )
    return Path(found).resolve()


def lay_out(home: Path, *, jars: Iterable[Path], java_command: Path, class_archive: Path) -> None:
    """One installation of these jars: ``libs`` (links), ``agent`` (the metrics exporter), ``config`` and ``bin``. Safe
    to repeat.
    """
    for name in ("libs", "agent", "config", "bin"):
        (home / name).mkdir(parents=True, exist_ok=True)
    for jar in jars:
        agent = jar.name.startswith("jmx_prometheus_javaagent")
        link = home / "agent" / "jmx_prometheus_javaagent.jar" if agent else home / "libs" / jar.name
        if not link.is_symlink() or link.readlink() != jar:
            link.unlink(missing_ok=True)
            link.symlink_to(jar)
    for name in ("log4j.properties", "tools-log4j.properties", "log4j2.properties", "jmx-exporter.yaml"):
        shutil.copyfile(TEMPLATES / name, home / "config" / name)
    for name in ("kafka-run-class.sh", "kafka-storage.sh", "run-service.sh"):
        script = home / "bin" / name
        text = (TEMPLATES / name).read_text()
        script.write_text(
            text.replace("@JAVA@", shlex.quote(str(java_command))).replace(
                "@CLASS_ARCHIVE@", shlex.quote(str(class_archive))
            )
        )
        script.chmod(0o755)
