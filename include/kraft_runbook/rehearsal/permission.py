"""Whose gates may be judged by this tool alone, without a person: a throwaway cluster's, and no other's. Pure."""

from __future__ import annotations

from kraft_runbook.cluster.contradictions import why_no_throwaway
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused

_WAY_OUT = "a gate of a real cluster is signed by a person: trigger the DAG"


def require_throwaway(spec: ClusterSpec) -> None:
    """Raise Refused unless this is the file of a rehearsal: it says so, every address is a loopback one, and its id is
    not that of the cluster that is rehearsed. Asked again of a value that nothing has validated.
    """
    if spec.rehearses is None:
        raise Refused(f"{spec.name} is not a rehearsal's throwaway: its gates are signed", way_out=_WAY_OUT)
    if wrong := tuple(why_no_throwaway(spec, spec.rehearses)):
        raise Refused(f"{spec.name} is not a rehearsal's throwaway: {'; '.join(wrong)}", way_out=_WAY_OUT)


def require_seen_as_throwaway(spec: ClusterSpec, seen: ClusterObservation) -> None:
    """The same, and that what answers is that cluster: the id in ZooKeeper is the throwaway's own. Raises Refused."""
    require_throwaway(spec)
    if not was_read(seen.zookeeper) or seen.zookeeper.cluster_id != spec.cluster_id:
        found = seen.zookeeper.cluster_id if was_read(seen.zookeeper) else f"unknown ({seen.zookeeper.reason})"
        raise Refused(
            f"the cluster that answers has the id {found}, the rehearsal's is {spec.cluster_id}", way_out=_WAY_OUT
        )
