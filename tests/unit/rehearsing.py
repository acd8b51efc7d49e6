"""A rehearsal of the tests' own cluster, of which only the copy of the tree is tried, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from observations import SPEC

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.steps.rehearse import Ask, rehearse


def source_in(tmp_path: Path) -> ClusterSpec:
    """The test's cluster, with a Kafka on this machine that is only named."""
    home = tmp_path / "kafka-home"
    (home / "libs").mkdir(parents=True)
    (home / "libs" / f"kafka_2.13-{SPEC.kafka.version}.jar").touch()
    (home / "agent").mkdir()
    (home / "agent" / "jmx_prometheus_javaagent.jar").touch()
    settings = {"directory": str(tmp_path / "place"), "kafka_home": str(home), "network": "127.98.7"}
    return ClusterSpec.model_validate(SPEC.model_dump(mode="json", by_alias=True) | {"rehearsal": settings})


def rehearsed(source: ClusterSpec, copy: Any, **ask: Any) -> Canary:
    return rehearse(source, secrets=lambda ref: "", tell=lambda line: None, ask=asking(copy=copy, **ask))


def asking(**how: Any) -> Ask:
    """Of a cluster at rest, unless ``at_work`` is given."""
    return Ask(**{"at_work": lambda *_, **__: ()} | how)


def raising(error: BaseException) -> Any:
    def copy(_: Any, into: Path, **__: Any) -> Any:
        (into.parent / "half").write_text("a file")
        raise error

    return copy
