"""A lab for tests: its own directory and its own loopback network, so that sessions side by side don't clash."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kraft_runbook.clients.secrets import Secrets, environment_secrets
from kraft_runbook.cluster import ClusterSpec
from lab import ROOT
from lab.layout import environment, load
from lab.trial import free_network


@dataclass(frozen=True)
class Lab:
    """A lab: its cluster file as read, and where it is."""

    spec: ClusterSpec
    directory: Path
    network: str

    @property
    def place(self) -> dict[str, str]:
        """The whole environment of a process that is to find this lab; without its secrets, which exist once it was up."""
        return {**os.environ, "KRB_LAB_DIR": str(self.directory), "KRB_LAB_NET": self.network}

    @property
    def environment(self) -> dict[str, str]:
        """The same with the lab's secrets."""
        return {**os.environ, **environment(self.spec)}

    @property
    def secrets(self) -> Secrets:
        return environment_secrets(self.environment)

    def command(self, *arguments: str, **changes: str) -> tuple[int, str]:
        """``python -m lab`` as a user runs it, with some variables changed: its exit code, and all that it said."""
        done = subprocess.run(
            [sys.executable, "-m", "lab", *arguments],
            env=self.place | changes,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


def describe_lab(directory: Path, network: str) -> Lab:
    """The lab in that directory, or the one that is to be made there."""
    return Lab(load({**os.environ, "KRB_LAB_DIR": str(directory), "KRB_LAB_NET": network}), directory, network)


def describe_new_lab() -> Lab:
    """A lab that does not exist yet, where nothing else is."""
    directory = Path(tempfile.mkdtemp(prefix="krb-"))
    directory.rmdir()
    return describe_lab(directory, free_network())
