"""Who logs in to what in a secured lab: the lines of JAAS, and the brokers' SCRAM credentials in ZooKeeper."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping

from kazoo.client import KazooClient
from kazoo.security import CREATOR_ALL_ACL, READ_ACL_UNSAFE

KAFKA, TOOL, LIMITED = "kafka", "tool", "limited"
"""The user of brokers and controllers, this tool's, and one that has no right but what is granted to it."""
OF_KAFKA, OF_TOOL, OF_LIMITED = "KRB_LAB_KAFKA_PASSWORD", "KRB_LAB_TOOL_PASSWORD", "KRB_LAB_LIMITED_PASSWORD"
OF_ZOOKEEPER = "KRB_LAB_ZOOKEEPER_PASSWORD"
"""Variables that hold their passwords, and the one of all at ZooKeeper."""
BROKER_LOGIN, CONTROLLER_LOGIN = "KRB_LAB_BROKER_LOGIN", "KRB_LAB_CONTROLLER_LOGIN"
"""Variables that hold whole lines of JAAS."""
SERVER_JAAS = (
    "Server {{ org.apache.zookeeper.server.auth.DigestLoginModule required"
    ' user_{user}="{password}" user_{limited}="{password}"; }};\n'
)
CLIENT_JAAS = (
    "Client {{ org.apache.zookeeper.server.auth.DigestLoginModule required"
    ' username="{user}" password="{password}"; }};\n'
)
ITERATIONS = 4096
CREDENTIAL = "SCRAM-SHA-512"


def lines(values: Mapping[str, str]) -> dict[str, str]:
    """The logins between nodes, and the password that they need, where these lines are among what is asked for."""
    if BROKER_LOGIN not in values:
        return {}
    kafka, tool, limited = secrets.token_urlsafe(32), values[OF_TOOL], secrets.token_urlsafe(32)
    scram, plain = "org.apache.kafka.common.security.scram.ScramLoginModule", "PlainLoginModule"
    own = f'required username="{KAFKA}" password="{kafka}"'
    users = f'user_{KAFKA}="{kafka}" user_{TOOL}="{tool}" user_{LIMITED}="{limited}"'
    return {
        OF_KAFKA: kafka,
        OF_LIMITED: limited,
        BROKER_LOGIN: f"{scram} {own};",
        CONTROLLER_LOGIN: f"org.apache.kafka.common.security.plain.{plain} {own} {users};",
    }


def create_scram_users(client: KazooClient, passwords: Mapping[str, str]) -> None:
    """The users by whose names brokers log in to each other: they must be there before the first broker starts. The
    znodes as a broker with ``zookeeper.set.acl`` makes them (``ZkData.defaultAcls``). One that is there stays.
    """
    readable = CREATOR_ALL_ACL + READ_ACL_UNSAFE
    for path, acl in (("/config", readable), ("/config/users", CREATOR_ALL_ACL)):
        if not client.exists(path):
            client.create(path, b"", acl=acl)
    for user, password in passwords.items():
        if not client.exists(f"/config/users/{user}"):
            data = {"version": 1, "config": {CREDENTIAL: credential(password)}}
            client.create(f"/config/users/{user}", json.dumps(data).encode(), acl=CREATOR_ALL_ACL)


def credential(password: str) -> str:
    """As ``ScramCredentialUtils`` writes it (RFC 5802)."""
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", "sha512")
    server_key = hmac.digest(salted, b"Server Key", "sha512")
    parts = {"salt": salt, "stored_key": hashlib.sha512(client_key).digest(), "server_key": server_key}
    told = [f"{name}={base64.b64encode(value).decode()}" for name, value in parts.items()]
    return ",".join([*told, f"iterations={ITERATIONS}"])
