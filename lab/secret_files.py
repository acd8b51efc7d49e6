"""The lab's secrets: random, made once, kept in two files that only their owner may read."""

from __future__ import annotations

import secrets
import shlex
from pathlib import Path

from kraft_runbook.cluster.properties_text import render_secrets
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.private_file import write_private
from kraft_runbook.io.secrets import references
from lab.logins import lines


def make_secrets(spec: ClusterSpec, environment_file: Path) -> None:
    """Write both files if they are not there: ``environment_file`` for our own clients, ``spec.secrets_file`` for Kafka
    (KIP-297).
    """
    if not environment_file.exists():
        names = sorted({ref.env for ref in (*spec.secrets.values(), *references(spec)) if ref.env})
        values = {name: secrets.token_urlsafe(32) for name in names}
        values |= lines(values)
        write_private(
            environment_file, "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())
        )
    values = read_environment_file(environment_file)
    if spec.secrets_file and not Path(spec.secrets_file).exists():
        write_private(
            Path(spec.secrets_file), render_secrets({key: values[ref.env or ""] for key, ref in spec.secrets.items()})
        )


def read_environment_file(path: Path) -> dict[str, str]:
    """``export NAME=value`` lines as a mapping. Raises RunbookError where the file is missing."""
    if not path.exists():
        raise RunbookError(
            f"the lab has no secrets yet: {path} is missing", way_out="bring the lab up first: make lab-up"
        )
    words = shlex.split(path.read_text(), comments=True)
    return dict(word.split("=", 1) for word in words if "=" in word)
