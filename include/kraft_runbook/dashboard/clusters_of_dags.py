"""The clusters of which a person may read DAGs, by the files here: cluster files, state and evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.dashboard.dag_names import cluster_of
from kraft_runbook.dashboard.facts import ClusterFacts, Clusters
from kraft_runbook.dashboard.read_facts import cluster_facts
from kraft_runbook.dashboard.runs_seen import RunsRead
from kraft_runbook.errors import RunbookError


@dataclass(frozen=True, slots=True)
class ClustersOfDags:
    """``directory``: of the cluster files, whose variables are ``environment``'s. ``state``: the state directory, which
    is made when it is asked for; ``evidence``: a directory. ``ended``: as of ``cluster_facts``. ``seconds_of_two``: in
    which two runs by this schedule begin; None: not known.
    """

    directory: Path
    environment: Mapping[str, str]
    state: Callable[[], Path]
    evidence: Path
    ended: Callable[[str, str], bool]
    seconds_of_two: Callable[[str | None, datetime], float | None]
    runs: RunsRead = field(default_factory=RunsRead)

    def names(self, dags: frozenset[str]) -> tuple[str, ...]:
        """The clusters that have a file here and, among these DAGs, one of this project's."""
        files = {each.stem for each in self.directory.glob("*.yaml")}
        return tuple(sorted(files & {cluster for each in dags if (cluster := cluster_of(each))}))

    def everything(self, dags: frozenset[str]) -> Clusters:
        """All clusters of which one of these DAGs is."""
        return Clusters(datetime.now(UTC), tuple(self.facts(each, dags, hour=False) for each in self.names(dags)))

    def facts(self, cluster: str, dags: frozenset[str], *, hour: bool = True) -> ClusterFacts:
        """The facts of a cluster, as far as these DAGs may show them. ``hour``: with its last hour."""
        spec: ClusterSpec | str
        try:
            spec = load_cluster(cluster, directory=self.directory, environment=self.environment)
        except RunbookError as error:
            spec = str(error)
        now = datetime.now(UTC)
        return cluster_facts(
            cluster,
            spec,
            state=self.state(),
            evidence=self.evidence,
            runs=self.runs,
            now=now,
            two_watches=self.seconds_of_two(spec.way_back_schedule, now) if isinstance(spec, ClusterSpec) else None,
            dags=dags,
            ended=self.ended,
            hour=hour,
        )
