"""The hosts: clocks, ports, disks, services, and the configuration files there."""

from __future__ import annotations

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    ControllerMode,
    Unread,
    host_part,
    was_read,
)
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import CHECKS, DUAL_WRITING, UNTIL_FINALIZED, check
from kraft_runbook.migration.controller_threads import cut_off
from kraft_runbook.runbook.check_results import BLOCKING, Finding, settle, unknown
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.host_checks import HOST_CHECKS
from kraft_runbook.runbook.read_parts import broker_modes, host_parts, split_read

CHECKS.take(*HOST_CHECKS.of("KRB-PRE-040", "KRB-PRE-042", "KRB-PRE-045", "KRB-PRE-046"))
CHECKS.take(*HOST_CHECKS.of("KRB-PRE-113", "KRB-PRE-126", "KRB-PRE-132"))
CHECKS.take(HOST_CHECKS["KRB-PRE-087"], stages=DUAL_WRITING)


@check(
    "KRB-PRE-096",
    severity=BLOCKING,
    fix=(
        "if the directory should hold replicas, find out first why it is empty (a volume that is not mounted). A new"
        " disk: with it in log.dirs of the broker's file, restart the broker in migration mode, which formats it;"
        " kafka-storage.sh can't format for that mode. Do so before the broker is restarted in KRaft mode"
    ),
    stages=DUAL_WRITING,
    needs=Needs.HOSTS,
)
def every_log_directory_of_a_hybrid_broker_is_formatted(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every log directory of a broker in migration mode has its meta.properties.

    A broker in migration mode formats an empty directory, such as a new disk, when it starts; in KRaft mode, to which
    it is restarted next, it ends (KRB-PRE-087).
    """
    modes, unread = broker_modes(seen)
    hybrid = [i for i, mode in modes.items() if mode is BrokerMode.HYBRID]
    found, unread_nodes = split_read("broker {}", host_parts(seen, hybrid, "unformatted_dirs"))
    unread += unread_nodes
    wrong = [f"broker {i}: {path}: {lack}" for i, dirs in found.items() for path, lack in dirs.items()]
    return settle(wrong, unread, "all have it" if hybrid else "no broker is in migration mode")


POLICIES = ("create.topic.policy.class.name", "alter.config.policy.class.name")


@check(
    "KRB-PRE-041",
    severity=BLOCKING,
    fix="free the port, or give the controller another one in the cluster file",
    stages={Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.UNKNOWN},
    needs=Needs.HOSTS,
)
def controller_ports_are_free(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The ports of controllers that do not run yet are free.

    A controller whose port is taken exits at once.
    """
    wrong, unread = [], []
    for controller in spec.controllers:
        state = seen.controllers[controller.id]
        if state.running is True and was_read(state.mode):
            continue
        ports = host_part(seen, controller.id, "ports_in_use")
        declared_for = f"declared for controller {controller.id}, is in use by"
        if was_read(ports):
            wrong += [f"port {p} on {controller.host}, {declared_for} another process" for p in sorted(ports)]
            continue
        unread.append(f"controller {controller.id}: {ports.reason}")
        if state.running is True:
            wrong.append(f"{controller.address}, {declared_for} a process that is no Kafka controller")
    return settle(wrong, unread, "free, or used by the controllers themselves")


@check(
    "KRB-PRE-043",
    severity=BLOCKING,
    fix=(
        "correct the controller's log_dir. Rename the directory, which belongs to another cluster, only where no"
        " process uses it and that cluster is gone"
    ),
    needs=Needs.HOSTS,
)
def controllers_are_not_formatted_for_another_cluster(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No controller's directory is formatted with another cluster's id.

    Such a controller does not start, or joins the wrong quorum.
    """
    own = _cluster_id(seen)
    if not was_read(own):
        return unknown(own)
    found, unread = split_read("controller {}", host_parts(seen, spec.controller_ids, "formatted_cluster_id"))
    wrong = [
        f"{spec.controller(i).log_dir} of controller {i} belongs to cluster {formatted}, this is {own}"
        for i, formatted in found.items()
        if formatted not in (None, own)
    ]
    return settle(wrong, unread, "none")


def _cluster_id(seen: ClusterObservation) -> str | Unread | None:
    """The cluster's own id, from ZooKeeper or, without ZooKeeper, from the brokers."""
    if was_read(seen.zookeeper):
        return seen.zookeeper.cluster_id
    if seen.has_zookeeper:
        return seen.zookeeper
    return seen.topics.cluster_id if was_read(seen.topics) else seen.topics


@check(
    "KRB-PRE-044",
    severity=BLOCKING,
    fix=(
        "if a migration goes on, start the controllers: the log may be its only copy. Of an earlier try that was left,"
        " rename the controllers' data directories (mv) before the next try; provisioning formats new ones"
    ),
    stages={Phase.ZOOKEEPER},
    needs=Needs.HOSTS,
)
def no_metadata_log_of_a_former_try(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No controller has a metadata log while the cluster is in ZooKeeper mode.

    Controllers started on old data show state 1 at once and copy nothing. Brokers restarted in KRaft mode then treat
    live topics as strays and rename their directories (measured on 3.9.2).
    """
    found, unread = split_read("controller {}", host_parts(seen, spec.controller_ids, "has_metadata_log"))
    wrong = [f"{spec.controller(i).log_dir} of controller {i} holds a metadata log" for i, log in found.items() if log]
    return settle(wrong, unread, "none")


@check(
    "KRB-PRE-049",
    severity=BLOCKING,
    fix=(
        "set 'authorizer: true' in the cluster file, so that controllers and KRaft brokers get StandardAuthorizer;"
        " replace an authorizer that is not Kafka's first"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def the_authorizer_is_kept(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """If the brokers have AclAuthorizer, the controllers get StandardAuthorizer.

    Otherwise the ACLs are copied and nobody enforces them, or brokers refuse each other. Where the cluster file names
    classes under 'authorizer', these count.
    """
    wrong = []
    classes = spec.authorizers
    files, unread = split_read("broker {}", host_parts(seen, spec.broker_ids, "config"))
    for broker_id, config in files.items():
        found = (config or {}).get("authorizer.class.name", "").strip()
        if found and classes is None:
            wrong.append(f"broker {broker_id} has {found}; the cluster file says 'authorizer: false'")
        elif classes is not None and found not in ("", classes.zookeeper, classes.kraft):
            wrong.append(
                f"broker {broker_id} has {found}, which this runbook can't carry over unless the cluster file's"
                " 'authorizer' names it, and what takes its place: {zookeeper: …, kraft: …}"
            )
    tree = seen.tree
    if was_read(tree) and tree.acl_count and not spec.authorizer:
        wrong.append(f"ZooKeeper holds {tree.acl_count} ACLs; the cluster file says 'authorizer: false'")
    return settle(
        wrong,
        unread,
        f"{_short(classes.zookeeper)} becomes {_short(classes.kraft)}" if classes else "no authorizer is used",
    )


def _short(class_name: str) -> str:
    return class_name.rpartition(".")[2]


@check(
    "KRB-PRE-050",
    severity=BLOCKING,
    fix=(
        "put the policy under broker_properties, from which the controllers get it; put the settings that it reads"
        " itself under controller_properties, and its class on the controllers' class path. In KRaft the controllers"
        " enforce it"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def policies_are_carried_over(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The brokers' create and alter policies are set on the controllers.

    In KRaft mode the controllers enforce create.topic.policy.class.name and alter.config.policy.class.name; the brokers
    do not.
    """
    wrong = []
    files, unread = split_read("broker {}", host_parts(seen, spec.broker_ids, "config"))
    for broker_id, config in files.items():
        for key in POLICIES:
            declared = spec.broker_properties.get(key) or spec.broker(broker_id).properties.get(key)
            wanted = (config or {}).get(key) or declared
            without = [
                c.id
                for c in spec.controllers
                if wanted and controller_properties(spec, c, ControllerMode.MIGRATION).get(key) != wanted
            ]
            if without:
                wrong.append(f"broker {broker_id} has {key}={wanted}, {nodes('controller', without, 'does')} not")
    return settle(wrong, unread, "no policy is lost")


@check(
    "KRB-PRE-051",
    severity=BLOCKING,
    fix=(
        "open the network from the controller's host to the named addresses, or correct the advertised listener: the"
        " controllers send metadata to every broker"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def controllers_reach_brokers_and_zookeeper(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every controller's host reaches ZooKeeper and every broker's inter-broker listener.

    During the migration the active controller connects to the brokers by their advertised listeners. Of a ZooKeeper
    ensemble it needs a majority of the servers. The check passes with unreachable servers beyond that and names them:
    one of three may be down.
    """
    wrong, spare = [], []
    servers = frozenset(spec.ensemble.servers)
    found, unread = split_read("controller {}", host_parts(seen, spec.controller_ids, "unreachable_addresses"))
    for controller_id, missing in found.items():
        lost = servers.intersection(missing)
        not_needed = lost if 2 * len(servers - lost) > len(servers) else frozenset()
        if not_needed:
            spare.append(f"controller {controller_id}'s host does not reach {', '.join(sorted(not_needed))}")
        if needed := [address for address in missing if address not in not_needed]:
            wrong.append(f"controller {controller_id}'s host does not reach {', '.join(needed)}")
    reached = f"all reach the brokers and a majority of ZooKeeper's servers; {'; '.join(spare)}" if spare else "all do"
    return settle(wrong, unread, reached)


@check(
    "KRB-PRE-052",
    severity=BLOCKING,
    fix=(
        "restart these brokers in ZooKeeper mode before controllers are formatted: they would shut themselves down when"
        " a new quorum answers"
    ),
    stages={Phase.ZOOKEEPER},
)
def no_broker_is_left_in_migration_mode(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No broker still runs in migration mode when no controller runs.

    Brokers in migration mode from an earlier quorum never register with a new one, and may shut down (measured on
    3.9.2).
    """
    modes, unread = broker_modes(seen)
    left = [i for i, mode in modes.items() if mode is not BrokerMode.ZOOKEEPER]
    return settle(
        [f"{nodes('broker', left, 'is')} not in ZooKeeper mode"] if left else [],
        unread,
        "all are in ZooKeeper mode",
    )


@check(
    "KRB-PRE-057",
    severity=BLOCKING,
    fix=(
        "restart the broker with its present configuration: nothing else brings the thread back, and the partitions"
        " that it leads may stay out of sync until then"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def no_broker_is_cut_off(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every broker in migration mode has all threads that connect to the controller.

    A defect of Kafka 3.9 sometimes ends one of them when the controller changes (the broker's log: "A metric named ...
    already exists"). Without the thread the broker forwards no metadata change, or takes no replica back into an ISR,
    so a roll would wait for ever.
    """
    if not was_read(seen.hosts):
        return unknown(seen.hosts)
    found, unread = split_read("broker {}", cut_off(seen, seen.hosts))
    wrong = [f"broker {broker} lacks {missing} of them" for broker, missing in found.items()]
    return settle(wrong, unread, "none is missing")
