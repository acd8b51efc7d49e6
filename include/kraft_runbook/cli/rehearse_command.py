"""``kraft-runbook rehearse``: the migration of a cluster, tried in a throwaway with a copy of its metadata."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from kraft_runbook.cli.looking import load
from kraft_runbook.cli.options import CANT_TELL, FINE, NO, ClusterName, ClustersDir
from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.evidence.rehearsal_record import dag_of
from kraft_runbook.evidence.rehearsals import still_ahead, that_passed
from kraft_runbook.evidence.store import append_record, evidence_directory, run_name
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.rehearsal.page import render
from kraft_runbook.rehearsal.verdict import SHORT_DOES, Verdict
from kraft_runbook.steps.rehearse import Ask, rehearse

TASK = "rehearse"


def rehearse_command(
    cluster: ClusterName,
    clusters_dir: ClustersDir = None,
    short: Annotated[
        bool,
        typer.Option("--short", help=f"{SHORT_DOES}."),
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the throwaway cluster for a look; its lease ends it in ten minutes.")
    ] = False,
) -> None:
    """Try the whole migration in a throwaway cluster on this machine, with a copy of the cluster's metadata."""
    verdict = rehearse_here(cluster, clusters_dir, whole=not short, keep=keep)
    codes = {Verdict.PASSED: FINE, Verdict.FAILED: NO, Verdict.INCONCLUSIVE: CANT_TELL}
    raise typer.Exit(codes[verdict])


def rehearse_here(cluster: str, clusters_dir: Path | None, *, whole: bool, keep: bool) -> Verdict:
    """Rehearse, put it into the evidence when it has begun and when it has a verdict, print its page. A SIGTERM ends it
    as an interruption does: what was started is ended and removed. Raises RunbookError where it can't begin.
    """
    spec = load(cluster, clusters_dir)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    directory = evidence_directory(os.environ)
    now = datetime.now(UTC)
    record = ByHand(directory, spec.name, f"by_hand__{now:%Y-%m-%dT%H:%M:%S.%f}")
    passed = that_passed(directory, spec.name, now=now)
    ask = Ask(
        whole=whole,
        keep=keep,
        passed=passed,
        ahead=lambda: still_ahead(directory, spec.name, now=datetime.now(UTC)),
        record=record.put,
    )
    told = rehearse(spec, secrets=environment_secrets(), tell=lambda line: typer.echo(line, err=True), ask=ask)
    typer.echo(f"{render(spec, told)}\n\nThe record: {record.name}")
    return Verdict(told.verdict)


@dataclass(frozen=True, slots=True)
class ByHand:
    """The evidence of one rehearsal by hand, as that of a run of the DAG with the id ``run``."""

    directory: Path
    cluster: str
    run: str

    @property
    def name(self) -> str:
        """Of the run in the evidence."""
        return run_name(dag_of(self.cluster), self.run)

    def put(self, told: Canary) -> None:
        """Raises OSError, RunbookError."""
        whose = {"cluster": self.cluster, "dag": dag_of(self.cluster), "run": self.run, "task": TASK}
        append_record(self.directory, self.name, whose | told.body())
