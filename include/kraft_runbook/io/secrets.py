"""Resolving the secrets that a cluster file names. A value goes only to the client that needs it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.errors import SecretMissing

Secrets = Callable[[SecretRef], str]
"""Resolves one reference. Raises SecretMissing, which names the reference and never a value."""


def environment_secrets(environment: Mapping[str, str] = os.environ) -> Secrets:
    """Resolver without Airflow: environment variables, and connections in Airflow's own variables ``AIRFLOW_CONN_<ID>``
    (JSON form).
    """

    def resolve(ref: SecretRef) -> str:
        if ref.env is not None:
            value = environment.get(ref.env)
            way_out = f"export {ref.env} where this command runs (the cluster file names it)"
        else:
            variable = connection_variable(ref)
            value = _password(environment.get(variable), variable)
            way_out = f"run this in Airflow, or export {variable} as JSON with a password"
        if not value:
            raise SecretMissing(f"{ref} is not set", way_out=way_out)
        return value

    return resolve


FROM_ENVIRONMENT: Secrets = environment_secrets()
"""What resolves a secret where nobody says otherwise."""


def connection_variable(ref: SecretRef) -> str:
    """The environment variable in which Airflow looks for a connection."""
    return f"AIRFLOW_CONN_{(ref.airflow_connection or '').upper()}"


def _password(connection: str | None, variable: str) -> str | None:
    if not connection:
        return None
    try:
        return str(json.loads(connection)["password"])
    except (ValueError, KeyError, TypeError):
        raise SecretMissing(
            f"{variable} holds no connection in JSON with a password",
            way_out='write it as {"conn_type": "generic", "password": "…"}',
        ) from None


def references(spec: ClusterSpec) -> tuple[SecretRef, ...]:
    """Every secret that this tool's own clients may need of a cluster, the password encoder's included."""
    blocks = [spec.broker_security, spec.controller_security] + ([spec.zookeeper.security] if spec.zookeeper else [])
    named = [
        spec.metrics.password,
        spec.secrets.get("password.encoder.secret"),
        *(b.password for b in blocks),
        *(b.key_password for b in blocks),
    ]
    return tuple(ref for ref in named if ref is not None)
