"""What /config/ips/<name> names. A broker that starts resolves the name as it stands (``IpConfigHandler``:
``InetAddress.getByName``), or ends.

Kafka's sync to ZooKeeper escapes the name (``ZkConfigMigrationClient.getSanitizedClientQuotaZNodeName``). An IPv6
address does not survive that.
"""

from __future__ import annotations

import ipaddress
import re

from kraft_runbook.cluster.observation import Consequence
from kraft_runbook.metadata.znodes.znode_rows import DEFAULT_ENTITY

_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")


def address_fault(name: str) -> tuple[Consequence, str] | None:
    """Why a broker may not take the name; None: it is an address, or the default."""
    if name == DEFAULT_ENTITY:
        return None
    if is_ipv6(name):
        return None
    try:
        ipaddress.ip_address(name)
    except ValueError:
        if _HOST_NAME.fullmatch(name):
            return (
                Consequence.NOTED,
                "it is a host's name: a broker that can't resolve it when it starts does not come up",
            )
        return Consequence.BROKER_STAYS_DOWN, "its name is neither an address nor a host's name"
    return None


def is_ipv6(name: str) -> bool:
    """Java takes one in brackets too."""
    bare = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    try:
        return ipaddress.ip_address(bare).version == 6
    except ValueError:
        return False
