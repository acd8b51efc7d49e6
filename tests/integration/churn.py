"""Metadata that changes all the time: topics, their configs, ACLs and quotas are created, changed and deleted until
stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from by_hand import answered
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.admin import AlterConfigOpType as Op
from kafka.protocol.admin import AlterClientQuotasRequest
from labs import Lab

from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.connection import KafkaConnection


@dataclass
class Churn:
    """``changes``: how many of each kind were acknowledged. ``refused``: how many were not, which a migration's window
    explains.
    """

    changes: dict[str, int] = field(default_factory=lambda: {"topics": 0, "configs": 0, "acls": 0, "quotas": 0})
    refused: int = 0


@contextmanager
def churning(lab: Lab, *, pause: float = 0.05) -> Iterator[Churn]:
    """Four threads, one a kind of metadata, until the context ends, each with ``pause`` seconds between changes."""
    churn, stop = Churn(), threading.Event()
    admin = AdminClient({"bootstrap.servers": ",".join(lab.spec.bootstrap_servers)})
    acts: dict[str, Callable[[int], None]] = {
        "topics": lambda n: _topic(admin, n),
        "configs": lambda n: _config(admin, n),
        "acls": lambda n: _acl(admin, n),
        "quotas": lambda n: _quota(lab, n),
    }

    def work(kind: str) -> None:
        number = 0
        while not stop.wait(pause):
            try:
                acts[kind](number)
                churn.changes[kind] += 1
            except (KafkaException, Unreachable):
                churn.refused += 1
            number += 1

    threads = [threading.Thread(target=work, args=(kind,), daemon=True) for kind in acts]
    for thread in threads:
        thread.start()
    try:
        yield churn
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


def _topic(admin: AdminClient, n: int) -> None:
    if n % 3 == 2:
        answered(admin.delete_topics([f"churn-{n - 1}"]))
    else:
        answered(admin.create_topics([NewTopic(f"churn-{n}", 5, 3)]))


def _config(admin: AdminClient, n: int) -> None:
    entry = ConfigEntry("retention.ms", str(100_000 + n), incremental_operation=Op.DELETE if n % 5 == 4 else Op.SET)
    answered(
        admin.incremental_alter_configs(
            [ConfigResource(ConfigResource.Type.TOPIC, "orders", incremental_configs=[entry])]
        )
    )


def _acl(admin: AdminClient, n: int) -> None:
    what = (
        ResourceType.TOPIC,
        f"churn-acl-{n // 2}",
        ResourcePatternType.LITERAL,
        "User:churn",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    if n % 2:
        answered(admin.delete_acls([AclBindingFilter(*what)]))
    else:
        answered(admin.create_acls([AclBinding(*what)]))


def _quota(lab: Lab, n: int) -> None:
    broker = lab.spec.brokers[n % len(lab.spec.brokers)]
    alter_quota(
        lab, broker, {"user": f"churn-{n // 2 % 7}"}, "producer_byte_rate", value=1000.0 + n, remove=bool(n % 2)
    )


def alter_quota(lab: Lab, broker: Broker, entity: Mapping[str, str], key: str, *, value: float, remove: bool) -> None:
    """Set or delete this quota by this broker. ``entity``: its names by their kinds."""
    entry = AlterClientQuotasRequest.EntryData
    named = [entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    change = entry.OpData(key=key, value=value, remove=remove)
    with KafkaConnection(
        lab.spec.broker_address(broker),
        f"broker {broker.id}",
        lab.spec.broker_security,
        secrets=lab.secrets,
        timeout=30,
    ) as connection:
        answer = connection.send(
            AlterClientQuotasRequest(entries=[entry(entity=named, ops=[change])], validate_only=False)
        )
    if any(each.error_code for each in answer.entries):
        raise Unreachable(f"quota refused: {answer.entries}", way_out="see the broker's log")
