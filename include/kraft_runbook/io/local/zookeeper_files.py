"""The configuration of the ZooKeeper servers of a cluster on one machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kraft_runbook.io.local.layout import ZookeeperServer
from kraft_runbook.io.local.ports import ZOOKEEPER_ELECTION_PORT, ZOOKEEPER_QUORUM_PORT


def zookeeper_properties(
    server: ZookeeperServer, servers: Sequence[ZookeeperServer], security: Mapping[str, str] = {}
) -> dict[str, str]:
    """The configuration of one of these servers; with more than one, that of an ensemble's member. ``security``: what
    it says of TLS and logins; empty: it takes everyone.

    ``initLimit`` and ``syncLimit`` are those of ZooKeeper's sample configuration: a follower has 20 s to begin, and a
    leader that hangs is replaced after 10 s, before a broker's session (18 s) has expired.
    """
    ensemble = {
        "initLimit": "10",
        "syncLimit": "5",
        **{f"server.{s.number}": f"{s.host}:{ZOOKEEPER_QUORUM_PORT}:{ZOOKEEPER_ELECTION_PORT}" for s in servers},
    }
    return {
        "dataDir": str(server.data),
        "secureClientPort" if security else "clientPort": str(server.port),
        "secureClientPortAddress" if security else "clientPortAddress": server.host,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "srvr,ruok,mntr",
        "maxClientCnxns": "0",
        "tickTime": "2000",
        "autopurge.purgeInterval": "1",
        **(ensemble if len(servers) > 1 else {}),
        **security,
    }
