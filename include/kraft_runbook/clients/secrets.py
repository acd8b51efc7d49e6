"""Where the secrets that a cluster file names are found. Values leave here only towards the client that needs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from kraft_runbook.cluster import SecretRef
from kraft_runbook.errors import SecretMissing

Secrets = Callable[[SecretRef], str]
"""Resolves one reference. Raises SecretMissing, which names the reference and never a value."""


def environment_secrets(environment: Mapping[str, str] = os.environ) -> Secrets:
    """Resolver for the command line: environment variables only."""

    def resolve(ref: SecretRef) -> str:
        if ref.env is None:
            raise SecretMissing(f"{ref} can be read by Airflow only", way_out="run this in Airflow, or name an environment variable in the cluster file")
        value = environment.get(ref.env)
        if not value:
            raise SecretMissing(f"{ref} is not set", way_out=f"export {ref.env} where this command runs (the cluster file names it under 'secrets')")
        return value

    return resolve
