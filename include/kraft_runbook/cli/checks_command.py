"""``kraft-runbook checks`` and ``schema``: what this tool checks, and the form of its JSON. Ask no cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from kraft_runbook.cli.options import AsJson
from kraft_runbook.cli.outputs import OUTPUTS, checks_output, schema, to_json
from kraft_runbook.operations import render_checks


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


def schema_command(
    command: Annotated[str, typer.Argument(help=f"{', '.join(OUTPUTS)}.")],
) -> None:
    """Print the JSON schema of a command's --json output."""
    if command not in OUTPUTS:
        raise typer.BadParameter(f"no schema for {command}; there are {', '.join(OUTPUTS)}")
    typer.echo(schema(command), nl=False)
