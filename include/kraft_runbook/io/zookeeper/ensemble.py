"""What each server of an ensemble says of itself."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from kraft_runbook.cluster.quorum_gauges import EnsembleServer
from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.servers import ServerStatus, ask_server, tls_of


def ensemble_servers(
    zookeeper: ZooKeeper,
    *,
    secrets: Secrets,
    ask: Callable[..., ServerStatus] = ask_server,
    tls_by: Callable[..., ssl.SSLContext | None] = tls_of,
) -> Mapping[str, EnsembleServer | Unread]:
    """Each server of the cluster file by its ``srvr`` or ``mntr``. All are asked at once, 2 s a read. Raises
    SecretMissing.
    """
    try:
        tls = tls_by(zookeeper, secrets=secrets)
    except Unreachable as error:
        return dict.fromkeys(zookeeper.servers, Unread(error.problem))
    except OSError as error:
        return dict.fromkeys(zookeeper.servers, Unread(f"this tool's own certificate or key can't be used: {error}"))
    with ThreadPoolExecutor(len(zookeeper.servers)) as pool:
        found = pool.map(lambda each: _asked(each, partial(ask, tls=tls, timeout=2.0)), zookeeper.servers)
        return dict(zip(zookeeper.servers, found, strict=True))


def _asked(server: str, ask: Callable[[str], ServerStatus]) -> EnsembleServer | Unread:
    try:
        answer = ask(server)
    except ConnectionRefusedError:
        return EnsembleServer("", 0, f"ZooKeeper server {server} does not run: it refuses connections")
    except OSError as error:
        return Unread(f"ZooKeeper server {server} did not answer srvr or mntr: {error}")
    return parse_srvr(server, answer)


def parse_srvr(server: str, answer: ServerStatus) -> EnsembleServer | Unread:
    """A server's answer to ``srvr`` or ``mntr``."""
    if answer.serves_nobody:
        return EnsembleServer("", 0, f"ZooKeeper server {server} runs and serves nobody: it is in no quorum")
    mode, outstanding = answer.mode, answer.outstanding
    if mode is None or outstanding is None:
        return Unread(f"ZooKeeper server {server} allows neither srvr nor mntr (4lw.commands.whitelist)")
    return EnsembleServer(mode, outstanding)
