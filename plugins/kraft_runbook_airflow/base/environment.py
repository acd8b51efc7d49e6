"""Where a task finds its cluster file, its state and its secrets."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowException, AirflowRuntimeError, AirflowSecretsBackendAccessDenied

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.errors import SecretMissing
from kraft_runbook.evidence import store
from kraft_runbook.io.private_file import make_private_directory
from kraft_runbook.io.secrets import Secrets, environment_secrets


def clusters_directory() -> Path:
    """``KRAFT_RUNBOOK_CLUSTERS``, or ``include/clusters`` beside the plugins."""
    configured = os.environ.get("KRAFT_RUNBOOK_CLUSTERS")
    return Path(configured) if configured else Path(__file__).resolve().parents[3] / "include" / "clusters"


def state_directory() -> Path:
    """Made where it is not there. Proofs, parity reports and evidence; shared by all workers and the triggerer."""
    directory = store.state_directory(os.environ)
    make_private_directory(directory)
    return directory


def cluster_spec(name: str) -> ClusterSpec:
    """The cluster file, read anew: a task always acts on what the file says now."""
    return load_cluster(name, directory=clusters_directory(), environment=os.environ)


def airflow_secrets(get: Callable[[str], Any] | None = None) -> Secrets:
    """Resolver for tasks: environment variables, and the passwords of Airflow connections, which ``get`` gives."""
    from_environment = environment_secrets()

    def resolve(ref: SecretRef) -> str:
        if ref.airflow_connection is None:
            return from_environment(ref)
        try:
            password = (get or Connection.get)(ref.airflow_connection).password
        except (
            AirflowException,
            AirflowRuntimeError,
            AirflowSecretsBackendAccessDenied,
        ) as error:  # not defined, or a secrets backend that denies it
            raise SecretMissing(
                f"{ref} could not be read: {error}",
                way_out=(
                    f"define the connection {ref.airflow_connection} in Airflow, with a password, or correct its id in"
                    " the cluster file"
                ),
            ) from None
        if not password:
            raise SecretMissing(
                f"{ref} has no password",
                way_out=f"set the password of the connection {ref.airflow_connection} in Airflow",
            )
        return str(password)

    return resolve


def is_dry_run(context: Any) -> bool:
    """Whether this run was triggered as a dry run."""
    return bool(context["params"].get("dry_run"))
