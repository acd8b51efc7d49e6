"""SCRAM users, ACLs, and delegation tokens, which only an authenticated user can ask for: hence the SASL listener."""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kraft_runbook.cluster.properties_text import render_properties
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Listener
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.private_file import write_private
from lab.broker_state import require_well
from lab.health import QUIET
from lab.layout import layout
from lab.tools import run_class

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
SCRAM_USERS = {"admin": (SHA_256,), "alice": (SHA_256, SHA_512), "bob@x y": (SHA_256,), "carol": (SHA_512,)}
TOKENS = (("alice", "User:carol"), ("alice", None), ("bob@x y", "User:alice"))
"""(user, renewer) of each delegation token."""


def create_scram_users(client: AdminClient, spec: ClusterSpec) -> str:
    """Make the users that are missing. Their passwords are random and stay in the lab's scram-users.json (0600)."""
    present = _present_users(client)
    missing = [
        (user, mechanism) for user, mechanisms in SCRAM_USERS.items() for mechanism in mechanisms if user not in present
    ]
    chosen = passwords(spec)
    upserts = [
        UserScramCredentialUpsertion(
            user, ScramCredentialInfo(mechanism, 8192 if mechanism is SHA_256 else 4096), chosen[user].encode()
        )
        for user, mechanism in missing
    ]
    for one in upserts:
        for future in client.alter_user_scram_credentials([one], request_timeout=30).values():
            future.result()
    return f"SCRAM credentials: {len(missing)} made"


def _present_users(client: AdminClient) -> set[str]:
    described = client.describe_user_scram_credentials(request_timeout=30)
    assert not isinstance(described, dict)  # a mapping only where users are named
    return set(described.result())


def create_acls(client: AdminClient) -> str:
    """Literal and prefixed ACLs of every resource type, allowing and denying. Making one again changes nothing."""
    literal, prefixed = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
    allow, deny = AclPermissionType.ALLOW, AclPermissionType.DENY
    topic, group, broker, transactional = (
        ResourceType.TOPIC,
        ResourceType.GROUP,
        ResourceType.BROKER,
        ResourceType.TRANSACTIONAL_ID,
    )
    acls = [
        AclBinding(topic, "orders", literal, "User:alice", "*", AclOperation.READ, allow),
        AclBinding(topic, "orders", literal, "User:alice", "*", AclOperation.WRITE, allow),
        AclBinding(topic, "orders", literal, "User:bob@x y", "192.0.2.7", AclOperation.READ, deny),
        AclBinding(topic, "pay", prefixed, "User:bob@x y", "*", AclOperation.ALL, allow),
        AclBinding(topic, "*", literal, "User:*", "*", AclOperation.DESCRIBE, allow),
        AclBinding(group, "billing", literal, "User:alice", "*", AclOperation.READ, allow),
        AclBinding(group, "billing-", prefixed, "User:carol", "*", AclOperation.DESCRIBE, allow),
        AclBinding(broker, "kafka-cluster", literal, "User:carol", "*", AclOperation.DESCRIBE_CONFIGS, allow),
        AclBinding(transactional, "billing-", prefixed, "User:alice", "*", AclOperation.WRITE, allow),
    ]
    for future in client.create_acls(acls, request_timeout=30).values():
        future.result()
    return f"ACLs: {len(acls)}"


def create_delegation_tokens(spec: ClusterSpec) -> str:
    """Ask for the tokens as their users, unless the lab has some, or no listener takes logins. Kafka's own tool does
    it: neither Python client can.
    """
    if not any(each.protocol.is_sasl for broker in spec.brokers for each in broker.listeners):
        return "delegation tokens: no listener takes logins"
    marker = layout(spec).directory / "delegation-tokens-made"
    if marker.exists():
        return "delegation tokens: were there"
    for broker in spec.brokers:
        for user in sorted({user for user, _ in TOKENS}):
            wait_until_admitted(spec, broker, user)
    for user, renewer in TOKENS:
        _create_token(spec, user, renewer)
    marker.touch()
    return f"delegation tokens: {len(TOKENS)} made"


def wait_until_admitted(spec: ClusterSpec, broker: Broker, user: str) -> None:
    """Until the broker admits the user, at most ``deadlines.registration`` seconds.

    A broker learns of new credentials from ZooKeeper, after the request for them was answered, and until then it
    refuses the user. Raises StepFailed; at once, with the cause, where the broker has ended or no longer listens for
    what changes in ZooKeeper.
    """
    listener = _sasl_listener(broker)
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": f"{broker.host}:{listener.port}",
        "reconnect.backoff.max.ms": 500,
        "security.protocol": listener.protocol.value,
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": passwords(spec)[user],
    }
    if spec.broker_security.ca_file:
        settings["ssl.ca.location"] = spec.broker_security.ca_file
    client = AdminClient(settings, logger=QUIET)
    ends = time.monotonic() + spec.deadlines.registration
    while True:
        try:
            client.list_topics(timeout=2)
            return
        except KafkaException as error:
            require_well(spec, brokers=[broker], logs=False)
            if time.monotonic() > ends:
                raise StepFailed(
                    f"broker {broker.id} does not admit {user} after {spec.deadlines.registration} s"
                    f" ({error.args[0].name()}); it runs, and listens for changes",
                    way_out=(
                        f"read {layout(spec).logs / f'{broker.service}.log'}, then: python -m lab restart"
                        f" {broker.service}, and seed again"
                    ),
                ) from None


def _sasl_listener(broker: Broker) -> Listener:
    return next(each for each in broker.listeners if each.protocol.is_sasl)


def _create_token(spec: ClusterSpec, user: str, renewer: str | None) -> None:
    password = passwords(spec)[user]
    login = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{user}" password="{password}";'
    protocol = _sasl_listener(spec.brokers[0]).protocol.value
    settings = {"security.protocol": protocol, "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": login}
    if spec.broker_security.ca_file:
        settings |= {"ssl.truststore.location": spec.broker_security.ca_file, "ssl.truststore.type": "PEM"}
    servers = ",".join(f"{broker.host}:{_sasl_listener(broker).port}" for broker in spec.brokers)
    renewers = ["--renewer-principal", renewer] if renewer else []
    with tempfile.TemporaryDirectory(prefix="krb-seed-") as private:
        client_file = Path(private) / "client.properties"
        write_private(client_file, render_properties(settings, header="A SCRAM user of the lab"))
        arguments = [
            "--bootstrap-server",
            servers,
            "--command-config",
            str(client_file),
            "--create",
            "--max-life-time-period",
            "-1",
        ]
        run_class(spec, "org.apache.kafka.tools.DelegationTokenCommand", [*arguments, *renewers])


def passwords(spec: ClusterSpec) -> dict[str, str]:
    """Each user's password: random, made once."""
    path = layout(spec).directory / "scram-users.json"
    if not path.exists():
        write_private(path, json.dumps({user: secrets.token_urlsafe(24) for user in SCRAM_USERS}) + "\n")
    return {str(user): str(password) for user, password in json.loads(path.read_text()).items()}
