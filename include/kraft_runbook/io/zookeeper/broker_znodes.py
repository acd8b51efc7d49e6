"""The ephemeral ``/brokers/ids/<id>`` of brokers that are stood in for. They live as long as this session."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from kraft_runbook.cluster.addresses import split_address
from kraft_runbook.cluster.rehearsal_settings import is_loopback
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.errors import Refused
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.writer import ZookeeperWriter
from kraft_runbook.metadata.znodes.znode_json import parse_object
from kraft_runbook.metadata.znodes.znode_values import BadZnode

IDS, CLUSTER_ID = "/brokers/ids", "/cluster/id"
SESSION = 120.0
"""Seconds of the session: a machine that is busy, or stands still for a minute, must not end it."""


class BrokerZnodes:
    """A context manager. What stands in for a broker has no place in a real cluster: raises Refused for an ensemble
    that is not on loopback addresses, and, before each write, for one whose /cluster/id is not ``cluster_id``, the
    throwaway's own. A real ZooKeeper of this machine may have taken its address meanwhile.
    """

    def __init__(self, zookeeper: ZooKeeper, brokers: Iterable[Broker], *, cluster_id: str, secrets: Secrets) -> None:
        if not all(is_loopback(split_address(server)[0]) for server in zookeeper.servers):
            raise Refused(
                f"stand-ins are announced in a ZooKeeper on loopback addresses alone, not in {zookeeper.connect}",
                way_out="begin a rehearsal: kraft-runbook rehearse",
            )
        self._where, self._cluster_id = zookeeper.connect, cluster_id
        self._brokers = {str(broker.id): broker for broker in brokers}
        self._reader = ZookeeperReader(zookeeper, secrets=secrets, timeout=SESSION)
        self._writer = ZookeeperWriter(self._reader)
        self._announced = False

    def __enter__(self) -> Self:
        self._reader.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.__exit__(kind, error, trace)

    def announce(self) -> None:
        """Let every broker have its znode, and keep it (``keep``)."""
        self._announced = True
        self.keep()

    def withdraw(self) -> None:
        """Delete them. Raises Refused, Unreachable."""
        self._announced = False
        self._require_the_throwaway()
        for found in self._reader.get_many([f"{IDS}/{each}" for each in self._brokers]):
            if found is not None:
                self._writer.delete(found)

    def keep(self) -> int:
        """Make those anew that a lost session took along, and tell how many. Where one of another session is still
        there, the next call makes it. Raises Refused, Unreachable.
        """
        if not self._announced:
            return 0
        self._require_the_throwaway()
        there = set(self._reader.children(IDS) or ())
        missing = self._brokers.keys() - there
        for number in missing:
            body = json.dumps(znode_of(self._brokers[number], now=time.time()), separators=(",", ":"))
            self._writer.create_ephemeral(f"{IDS}/{number}", body.encode())
        return len(missing)

    def _require_the_throwaway(self) -> None:
        found = self._reader.get(CLUSTER_ID)
        try:
            answers = parse_object(found.data).get("id") if found is not None else None
        except BadZnode:
            answers = None
        if answers != self._cluster_id:
            raise Refused(
                f"{self._where} answers with the cluster id {answers}, not with the rehearsal's, {self._cluster_id}:"
                " nothing is written there",
                way_out="end what listens there, or give rehearsals another network (rehearsal.network)",
            )


def znode_of(broker: Broker, *, now: float) -> Mapping[str, Any]:
    """What a broker's znode says (``BrokerIdZNode``, version 5). ``now``: epoch seconds."""
    listener = broker.listeners[0]
    return {
        "version": 5,
        "host": broker.host,
        "port": listener.port,
        "jmx_port": -1,
        "timestamp": str(int(now * 1000)),
        "endpoints": [f"{listener.name}://{broker.host}:{listener.port}"],
        "listener_security_protocol_map": {listener.name: listener.protocol.value},
        "features": {},
        **({"rack": broker.rack} if broker.rack else {}),
    }
