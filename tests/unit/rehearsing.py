"""A rehearsal of the tests' own cluster, of which only the copy of the tree is tried, or nothing; and its throwaway."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from observations import SPEC

from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.procedures.throwaway_cluster import ThrowawayCluster
from kraft_runbook.rehearsal.throwaway import heaps, throwaway_of
from kraft_runbook.rehearsal.verdict import Finding, Measured, Rung
from kraft_runbook.steps.ladder import COPY, WINDOW
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


@dataclass
class MadeUpLadder:
    """One on which every rung is climbed at once, with numbers as of a quiet machine. ``ends``: with what its wait for
    a controller ends.
    """

    throwaway: ThrowawayCluster
    cluster: Any
    compare: Any
    evidence: Path
    ends: Exception | None = None
    done: list[Rung] = field(default_factory=list)
    found: list[Finding] = field(default_factory=list)
    measured: Measured = field(default_factory=lambda: Measured(copy=6.0, copied_records=50, window=1.5, tries=1))
    refused: list[str] = field(default_factory=list)
    judged: bool = False

    def await_a_controller(self) -> None:
        if self.ends is not None:
            raise self.ends

    def climb(self, wanted: Iterable[Rung]) -> None:
        self.done += [each for each in wanted if each not in (Rung.COPY_THE_TREE, Rung.START)]
        usage = self.throwaway.usage
        usage.load_average = lambda: (0.5, 0.5, 0.5)
        usage.rss[self.throwaway.spec.controllers[0].service] = 400
        usage.cpu[1] = 120.0
        usage.looks.clear()
        for span in (COPY, WINDOW):
            usage.spans[span] = (usage.now(), usage.now())
            usage.look()


def made_up(ends: Exception | None = None) -> Callable[..., MadeUpLadder]:
    """For ``Ask.ladder``."""
    return partial(MadeUpLadder, ends=ends)
