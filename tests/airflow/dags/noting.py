"""Whom these tests tell: a file."""

from pathlib import Path


def note(file, context):
    told = context["kraft_runbook"]
    with Path(file).open("a") as lines:
        lines.write(f"{told['cluster']}: {told['what']}, {context['dag_run'].run_id}\n")
