"""A rehearsal of the tests' own cluster, of which only the copy of the tree is tried, or nothing; and its throwaway."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from observations import SPEC

from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.procedures.throwaway_cluster import ThrowawayCluster
from kraft_runbook.rehearsal.throwaway import heaps, throwaway_of
from kraft_runbook.steps.rehearse import Ask, rehearse
from lab.trial import free_network

SECRETS = {
    "KRB_REHEARSAL_PASSWORD_ENCODER_SECRET": "planted-1",
    "KRB_REHEARSAL_DELEGATION_TOKEN_SECRET_KEY": "planted-2",
}


def short_directory() -> Iterator[Path]:
    """For the path of a Unix socket: pytest's own directories leave it no room where several processes test at once."""
    with tempfile.TemporaryDirectory(prefix="krb-") as directory:
        yield Path(directory)


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


def throwaway_in(tmp_path: Path) -> ThrowawayCluster:
    directory = tmp_path / "t"
    directory.mkdir(mode=0o700)
    spec = throwaway_of(
        SPEC,
        Rehearsal(network=free_network()),
        PurePosixPath(directory),
        cluster_id="dGhyb3dhd2F5LWNsdXN0ZQ",
        source_cluster_id="c291cmNlLWNsdXN0ZXItaQ",
        broker_ids=(1, 2, 3),
        configured_ids=(),
        partitions=9,
    ).spec
    return ThrowawayCluster(spec, SECRETS, heaps(SPEC, spec, 512), lambda line: None)
