"""The properties that this tool writes itself, and what a property may be named."""

from __future__ import annotations

import re

PROPERTY_KEY = re.compile(r"[A-Za-z0-9_$][A-Za-z0-9_.$\-]*")
"""The form of a Kafka or log4j property's name. Anything else is a mistake, or an attempt to write a second line."""
QUORUM_VOTERS, QUORUM_ADDRESSES = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
"""How a node's file says where the quorum is: a static one, and a dynamic one (KIP-853)."""
WHERE_THE_QUORUM_IS = frozenset({QUORUM_VOTERS, QUORUM_ADDRESSES})
AUTO_JOIN = "controller.quorum.auto.join.enable"
"""Whether a controller adds itself to a dynamic quorum (KIP-853; from 4.2 on)."""
OWNED_PROPERTIES = frozenset(
    [
        "broker.id",
        "node.id",
        "process.roles",
        "listeners",
        "advertised.listeners",
        "listener.security.protocol.map",
        "inter.broker.listener.name",
        "security.inter.broker.protocol",
        "log.dirs",
        "log.dir",
        "metadata.log.dir",
        "broker.rack",
        "zookeeper.connect",
        "zookeeper.metadata.migration.enable",
        QUORUM_VOTERS,
        QUORUM_ADDRESSES,
        "controller.listener.names",
        "inter.broker.protocol.version",
        "authorizer.class.name",
        "super.users",
        "config.providers",
        "config.providers.secrets.class",
    ]
)
"""Properties that are derived from the cluster file and the phase; an operator can't override them."""
