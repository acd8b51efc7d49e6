"""``kraft-runbook observe``: what is true of a cluster now. Changes nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from kraft_runbook.cli.asking import asking
from kraft_runbook.cli.looking import load
from kraft_runbook.cli.observation_text import observation_text
from kraft_runbook.cli.options import CANT_TELL, FINE, AsJson, ClusterName, ClustersDir, Watch
from kraft_runbook.cli.outputs import ObserveOutput, to_json
from kraft_runbook.cli.progress import look_again, reading
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.observe import Scope


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
