"""The configuration of each node in each mode, derived whole from the cluster file.

The playbooks write exactly these properties; nothing edits a file in place. Keys as in Kafka 3.9's documentation,
"ZooKeeper to KRaft migration". A secret never appears: its property refers to the host's secrets file through Kafka's
``FileConfigProvider`` (KIP-297), and only that file holds values.
"""

from __future__ import annotations

from collections.abc import Mapping

from kraft_runbook.cluster.broker_calls import enabled_for_calls
from kraft_runbook.cluster.config_providers import SECRETS_PROVIDER, with_providers
from kraft_runbook.cluster.controller_settings import carried
from kraft_runbook.cluster.java_values import java_int, trim
from kraft_runbook.cluster.mode_settings import fitting, of_controllers_listener, of_zookeeper_alone
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.cluster.spec_parts import Authorizer

ZOOKEEPER_AUTHORIZER = Authorizer().zookeeper
MIGRATION_FLAG = "zookeeper.metadata.migration.enable"
ID_GENERATION = "broker.id.generation.enable"
MOST_RESERVED = 1000
"""Kafka's default of reserved.broker.max.id. Where ids are generated, they begin above it."""


def broker_properties(spec: ClusterSpec, broker: Broker, mode: BrokerMode) -> dict[str, str]:
    """``server.properties`` of one broker in one mode, in a stable order.

    ZOOKEEPER: as before the migration, without what only calls controllers. HYBRID: the same, with the flag and the
    quorum. KRAFT: no ZooKeeper key at all, and ``broker_properties_in_kraft`` in place of the same keys. What a mode
    refuses or has no use for is left out, whoever declares it (``mode_settings``). A broker.id above
    reserved.broker.max.id is refused on ZooKeeper unless broker.id.generation.enable is false
    (``KafkaConfig.validateValues``). Where the id was generated, the broker's own file names none. A broker that is a
    controller too has the controllers' keys in the same file. Raises Refused for a mode of ZooKeeper's where the
    cluster file names no ensemble.
    """
    in_kraft = mode is BrokerMode.KRAFT
    properties: dict[str, str] = {}
    if in_kraft:
        roles = "broker" if broker.controller is None else "broker,controller"
        properties |= {"process.roles": roles, "node.id": str(broker.id)}
    else:
        properties |= {"broker.id": str(broker.id), "inter.broker.protocol.version": spec.kafka.ibp}
        properties |= _zookeeper(spec)
    if mode is BrokerMode.HYBRID:
        properties[MIGRATION_FLAG] = "true"
    if mode is not BrokerMode.ZOOKEEPER:
        properties |= _quorum(spec)
    protocols = {each.name: each.protocol.value for each in broker.listeners}
    if mode is not BrokerMode.ZOOKEEPER:
        protocols[spec.controller_listener.name] = spec.controller_listener.protocol.value
    bound = [f"{each.name}://{broker.bound(each)}" for each in broker.listeners]
    advertised = [f"{each.name}://{broker.advertised(each)}" for each in broker.listeners]
    own = broker.as_controller
    if own is not None:
        bound.append(f"{spec.controller_listener.name}://{own.bound}")
        if own.bound != own.address:  # else Kafka advertises it as it is bound
            advertised.append(f"{spec.controller_listener.name}://{own.address}")
    properties |= {
        "listeners": ",".join(bound),
        "advertised.listeners": ",".join(advertised),
        "listener.security.protocol.map": _pairs(protocols),
        "inter.broker.listener.name": spec.kafka.inter_broker_listener,
        "log.dirs": ",".join(broker.log_dirs),
    }
    if own is not None and own.log_dir != broker.log_dirs[0]:
        properties["metadata.log.dir"] = own.log_dir
    if broker.rack:
        properties["broker.rack"] = broker.rack
    properties |= _authorizer(spec, in_kraft=in_kraft)
    properties |= _secrets(spec, without_zookeeper=in_kraft) | dict(spec.broker_properties)
    properties |= dict(spec.broker_properties_in_kraft) if in_kraft else {}
    properties |= (dict(spec.controller_properties) if own is not None else {}) | dict(broker.properties)
    if mode is BrokerMode.ZOOKEEPER:
        name = spec.controller_listener.name
        properties = {k: v for k, v in properties.items() if not of_controllers_listener(k, name)}
    if not in_kraft and broker.id > _most_reserved(properties):
        properties[ID_GENERATION] = "false"
    return with_providers(fitting(properties, mode))


def controller_properties(
    spec: ClusterSpec,
    controller: Controller,
    mode: ControllerMode,
    *,
    also: Mapping[str, str] = {},
) -> dict[str, str]:
    """``controller.properties`` of one controller. MIGRATION keeps the flag and ZooKeeper; KRAFT drops both
    (finalization).

    What controllers enforce they have from the brokers (``controller_settings``); what the cluster file says of
    controllers comes first. ``also``: further properties in MIGRATION, for example what shortens the metadata's copy.
    What the cluster file sets comes first. In KRAFT no property of ZooKeeper's is left, whoever set it
    (``mode_settings``). One that is a broker too has the broker's file. Raises Refused for MIGRATION where the cluster
    file names no ensemble.
    """
    if mode is ControllerMode.KRAFT and spec.has_both_roles(controller.id):
        return broker_properties(spec, spec.broker(controller.id), BrokerMode.KRAFT)
    listener = spec.controller_listener
    protocols = {listener.name: listener.protocol.value}
    properties = {"process.roles": "controller", "node.id": str(controller.id)} | _quorum(spec)
    # The migrating controller calls the brokers, so it needs their listener's name and protocol.
    inter_broker = spec.brokers[0].listener(spec.kafka.inter_broker_listener)
    if mode is ControllerMode.MIGRATION:
        protocols[inter_broker.name] = inter_broker.protocol.value
        properties |= (
            {MIGRATION_FLAG: "true", "inter.broker.listener.name": inter_broker.name} | dict(also) | _zookeeper(spec)
        )
    properties |= {
        "listeners": f"{listener.name}://{controller.bound}",
        # Without it Kafka advertises what is bound, and does not start where that is 0.0.0.0.
        **(
            {"advertised.listeners": f"{listener.name}://{controller.address}"}
            if controller.bound != controller.address
            else {}
        ),
        "listener.security.protocol.map": _pairs(protocols),
        "log.dirs": controller.log_dir,
    }
    properties |= _authorizer(spec, in_kraft=True)
    properties |= _secrets(spec, without_zookeeper=mode is ControllerMode.KRAFT) | carried(spec, mode)
    properties |= dict(spec.controller_properties) | dict(controller.properties)
    if mode is ControllerMode.MIGRATION:
        properties |= enabled_for_calls(properties, inter_broker)
    return with_providers(fitting(properties, mode))


def kraft_properties(spec: ClusterSpec, node_id: int) -> dict[str, str]:
    """The configuration of any node, broker or controller, once no migration is under way."""
    if node_id in spec.broker_ids:
        return broker_properties(spec, spec.broker(node_id), BrokerMode.KRAFT)
    return controller_properties(spec, spec.controller(node_id), ControllerMode.KRAFT)


def _zookeeper(spec: ClusterSpec) -> dict[str, str]:
    return {"zookeeper.connect": spec.ensemble.connect} | dict(spec.ensemble.properties)


def _most_reserved(properties: Mapping[str, str]) -> int:
    declared = java_int(trim(properties.get("reserved.broker.max.id", "")))
    return MOST_RESERVED if declared is None else declared


def _quorum(spec: ClusterSpec) -> dict[str, str]:
    return spec.quorum_properties | {"controller.listener.names": spec.controller_listener.name}


def _authorizer(spec: ClusterSpec, *, in_kraft: bool) -> dict[str, str]:
    classes = spec.authorizers
    if classes is None:
        return {}
    return {"authorizer.class.name": classes.kraft if in_kraft else classes.zookeeper} | (
        {"super.users": ";".join(spec.super_users)} if spec.super_users else {}
    )


def _secrets(spec: ClusterSpec, *, without_zookeeper: bool) -> dict[str, str]:
    references = {
        key: f"${{secrets:{spec.secrets_file}:{key}}}"
        for key in spec.secrets
        if not (without_zookeeper and of_zookeeper_alone(key))
    }
    if not references:
        return {}
    return SECRETS_PROVIDER | references


def _pairs(protocols: Mapping[str, str]) -> str:
    return ",".join(f"{name}:{protocol}" for name, protocol in protocols.items())
