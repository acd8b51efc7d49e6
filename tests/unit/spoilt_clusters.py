"""Cluster files, and parts of a look, as the checks must object to them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from observations import (
    NOW,
    SPEC,
    WHY,
    Spoil,
    both,
    broker,
    gauges,
    part,
    tree,
    with_quorum,
    zookeeper,
)

from kraft_runbook.cluster.client_security import ClientSecurity, SaslMechanism, SecurityProtocol
from kraft_runbook.cluster.observation import (
    Consequence,
    Found,
    MigrationZnode,
    MinIsrGroup,
    ZkMigrationState,
)
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.replica_directories import WithoutId
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.cluster.stores import Certificate

Z, P, H, D, F = Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED
NO_ZOOKEEPER, NO_TREE, NO_QUORUM, NO_HOSTS = part(zookeeper=WHY), zookeeper(tree=WHY), part(quorum=WHY), part(hosts=WHY)
NO_VERSION = broker(2, software_version=WHY)
ENDS_SOON = Certificate("CN=b2", NOW - timedelta(days=9), NOW + timedelta(days=13), ("b2",))
ENDED = Certificate("CN=c101", NOW - timedelta(days=9), NOW - timedelta(days=1), ("c101",))
STALE = MigrationZnode(207, 101, 1, 1)


def replicas(**changes: Any) -> Spoil:
    """What the comparison of replicas on disk with ZooKeeper found."""
    return lambda seen: replace(seen, replicas=replace(seen.replicas, **changes))  # type: ignore[type-var]


WITHOUT_ID = replicas(
    without_id=(WithoutId(3, "/d/gone-0", assigned=False), WithoutId(1, "/d/orders-0", assigned=True)),
    without_id_count=2,
)


def spec_with(**changes: object) -> ClusterSpec:
    return SPEC.model_copy(update=changes)


WITHOUT_SECRETS = spec_with(secrets={})
WITHOUT_ZOOKEEPER = spec_with(zookeeper=None)
KAFKA_4 = spec_with(zookeeper=None, kafka=SPEC.kafka.model_copy(update={"version": "4.1.1"}))
WITHOUT_AUTHORIZER = spec_with(authorizer=False)
CONTROL_PLANE = spec_with(broker_properties={**SPEC.broker_properties, "control.plane.listener.name": "SASL"})
FOREIGN_CLASS = spec_with(
    broker_properties={**SPEC.broker_properties, "create.topic.policy.class.name": "com.example.Policy"}
)


def brokers_with(**properties: str) -> ClusterSpec:
    """The lab, and further properties of every broker; two underscores stand for a dot."""
    return spec_with(
        broker_properties={**SPEC.broker_properties, **{k.replace("__", "."): v for k, v in properties.items()}}
    )


def by_mechanism(of_controllers: str, of_brokers: str, of_this_tool: SaslMechanism) -> ClusterSpec:
    """The lab with a controller listener that asks for a login."""
    key = "sasl.mechanism.controller.protocol"
    return brokers_with(**{key: of_brokers}).model_copy(
        update={
            "controller_listener": SPEC.controller_listener.model_copy(
                update={"protocol": SecurityProtocol.SASL_PLAINTEXT}
            ),
            "controller_properties": {**SPEC.controller_properties, key: of_controllers},
            "controller_security": ClientSecurity(
                protocol=SecurityProtocol.SASL_PLAINTEXT,
                sasl_mechanism=of_this_tool,
                username="kafka",
                password=SecretRef(env="X"),
            ),
        }
    )


def on_own_listener(protocol: SecurityProtocol) -> ClusterSpec:
    """The lab with this protocol of the controllers' listener, of which nothing else is said."""
    return spec_with(controller_listener=SPEC.controller_listener.model_copy(update={"protocol": protocol}))


BY_SCRAM = by_mechanism("SCRAM-SHA-512", "SCRAM-SHA-256", SaslMechanism.SCRAM_SHA_512)
OTHER_ID = spec_with(cluster_id="another-cluster-id-00")
OLD_IBP = spec_with(kafka=SPEC.kafka.model_copy(update={"inter_broker_protocol_version": "3.6"}))
HASTY = spec_with(deadlines=SPEC.deadlines.model_copy(update={"metadata_copy": 0.001}))
SMALL_HEAP = spec_with(controller_heap="64m")
JBOD = spec_with(
    kafka=OLD_IBP.kafka, brokers=tuple(b.model_copy(update={"log_dirs": ("/a", "/b")}) for b in SPEC.brokers)
)

BORN_IN_KRAFT = both(
    zookeeper(brokers={}),
    with_quorum(migration_state_record=ZkMigrationState.NONE),
    *(gauges(i, zk_migration_state=ZkMigrationState.NONE) for i in (101, 102, 103)),
)
CIPHER = "AES/CBC/PKCS5Padding"


def faults(consequence: Consequence, told: str) -> Spoil:
    return tree(faults={consequence: Found(7, (told,))})


def min_isr(own: int | None, replicas: int) -> Spoil:
    return tree(
        min_isr_groups=(MinIsrGroup(own, replicas, Found(7, ("t",))), MinIsrGroup(None, 4, Found(1, ("fine",))))
    )


Case = tuple[Phase, str | None, Spoil, str]
