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

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from kraft_runbook import __version__
from kraft_runbook.cli.adopt_command import adopt_command
from kraft_runbook.cli.asking import Asking
from kraft_runbook.cli.checks_command import checks_command, schema_command
from kraft_runbook.cli.clusters_command import clusters_command
from kraft_runbook.cli.evidence_command import evidence_command
from kraft_runbook.cli.explain_command import explain_command, plan_command
from kraft_runbook.cli.features_command import features_command
from kraft_runbook.cli.groups_command import app as groups_app
from kraft_runbook.cli.metrics_command import metrics_command
from kraft_runbook.cli.observe_command import observe_command
from kraft_runbook.cli.options import ERROR, FINE, USAGE
from kraft_runbook.cli.parity_command import parity_command
from kraft_runbook.cli.preflight_command import preflight_command
from kraft_runbook.cli.quorum_command import quorum_command
from kraft_runbook.cli.reassign_command import app as reassign_app
from kraft_runbook.cli.rehearse_command import rehearse_command
from kraft_runbook.errors import RunbookError

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
for command, does in (
    ("adopt", adopt_command),
    ("clusters", clusters_command),
    ("observe", observe_command),
    ("preflight", preflight_command),
    ("parity", parity_command),
    ("plan", plan_command),
    ("explain", explain_command),
    ("features", features_command),
    ("quorum", quorum_command),
    ("rehearse", rehearse_command),
    ("metrics", metrics_command),
    ("evidence", evidence_command),
    ("checks", checks_command),
    ("schema", schema_command),
):
    app.command(command)(does)


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
