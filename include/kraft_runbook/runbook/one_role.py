"""What is made for a process with one role, and refuses a node that has both. Pure."""

from __future__ import annotations

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused


def require_one_role(spec: ClusterSpec, node_id: int, what: str) -> None:
    """Raises Refused where this node has both roles: ``what`` acts on a controller or a broker alone."""
    if spec.has_both_roles(node_id):
        raise Refused(
            f"node {node_id} has both roles in one process, and {what} is made for a process with one role",
            way_out="it was not touched; docs/both-roles.md says what such nodes can have, and what to do by hand",
        )
