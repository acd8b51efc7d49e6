"""What each server of an ensemble says of itself."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from kraft_runbook.cluster.addresses import split_address
from kraft_runbook.cluster.quorum_gauges import EnsembleServer
from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.cluster.unread import Unread

MAX_ANSWER = 65536


def ensemble_servers(zookeeper: ZooKeeper, *, timeout: float = 2.0) -> Mapping[str, EnsembleServer | Unread]:
    """Each server of the cluster file by its ``srvr``, which every ZooKeeper allows unless told otherwise; ``mntr``,
    which tells more, is not in the default whitelist. All are asked at once, ``timeout`` seconds a read.
    """
    if zookeeper.security.protocol.is_tls:
        return dict.fromkeys(zookeeper.servers, Unread("four-letter words are not asked over TLS"))
    with ThreadPoolExecutor(len(zookeeper.servers)) as pool:
        return dict(zip(zookeeper.servers, pool.map(lambda each: _ask(each, timeout), zookeeper.servers), strict=True))


def _ask(server: str, timeout: float) -> EnsembleServer | Unread:
    answer = b""
    try:
        with socket.create_connection(split_address(server), timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(b"srvr")
            while len(answer) < MAX_ANSWER and (part := connection.recv(4096)):
                answer += part
    except OSError as error:
        return Unread(f"ZooKeeper server {server} did not answer srvr: {error}")
    return parse_srvr(server, answer.decode(errors="replace"))


def parse_srvr(server: str, answer: str) -> EnsembleServer | Unread:
    """A server's answer to ``srvr``."""
    if "not currently serving" in answer:  # ZooKeeper's words (AbstractFourLetterCommand): it is in no quorum
        return Unread(f"ZooKeeper server {server} runs and serves nobody: it is in no quorum")
    mode = re.search(r"^Mode: (\w+)", answer, re.MULTILINE)
    outstanding = re.search(r"^Outstanding: (\d{1,18})$", answer, re.MULTILINE)
    if not mode or not outstanding:
        return Unread(f"ZooKeeper server {server} does not allow srvr (4lw.commands.whitelist)")
    return EnsembleServer(mode[1], int(outstanding[1]))
