"""Settings that move from brokers to controllers at the metadata copy, settings that KRaft mode leaves out, and the
secrets that Kafka reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kraft_runbook.cluster.controller_settings import (
    BY_KEY,
    ENFORCED,
    ZOOKEEPER_PREFIX,
    decided_for_controllers,
    declared,
    shown_values,
    values_by_broker,
)
from kraft_runbook.cluster.mode_settings import left_out, of_zookeeper_alone
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, Unread, host_part
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.sensitive import HIDDEN, is_sensitive
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.migration.checks.catalogue import BEFORE_THE_COPY, CHECKS, UNTIL_FINALIZED, check
from kraft_runbook.migration.copy_tuning import TUNED_PROPERTIES
from kraft_runbook.runbook.check_results import BLOCKING, WARNING, Finding, failed, passed, settle
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS
from kraft_runbook.runbook.differing_files import capped
from kraft_runbook.runbook.read_parts import host_parts, split_read
from kraft_runbook.runbook.reference_checks import CODES as REFERENCES

CHECKS.take(*CLUSTER_CHECKS.of(*REFERENCES))


ENCODER, SET_ACL = "password.encoder.secret", "zookeeper.set.acl"
ACL_STORE = "authorizer.zookeeper.url"


def _of_broker(seen: ClusterObservation, spec: ClusterSpec, broker: Broker) -> tuple[dict[str, str], bool, str | None]:
    """A broker's properties, whether its file is for KRaft mode, and why that file could not be read.

    The properties come from the host's file. It hides the values of sensitive keys, so these come from the cluster
    file, where they are references.
    """
    by_file = declared(spec, broker)
    on_disk = host_part(seen, broker.id, "config")
    if not isinstance(on_disk, Mapping):
        return by_file, False, f"broker {broker.id}: {on_disk.reason}" if isinstance(on_disk, Unread) else None
    found: dict[str, str] = {
        key: by_file.get(key, str(value)) if is_sensitive(key) or value == HIDDEN else str(value)
        for key, value in on_disk.items()
    }
    return found, "process.roles" in on_disk, None


@check(
    "KRB-PRE-070",
    severity=BLOCKING,
    fix=(
        "give every broker the same value, or set the controllers' value under controller_properties (or each"
        " controllers[].properties), which takes precedence"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def brokers_agree_on_what_controllers_enforce(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The brokers agree on each setting that the controllers enforce from the metadata copy on.

    The controllers get the brokers' common value. On ZooKeeper the broker with the controller role applies its own
    value, so a difference shows only when another broker is elected. Passwords are compared by the reference that the
    cluster file has for each broker, and are never shown.
    """
    of_brokers: dict[int, dict[str, str]] = {}
    left_zookeeper: set[int] = set()
    unread = []
    for broker in spec.brokers:
        of_brokers[broker.id], in_kraft, reason = _of_broker(seen, spec, broker)
        left_zookeeper |= {broker.id} if in_kraft else set()
        unread += [reason] if reason else []
    keys = {key for found in of_brokers.values() for key in found if key in BY_KEY or _is_zookeepers(key)}
    wrong = []
    for key in sorted(keys):
        asked = {
            broker: found
            for broker, found in of_brokers.items()
            if not (of_zookeeper_alone(key) and broker in left_zookeeper)
        }
        values = values_by_broker(asked, key)
        if len(values) > 1 and not decided_for_controllers(spec, key):
            wrong.append(shown_values(key, values))
    return settle(wrong, unread, f"on all of {len(ENFORCED)} and on ZooKeeper's")


def _is_zookeepers(key: str) -> bool:
    """Whether it is a ZooKeeper property from the cluster file; others follow from the phase or the cluster's size."""
    derived = {"zookeeper.connect", "zookeeper.metadata.migration.enable"} | TUNED_PROPERTIES
    return key.startswith(ZOOKEEPER_PREFIX) and key not in derived


@check(
    "KRB-PRE-071",
    severity=BLOCKING,
    fix=(
        "name password.encoder.secret under 'secrets', with the brokers' value. If controllers already run without it,"
        " go back with zk_to_kraft_rollback, then provision them again. Once dual write has written clear text to"
        " ZooKeeper, adding the secret stops dual write (StringIndexOutOfBoundsException in EncryptingPasswordEncoder)"
        " until each such znode is encoded again"
    ),
    stages=BEFORE_THE_COPY,
    needs=Needs.HOSTS,
)
def controllers_encode_passwords_as_brokers_do(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """If the brokers have a password.encoder.secret, every controller has it.

    Without it dual write stores every dynamic broker password in ZooKeeper in clear text (measured on 3.9.2).
    """
    return _as_the_brokers(seen, spec, ENCODER, set_to=None)


@check(
    "KRB-PRE-072",
    severity=BLOCKING,
    fix=(
        "set zookeeper.set.acl under zookeeper.properties. If controllers already run without it, go back with"
        " zk_to_kraft_rollback, then provision them again"
    ),
    stages=BEFORE_THE_COPY,
    needs=Needs.HOSTS,
)
def controllers_protect_znodes_as_brokers_do(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """If the brokers have zookeeper.set.acl=true, every controller has it.

    Without it everybody may read and write /controller and the znodes that dual write creates, SCRAM users among them
    (measured on 3.9.2).
    """
    return _as_the_brokers(seen, spec, SET_ACL, set_to="true")


def _as_the_brokers(seen: ClusterObservation, spec: ClusterSpec, key: str, *, set_to: str | None) -> Finding:
    """Whether each controller has the key, as rendered and in any file on its host, if any broker has it."""
    having, unread = [], []
    for broker in spec.brokers:
        found, _, reason = _of_broker(seen, spec, broker)
        unread += [reason] if reason else []
        having += [broker.id] if _has(found, key, set_to) else []
    wrong = []
    controllers = spec.controllers if having else ()
    on_disk, unread_files = split_read("controller {}", host_parts(seen, (c.id for c in controllers), "config"))
    unread += unread_files
    for controller in controllers:
        if not _has(controller_properties(spec, controller, ControllerMode.MIGRATION), key, set_to):
            wrong.append(f"controller {controller.id} would not get it")
        config = on_disk.get(controller.id)
        if config is not None and not _has(config, key, set_to):
            wrong.append(f"{controller.config_file} of controller {controller.id} lacks it")
    who = f"{nodes('broker', having, 'has')} {key}"
    return settle(
        [f"{who}; {'; '.join(wrong)}"] if wrong else [],
        unread,
        f"{who}, and so has every controller" if having else f"no broker has {key}",
    )


def _has(properties: Mapping[str, str], key: str, set_to: str | None) -> bool:
    value = properties.get(key, "").strip()
    return bool(value) if set_to is None else value.lower() == set_to


@check(
    "KRB-PRE-073",
    severity=WARNING,
    fix=(
        "read the effect of each before the brokers are restarted in KRaft mode; keep the property in the cluster file,"
        " since a rollback needs it"
    ),
    stages=UNTIL_FINALIZED,
)
def nothing_is_lost_in_kraft_mode(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every declared property is valid in every mode of the migration.

    Kafka does not start with a property that its mode refuses (KafkaConfig.validateValues), so the runbook leaves it
    out in that mode. ZooKeeper properties are left out in KRaft mode too; that is no finding.
    """
    return settle(dict.fromkeys(_dropped(spec)), [], "all are, except ZooKeeper properties")


def _dropped(spec: ClusterSpec) -> Iterator[str]:
    for mode in BrokerMode:
        for broker in spec.brokers:
            for key, value in declared(spec, broker).items():
                rule = left_out(key, value, mode)
                if rule is not None and rule.refused:
                    yield f"{key} is left out of brokers in {mode.value} mode, where Kafka refuses it: {rule.so}"
    for controller in spec.controllers:
        for key, value in {**spec.controller_properties, **controller.properties}.items():
            rule = left_out(key, value, ControllerMode.MIGRATION)
            if rule is not None and rule.refused:
                yield f"{key} is left out of controllers, where Kafka refuses it"


@check(
    "KRB-PRE-074",
    severity=BLOCKING,
    fix=(
        "first move the ACLs to the brokers' own ZooKeeper and remove authorizer.zookeeper.url: the metadata copy reads"
        " ACLs below zookeeper.connect only"
    ),
    stages=BEFORE_THE_COPY,
    needs=Needs.HOSTS,
)
def acls_are_where_the_copy_reads_them(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No broker keeps its ACLs in a separate ZooKeeper.

    AclAuthorizer reads ACLs from authorizer.zookeeper.url if that is set. The metadata copy reads zookeeper.connect
    (ZkAclMigrationClient), so it would copy no ACL.
    """
    wrong, unread = [], []
    for broker in spec.brokers:
        found, _, reason = _of_broker(seen, spec, broker)
        unread += [reason] if reason else []
        url = found.get(ACL_STORE, "").strip()
        if url and url != spec.ensemble.connect:
            wrong.append(f"broker {broker.id} has {ACL_STORE}={url}, and zookeeper.connect is {spec.ensemble.connect}")
    return settle(wrong, unread, "none does")


@check(
    "KRB-PRE-075",
    severity=WARNING,
    fix=(
        "put each class's jar beside Kafka's own on every controller's host (kafka.home), and the settings that the"
        " class reads under controller_properties"
    ),
    stages=BEFORE_THE_COPY,
)
def controllers_can_load_the_brokers_classes(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The controllers load no class that only the brokers' hosts may have.

    The settings of policies, a quota callback and a principal builder move from the brokers to the controllers. A
    controller that can't load such a class does not start.
    """
    wrong = []
    for setting in (each for each in ENFORCED if each.loads):
        values = {
            p.get(setting.key)
            for p in (controller_properties(spec, c, ControllerMode.MIGRATION) for c in spec.controllers)
        }
        wrong += [
            f"{setting.key}={value} ({setting.why})"
            for value in sorted(v for v in values if v and not v.startswith("org.apache.kafka."))
        ]
    return failed("the controllers will load " + capped(tuple(wrong))) if wrong else passed("none is set")


@check(
    "KRB-PRE-077",
    severity=WARNING,
    fix=(
        "clear finalize_controllers.zookeeper_secrets of the run that finalized, or remove the lines by hand: nothing"
        " reads them any more, and no restart is needed"
    ),
    stages={Phase.FINALIZED},
    needs=Needs.HOSTS,
)
def zookeepers_secrets_have_left_the_hosts(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No host's secrets file holds ZooKeeper's secrets once the migration is final.

    Before that a rollback needs them: zookeeper.* and password.encoder.*.
    """
    if not spec.secrets:
        return passed("no secret is declared")
    found, unread = split_read("node {}", host_parts(seen, spec.node_ids, "secrets_keys"))
    left = {i: [key for key in keys or () if of_zookeeper_alone(key)] for i, keys in found.items()}
    return settle([f"node {i}: {', '.join(keys)}" for i, keys in left.items() if keys], unread, "none does")
