"""The hosts: clocks, ports, disks, services, and the configuration that lies there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kraft_runbook.cluster.mode_settings import of_zookeeper_alone
from kraft_runbook.cluster.node_properties import KRAFT_AUTHORIZER, ZOOKEEPER_AUTHORIZER, broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, Unread, was_read
from kraft_runbook.cluster.sensitive import is_sensitive
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.registry import UNTIL_FINALIZED, Needs, check
from kraft_runbook.migration.checks.software import host_part
from kraft_runbook.migration.controller_threads import cut_off
from kraft_runbook.migration.phases import Phase
from kraft_runbook.runbook.check_results import SAMPLE, Finding, Severity, settle, unknown

BLOCKING, WARNING = Severity.BLOCKING, Severity.WARNING

CLOCK_SKEW_SECONDS = 1.0
FREE_BYTES = 1024**3
"""Room for the metadata log, its snapshots (142 MB at a million partitions, measured) and logs."""
AS_RENDERED = (
    "bring the cluster file's properties in line with what lies on the host (kraft-runbook plan shows both), or correct the host's file and restart the broker"
)
POLICIES = ("create.topic.policy.class.name", "alter.config.policy.class.name")


@check("KRB-PRE-040", severity=WARNING, fix="synchronize the host's clock (chrony, ntpd)", needs=Needs.HOSTS)
def clocks_agree(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The hosts' clocks agree within a second.

    Token expiry, retention and the evidence of this run are read by clock.
    """
    wrong, unread = [], []
    for node_id in _nodes(spec):
        skew = host_part(seen, node_id, "clock_skew_seconds")
        if isinstance(skew, Unread):
            unread.append(f"node {node_id}: {skew.reason}")
        elif isinstance(skew, int | float) and abs(skew) > CLOCK_SKEW_SECONDS:
            wrong.append(f"node {node_id} is off by {skew:.1f} s")
    return settle(wrong, unread, f"within {CLOCK_SKEW_SECONDS:g} s")


@check(
    "KRB-PRE-041",
    severity=BLOCKING,
    fix="free the port, or give the controller another one in the cluster file",
    phases={Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.UNKNOWN},
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
        if isinstance(ports, Unread):
            unread.append(f"controller {controller.id}: {ports.reason}")
        elif isinstance(ports, frozenset):
            wrong += [f"port {p} on {controller.host}, declared for controller {controller.id}, is in use by something else" for p in sorted(ports)]
        if state.running is True and isinstance(ports, Unread):
            wrong.append(f"{controller.address}, declared for controller {controller.id}, is in use by something that is no Kafka controller")
    return settle(wrong, unread, "free, or used by the controllers themselves")


@check("KRB-PRE-042", severity=BLOCKING, fix="make room on that file system", needs=Needs.HOSTS)
def disks_have_room(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every log directory's file system has 1 GiB free.

    The metadata log of a million partitions and its snapshot take a quarter of that.
    """
    wrong, unread = [], []
    for node_id in _nodes(spec):
        free = host_part(seen, node_id, "free_bytes")
        if isinstance(free, Unread):
            unread.append(f"node {node_id}: {free.reason}")
        elif isinstance(free, Mapping):
            wrong += [f"node {node_id} has {n // 2**20} MiB free at {path}" for path, n in sorted(free.items()) if n < FREE_BYTES]
    return settle(wrong, unread, "at least 1 GiB everywhere")


@check("KRB-PRE-043", severity=BLOCKING, fix="set the directory aside (it belongs to another cluster), or correct the controller's log_dir", needs=Needs.HOSTS)
def controllers_are_not_formatted_for_another_cluster(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No controller's directory is formatted with another cluster's id.

    Such a controller does not start, or joins the wrong quorum.
    """
    if not was_read(seen.zookeeper):
        return unknown(seen.zookeeper)
    wrong, unread = [], []
    for controller in spec.controllers:
        formatted = host_part(seen, controller.id, "formatted_cluster_id")
        if isinstance(formatted, Unread):
            unread.append(f"controller {controller.id}: {formatted.reason}")
        elif formatted not in (None, seen.zookeeper.cluster_id):
            wrong.append(f"{controller.log_dir} of controller {controller.id} belongs to cluster {formatted}, this is {seen.zookeeper.cluster_id}")
    return settle(wrong, unread, "none")


@check(
    "KRB-PRE-044",
    severity=BLOCKING,
    fix="set the controllers' data directories aside (mv) before the next try; they are formatted anew",
    phases={Phase.ZOOKEEPER},
    needs=Needs.HOSTS,
)
def no_metadata_log_of_a_former_try(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No controller has a metadata log while the cluster is in ZooKeeper mode.

    Controllers started on old data show state 1 at once, copy nothing, and brokers rolled to KRaft then set live topics aside as strays (measured on 3.9.2).
    """
    wrong, unread = [], []
    for controller in spec.controllers:
        log = host_part(seen, controller.id, "has_metadata_log")
        if isinstance(log, Unread):
            unread.append(f"controller {controller.id}: {log.reason}")
        elif log:
            wrong.append(f"{controller.log_dir} of controller {controller.id} holds a metadata log")
    return settle(wrong, unread, "none")


@check("KRB-PRE-045", severity=BLOCKING, fix="define the service on the host (docs/hosts.md), under the name that the cluster file gives", needs=Needs.HOSTS)
def every_service_is_defined(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every node's service is defined on its host.

    The runbook starts and stops services; it does not define them.
    """
    wrong, unread = [], []
    for node_id in _nodes(spec):
        there = host_part(seen, node_id, "service_defined")
        if isinstance(there, Unread):
            unread.append(f"node {node_id}: {there.reason}")
        elif not there:
            service = spec.broker(node_id).service if node_id in spec.broker_ids else spec.controller(node_id).service
            wrong.append(f"node {node_id} has no service {service}")
    return settle(wrong, unread, "all are")


@check(
    "KRB-PRE-046",
    severity=BLOCKING,
    fix=AS_RENDERED,
    needs=Needs.HOSTS,
)
def broker_files_are_as_rendered(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every broker's configuration file is what the cluster file renders for its mode.

    Files are written whole: a property that the cluster file does not know would be dropped at the next restart. Values of secrets are not compared.
    """
    wrong, unread = [], []
    bound: dict[tuple[str, str], None] = {}  # a set that keeps its order
    for broker in spec.brokers:
        mode = seen.brokers[broker.id].mode
        config = host_part(seen, broker.id, "config")
        if not was_read(mode):
            unread.append(f"broker {broker.id}'s mode: {mode.reason}")
        elif isinstance(config, Unread):
            unread.append(f"broker {broker.id}: {config.reason}")
        elif config is None:
            wrong.append(f"broker {broker.id} has no file {broker.config_file}")
        elif isinstance(config, Mapping):
            # What KRaft mode reads no more costs no restart: a broker rendered by an older version of this tool still has some of it.
            held = {key: value for key, value in config.items() if not (mode is BrokerMode.KRAFT and of_zookeeper_alone(key))}
            rendered = broker_properties(spec, broker, mode)
            differences = differing_keys(held, rendered)
            if differences:
                wrong.append(f"broker {broker.id} ({mode}): {capped(differences)}")
                bound |= dict.fromkeys(bound_elsewhere(held.get("listeners", ""), rendered["listeners"]).items())
    found = settle(wrong, unread, "all are")
    return replace(found, fix=f"{_bind(bound)}; for all else: {AS_RENDERED}") if bound else found


def _bind(bound: Iterable[tuple[str, str]]) -> str:
    keys = ", ".join(f"bind_host: '{host}' at {name}" for name, host in bound)
    return f"listeners: write under brokers[].listeners[] of the cluster file the address that the broker binds to, as its file has it ({keys}; empty: every address)"


def bound_elsewhere(on_disk: str, rendered: str) -> dict[str, str]:
    """The host of each listener in the file, by its name, where another is rendered for it; none where the two differ in more than hosts."""
    there, here = _listeners(on_disk), _listeners(rendered)
    if [(name, port) for name, _, port in there] != [(name, port) for name, _, port in here]:
        return {}
    return {name: host for (name, host, _), (_, other, _) in zip(there, here, strict=True) if host != other}


def _listeners(text: str) -> list[tuple[str, str, str]]:
    """Name, host (bare) and port of each."""
    found = []
    for each in text.split(","):
        name, _, place = each.strip().partition("://")
        host, _, port = place.rpartition(":")
        found.append((name, host.removeprefix("[").removesuffix("]"), port))
    return found


def differing_keys(on_disk: Mapping[str, str], rendered: Mapping[str, str]) -> tuple[str, ...]:
    """What differs, by key, with values where they may be shown: ``a (file: 1, rendered: 2)``, ``b (only in the file)``."""
    found = []
    for key in sorted(on_disk.keys() | rendered.keys()):
        if key not in rendered:
            found.append(f"{key} (only in the file)")
        elif key not in on_disk:
            found.append(f"{key} (not in the file)")
        elif not is_sensitive(key) and on_disk[key] != rendered[key]:
            found.append(f"{key} (file: {on_disk[key]}, rendered: {rendered[key]})")
    return tuple(found)


@check(
    "KRB-PRE-049",
    severity=BLOCKING,
    fix="set 'authorizer: true' in the cluster file, so that controllers and KRaft brokers get StandardAuthorizer; replace a foreign authorizer first",
    phases=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def the_authorizer_is_kept(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Brokers with AclAuthorizer get controllers with StandardAuthorizer.

    Else ACLs are copied and enforced by nobody, or brokers refuse each other.
    """
    wrong, unread = [], []
    for broker_id in spec.broker_ids:
        config = host_part(seen, broker_id, "config")
        if isinstance(config, Unread):
            unread.append(f"broker {broker_id}: {config.reason}")
        elif isinstance(config, Mapping):
            found = config.get("authorizer.class.name", "")
            if found and not spec.authorizer:
                wrong.append(f"broker {broker_id} has {found}; the cluster file says 'authorizer: false'")
            elif found not in ("", ZOOKEEPER_AUTHORIZER, KRAFT_AUTHORIZER):
                wrong.append(f"broker {broker_id} has {found}, which this runbook can't carry over")
    tree = seen.zookeeper.tree if was_read(seen.zookeeper) else seen.zookeeper
    if was_read(tree) and tree.acl_count and not spec.authorizer:
        wrong.append(f"ZooKeeper holds {tree.acl_count} ACLs; the cluster file says 'authorizer: false'")
    return settle(wrong, unread, "AclAuthorizer becomes StandardAuthorizer" if spec.authorizer else "no authorizer is used")


@check(
    "KRB-PRE-050",
    severity=BLOCKING,
    fix="put the policy under broker_properties, from where the controllers get it, what it reads itself under controller_properties, and its class on the "
    "controllers' class path: in KRaft the controllers enforce it",
    phases=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def policies_are_carried_over(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Create and alter policies of the brokers are set on the controllers.

    In KRaft mode the controllers enforce create.topic.policy.class.name and alter.config.policy.class.name, the brokers do not.
    """
    wrong, unread = [], []
    for broker in spec.brokers:
        config = host_part(seen, broker.id, "config")
        if isinstance(config, Unread):
            unread.append(f"broker {broker.id}: {config.reason}")
            continue
        on_disk = config if isinstance(config, Mapping) else {}
        for key in POLICIES:
            wanted = on_disk.get(key) or spec.broker_properties.get(key) or broker.properties.get(key)
            without = [c.id for c in spec.controllers if controller_properties(spec, c, ControllerMode.MIGRATION).get(key) != wanted] if wanted else []
            if without:
                wrong.append(f"broker {broker.id} has {key}={wanted}, controller {', '.join(map(str, without))} does not")
    return settle(wrong, unread, "no policy is lost")


@check(
    "KRB-PRE-051",
    severity=BLOCKING,
    fix="open the way from the controller's host, or correct the advertised listener: the controllers send every broker its metadata",
    phases=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def controllers_reach_brokers_and_zookeeper(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every controller's host reaches ZooKeeper and every broker's inter-broker listener.

    While migrating the active controller calls the brokers by their advertised listeners. Of a ZooKeeper ensemble it needs the servers
    that serve: a majority. What it does not reach of the others is named, and is no reason to stop: one of three may be down.
    """
    wrong, unread, spare = [], [], []
    servers = frozenset(spec.zookeeper.servers)
    for controller in spec.controllers:
        missing = host_part(seen, controller.id, "unreachable_addresses")
        if isinstance(missing, Unread):
            unread.append(f"controller {controller.id}: {missing.reason}")
            continue
        lost = servers.intersection(missing)
        not_needed = lost if 2 * len(servers - lost) > len(servers) else frozenset()
        if not_needed:
            spare.append(f"controller {controller.id}'s host does not reach {', '.join(sorted(not_needed))}")
        if needed := [address for address in missing if address not in not_needed]:
            wrong.append(f"controller {controller.id}'s host does not reach {', '.join(needed)}")
    reached = f"all reach the brokers and a majority of ZooKeeper's servers; {'; '.join(spare)}" if spare else "all do"
    return settle(wrong, unread, reached)


@check(
    "KRB-PRE-052",
    severity=BLOCKING,
    fix="restart these brokers in ZooKeeper mode before controllers are formatted: they would shut themselves down when a fresh quorum answers",
    phases={Phase.ZOOKEEPER},
)
def no_broker_is_left_in_migration_mode(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No broker still runs in migration mode when no controller runs.

    Hybrid brokers of a former quorum never register with a fresh one, and may end themselves (measured on 3.9.2).
    """
    left = [b.id for b in seen.brokers.values() if was_read(b.mode) and b.mode.value != "zookeeper"]
    unread = [f"broker {b.id}'s mode: {b.mode.reason}" for b in seen.brokers.values() if not was_read(b.mode)]
    return settle([f"broker {', '.join(map(str, left))} is not in ZooKeeper mode"] if left else [], unread, "all are in ZooKeeper mode")


@check(
    "KRB-PRE-057",
    severity=BLOCKING,
    fix="restart the broker with the configuration that it has: nothing else brings the thread back, and what it leads may stay out of sync until then",
    phases=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def no_broker_is_cut_off(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every broker in migration mode has its threads that speak to the controller.

    A defect of Kafka 3.9 ends one now and then when the controller changes (its log: "A metric named ... already exists"). Without it the broker passes on no
    change of metadata, or takes no replica back into an ISR, so that a roll would wait for ever.
    """
    if not was_read(seen.hosts):
        return unknown(seen.hosts)
    found = cut_off(seen, seen.hosts)
    wrong = [f"broker {broker} lacks {missing} of them" for broker, missing in found.items() if was_read(missing)]
    return settle(wrong, [f"broker {broker}: {each.reason}" for broker, each in found.items() if isinstance(each, Unread)], "none is missing")


def _nodes(spec: ClusterSpec) -> Iterable[int]:
    return (*spec.broker_ids, *spec.controller_ids)


def capped(items: tuple[str, ...]) -> str:
    """The first few items and how many more there are."""
    return ", ".join(items[: 2 * SAMPLE]) + (f" and {len(items) - 2 * SAMPLE} more" if len(items) > 2 * SAMPLE else "")
