"""How the lab's own clients reach its brokers: as the cluster file says that the tool's do."""

from __future__ import annotations

import os

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.io.kafka.topics_seen import client_security
from kraft_runbook.io.secrets import Secrets, environment_secrets
from lab.layout import layout
from lab.secret_files import read_environment_file


def lab_secrets(spec: ClusterSpec) -> Secrets:
    """The secrets of a lab that was brought up once; of one without a secret, the environment's."""
    file = layout(spec).secrets_environment
    return environment_secrets({**os.environ, **(read_environment_file(file) if file.exists() else {})})


def client_settings(spec: ClusterSpec, *, of: tuple[Broker, ...] = ()) -> dict[str, str]:
    """librdkafka's settings: where the brokers are (``of``: these, all by default), and the login there. Holds secret
    values.
    """
    servers = ",".join(spec.broker_address(broker) for broker in of or spec.brokers)
    return {"bootstrap.servers": servers, **client_security(spec.broker_security, lab_secrets(spec))}
