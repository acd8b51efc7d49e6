"""What a lab with TLS and logins needs before its processes start: certificates, JAAS files, and the SCRAM users in
ZooKeeper. ``lab.yaml`` in this folder describes such a lab.
"""

from __future__ import annotations

from pathlib import Path

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.private_file import write_private
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.session import ZookeeperSession
from lab.layout import Layout, layout, nodes, zookeeper_servers
from lab.logins import (
    CLIENT_JAAS,
    KAFKA,
    LIMITED,
    OF_KAFKA,
    OF_LIMITED,
    OF_TOOL,
    OF_ZOOKEEPER,
    SERVER_JAAS,
    TOOL,
    create_scram_users,
)
from lab.secret_files import read_environment_file
from lab.secured.certificates import Authority

CLIENTS = (KAFKA, "writer", "stranger")
"""Who has a certificate for clients besides this tool: a file of this name each, below ``tls``."""
OF_KEYSTORES = "KRB_LAB_KEYSTORE_PASSWORD"
"""The variable with the password of every key store."""


def is_secured(spec: ClusterSpec) -> bool:
    """Whether the cluster file asks for TLS to ZooKeeper, as that of a secured lab does."""
    return spec.zookeeper is not None and spec.zookeeper.security.protocol.is_tls


def prepare_secured(spec: ClusterSpec) -> None:
    """Make the certificates and JAAS files that are not there yet. Nothing where the cluster file asks for none."""
    if not is_secured(spec):
        return
    here = layout(spec)
    secrets = read_environment_file(here.secrets_environment)
    _certificates(spec, here, secrets[OF_KEYSTORES])
    if not spec.ensemble.security.protocol.is_sasl:
        return
    password = secrets[OF_ZOOKEEPER]
    for server in zookeeper_servers(spec):
        _write_once(jaas_file(server.config), SERVER_JAAS.format(user=KAFKA, limited=LIMITED, password=password))
    for node in nodes(spec):
        _write_once(jaas_file(Path(node.config_file)), CLIENT_JAAS.format(user=KAFKA, password=password))


def admit_brokers(spec: ClusterSpec) -> None:
    """Make the users by whose names brokers and this tool log in, where they are not there yet. Raises RunbookError."""
    if not is_secured(spec) or not spec.broker_security.protocol.is_sasl:
        return
    secrets = read_environment_file(layout(spec).secrets_environment)
    session = ZookeeperSession(spec.ensemble, secrets=environment_secrets(secrets), timeout=20)
    session.connect()
    try:
        passwords = {KAFKA: secrets[OF_KAFKA], TOOL: secrets[OF_TOOL], LIMITED: secrets[OF_LIMITED]}
        create_scram_users(session.client, passwords)
    finally:
        session.close()


def jaas_file(config: Path) -> Path:
    """Beside a process's configuration: run-service.sh names it to the JVM where it is there."""
    return config.with_name("jaas.conf")


def _certificates(spec: ClusterSpec, here: Layout, password: str) -> None:
    directory = here.directory / "tls"
    if (directory / "tool.pem").exists():  # the last one that is made
        return
    authority = Authority(directory)
    authority.keystore(directory / "kafka.p12", "kafka", password)
    for server in zookeeper_servers(spec):
        authority.keystore(server.directory / "keys.p12", server.service, password, server.host)
    for node in nodes(spec):
        authority.keystore(Path(node.config_file).with_name("keys.p12"), node.service, password, node.host)
    for client in CLIENTS:
        authority.pem(directory / f"{client}.pem", client)
    authority.pem(directory / "tool.pem", "tool")


def _write_once(path: Path, text: str) -> None:
    if not path.exists():
        write_private(path, text)


def zookeeper_security(spec: ClusterSpec, directory: Path) -> dict[str, str]:
    """What a ZooKeeper server's configuration says besides; its clients come over TLS with a certificate alone, and
    with a login where the cluster file names one. Servers of an ensemble speak TLS among themselves. Holds a secret
    value, as ZooKeeper 3.8 reads it from nowhere else. Empty where no security is asked for.
    """
    if not is_secured(spec):
        return {}
    here = layout(spec)
    password = read_environment_file(here.secrets_environment)[OF_KEYSTORES]
    stores = {
        "keyStore.location": str(directory / "keys.p12"),
        "keyStore.password": password,
        "trustStore.location": str(here.directory / "tls" / "authority.pem"),
    }
    by_login = spec.ensemble.security.protocol.is_sasl
    scheme, provider = ("sasl", "SASLAuthenticationProvider") if by_login else ("x509", "X509AuthenticationProvider")
    found = {
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        **{f"ssl.{key}": value for key, value in stores.items()},
        "ssl.clientAuth": "need",
        f"authProvider.{scheme}": f"org.apache.zookeeper.server.auth.{provider}",
        "enforce.auth.enabled": "true",
        "enforce.auth.schemes": scheme,
    }
    if len(spec.ensemble.servers) > 1:
        # A server of this lab calls another from an address that its certificate does not name.
        found |= {"sslQuorum": "true", "ssl.quorum.hostnameVerification": "false"}
        found |= {f"ssl.quorum.{key}": value for key, value in stores.items()}
    return found
