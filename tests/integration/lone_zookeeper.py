"""One ZooKeeper server that takes clients over TLS with a certificate and a login alone."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.servers import server_mode, tls_of
from lab.installation import fetch_jars, java
from lab.layout import load
from lab.secured.certificates import Authority

HOST = "127.0.0.1"
SECRETS = environment_secrets({"RIGHT": "of the brokers", "WRONG": "guessed"})
KAFKA, LIMITED = "kafka", "limited"
"""The brokers' user, and one that has no right but what a znode's ACL gives it."""
USERS = " ".join(f'user_{each}="of the brokers"' for each in (KAFKA, LIMITED))
JAAS = f"Server {{ org.apache.zookeeper.server.auth.DigestLoginModule required {USERS}; }};"


@contextmanager
def serving(authority: Authority) -> Iterator[int]:
    """The secure port of the server, whose certificate names 127.0.0.1 alone."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = int(probe.getsockname()[1])
    here = authority.directory
    server = here / "server.pem"
    authority.pem(server, "server", HOST)
    (here / "jaas.conf").write_text(JAAS)
    (here / "zookeeper.properties").write_text(
        f"dataDir={here / 'data'}\nsecureClientPort={port}\nadmin.enableServer=false\n"
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
        f"ssl.keyStore.location={server}\nssl.trustStore.location={authority.file}\nssl.clientAuth=need\n"
        "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"
        "enforce.auth.enabled=true\nenforce.auth.schemes=sasl\n4lw.commands.whitelist=srvr\n"
    )
    command = [
        str(java()),
        "-Xmx128m",
        "-XX:TieredStopAtLevel=1",
        f"-Djava.security.auth.login.config={here}/jaas.conf",
    ]
    command += ["-cp", f"{fetch_jars(load().kafka.version)}/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain"]
    with (here / "log").open("wb") as log:
        process = subprocess.Popen([*command, str(here / "zookeeper.properties")], stdout=log, stderr=log)
    try:
        tls, ends = tls_of(ensemble(authority, port), secrets=SECRETS), time.monotonic() + 60
        while server_mode(f"{HOST}:{port}", tls=tls) is None:
            assert process.poll() is None and time.monotonic() < ends, (here / "log").read_text()[-3000:]
            time.sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait()


def ensemble(
    authority: Authority,
    port: int,
    *,
    host: str = HOST,
    trusted: Path | None = None,
    password: str = "RIGHT",
    user: str = KAFKA,
    chroot: str = "",
) -> ZooKeeper:
    """The ensemble as a cluster file describes it."""
    own = authority.directory / "tool.pem"
    if not own.exists():
        authority.pem(own, "tool")
    security = {
        "protocol": "SASL_SSL",
        "ca_file": str(trusted or authority.file),
        "certificate_file": str(own),
        "key_file": str(own),
        "sasl_mechanism": "DIGEST-MD5",
        "username": user,
        "password": {"env": password},
    }
    return ZooKeeper.model_validate({"servers": [f"{host}:{port}"], "chroot": chroot, "security": security})
