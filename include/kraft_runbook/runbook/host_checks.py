"""Checks of the nodes' hosts that any operation may need: what is installed there, its disks, services and files. Each
operation takes those that it needs, for its own stages. ``of``: the nodes that one judges; None: every one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from kraft_runbook.cluster.naming import by_number, name_ids, nodes
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, Unread
from kraft_runbook.cluster.owned_properties import WHERE_THE_QUORUM_IS
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.broker_files import broker_files
from kraft_runbook.runbook.check_results import BLOCKING, WARNING, Finding, passed, settle
from kraft_runbook.runbook.checklist import Checklist, Needs
from kraft_runbook.runbook.differing_files import capped, differing_keys, render_bound
from kraft_runbook.runbook.read_parts import host_parts, split_read
from kraft_runbook.runbook.versions import java_release

HOST_CHECKS = Checklist()
"""Checks without a stage: an operation's own list takes them (``Checklist.take``)."""

check = HOST_CHECKS.check

CLOCK_SKEW_SECONDS = 1.0
FREE_BYTES, FULL_BYTES = 1024**3, 100 * 1024**2
"""Room for the metadata log, its snapshots (142 MB at a million partitions, measured) and logs. And what a start alone
may need: the indexes of an active segment are made 10 MiB long each (segment.index.bytes), and checkpoints are written.
"""
AS_RENDERED = (
    "make the cluster file's properties equal to the host's file (kraft-runbook plan --hosts shows both), or correct"
    " the host's file and restart the broker"
)
ADDRESSES_ANEW = (
    "trigger rolling_restart, Files: with the quorum's addresses (docs/restart.md): it writes where the quorum is, and"
    " nothing else differs"
)
JAVA_WANTED = 17
"""The Java release that Kafka 4 brokers and controllers need (KIP-1013)."""
JAVA_NEEDED = 11
"""The lowest Java release that this runbook accepts. Kafka 3.9 also starts on Java 8, which is deprecated (KIP-750)."""


@check(
    "KRB-PRE-018",
    severity=BLOCKING,
    fix="install the declared Kafka version at kafka.home on the host",
    needs=Needs.HOSTS,
)
def kafka_is_installed_on_every_host(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every host has the declared Kafka version at kafka.home.

    The controllers are started from it.
    """
    found, unread = split_read("node {}", host_parts(seen, spec.node_ids, "classpath_ok"))
    what = f"Kafka {spec.kafka.version} at {spec.kafka.home}"
    return settle([f"node {i} has no {what}" for i, there in found.items() if not there], unread, what)


@check(
    "KRB-PRE-015",
    severity=BLOCKING,
    fix=f"install Java {JAVA_WANTED} on the host and set the service to use it",
    needs=Needs.HOSTS,
)
def java_is_there_and_not_too_old(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every host has Java 11 or later.

    Kafka 3.9 also starts on Java 8, but that is deprecated (KIP-750).
    """
    return hosts_with_java(seen, spec, JAVA_NEEDED)


def hosts_with_java(seen: ClusterObservation, spec: ClusterSpec, needed: int) -> Finding:
    found, unread = split_read("node {}", host_parts(seen, spec.node_ids, "java_version"))
    defined, unknown = split_read("node {}", host_parts(seen, list(found), "next_java_version"))
    wrong = []
    for i, version in found.items():
        other = defined.get(i)
        if other and java_release(other) < needed:
            wrong.append(f"node {i} runs on Java {version}, and its service's definition names Java {other};")
        elif java_release(version) < needed:
            wrong.append(f"node {i} has Java {version}{f' (its service names {other}: restart it)' if other else ''};")
    return settle(
        [f"{each} {needed} or later is needed" for each in wrong],
        [*unread, *unknown],
        f"Java {', '.join(sorted(set(found.values())))}",
    )


@check("KRB-PRE-040", severity=WARNING, fix="synchronize the host's clock (chrony, ntpd)", needs=Needs.HOSTS)
def clocks_agree(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The hosts' clocks agree within a second.

    Token expiry, retention and this run's evidence depend on the clocks.
    """
    found, unread = split_read("node {}", host_parts(seen, spec.node_ids, "clock_skew_seconds"))
    wrong = [f"node {i} is off by {skew:.1f} s" for i, skew in found.items() if abs(skew) > CLOCK_SKEW_SECONDS]
    return settle(wrong, unread, f"within {CLOCK_SKEW_SECONDS:g} s")


@check("KRB-PRE-042", severity=BLOCKING, fix="make room on that file system", needs=Needs.HOSTS)
def disks_have_room(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every log directory's file system has 1 GiB free.

    The metadata log of 1,000,000 partitions and its snapshot take a quarter of that.
    """
    return _free(seen, spec, FREE_BYTES)


@check("KRB-PRE-124", severity=BLOCKING, fix="make room on that file system", needs=Needs.HOSTS)
def no_disk_is_full(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every log directory's file system has 100 MiB free.

    A node that is stopped beside a full disk may not come up again.
    """
    return _free(seen, spec, FULL_BYTES)


def _free(seen: ClusterObservation, spec: ClusterSpec, least: int) -> Finding:
    found, unread = split_read("node {}", host_parts(seen, spec.node_ids, "free_bytes"))
    wrong = [
        f"node {i} has {n // 2**20} MiB free at {path}"
        for i, free in found.items()
        for path, n in sorted(free.items())
        if n < least
    ]
    return settle(wrong, unread, f"at least {least // 2**20:,} MiB on each")


@check(
    "KRB-PRE-045",
    severity=BLOCKING,
    fix="define the service on the host (docs/hosts.md), under the name that the cluster file gives",
    needs=Needs.HOSTS,
)
def every_service_is_defined(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every node's service is defined on its host.

    The runbook starts and stops services; it does not define them.
    """
    found, unread = split_read("node {}", host_parts(seen, spec.node_ids, "service_defined"))
    services = {b.id: b.service for b in spec.brokers} | {c.id: c.service for c in spec.controllers}
    wrong = [f"node {i} has no service {services[i]}" for i, there in found.items() if not there]
    return settle(wrong, unread, "all are")


@check(
    "KRB-PRE-126",
    severity=WARNING,
    fix=(
        "systemd: set TimeoutStopSec in the unit to service_manager.stop_timeout or more (systemctl daemon-reload; no"
        " restart is needed). supervisor: set stopwaitsecs of the program to that, one node after the other:"
        " supervisorctl reread, then update and the program's name, which restarts it (docs/hosts.md)"
    ),
    needs=Needs.HOSTS,
)
def each_node_is_let_stop(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The service manager gives each node the time that a clean stop may take.

    systemd kills a process that has not stopped after its unit's TimeoutStopSec, 90 s by default; supervisor after its
    program's stopwaitsecs, 10 s by default. A broker that is killed has not handed its leaders over, and reads its logs
    again at its start, which may take hours.
    """
    kind = spec.service_manager.kind
    found, unread = split_read("node {}", host_parts(seen, spec.node_ids, "stop_seconds"))
    least = spec.service_manager.stop_timeout
    short: dict[float, list[int]] = {}
    for node_id, seconds in found.items():
        if seconds is not None and seconds < least:
            short.setdefault(seconds, []).append(node_id)
    wrong = [
        f"{nodes('node', ids)}: {kind} kills after {seconds:g} s, and a stop may take {least:g} s"
        for seconds, ids in sorted(short.items())
    ]
    return settle(wrong, unread, f"{least:g} s or more on each")


_STOP, _STOP_OPTION = "kafka-server-stop", re.compile(r"--(node-id|process-role)=([^\s\"';]+)")


@check(
    "KRB-PRE-132",
    severity=BLOCKING,
    fix=(
        "take that command out of the unit (systemctl daemon-reload; no restart is needed): systemd itself sends"
        " SIGTERM to the unit's own process, as the script does to all"
    ),
    needs=Needs.HOSTS,
)
def a_units_stop_ends_its_own_node_alone(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The stop of a node's unit ends no other node of its host.

    Without options kafka-server-stop.sh sends SIGTERM to every Kafka process of the host, and with --process-role to
    every one of that role (KIP-979). Where a host has several nodes, the restart of one stops the others too. A stop
    that does not run as root reaches no process of another user. One host under two names is told by its own boot id
    and process table; nodes of another cluster by their processes, and of them a stop with options is not judged.
    """
    if spec.service_manager.kind != "systemd":
        return passed("not checked: supervisor sends its own process a signal")
    machines = machines_of(seen, spec)
    beside = {i: [other for other in ids if other != i] for ids in machines for i in ids}
    strangers = {i: there for ids in machines for there in [_strangers(seen, ids)] for i in ids}
    asked = [i for i in beside if beside[i] or strangers[i]]
    found, unread = split_read("node {}", host_parts(seen, asked, "stop_commands"))
    by, whose = (host_parts(seen, asked, part) for part in ("stops_as", "runs_as"))
    wrong = []
    for i, commands in found.items():
        for command in commands or ():
            ended = [o for o in beside[i] if _ends(command, o, spec) and _may_signal(by[i], whose[o])]
            of_others = [p for p, user in strangers[i].items() if _ends_all(command) and _may_signal(by[i], user)]
            told = [nodes("node", ended)] if ended else []
            if of_others:
                told.append(
                    f"Kafka that is not in the cluster file ({by_number(of_others, 'process', 'processes')}"
                    f" {name_ids(of_others)})"
                )
            if told:
                wrong.append(f"node {i}: its unit's {command} stops {' and '.join(told)} of its host too")
    return settle(wrong, unread, "each does" if asked else "no host has several nodes")


def machines_of(seen: ClusterObservation, spec: ClusterSpec) -> list[list[int]]:
    """The nodes by the machine on which they run: as the hosts tell it, so that one with two names is one; where they
    don't, by the cluster file.
    """
    told, _ = split_read("", host_parts(seen, spec.node_ids, "machine"))
    known = {spec.machine_of(node): told[node.id] for node in spec.nodes if node.id in told}
    machines: dict[str, list[int]] = {}
    for node in spec.nodes:
        place = spec.machine_of(node)
        machines.setdefault(known.get(place, place), []).append(node.id)
    return list(machines.values())


def _strangers(seen: ClusterObservation, ids: list[int]) -> Mapping[int, int]:
    """The Kafka processes of a machine that are none of its nodes', with their users. None where a node's own is not
    known.
    """
    found, unread = split_read("", host_parts(seen, ids, "other_kafkas"))
    common = [] if unread else set.intersection(*(set(each) for each in found.values()))
    return {pid: found[ids[0]][pid] for pid in sorted(common)}


def _may_signal(by: int | Unread | None, whose: int | Unread | None) -> bool:
    """Whether a user's command may end another's process, as far as is known: root may, and each one his own."""
    return not (isinstance(by, int) and isinstance(whose, int)) or by in (0, whose)


def _ends_all(command: str) -> bool:
    """Whether a unit's command ends every Kafka process of its host."""
    return _STOP in command and not _STOP_OPTION.search(command)


def _ends(command: str, node_id: int, spec: ClusterSpec) -> bool:
    """Whether a unit's command ends that node of the same host. Of both options the script takes the id."""
    if _STOP not in command:
        return False
    options: dict[str, str] = dict(_STOP_OPTION.findall(command))
    if "node-id" in options:
        return options["node-id"] == str(node_id)
    role = "broker" if node_id in spec.broker_ids else "controller"
    its = "broker,controller" if spec.has_both_roles(node_id) else role
    return options.get("process-role", its) == its


@check(
    "KRB-PRE-087",
    severity=BLOCKING,
    fix=(
        "if the directory should hold replicas, find out first why it is empty (a volume that is not mounted). A new"
        " disk: as the user that runs Kafka, on the node's host, kafka-storage.sh format --ignore-formatted"
        " --cluster-id=CLUSTER_ID --config FILE, with the cluster's id and the node's own configuration file. It"
        " formats only directories without meta.properties, and gives each a directory.id. A directory that can't be"
        " read: let this tool's user read it, or replace the disk if it is broken. Format nothing there: a broker"
        " starts without a broken directory. A controller's metadata directory that was emptied: format it only while"
        " all other voters are caught up, since its vote is forgotten"
    ),
    needs=Needs.HOSTS,
)
def every_log_directory_is_formatted(
    seen: ClusterObservation, spec: ClusterSpec, *, of: Collection[int] | None = None
) -> Finding:
    """Every log directory of a node in KRaft mode has its meta.properties.

    In ZooKeeper mode a broker formats an empty directory, such as a new disk, when it starts. In KRaft mode a node ends
    at its start ("No `meta.properties` found in", measured on 3.9.2), whichever of its directories it is.
    """
    asked = spec.node_ids if of is None else of
    modes, unread = split_read("broker {}'s mode", {b.id: b.mode for b in seen.brokers.values() if b.id in asked})
    in_kraft = [i for i, mode in modes.items() if mode is BrokerMode.KRAFT]
    in_kraft += [c.id for c in seen.controllers.values() if c.running is True]
    in_kraft += _down_in_kraft(seen)
    in_kraft = [i for i in in_kraft if i in asked]
    found, unread_nodes = split_read("node {}", host_parts(seen, in_kraft, "unformatted_dirs"))
    unread += unread_nodes
    for i, dirs in split_read("node {}", host_parts(seen, in_kraft, "unread_dirs"))[0].items():
        unread += [f"node {i}: {path}: {reason}" for path, reason in dirs.items()]
    wrong = [f"node {i} would not start: {path}: {lack}" for i, dirs in found.items() for path, lack in dirs.items()]
    return settle(wrong, unread, "all have it" if in_kraft else "no node is in KRaft mode")


def _down_in_kraft(seen: ClusterObservation) -> list[int]:
    """The nodes that are down and start in KRaft mode: brokers by their files, controllers where there must be a
    quorum.
    """
    brokers = host_parts(seen, [b.id for b in seen.brokers.values() if b.running is False], "config")
    down = [i for i, config in brokers.items() if isinstance(config, Mapping) and "process.roles" in config]
    if detect_phase(seen).phase in (Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED, Phase.KRAFT):
        down += [c.id for c in seen.controllers.values() if c.running is False]
    return down


@check(
    "KRB-PRE-113",
    severity=WARNING,
    fix=(
        "stop what else writes the files (configuration management, also a run that somebody starts from another host)"
        " until the operation has ended. Take each change out of its file, or put it into the cluster file: a step that"
        " would write over it stops (docs/hosts.md)"
    ),
    needs=Needs.HOSTS,
)
def no_other_hand_writes_the_files(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Nothing else writes the nodes' files.

    What this tool wrote is as it wrote it, and no agent of configuration management runs on a host. An agent that
    writes a broker's former file back takes it out of its mode at the next restart. A manager that a timer or another
    host starts is not seen.
    """
    changed, unread = split_read("node {}", host_parts(seen, spec.node_ids, "other_hands"))
    running, unread_too = split_read("node {}", host_parts(seen, spec.node_ids, "configuration_managers"))
    wrong = [
        f"node {i}: another hand changed {path}: {'; '.join(lines)}"
        for i, files in changed.items()
        for path, lines in files.items()
    ]
    where: dict[str, list[int]] = {}
    for i, agents in running.items():
        for each in agents:
            where.setdefault(each, []).append(i)
    wrong += [f"{each} runs on the host of {nodes('node', ids)}" for each, ids in where.items()]
    return settle(wrong, [*unread, *(each for each in unread_too if each not in unread)], "nothing else was seen")


@check(
    "KRB-PRE-046",
    severity=BLOCKING,
    fix=AS_RENDERED,
    needs=Needs.HOSTS,
)
def broker_files_are_as_rendered(
    seen: ClusterObservation, spec: ClusterSpec, *, of: Collection[int] | None = None
) -> Finding:
    """Every broker's configuration file is what the cluster file renders for its mode.

    Files are written whole, so a property that is not in the cluster file would be lost at the next restart. Compared
    is what they mean to Kafka: blanks, capitals of true and false, a key that only one side sets, to Kafka's default,
    and what it derives where a file says nothing make no difference. A key that Kafka does not define is compared as it
    stands, since a plugin is given its blanks; the cluster file has none at a value's ends. A default that Kafka 4
    changes, or that Java or a system property decides, has to be set on both sides. Values of secrets are not compared.
    """
    wrong, unread = [], []
    bound: dict[tuple[str, str], None] = {}  # a set that keeps its order
    keys: set[str] = set()
    for each in broker_files(seen, spec):
        if of is not None and each.node.id not in of:
            continue
        if each.unread:
            unread.append(each.unread)
        elif each.missing:
            wrong.append(f"broker {each.node.id} has no file {each.node.config_file}")
        elif differences := differing_keys(each.held, each.wanted):
            wrong.append(f"broker {each.node.id} ({each.mode}): {capped(differences)}")
            bound |= dict.fromkeys(each.bound.items())
            keys |= {told.partition(" ")[0] for told in differences}
    found = settle(wrong, unread, "all are")
    if wrong and keys and keys <= WHERE_THE_QUORUM_IS:
        return replace(found, fix=ADDRESSES_ANEW)
    return replace(found, fix=f"{render_bound(bound)}; for all other keys: {AS_RENDERED}") if bound else found
