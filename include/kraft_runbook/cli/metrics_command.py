"""``kraft-runbook metrics``: what this tool knows of a cluster and Kafka's own metrics do not say, as OpenMetrics text
for Prometheus. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from kraft_runbook.cli.asking import asking
from kraft_runbook.cli.looking import load, look
from kraft_runbook.cli.migration_gauges import Moving, gauge, of_gates, of_nodes, of_reassignments
from kraft_runbook.cli.options import ClusterName, ClustersDir
from kraft_runbook.cluster.feature_levels import FeatureObservation
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, unread_parts, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.io.kafka.reassignments import Reassignments
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.migration.eligibility import zookeeper_behind, zookeeper_write_ms
from kraft_runbook.migration.way_back import way_back
from kraft_runbook.procedures.part_read import part_read
from kraft_runbook.procedures.see_quorum import see_series
from kraft_runbook.quorum.checks import judge
from kraft_runbook.quorum.look import Series
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.warm import Warmth


def metrics_command(
    context: typer.Context,
    cluster: ClusterName,
    clusters_dir: ClustersDir = None,
    textfile: Annotated[
        Path | None, typer.Option("--textfile", help="Write it there, for the node exporter's textfile collector.")
    ] = None,
) -> None:
    """Show phase, gates, way back, reassignments, modes and the quorum's health as OpenMetrics text, for Prometheus."""
    spec = load(cluster, clusters_dir)
    secrets = environment_secrets()
    ask = asking(context)
    earlier = look(ask, spec)
    series = see_series(spec, secrets=secrets)  # takes some seconds: time enough between two looks
    moving = part_read(Reassignments(spec, secrets=secrets, timeout=10.0, patience=5.0).ongoing)
    text = exposition(look(ask, spec), series, spec, moving=moving, earlier=earlier)
    if textfile is None:
        typer.echo(text, nl=False)
    else:
        write_textfile(textfile, text)


def exposition(
    seen: ClusterObservation,
    series: Series,
    spec: ClusterSpec,
    *,
    moving: Moving,
    earlier: ClusterObservation | None = None,
) -> str:
    """OpenMetrics text. What could not be read has no sample: an alarm on its absence is the alarm that it needs.
    ``earlier``: a look some seconds before, for checks that judge by two.
    """
    registry = CollectorRegistry()
    found = [*_of_cluster(seen, spec), *_of_quorum(series, spec), *of_reassignments(moving, spec)]
    if seen.has_zookeeper:
        found += [*of_gates(seen, spec, earlier), *of_nodes(seen, spec)]
    found += _of_levels(series.registrations, spec)
    registry.register(_Collected(found))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


def write_textfile(path: Path, text: str) -> None:
    """For the node exporter's textfile collector, which reads as another user: mode 0644, replaced in one rename.
    Raises OSError.
    """
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(text)
    draft.chmod(0o644)
    draft.replace(path)


class _Collected(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _of_cluster(seen: ClusterObservation, spec: ClusterSpec) -> Iterator[Metric]:
    now = detect_phase(seen).phase
    phase = gauge("phase", "1 for the observed phase between ZooKeeper and KRaft, 0 for every other one", "phase")
    for each in Phase:
        phase.add_metric((spec.name, each.value), float(each is now))
    yield phase
    unread = gauge("unread_parts", "Parts of the cluster that could not be read at this look")
    unread.add_metric((spec.name,), len(unread_parts(seen)))
    yield unread
    if seen.has_zookeeper:
        back = gauge(
            "way_back_open", "1: by this look the cluster can go back to ZooKeeper, 0: it can not; absent: not known"
        )
        plan = way_back(seen, spec)
        if plan.known:
            back.add_metric((spec.name,), float(plan.possible))
        yield back
    mode = gauge("broker_mode", "1 for the mode that a broker runs in, 0 for every other one", "broker", "mode")
    for broker in seen.brokers.values():
        for each_mode in BrokerMode if was_read(broker.mode) else ():
            mode.add_metric((spec.name, str(broker.id), each_mode.value), float(broker.mode is each_mode))
    yield mode
    quorum = seen.quorum
    behind = gauge(
        "zookeeper_write_behind_records",
        "Committed records that /migration does not show as written to ZooKeeper; in dual write alone",
    )
    level = gauge("metadata_version", "The feature level of metadata.version in the metadata log")
    if was_read(quorum) and quorum.metadata_version is not None:
        level.add_metric((spec.name,), quorum.metadata_version)
    lag = zookeeper_behind(seen)
    if lag is not None:
        behind.add_metric((spec.name,), lag)
    writes = gauge(
        "zookeeper_write_p99_seconds",
        "99 % of the changes took the active controller less to write to ZooKeeper; in dual write alone",
    )
    took = zookeeper_write_ms(seen)
    if took is not None:
        writes.add_metric((spec.name,), took / 1000)
    yield from (level, behind, writes)


def _of_levels(found: FeatureObservation | Unread, spec: ClusterSpec) -> Iterator[Metric]:
    """Every feature that a controller supports or the metadata log holds a level of."""
    level = gauge(
        "feature_level",
        "The level of a feature that holds for the cluster (metadata.version, kraft.version, group.version and others),"
        " 0: off; absent: not known",
        "feature",
    )
    if was_read(found):
        features = {name for each in found.controllers.values() if was_read(each) for name in each.supported}
        features |= found.log.levels.keys() if was_read(found.log) else set()
        for name in sorted(features):
            holds = found.level(name)
            if was_read(holds):
                level.add_metric((spec.name, name), holds)
    yield level


def _of_quorum(series: Series, spec: ClusterSpec) -> Iterator[Metric]:
    now, quorum = series.now, series.now.quorum
    leader = gauge("quorum_leader", "The id of the controller that leads; absent: nobody was seen to lead")
    epoch = gauge("quorum_epoch", "The quorum's epoch: each attempt at an election raises it")
    mark = gauge("quorum_high_watermark", "The offset below which every record of the metadata log is committed")
    lag = gauge("voter_lag_records", "Records that a voter has not fetched", "controller")
    silence = gauge("voter_seconds_since_fetch", "Since a voter's last fetch, by the leader's clock", "controller")
    if was_read(quorum):
        leader.add_metric((spec.name,), quorum.leader_id)
        epoch.add_metric((spec.name,), quorum.leader_epoch)
        if quorum.high_watermark >= 0:
            mark.add_metric((spec.name,), quorum.high_watermark)
        for voter in quorum.voters:
            if voter.lag is not None:
                lag.add_metric((spec.name, str(voter.id)), voter.lag)
            if voter.seconds_since_fetch is not None:
                silence.add_metric((spec.name, str(voter.id)), voter.seconds_since_fetch)
    warm = gauge("controller_warm", "1: it has applied the metadata log, 0: not yet; absent: not known", "controller")
    for controller in now.controllers.values():
        if was_read(controller.warm):
            warm.add_metric((spec.name, str(controller.id)), float(controller.warm is Warmth.WARM))
    unapplied = gauge("broker_unapplied_records", "Committed records that a broker has not applied", "broker")
    age = gauge(
        "broker_last_applied_seconds",
        "The age of the last record of the metadata log that a broker has applied, by its own clock",
        "broker",
    )
    current = gauge(
        "broker_current",
        "1: a broker has applied what was committed four seconds before, 0: not yet; absent: not known",
        "broker",
    )
    for broker in now.brokers.values():
        labels = (spec.name, str(broker.id))
        if was_read(broker.applied):
            if was_read(quorum) and quorum.high_watermark >= 0:
                unapplied.add_metric(labels, max(0, quorum.high_watermark - 1 - broker.applied.last_applied_offset))
            if broker.applied.last_applied_lag_ms is not None and broker.applied.last_applied_offset >= 0:
                age.add_metric(labels, broker.applied.last_applied_lag_ms / 1000)
        if was_read(broker.current):
            current.add_metric(labels, float(broker.current is Warmth.WARM))
    verdict = gauge(
        "quorum_check", "1 for the verdict of a check (docs/checks.md), 0 for others", "code", "severity", "verdict"
    )
    for result in judge(series, spec).results:
        for each in Verdict:
            verdict.add_metric(
                (spec.name, result.code, result.severity.value, each.value), float(result.verdict is each)
            )
    yield from (leader, epoch, mark, lag, silence, warm, unapplied, age, current, verdict)
