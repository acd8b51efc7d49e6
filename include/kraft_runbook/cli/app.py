"""``kraft-runbook``: the same core without Airflow. Nothing here changes a cluster but a rehearsal's own throwaway.

Exit codes: 0 fine (parity: MATCH, preflight: passed) · 1 no (parity: MISMATCH, preflight: a blocking check failed,
features: the level that was asked for can't be had, evidence: a chain is broken, reassign: stuck, or not as
planned, groups: one needs ZooKeeper, or a record was lost or came twice, quorum: a blocking check failed, clusters: a
file can't be used, rehearse: FAILED) ·
2 can't tell (parity: INCONCLUSIVE, preflight: a blocking check is UNKNOWN, observe and explain: the phase is UNKNOWN,
features: a node's software is not known, groups: one is UNKNOWN, quorum: a blocking check is UNKNOWN, rehearse:
INCONCLUSIVE) ·
3 error, with what to do about it · 4 wrong usage.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kraft_runbook import __version__
from kraft_runbook.cli.adopt_command import adopt_command
from kraft_runbook.cli.asking import Asking, asking
from kraft_runbook.cli.clusters_command import list_clusters
from kraft_runbook.cli.evidence_command import show_evidence
from kraft_runbook.cli.features_command import exit_code, show_features
from kraft_runbook.cli.groups_command import app as groups_app
from kraft_runbook.cli.looking import groups_in_words, load, look, operation_of, two_looks
from kraft_runbook.cli.metrics_command import exposition, write_textfile
from kraft_runbook.cli.observation_text import observation_text
from kraft_runbook.cli.outputs import OUTPUTS, ObserveOutput, PreflightOutput, checks_output, schema, to_json
from kraft_runbook.cli.progress import look_again, reading
from kraft_runbook.cli.quorum_command import show_quorum
from kraft_runbook.cli.reassign_command import app as reassign_app
from kraft_runbook.cli.rehearse_command import rehearse_here
from kraft_runbook.cluster.feature_levels import METADATA_VERSION
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.store import state_directory
from kraft_runbook.io.kafka.reassignments import Reassignments
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.migration.checks import Verdict
from kraft_runbook.migration.checks.catalogue import DUAL_WRITING
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.plan import make_plan
from kraft_runbook.operations import OPERATIONS, render_checks
from kraft_runbook.parity.parity_report import Verdict as ParityVerdict
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.procedures.part_read import part_read
from kraft_runbook.procedures.see_quorum import see_series
from kraft_runbook.rehearsal import verdict as rehearsed
from kraft_runbook.runbook.check_results import ChecksReport
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.migration_gates import judge, on_record

FINE, NO, CANT_TELL, ERROR, USAGE = 0, 1, 2, 3, 4

app = typer.Typer(
    name="kraft-runbook",
    help="Where a Kafka cluster stands between ZooKeeper and KRaft, and what may happen next. Changes nothing.",
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(reassign_app, name="reassign")
app.add_typer(groups_app, name="groups")
app.command("adopt")(adopt_command)

ClusterName = Annotated[str, typer.Option("--cluster", help="The cluster: the name of its file without .yaml.")]
ClustersDir = Annotated[
    Path | None,
    typer.Option(
        "--clusters-dir",
        help="Where the cluster files lie. Default: KRAFT_RUNBOOK_CLUSTERS, or include/clusters of this project.",
    ),
]
OperationName = Annotated[
    str, typer.Option("--operation", help=f"Of which operation: {', '.join(OPERATIONS)}. Default: migration.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON; its schema lies in docs/schemas.")]
Watch = Annotated[bool, typer.Option("--watch", help="Look again and again, until interrupted.")]


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"kraft-runbook {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """What holds for every command."""


@app.command("clusters")
def clusters_command(clusters_dir: ClustersDir = None) -> None:
    """List the clusters whose files are found, each with what it is, or why its file can't be used."""
    directory, found = list_clusters(clusters_dir)
    if not found:
        raise RunbookError(f"no cluster file (*.yaml) in {directory}", way_out="name another one: --clusters-dir")
    for each in found:
        typer.echo(f"{each.name}  {each.description if each.problem is None else f'can not be used: {each.problem}'}")
    raise typer.Exit(FINE if all(each.problem is None for each in found) else NO)


@app.command("observe")
def observe_command(
    context: typer.Context,
    cluster: ClusterName,
    clusters_dir: ClustersDir = None,
    as_json: AsJson = False,
    full: Annotated[bool, typer.Option("--full", help="Also read every topic's znodes.")] = False,
    hosts: Annotated[bool, typer.Option("--hosts", help="Also examine the hosts, through Ansible.")] = False,
    watch: Watch = False,
) -> None:
    """Read ZooKeeper, brokers, controllers and metrics at once, and show what is true."""
    spec, scope = load(cluster, clusters_dir), Scope.FULL if full else Scope.LIVE

    def once() -> int:
        with reading(f"looking at {spec.name}"):
            seen = asking(context).observe(spec, secrets=environment_secrets(), scope=scope, with_hosts=hosts)
        found = detect_phase(seen)
        if found.transient:
            typer.echo(
                "a node that has just started shows the same for a moment: look again before you believe it", err=True
            )
        typer.echo(to_json("observe", ObserveOutput.of(found, seen)) if as_json else observation_text(seen))
        return CANT_TELL if found.phase is Phase.UNKNOWN else FINE

    raise typer.Exit(look_again(watch, once))


@app.command("preflight")
def preflight_command(
    context: typer.Context,
    cluster: ClusterName,
    clusters_dir: ClustersDir = None,
    as_json: AsJson = False,
    gate: Annotated[
        str | None, typer.Option("--gate", help="The checks of a gate: start, dual_write or finalize of the migration.")
    ] = None,
    operation: OperationName = MIGRATION.name,
) -> None:
    """Run every check that applies where the cluster stands, with a deep read and the hosts examined."""
    asked = operation_of(operation)
    gates = [str(terms.name) for terms in asked.table.gates if not terms.goes_back]
    if gate not in (None, *gates):
        raise typer.BadParameter(f"--gate is {' or '.join(gates)}, not {gate}")
    spec = load(cluster, clusters_dir)
    earlier, seen, of_cluster = two_looks(asking(context), asked, spec, scope=Scope.FULL, with_hosts=True)
    phase = detect_phase(of_cluster).phase
    if asked is MIGRATION and gate is not None:
        cluster_of_gate = Cluster(spec, environment_secrets(), partial(typer.echo, err=True))
        report = ChecksReport((*judge(spec, gate, seen, earlier), *on_record(cluster_of_gate, gate, seen)))
    else:
        report = asked.checks.run(seen, spec, asked.read(seen, spec).stage, gate=gate, earlier=earlier)
    typer.echo(
        to_json("preflight", PreflightOutput(spec.name, phase, report.verdict, report.results))
        if as_json
        else f"{spec.name} is in {phase}\n{report.render_text()}"
    )
    raise typer.Exit({Verdict.PASS: FINE, Verdict.FAIL: NO, Verdict.UNKNOWN: CANT_TELL}[report.verdict])


@app.command("parity")
def parity_command(
    cluster: ClusterName,
    clusters_dir: ClustersDir = None,
    as_json: AsJson = False,
    baseline: Annotated[
        Path | None, typer.Option(help="After finalization: the proven state to compare with, in ZooKeeper's place.")
    ] = None,
    save_proven: Annotated[
        list[Path] | None,
        typer.Option(help="Where a MATCH in dual write leaves the proven state: --since and --baseline go on from it."),
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option(help="Compare only what changed since that full comparison (--save-proven); without Spark."),
    ] = None,
) -> None:
    """Compare the metadata in ZooKeeper with that in KRaft, by Spark; or what changed since then."""
    spec = load(cluster, clusters_dir)
    if since is not None:
        from kraft_runbook.parity.since import compare_since

        with reading(f"comparing what changed in {spec.name}"):
            report = compare_since(spec, since, secrets=environment_secrets())
    else:
        from kraft_runbook.parity.spark.full_comparison import (
            run_parity,
        )  # pyspark takes a second to import, and only this needs it

        with reading(f"comparing ZooKeeper with the metadata log of {spec.name}"):
            report = run_parity(spec, secrets=environment_secrets(), baseline=baseline, save_proven=save_proven or ())
    typer.echo(to_json("parity", report) if as_json else report.render_text())
    raise typer.Exit({ParityVerdict.MATCH: FINE, ParityVerdict.MISMATCH: NO}.get(report.verdict, CANT_TELL))


@app.command("plan")
def plan_command(
    context: typer.Context,
    cluster: ClusterName,
    clusters_dir: ClustersDir = None,
    as_json: AsJson = False,
    hosts: Annotated[bool, typer.Option("--hosts", help="Also compare the nodes' files on their hosts.")] = False,
) -> None:
    """Show every step from here to FINALIZED, in order, with what changes in each configuration, and the way back."""
    spec = load(cluster, clusters_dir)
    plan = make_plan(look(asking(context), spec, with_hosts=hosts), spec, hosts=hosts)
    typer.echo(to_json("plan", plan) if as_json else plan.render_text())


@app.command("explain")
def explain_command(
    context: typer.Context,
    cluster: ClusterName,
    clusters_dir: ClustersDir = None,
    as_json: AsJson = False,
    operation: OperationName = MIGRATION.name,
) -> None:
    """Say in words where the cluster stands, what it waits for, and what you can do now, forward and back."""
    ask, asked = asking(context), operation_of(operation)
    spec = load(cluster, clusters_dir)
    if asked.sees is ClusterObservation:
        seen, earlier = look(ask, spec), None
        if detect_phase(seen).phase in DUAL_WRITING:
            earlier, seen = seen, look(ask, spec, after=seen)
        explanation = asked.explain(seen, spec, earlier=earlier)
    else:
        before, now, seen = two_looks(ask, asked, spec)
        explanation = asked.explain(now, spec, earlier=before)
    claim = ask.claim(
        spec if was_read(seen.zookeeper) else spec.model_copy(update={"zookeeper": None}),
        secrets=environment_secrets(),
        now=datetime.now(UTC),
        directory=state_directory(os.environ),
    )
    explanation = replace(explanation, claim=claim, groups=groups_in_words(ask, asked, spec, seen))
    typer.echo(to_json("explain", explanation) if as_json else explanation.render_text())
    raise typer.Exit(CANT_TELL if explanation.phase is Phase.UNKNOWN else FINE)


@app.command("features")
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
    raise typer.Exit(exit_code(output, fine=FINE, no=NO, cant_tell=CANT_TELL))


@app.command("quorum")
def quorum_command(
    cluster: ClusterName,
    clusters_dir: ClustersDir = None,
    as_json: AsJson = False,
    watch: Watch = False,
) -> None:
    """Look three times at the controller quorum, or at ZooKeeper's controller, and say whether it is healthy."""
    verdict = show_quorum(load(cluster, clusters_dir), as_json=as_json, watch=watch)
    raise typer.Exit({Verdict.PASS: FINE, Verdict.FAIL: NO, Verdict.UNKNOWN: CANT_TELL}[verdict])


@app.command("rehearse")
def rehearse_command(
    cluster: ClusterName,
    clusters_dir: ClustersDir = None,
    short: Annotated[
        bool,
        typer.Option("--short", help=f"{rehearsed.SHORT_DOES}."),
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the throwaway cluster for a look; its lease ends it in ten minutes.")
    ] = False,
) -> None:
    """Try the whole migration in a throwaway cluster on this machine, with a copy of the cluster's metadata."""
    verdict = rehearse_here(cluster, clusters_dir, whole=not short, keep=keep)
    codes = {rehearsed.Verdict.PASSED: FINE, rehearsed.Verdict.FAILED: NO, rehearsed.Verdict.INCONCLUSIVE: CANT_TELL}
    raise typer.Exit(codes[verdict])


@app.command("metrics")
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


@app.command("evidence")
def evidence_command(
    run: Annotated[
        str | None,
        typer.Option(
            "--run", help="The run: its name in the list, or Airflow's run id. Without it, the runs are listed."
        ),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option("--directory", help="Where the evidence lies. Default: where the environment's settings put it."),
    ] = None,
    anchor: Annotated[
        str,
        typer.Option(
            "--anchor",
            help="The digest of a record of this run that was noted elsewhere: shows whether a tail was cut off.",
        ),
    ] = "",
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write one HTML page to file, which needs no other file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a run saw and did and who approved it, and verify that no record was changed since."""
    raise typer.Exit(FINE if show_evidence(run, directory, anchor=anchor, html=html, as_json=as_json) else NO)


@app.command("checks")
def checks_command(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print docs/checks.md.")] = False,
    as_json: AsJson = False,
) -> None:
    """List every check, with its code, why it is there and what to do."""
    if markdown:
        typer.echo(render_checks(), nl=False)
    elif as_json:
        typer.echo(to_json("checks", checks_output()))
    else:
        for each in checks_output().checks:
            typer.echo(f"{each.code}  {each.severity:<8}  {each.title}")


@app.command("schema")
def schema_command(
    command: Annotated[str, typer.Argument(help=f"{', '.join(OUTPUTS)}.")],
) -> None:
    """Print the JSON schema of a command's --json output."""
    if command not in OUTPUTS:
        raise typer.BadParameter(f"no schema for {command}; there are {', '.join(OUTPUTS)}")
    typer.echo(schema(command), nl=False)


def main(arguments: Sequence[str] | None = None, ask: Asking | None = None) -> None:
    """The entry point: errors meant for a person are printed as problem and way out, without a traceback.
    ``arguments``: those of the command line by default; none of them asks for help. ``ask``: what the cluster is asked
    with.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        result = app(args=given or ["--help"], standalone_mode=False, obj=ask)
    except RunbookError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(ERROR)
    except typer.TyperException as error:
        typer.echo(
            f"usage error: {str(error).rstrip('.')}. kraft-runbook --help lists the commands and their options",
            err=True,
        )
        sys.exit(USAGE)
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("interrupted", err=True)
        sys.exit(130)
    sys.exit(result if isinstance(result, int) else FINE)


if __name__ == "__main__":
    main()
