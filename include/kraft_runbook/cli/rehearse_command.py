"""``kraft-runbook rehearse``: the migration of a cluster, tried in a throwaway with a copy of its metadata."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import typer

from kraft_runbook.cli.cluster_files import clusters_directory
from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.evidence.rehearsal_record import dag_of
from kraft_runbook.evidence.rehearsals import last_passed
from kraft_runbook.evidence.store import append_record, evidence_directory, run_name
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.rehearsal.page import render
from kraft_runbook.rehearsal.verdict import Verdict
from kraft_runbook.steps.rehearse import Ask, rehearse

TASK = "rehearse"


def rehearse_here(cluster: str, clusters_dir: Path | None, *, whole: bool, keep: bool) -> Verdict:
    """Rehearse, put the verdict into the evidence, print its page. A SIGTERM ends it as an interruption does: what was
    started is ended and removed. Raises RunbookError where it can't begin.
    """
    spec = load_cluster(cluster, directory=clusters_directory(clusters_dir), environment=os.environ)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    directory = evidence_directory(os.environ)
    before = last_passed(directory, spec.name)
    last = before.told.measured.get("copy") if before else None
    ask = Ask(whole=whole, keep=keep, last_copy=float(last) if isinstance(last, int | float) else None)
    told = rehearse(spec, secrets=environment_secrets(), tell=lambda line: typer.echo(line, err=True), ask=ask)
    where = put_on_record(directory, spec, told)
    typer.echo(f"{render(spec, told)}\n\nThe record: {where}")
    return Verdict(told.verdict)


def put_on_record(directory: Path, spec: ClusterSpec, told: Canary) -> str:
    """As a run of the DAG does; returns the run's name in the evidence."""
    dag, run = dag_of(spec.name), f"by_hand__{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"
    name = run_name(dag, run)
    append_record(directory, name, {"cluster": spec.name, "dag": dag, "run": run, "task": TASK, **told.body()})
    return name
