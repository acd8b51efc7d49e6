"""What the lab runs: Java, the jars from Maven, and a directory shaped like a Kafka installation
(``spec.kafka.home``).
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.local.installation import TEMPLATES, java, lay_out
from lab.layout import ROOT

__all__ = [
    "CLASS_ARCHIVE",
    "JARS",
    "JARS4",
    "NEWEST",
    "OTHERS",
    "TEMPLATES",
    "fetch_jars",
    "install",
    "jars_of",
    "java",
    "kafka4_version",
    "lay_out",
]

JARS = ROOT / "build" / "jars"
JARS4 = ROOT / "build" / "jars4"
"""The jars of the Kafka 4 that the lab's nodes can go on to (``lab/kafka4/pom.xml``)."""
NEWEST = "4.4.0"
"""The newest Kafka that this tool's schemas know."""
OTHERS = ("4.0.2", "4.1.2", "4.2.2", "4.3.1", NEWEST)
"""The last releases of Kafka 4 besides the lab's own: long tests go through them."""
COMPLETE = ".complete"
"""Written after the last jar: a copy that was interrupted has none. `make jars` writes it too."""
CLASS_ARCHIVE = JARS.with_name("kafka.jsa")
"""The jars' classes as the JVM keeps them (``class_archive``), where they were made. Another Java or other jars ignore
it.
"""
_POM, _POM4 = "lab/pom.xml", "lab/kafka4/pom.xml"


def jars_of(version: str) -> Path:
    """Where the jars of a Kafka 4 are, or ``fetch_jars`` brings them. Those of another than the lab's own come when
    somebody asks for them first: no target of make does before.
    """
    return JARS4 if version == kafka4_version() else ROOT / "build" / f"jars-{version}"


def fetch_jars(version: str, *, jars: Path = JARS) -> Path:
    """The directory with Kafka's jars of that version, brought by Maven where they are missing.

    Raises RunbookError when they are missing and Maven is too, when Maven fails, or when they are of another version.
    """
    pom = _POM4 if jars in (JARS4, jars_of(version)) else _POM
    fetch = f"mvn -q -B -f {pom} dependency:copy-dependencies -DoutputDirectory={jars} -Dlab.jars={jars}"
    if pom == _POM4 and jars != JARS4:
        fetch += f" -Dkafka.version={version}"
    if not _complete(jars):
        maven = shutil.which("mvn")
        if not maven:
            raise RunbookError(
                f"Kafka's jars are not in {jars}, and there is no mvn to bring them",
                way_out="install Maven, then: make jars",
            )
        done = subprocess.run(
            [maven, *shlex.split(fetch)[1:]],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        if done.returncode != 0:
            said = "\n".join([line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line][:5])
            raise RunbookError(
                f"Maven could not bring Kafka's jars:\n{said}", way_out=f"run it by hand to see all of it: {fetch}"
            )
        (jars / COMPLETE).touch()
    if not (jars / f"kafka_2.13-{version}.jar").exists():
        found = ", ".join(p.name for p in jars.glob("kafka_2.13-*.jar"))
        raise RunbookError(
            f"the cluster file declares Kafka {version}, but {jars} holds {found}",
            way_out=(
                f"make kafka.version in {pom} and in the cluster file the same, remove {jars}, then: make jars jars4"
            ),
        )
    return jars


def _complete(jars: Path) -> bool:
    return (jars / COMPLETE).exists() and any(jars.glob("kafka_2.13-*.jar"))


def kafka4_version() -> str:
    """The version that ``lab/kafka4/pom.xml`` brings."""
    found = re.search(r"<kafka\.version>([\d.]+)</kafka\.version>", (ROOT / _POM4).read_text())
    if found is None:
        raise RunbookError(f"{_POM4} names no kafka.version", way_out="git checkout lab/kafka4/pom.xml")
    return found[1]


def install(spec: ClusterSpec, *, jars: Path, java_command: Path, class_archive: Path = CLASS_ARCHIVE) -> None:
    """Lay out ``spec.kafka.home`` and, where the cluster file names it, ``kafka.upgrade_to``. A node's ``home_link``
    that leads nowhere leads to ``spec.kafka.home`` then. Safe to repeat.
    """
    lay_out(Path(spec.kafka.home), jars=jars.glob("*.jar"), java_command=java_command, class_archive=class_archive)
    if spec.kafka.upgrade_to:
        target = spec.kafka.upgrade_to
        newer = fetch_jars(target.version, jars=jars_of(target.version))
        # The archive is of the other version's classes.
        lay_out(
            Path(target.home), jars=newer.glob("*.jar"), java_command=java_command, class_archive=newer / "no-archive"
        )
    for node in spec.nodes:
        if node.home_link and not Path(node.home_link).exists():
            Path(node.home_link).parent.mkdir(parents=True, exist_ok=True)
            Path(node.home_link).unlink(missing_ok=True)
            Path(node.home_link).symlink_to(spec.kafka.home)
