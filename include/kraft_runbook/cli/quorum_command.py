"""``kraft-runbook quorum``: whether the controller quorum is healthy. Changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

import typer

from kraft_runbook.cli.looking import load
from kraft_runbook.cli.options import CANT_TELL, FINE, NO, AsJson, ClusterName, ClustersDir, Watch
from kraft_runbook.cli.outputs import (
    QuorumOutput,
    to_json,
)
from kraft_runbook.cluster.feature_levels import FeatureObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.see_quorum import APART_SECONDS, see_series
from kraft_runbook.quorum.checks import judge
from kraft_runbook.quorum.look import KeptEpoch, Series
from kraft_runbook.quorum.page import render
from kraft_runbook.runbook.check_results import Verdict

REGISTRATIONS_SECONDS = 60.0
"""How old registrations may be where one look follows the other: each reading of them reads the whole metadata log."""


def quorum_command(
    cluster: ClusterName,
    clusters_dir: ClustersDir = None,
    as_json: AsJson = False,
    watch: Watch = False,
) -> None:
    """Look three times at the controller quorum, or at ZooKeeper's controller, and say whether it is healthy."""
    verdict = show_quorum(load(cluster, clusters_dir), as_json=as_json, watch=watch)
    raise typer.Exit({Verdict.PASS: FINE, Verdict.FAIL: NO, Verdict.UNKNOWN: CANT_TELL}[verdict])


def show_quorum(
    spec: ClusterSpec,
    *,
    as_json: bool,
    watch: bool,
    see: Callable[..., Series] = see_series,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """Print the look and every check's answer; again and again where ``watch``. Returns the last verdict."""
    before: KeptEpoch | None = None
    known: FeatureObservation | None = None
    until = 0.0
    while True:
        series = see(spec, secrets=environment_secrets(), before=before, known=known)
        if known is None:
            until = clock() + REGISTRATIONS_SECONDS
        known = series.registrations if was_read(series.registrations) and clock() < until else None
        report = judge(series, spec)
        now = series.now
        if as_json:
            typer.echo(to_json("quorum", QuorumOutput(now, now.mode, report.verdict, report.results)))
        else:
            typer.echo(f"{spec.name}, {now.looked_at:%Y-%m-%d %H:%M:%S} UTC\n{render(now)}\n\n{report.render_text()}")
        if not watch:
            return report.verdict
        before = kept(series) or before
        sleep(APART_SECONDS)
        typer.echo("")


def kept(series: Series) -> KeptEpoch | None:
    """The epoch of the last look that saw one."""
    led = [each for each in series.looks if was_read(each.quorum)]
    return KeptEpoch(led[-1].quorum.leader_epoch, led[-1].looked_at) if led and was_read(led[-1].quorum) else None
