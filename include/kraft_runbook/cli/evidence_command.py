"""``kraft-runbook evidence``: a run's records as a timeline, their chain verified, and one HTML page to file."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from kraft_runbook.cli.options import FINE, NO, AsJson
from kraft_runbook.cli.outputs import (
    EvidenceOutput,
    RunEntry,
    to_json,
)
from kraft_runbook.dashboard.out_of_sync import out_of_sync_in
from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.page import render_page
from kraft_runbook.evidence.run_report import RunReport, make_report
from kraft_runbook.evidence.store import FoundRun, evidence_directory, find_run, inspect_run, runs_in, state_directory
from kraft_runbook.evidence.text import render_text


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


def show_evidence(run: str | None, directory: Path | None, *, anchor: str, html: Path | None, as_json: bool) -> bool:
    """Print a run's evidence, or the list of runs. Returns whether every chain that was read is whole.

    Raises RunbookError where there is nothing to read, or the page can't be written.
    """
    place = directory or evidence_directory(os.environ)
    if run is None:
        if html or anchor:
            raise typer.BadParameter("--html and --anchor are about one run: name it by --run")
        return _list(place, as_json=as_json)
    found = inspect_run(place, find_run(place, run))
    report = make_report(found.run, found.records, found.broken, anchor=anchor)
    if html is not None:
        _write(html, report, found)
    typer.echo(
        to_json("evidence", EvidenceOutput(str(place), (_entry(report),), report)) if as_json else render_text(report)
    )
    return report.chain.problem is None


def _list(place: Path, *, as_json: bool) -> bool:
    reports = [
        make_report(each.run, each.records, each.broken)
        for each in (inspect_run(place, name) for name in runs_in(place))
    ]
    runs = tuple(
        _entry(r)
        for r in sorted(reports, key=lambda r: (r.began is None, r.began or datetime.min.replace(tzinfo=UTC), r.run))
    )
    if as_json:
        typer.echo(to_json("evidence", EvidenceOutput(str(place), runs, None)))
    else:
        lines = [
            f"{_when(each.began)}  {each.records:>5}  {each.run}\n{'':28}{each.problem or each.outcome}"
            for each in runs
        ]
        typer.echo("\n".join([f"{len(runs)} runs in {place}", *lines]))
    return all(each.problem is None for each in runs)


def _when(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}" if at else f"{'no time':19}"


def _entry(report: RunReport) -> RunEntry:
    return RunEntry(
        report.run,
        report.cluster,
        report.began,
        report.ended,
        report.chain.records,
        report.outcome,
        report.good,
        report.chain.problem,
    )


def _write(file: Path, report: RunReport, found: FoundRun) -> None:
    in_sync = out_of_sync_in(state_directory(os.environ), report)
    try:
        page = render_page(report, found.records, made_at=datetime.now(UTC), in_sync=in_sync)
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise RunbookError(
            f"the page can't be written to {file}: {error.strerror}", way_out="name another file by --html"
        ) from None
    typer.echo(f"written to {file}", err=True)
