"""What was seen of a node's login line, for the checks that ask whom it names."""

from __future__ import annotations

from dataclasses import replace

from kraft_runbook.cluster.broker_calls import Properties
from kraft_runbook.cluster.observation import ClusterObservation, Unread, host_part, was_read
from kraft_runbook.cluster.secrets_seen import LoginSeen, SecretsSeen

BY_PASSWORD = tuple(f".{each}.SASL.JAAS.CONFIG" for each in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"))
"""How the property of a login ends, in capitals, whose mechanism has users and passwords."""


def login_of(seen: ClusterObservation, node_id: int, properties: Properties, key: str) -> LoginSeen | Unread:
    """The login line of that property; where it can't be told, why and what to do."""
    if key not in properties:
        return Unread(
            f"{key} is not set, so its login is in a file of the JVM (java.security.auth.login.config), which is not"
            " read: set the property in the cluster file, under 'secrets' or by a reference"
        )
    secrets: SecretsSeen | Unread = host_part(seen, node_id, "secrets")
    if not was_read(secrets):
        return secrets
    found = secrets.logins.get(key, Unread("it was not looked at"))
    if was_read(found):
        return found
    told = f"{key} can't be followed ({found.reason}): name it under 'secrets', or refer to a file of its host"
    return replace(found, reason=told)
