"""``kraft-runbook preflight``: every check that applies where a cluster stands. Changes nothing."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from kraft_runbook.cli.asking import asking
from kraft_runbook.cli.looking import load, operation_of, two_looks
from kraft_runbook.cli.options import CANT_TELL, FINE, NO, AsJson, ClusterName, ClustersDir, OperationName
from kraft_runbook.cli.outputs import PreflightOutput, to_json
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.migration.checks import Verdict
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.runbook.check_results import ChecksReport
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.migration_gates import judge, on_record


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
