"""``kraft-runbook features``: where the feature levels stand, what a change of one would do, and whether the nodes can
start on another version of Kafka. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from kraft_runbook.cli.asking import Asking, asking
from kraft_runbook.cli.looking import load
from kraft_runbook.cli.options import CANT_TELL, FINE, NO, AsJson, ClusterName, ClustersDir
from kraft_runbook.cli.outputs import (
    FeaturesOutput,
    OtherSoftware,
    to_json,
)
from kraft_runbook.cluster.config_tables import config_table
from kraft_runbook.cluster.feature_levels import METADATA_VERSION, FeatureObservation, SoftwareLevels
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.secrets import Secrets, environment_secrets
from kraft_runbook.levels.overview import overview
from kraft_runbook.software.file_keys import file_findings
from kraft_runbook.software.way_back import way_to


def features_command(
    context: typer.Context,
    cluster: ClusterName,
    clusters_dir: ClustersDir = None,
    as_json: AsJson = False,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", help="Also preview a change to this level: its number, its name (4.0-IV3), a release (4.1)."
        ),
    ] = None,
    feature: Annotated[str, typer.Option("--feature", help="The feature that --to is of.")] = METADATA_VERSION,
) -> None:
    """Show every node's feature levels and software, every level that the log gave, and what a change would do."""
    spec = load(cluster, clusters_dir)
    output, text = show_features(asking(context), spec, feature=feature, wanted=to, secrets=environment_secrets())
    typer.echo(to_json("features", output) if as_json else text)
    raise typer.Exit(exit_code(output))


def show_features(
    ask: Asking, spec: ClusterSpec, *, feature: str, wanted: str | None, secrets: Secrets
) -> tuple[FeaturesOutput, str]:
    """What ``features`` prints: as a value, and as text. Raises Refused for a level that can't be planned."""
    seen = ask.features(spec, secrets=secrets)
    summed = overview(seen)
    others = tuple(_others(spec, seen, summed.software))
    change = ask.preview(spec, seen, feature, wanted, secrets=secrets) if wanted is not None else None
    output = FeaturesOutput(spec.name, seen, summed.software, summed.findings, others, change)
    parts = [summed.render_text(), *(_text(seen, each) for each in others)]
    return output, "\n\n".join([*parts, *([change.render_text()] if change else [])])


def _others(spec: ClusterSpec, seen: FeatureObservation, now: SoftwareLevels | str) -> Iterator[OtherSoftware]:
    """Each installation that the cluster file names and not every node runs."""
    for home in (spec.kafka.home, *([spec.kafka.upgrade_to.home] if spec.kafka.upgrade_to else [])):
        hosts = [host for host in seen.hosts.values() if not isinstance(host, Unread)]
        known = [each for host in hosts if isinstance(each := host.software[home], SoftwareLevels)]
        if not known or (isinstance(now, SoftwareLevels) and known[0].version == now.version):
            continue
        running = now.version if isinstance(now, SoftwareLevels) else ""
        way = way_to(seen, known[0], now if isinstance(now, SoftwareLevels) else known[0])
        files = {
            host.node_id: found
            for host in hosts
            if host.config is not None
            and not isinstance(host.config, Unread)
            and (found := file_findings(host.config, known[0].version, now=running))
        }
        yield OtherSoftware(known[0].version, home, way.open, way, files)


def _text(seen: FeatureObservation, other: OtherSoftware) -> str:
    lines = [f"Kafka {other.version} in {other.home}: {other.way.render_text()}"]
    if isinstance(table := config_table(other.version), Unread):
        lines.append(f"  {table.reason}")
    for node_id, found in other.files.items():
        refused = [str(each) for each in found if each.refused]
        ignored = [each.key for each in found if not each.refused and not each.unknown]
        unknown = [str(each) for each in found if each.unknown]
        lines += [f"  the file of {seen.who(node_id)}: {each}" for each in (*refused, *unknown)]
        if ignored:
            lines.append(f"  the file of {seen.who(node_id)} holds keys that it reads over: {', '.join(ignored)}")
    return "\n".join(lines)


def exit_code(output: FeaturesOutput) -> int:
    """No: the level that was asked for can't be had. Can't tell: something was not read."""
    if output.change is not None:
        unknown = any(each.unknown for each in output.change.obstacles)
        return FINE if output.change.may_go else CANT_TELL if unknown else NO
    return FINE if isinstance(output.software, SoftwareLevels) else CANT_TELL
