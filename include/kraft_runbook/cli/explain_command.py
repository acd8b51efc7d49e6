"""``kraft-runbook plan`` and ``explain``: the steps from here, and in words what it waits for. Change nothing."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from kraft_runbook.cli.asking import asking
from kraft_runbook.cli.looking import groups_in_words, load, look, operation_of, two_looks
from kraft_runbook.cli.options import CANT_TELL, FINE, AsJson, ClusterName, ClustersDir, OperationName
from kraft_runbook.cli.outputs import to_json
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.evidence.store import state_directory
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.migration.checks.catalogue import DUAL_WRITING
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.plan import make_plan


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
