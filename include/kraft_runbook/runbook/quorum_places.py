"""Where nodes look for the quorum, and where its voters stand: by the cluster file, in the nodes' files, and in the
metadata log of a dynamic quorum (KIP-853).
"""

from __future__ import annotations

from kraft_runbook.cluster.addresses import one_spelling
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.owned_properties import QUORUM_ADDRESSES, QUORUM_VOTERS
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import QuorumKind
from kraft_runbook.runbook.check_results import BLOCKING, WARNING, Finding, failed, passed, settle, unknown
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS
from kraft_runbook.runbook.read_parts import host_parts, split_read

ADDRESSES, SAID, HELD, IN_THE_LOG = "KRB-PRE-115", "KRB-PRE-120", "KRB-PRE-121", "KRB-PRE-122"
check = CLUSTER_CHECKS.check


@check(
    ADDRESSES,
    severity=WARNING,
    fix=(
        "trigger rolling_restart with the quorum's addresses (docs/restart.md), which writes them to the files: until"
        " then the named nodes look for a controller where it is not"
    ),
    needs=Needs.HOSTS,
)
def every_file_names_the_voters_of_the_cluster_file(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The file of every node that names voters (controller.quorum.voters) names those of the cluster file.

    In a dynamic quorum a file has their addresses alone (controller.quorum.bootstrap.servers). A node with a former
    address in its file does not find the controller that has moved, and a controller with one does not ask it for its
    vote. The spelling of a host does not count.
    """
    found, unread = split_read("node {}", host_parts(seen, spec.node_ids, "config"))
    wrong = []
    for i, config in found.items():
        held = _voters((config or {}).get(QUORUM_VOTERS, "")) or _voters((config or {}).get(QUORUM_ADDRESSES, ""))
        wanted = _voters(spec.quorum_voters)
        if spec.quorum is QuorumKind.DYNAMIC or (was_read(seen.quorum) and seen.quorum.is_dynamic):
            held, wanted = _addresses(held), _addresses(wanted)
        named, declared = {one_spelling(each): each for each in held}, set(map(one_spelling, wanted))
        if named and named.keys() != declared:
            other = sorted(named[each] for each in named.keys() - declared)
            wrong.append(f"node {i} names {', '.join(other) or 'fewer controllers'}")
    return settle(wrong, unread, f"all name {', '.join(sorted(_voters(spec.quorum_voters)))}, or their addresses")


def _addresses(voters: frozenset[str]) -> frozenset[str]:
    return frozenset(each.rpartition("@")[2] for each in voters)


def _voters(named: str) -> frozenset[str]:
    return frozenset(each.strip() for each in named.split(",") if each.strip())


@check(
    SAID,
    severity=BLOCKING,
    fix=(
        "take 'quorum: dynamic' out of the cluster file, or make the quorum dynamic first: raise kraft.version to 1"
        " (upgrade_features), on Kafka 4.1 or later (docs/dynamic-quorum.md)"
    ),
)
def the_quorum_is_what_the_cluster_file_says(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Where the cluster file says that the quorum is a dynamic one, it is.

    A node whose file names no voters (controller.quorum.voters) knows none until the metadata log holds them. Restarted
    so in a static quorum, the controllers elect nobody. The other way round nothing is lost: where the log holds the
    voters, Kafka reads those, and the voters in a file only say where to look for the leader.
    """
    if spec.quorum is QuorumKind.STATIC:
        return passed("the cluster file says nothing of a dynamic quorum")
    if not was_read(seen.quorum):
        return unknown(seen.quorum)
    if not seen.quorum.is_dynamic:
        return failed("the cluster file says 'quorum: dynamic', and no voter has a directory's id in the metadata log")
    return passed("the metadata log holds the voters, with the ids of their directories")


@check(
    HELD,
    severity=BLOCKING,
    fix=(
        "write controller.quorum.voters to the named files (kraft-runbook plan --hosts shows it; a rolling restart with"
        " the quorum's addresses does so): a restart with the file as it is starts a controller that knows no voter"
    ),
    needs=Needs.HOSTS,
)
def a_static_quorum_has_its_voters_in_every_file(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Where the quorum is a static one, every controller's file names the voters.

    A chart or a playbook of somebody else's may write controller.quorum.bootstrap.servers alone, which only a dynamic
    quorum can do with. Restarted so, controllers find no leader and elect none.
    """
    if was_read(seen.quorum) and seen.quorum.is_dynamic:
        return passed("the metadata log holds the voters")
    found, unread = split_read("controller {}", host_parts(seen, spec.controller_ids, "config"))
    wrong = [f"controller {i}'s file names none" for i, held in found.items() if held and not held.get(QUORUM_VOTERS)]
    if wrong and not was_read(seen.quorum):
        return unknown(seen.quorum)
    return settle(wrong, unread, "every controller's file does")


@check(
    IN_THE_LOG,
    severity=WARNING,
    fix=(
        "give the controller's listener the host and port of the cluster file, and restart it while a majority runs: it"
        " tells the leader its new address. One controller after the other: once all have other addresses, none finds"
        " the others. Or, if every controller reaches it there, write that host and port into the cluster file"
    ),
)
def the_log_has_the_addresses_of_the_cluster_file(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """In a dynamic quorum the metadata log has each voter at its address in the cluster file.

    The spelling of a host does not count. The voters find each other by these addresses alone. One that others can't
    reach, such as localhost, shows once the leader is lost: nobody is elected.
    """
    if not was_read(seen.quorum):
        return passed("no quorum leads") if spec.quorum is QuorumKind.STATIC else unknown(seen.quorum)
    if not seen.quorum.is_dynamic:
        return passed("the quorum is a static one")
    declared = {each.id: each.address for each in spec.controllers}
    name = spec.controller_listener.name
    wrong, unread = [], []
    for each in seen.quorum.voters:
        wanted = f"{name}://{declared.get(each.id, '')}"
        if each.id in declared and not each.endpoints:
            unread.append(f"the leader shows no address of voter {each.id}")
        elif each.id in declared and one_spelling(wanted) not in map(one_spelling, each.endpoints):
            wrong.append(f"voter {each.id} is at {', '.join(each.endpoints)}, in the cluster file at {wanted}")
    return settle(wrong, unread, "it has")
